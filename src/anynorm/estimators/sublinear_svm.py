"""A separating vector in less time than it takes to read the points, as a function of data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anynorm.design.counted_points import CountedPoints
from anynorm.design.threads import entry_point
from anynorm.estimators.checks.parameters import check_values, is_count

if TYPE_CHECKING:
    from anynorm.solvers.simplex import SublinearSolution

_ROUNDS = (
    lambda value: value is None or is_count(value),
    "at least 1 (an integer), or None (as many rounds as eps asks for)",
)


@entry_point
def sublinear_svm(
    A: Any,
    *,
    eps: float,
    scale: float = 1.0,
    certify: bool = False,
    max_iter: int | None = None,
    random_state: int | None = 0,
) -> SublinearSolution:
    r"""Find a vector that separates points from the origin, reading few of their entries.

    With high probability its margin :math:`\min_j A_j'w` is at least the largest possible one less
    ``eps * scale``.  About :math:`3.5 (n + d) \log(n) / \epsilon^2` entries are read, or all of
    them where that would be more.

    Parameters
    ----------
    A : {array-like, sparse matrix} of shape (d, n), or lazy points
        The n points, as columns.  Lazy points have the attributes d and n and the methods
        ``column(j)``, point j, and ``entry(i, j)``, coordinate i of the points j: those of
        `anynorm.reductions.lasso_to_svm`, or your own.
    eps : float
        The accuracy, between 0 and 1, relative to `scale`.
    scale : float, default=1.0
        An upper bound of the points' lengths.
    certify : bool, default=False
        Whether to compute the margin at the end, which reads all n d entries.
    max_iter : int or None, default=None
        The number of rounds; None is ``3.5 log(n) / eps^2``.
    random_state : int or None, default=0
        The seed.

    Returns
    -------
    SublinearSolution
        The direction, its margin, the point of the simplex, and the entries read.

    See Also
    --------
    min_norm_point : the same problem to any accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm import sublinear_svm
    >>> A = np.array([[0.6, 0.6, 0.6], [0.8, -0.8, 0.0]])
    >>> found = sublinear_svm(A, eps=0.1, certify=True)
    >>> bool(0.5 <= found.margin <= 0.6 <= found.value), found.entries_read
    (True, 6)
    """
    check_values({"eps": eps, "scale": scale, "max_iter": max_iter}, max_iter=_ROUNDS)
    points = CountedPoints(A, float(scale))
    from anynorm.solvers.simplex import solve_sublinear  # Numba: for those who solve

    return solve_sublinear(
        points,
        eps=float(eps),
        certify=bool(certify),
        max_iter=None if max_iter is None else int(max_iter),
        seed=random_state,
    )
