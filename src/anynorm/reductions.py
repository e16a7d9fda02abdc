"""The Lasso as an SVM, and SVMs as a Lasso (Jaggi 2014, An Equivalence between the Lasso and SVMs).

        (1)  minimise  ||A x||^2      over the simplex, x >= 0, sum(x) = 1      the SVM
        (2)  minimise  ||A x - b||^2  over the ball ||x||_1 <= r                the Lasso

The points of an SVM are the columns of A.  `lasso_to_svm` makes (1) from (2): the ball is the hull
of its 2n corners, so the points are ``r A_j - b`` and ``-r A_j - b``, and every feasible point
keeps its value.  `svm_to_lasso` makes (2) from (1): a unit vector u with ``A_i'u >= sigma > 0`` for
all i and some D > max ||A_i|| give ``b = -u D^2 / sigma`` and the columns ``A_i + b``, for which
all optima lie in the simplex (Theorem 3).  `soft_margin` makes (1) from the SVM with squared slacks
(Lemma 2), for which such a u is known whatever the data are.

Nothing here is stored twice: points are seen through the products that solvers need.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from anynorm.design import Matrix, design_of
from anynorm.design.checks import Array, finite_matrix, finite_vector, positive, signs
from anynorm.design.points import Points, as_points
from anynorm.design.threads import entry_point

__all__ = ["LassoAsSVM", "SVMAsLasso", "SoftMargin", "lasso_to_svm", "soft_margin", "svm_to_lasso"]

_FEASIBLE = 1e-6  # how far rounding may carry a point out of its feasible set
_STRICT = 1e-6  # D is larger than the longest point by this share
_ENOUGH = 0.5  # the perceptron goes on until its margin is this share of the best possible


@entry_point
def lasso_to_svm(A: Any, b: ArrayLike, radius: float = 1.0) -> LassoAsSVM:
    """Return the SVM that is equivalent to a Lasso: 2n points for n columns, none of them stored.

    Parameters
    ----------
    A : {array-like, sparse matrix} of shape (d, n)
        The columns to combine.
    b : array-like of shape (d,)
        What they are to come near to.
    radius : float, default=1.0
        The largest 1-norm of the coefficients.

    Returns
    -------
    LassoAsSVM
        The points ``+-radius * A_j - b``, with the maps between the solutions.

    See Also
    --------
    anynorm.ConstrainedLasso : the Lasso as a regressor.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.reductions import lasso_to_svm
    >>> A, b = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, 1.0])
    >>> points = lasso_to_svm(A, b, radius=1.0)
    >>> points.d, points.n
    (2, 4)
    >>> points.column(3)
    array([-1., -3.])
    >>> z = points.to_simplex([0.25, -0.5])
    >>> float(np.sum(points.combine(z) ** 2)), float(np.sum((A @ [0.25, -0.5] - b) ** 2))
    (4.5625, 4.5625)
    """
    A = finite_matrix(A, "A")
    return LassoAsSVM(A, finite_vector(b, "b", A.shape[0], "row"), positive(radius, "radius"))


@entry_point
def lasso_by_svm(
    A: Array, b: Array, radius: float, start: Array, *, tol: float, deadline: float
) -> Array:
    """Return the coefficients of a Lasso by Wolfe's method on the equivalent SVM."""
    from anynorm.solvers.simplex.min_norm import solve_min_norm

    points = lasso_to_svm(A, b, radius)
    found = solve_min_norm(points, tol=tol, deadline=deadline, start=points.to_simplex(start))
    assert found.x is not None
    return points.to_lasso(found.x)


@entry_point
def svm_to_lasso(A: Any, w: ArrayLike | None = None, *, max_updates: int = 10_000) -> SVMAsLasso:
    """Return the Lasso that is equivalent to an SVM: the same optima, and the same values there.

    Parameters
    ----------
    A : {array-like, sparse matrix} of shape (d, n), or points such as those of `soft_margin`
        The points of the SVM, in columns.
    w : array-like of shape (d,) or None, default=None
        A vector with ``A_i'w > 0`` for all points.  None takes the known one of `soft_margin`, and
        looks for one with a perceptron otherwise.
    max_updates : int, default=10_000
        The most updates of the perceptron.

    Returns
    -------
    SVMAsLasso
        The matrix, the right-hand side and the radius of the Lasso, with the maps between the
        solutions, and what the translation costs.

    Raises
    ------
    ValueError
        Where w does not separate the points from the origin, or none was found.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.reductions import svm_to_lasso
    >>> lasso = svm_to_lasso(np.array([[2.0, 1.0], [0.0, 1.0]]), w=[1.0, 0.0])
    >>> lasso.sigma, round(lasso.D, 3), round(lasso.translation, 3)
    (1.0, 2.0, 4.0)
    >>> lasso.A.round(3)
    array([[-2., -3.],
           [ 0.,  1.]])
    >>> lasso.to_simplex([0.25, 0.5])
    array([0.33333333, 0.66666667])
    """
    points = as_points(A)
    lengths = np.sqrt(points.norms_squared())
    if not lengths.all():
        raise ValueError(
            f"point {int(lengths.argmin())} is zero: no vector separates it from the origin, and "
            "the point of least norm is 0. Leave it out, or use soft_margin(X, y, C)."
        )
    if w is None:
        w = getattr(points, "w", None)
    unit = _perceptron(points, max_updates) if w is None else _direction(w, points.d)
    margins = points.dot(unit)
    worst = int(margins.argmin())
    if not margins[worst] > 0:
        raise ValueError(
            f"w does not separate the points from the origin: point {worst} has A_i'w = "
            f"{margins[worst]:g} for w scaled to length 1. Leave w out to look for one, or use "
            "soft_margin(X, y, C)."
        )
    return SVMAsLasso(points, unit, float(margins[worst]), float(lengths.max()) * (1 + _STRICT))


@entry_point
def soft_margin(
    X: Any, y: ArrayLike | None = None, C: float = 1.0, *, offset: float | None = None
) -> SoftMargin:
    r"""Return the points of the SVM with squared slacks, whose nearest point to 0 solves it.

    That SVM minimises :math:`\tfrac12\|w\|^2 + C \sum_i \xi_i^2` under
    :math:`y_i w^\top x_i \ge 1 - \xi_i`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n, p)
        The rows.
    y : array-like of shape (n,) or None, default=None
        Their labels, -1 and +1 (or any two values, the larger one becoming +1).  None is the
        one-class SVM: all labels are +1.
    C : float, default=1.0
        The price of the squared slacks.
    offset : float or None, default=None
        The value of a constant feature, whose weight is a (penalised) bias; None is without a bias.
        The larger, the less the bias is penalised.

    Returns
    -------
    SoftMargin
        n points in p + n dimensions, seen through their products, with a vector `w` that separates
        them, and the map from the simplex to the classifier.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.reductions import soft_margin
    >>> points = soft_margin([[1.0], [-3.0]], [1, -1], C=0.5)
    >>> points.matrix()
    array([[1., 3.],
           [1., 0.],
           [0., 1.]])
    >>> points.classifier([0.75, 0.25])
    (array([0.52173913]), 0.0)
    """
    X = finite_matrix(X, "X")
    C = positive(C, "C")
    if offset is not None:
        offset = positive(offset, "offset")
    return SoftMargin(X, None if y is None else signs(y, X.shape[0]), C, offset)


class LassoAsSVM:
    """The points ``r A_j - b`` (places 0 to n - 1) and ``-r A_j - b`` (n to 2n - 1) of a Lasso.

    Made by `lasso_to_svm`.  The methods are those that solvers on the simplex ask points for.

    Attributes
    ----------
    A, b, radius : matrix, ndarray, float
        The Lasso.
    d, n : int
        The dimension and the number of the points, twice the number of columns of A.

    Examples
    --------
    >>> from anynorm.reductions import lasso_to_svm
    >>> points = lasso_to_svm([[2.0, 0.0]], [1.0])
    >>> points.entry(0, [0, 1, 2, 3])
    array([ 1., -1., -3., -1.])
    """

    def __init__(self, A: Matrix, b: Array, radius: float) -> None:
        self.A, self.b, self.radius = A, b, radius
        self._columns = design_of(A)
        self._half = self._columns.p
        self.d, self.n = self._columns.n, 2 * self._half

    def entry(self, i: Any, j: Any) -> Any:
        """Return coordinate i of point j; both may be arrays of places."""
        i, j = np.broadcast_arrays(i, j)
        values = self._columns.entries_at(i.ravel(), j.ravel() % max(self._half, 1)).reshape(
            i.shape
        )
        out = np.where(j < self._half, self.radius, -self.radius) * values - self.b[i]
        return out if out.ndim else float(out)

    def column(self, j: int) -> Array:
        """Return point j."""
        return self.columns([j])[:, 0]

    def columns(self, index: Any) -> Array:
        """Return the points `index` as the columns of a dense matrix."""
        index, sign = self._split(index)
        return self._columns.dense_columns(index) * (self.radius * sign) - self.b[:, None]

    def dot(self, w: ArrayLike) -> Array:
        """Return the product of every point with w."""
        w = np.asarray(w, dtype=np.float64)
        inner = self.radius * self._columns.rmatvec(w)
        shift = float(self.b @ w)
        return np.concatenate([inner - shift, -inner - shift])

    def combine(self, z: ArrayLike) -> Array:
        """Return the sum of the points with the coefficients z, ``A x - b`` on the simplex."""
        z = np.asarray(z, dtype=np.float64)
        x = self.radius * (z[: self._half] - z[self._half :])
        used = np.flatnonzero(x)
        return self._columns.matvec(x[used], columns=used) - float(z.sum()) * self.b

    def norms_squared(self) -> Array:
        """Return the squared lengths of the points."""
        square = self.radius**2 * self._columns.column_norms_squared() + float(self.b @ self.b)
        inner = 2 * self._along_b
        return np.maximum(np.concatenate([square - inner, square + inner]), 0.0)

    def products(self, index: Any) -> Array:
        """Return the products of all points with the points `index`, of shape (n, k)."""
        return self.kernel(None, index)

    def kernel(self, rows: Any = None, cols: Any = None) -> Array:
        """Return the matrix of products of the points `rows` with the points `cols`.

        None is all of them.  For signs s it is ``s_i s_j r^2 A_i'A_j - s_i r A_i'b - s_j r A_j'b +
        b'b``, so that only the products of the columns of A are computed.
        """
        rows = np.arange(self.n) if rows is None else rows
        cols = np.arange(self.n) if cols is None else cols
        (row, row_sign), (col, col_sign) = self._split(rows), self._split(cols)
        kept_rows, row_place = np.unique(row, return_inverse=True)
        kept_cols, col_place = np.unique(col, return_inverse=True)
        inner = self._columns.columns_gram(
            None if len(kept_rows) == self._half else kept_rows, kept_cols
        )
        inner = inner[np.ix_(row_place, col_place)] * self.radius**2
        inner *= row_sign[:, None] * col_sign
        inner -= (row_sign * self._along_b[row])[:, None]
        inner -= col_sign * self._along_b[col]
        return inner + float(self.b @ self.b)

    def largest_entry(self) -> float:
        """Return a number of the size of the largest entry."""
        return max(self.radius * self._columns.largest_entry(), float(np.abs(self.b).max()))

    def divided(self, scale: float) -> LassoAsSVM:
        """Return the points divided by `scale`, their part A of size 1."""
        size = self._columns.largest_entry() or 1.0
        A = self._columns.divided(size).stored
        return LassoAsSVM(A, self.b / scale, self.radius * (size / scale))

    def to_lasso(self, z: ArrayLike) -> Array:
        """Return the coefficients of the Lasso for a point of the simplex."""
        z = _of_simplex(z, self.n)
        return self.radius * (z[: self._half] - z[self._half :])

    def to_simplex(self, x: ArrayLike) -> Array:
        """Return a point of the simplex, of the same value, for coefficients of the Lasso.

        What is left of the radius goes in equal parts to the two signs of the largest coefficient,
        where it has no effect.
        """
        x = finite_vector(x, "x", self._half, "column of A")
        size = float(np.abs(x).sum())
        if size > self.radius * (1 + _FEASIBLE):
            raise ValueError(
                f"x has the 1-norm {size:g}, which is more than the radius {self.radius:g}."
            )
        x = x / max(size, self.radius)
        z = np.concatenate([np.maximum(x, 0.0), np.maximum(-x, 0.0)])
        j = int(np.abs(x).argmax())
        z[[j, j + self._half]] += 0.5 * max(0.0, 1.0 - float(z.sum()))
        return z

    @cached_property
    def _along_b(self) -> Array:
        return self.radius * self._columns.rmatvec(self.b)

    def _split(self, index: Any) -> tuple[NDArray[np.intp], Array]:
        """The columns of A that some points come from, and their signs."""
        index = np.asarray(index, dtype=np.intp).ravel()
        return index % max(self._half, 1), np.where(index < self._half, 1.0, -1.0)


class SVMAsLasso:
    """A Lasso with the solutions of an SVM.  Made by `svm_to_lasso`.

    Attributes
    ----------
    b : ndarray of shape (d,)
        The right-hand side, ``-D^2 / sigma`` times the unit vector that separates the points.
    radius : float
        1.
    sigma : float
        The margin of that vector, the least ``A_i'w / ||w||``.
    D : float
        A bound on the lengths of the points, a millionth above the largest.
    translation : float
        The length of b, ``D^2 / sigma``.
    digits_lost : float
        How many decimal digits of the residual the translation can cost, ``2 log10(D / sigma)``:
        entries as large as `translation` are rounded, and cancel in a residual that may be as short
        as sigma.  A solver that works with products of the columns can lose twice as many.

    Examples
    --------
    >>> from anynorm.reductions import soft_margin, svm_to_lasso
    >>> lasso = svm_to_lasso(soft_margin([[1.0], [-3.0], [0.5]], [1, -1, -1], C=1.0))
    >>> round(lasso.sigma, 4), round(lasso.digits_lost, 2)
    (0.4082, 1.76)
    """

    def __init__(self, points: Points, unit: Array, sigma: float, D: float) -> None:
        self.points, self.sigma, self.D = points, sigma, D
        self.radius = 1.0
        self.translation = D**2 / sigma
        self.digits_lost = max(0.0, 2 * math.log10(D / sigma))
        self.b = -self.translation * unit

    @cached_property
    def A(self) -> Array:
        """The columns of the Lasso, ``A_i + b``; made when first asked for."""
        return self.points.columns(np.arange(self.points.n)) + self.b[:, None]

    def residual(self, x: ArrayLike) -> Array:
        """Return ``A x - b`` by the paper's (6), as ``sum_i x_i A_i + (sum(x) - 1) b``.

        For points of the simplex the translation, and its rounding, drop out.
        """
        x = finite_vector(x, "x", self.points.n, "point")
        return self.points.combine(x) + (math.fsum(x) - 1.0) * self.b

    def objective(self, x: ArrayLike) -> float:
        """Return ``||A x - b||^2``, without the loss of digits that A and b have."""
        residual = self.residual(x)
        return float(residual @ residual)

    def to_lasso(self, x: ArrayLike) -> Array:
        """Return the coefficients of the Lasso for a point of the simplex: the same vector."""
        return _of_simplex(x, self.points.n).copy()

    def to_simplex(self, x: ArrayLike) -> Array:
        """Return a point of the simplex of the same or a smaller value than the coefficients x.

        Negative entries are flipped (Proposition 4), then all scaled to the sum 1 (Proposition 5);
        either lowers the value.
        """
        x = np.abs(finite_vector(x, "x", self.points.n, "point"))
        size = float(x.sum())
        if not size > 0:
            raise ValueError("x is zero: it has no direction to scale to the simplex.")
        if size > self.radius * (1 + _FEASIBLE):
            raise ValueError(f"x has the 1-norm {size:g}, which is more than the radius 1.")
        return x / size


class SoftMargin:
    """The points ``(y_i x_i, e_i / sqrt(2C))`` of an SVM with squared slacks.

    Made by `soft_margin`.  The methods are those that solvers on the simplex ask points for.

    Attributes
    ----------
    X, y, C, offset : matrix, ndarray or None, float, float or None
        The problem, the labels as -1.0 and +1.0.
    d, n : int
        The dimension and the number of the points.

    Examples
    --------
    >>> from anynorm.reductions import soft_margin
    >>> points = soft_margin([[3.0], [4.0]], C=0.5, offset=2.0)
    >>> points.norms_squared()
    array([14., 21.])
    >>> points.dot(points.w) / points.sigma
    array([1., 1.])
    """

    def __init__(self, X: Matrix, y: Array | None, C: float, offset: float | None) -> None:
        self.X, self.y, self.C, self.offset = X, y, C, offset
        self._rows = design_of(X)
        self.n, self._p = self._rows.shape
        self._sign = np.ones(self.n) if y is None else y
        self._slack = 1.0 / math.sqrt(2.0 * C)
        self.d = self._p + (offset is not None) + self.n

    @property
    def w(self) -> Array:
        """A unit vector that separates the points from the origin, with the margin `sigma`."""
        out = np.zeros(self.d)
        out[self.d - self.n :] = 1.0 / math.sqrt(self.n)
        return out

    @property
    def sigma(self) -> float:
        """The margin of `w`, ``1 / sqrt(2 n C)``."""
        return self._slack / math.sqrt(self.n)

    def columns(self, index: Any) -> Array:
        """Return the points `index` as the columns of a dense matrix."""
        index = np.asarray(index, dtype=np.intp).ravel()
        out = np.zeros((self.d, len(index)))
        out[: self._p] = self._rows.dense_rows(index).T * self._sign[index]
        if self.offset is not None:
            out[self._p] = self.offset * self._sign[index]
        out[self.d - self.n + index, np.arange(len(index))] = self._slack
        return out

    def matrix(self) -> Any:
        """Return all points as the columns of a matrix, a sparse one where X is sparse."""
        if not self._rows.sparse:
            return self.columns(np.arange(self.n))
        blocks = [self.X.T.astype(np.float64).multiply(self._sign)]
        if self.offset is not None:
            blocks.append(sp.csr_array(self.offset * self._sign[None, :]))
        blocks.append(self._slack * sp.eye_array(self.n))
        return sp.csc_array(sp.vstack(blocks))

    def dot(self, w: ArrayLike) -> Array:
        """Return the product of every point with w."""
        w = np.asarray(w, dtype=np.float64)
        scores = self._rows.matvec(w[: self._p])
        if self.offset is not None:
            scores = scores + self.offset * w[self._p]
        return self._sign * scores + self._slack * w[self.d - self.n :]

    def combine(self, x: ArrayLike) -> Array:
        """Return the sum of the points with the coefficients x."""
        x = np.asarray(x, dtype=np.float64)
        signed = self._sign * x
        middle = [] if self.offset is None else [self.offset * float(signed.sum())]
        return np.concatenate([self._rows.rmatvec(signed), middle, self._slack * x])

    def norms_squared(self) -> Array:
        """Return the squared lengths of the points."""
        return self._rows.row_norms_squared() + (self.offset or 0.0) ** 2 + 0.5 / self.C

    def products(self, index: Any) -> Array:
        """Return the products of all points with the points `index`, of shape (n, k)."""
        return self.kernel(None, index)

    def kernel(self, rows: Any = None, cols: Any = None) -> Array:
        """Return the matrix of products of the points `rows` with the points `cols`.

        None is all of them.  It is ``y_i y_j (x_i'x_j + offset^2) + 1/(2C) [i = j]``.
        """
        every = np.arange(self.n)
        rows, cols = (
            every if index is None else np.asarray(index, dtype=np.intp).ravel()
            for index in (rows, cols)
        )
        inner = self._rows.rows_gram(rows, cols)
        inner += (self.offset or 0.0) ** 2
        inner *= self._sign[rows][:, None] * self._sign[cols]
        inner[rows[:, None] == cols] += 0.5 / self.C
        return inner

    def guess(self, deadline: float = math.inf) -> Array:
        """Return a point of the simplex that is nearly the best one, through the primal problem."""
        from anynorm.solvers.linear.squared_slack import squared_slack_duals

        duals = squared_slack_duals(self._rows, self._sign, self.C, self.offset, deadline)
        total = float(duals.sum())
        return duals / total if total > 0 else np.full(self.n, 1.0 / self.n)

    def dual(self, x: ArrayLike) -> Array:
        """Return the dual variables of the SVM for a point of the simplex, ``x / ||A x||^2``."""
        x = _of_simplex(x, self.n)
        nearest = self.combine(x)
        return x / float(nearest @ nearest)

    def objective(self, x: ArrayLike) -> float:
        """Return the SVM's dual objective at `dual(x)`, ``1 / (2 ||A x||^2)``."""
        nearest = self.combine(_of_simplex(x, self.n))
        return 0.5 / float(nearest @ nearest)

    def classifier(self, x: ArrayLike) -> tuple[Array, float]:
        """Return the weights and the bias of the SVM for a point of the simplex.

        A row is classified by the sign of ``w'x + b``.  For one class the bias is less by 1, the
        margin that the rows are asked for: scores below zero lie outside.
        """
        nearest = self.combine(self.dual(x))
        bias = 0.0 if self.offset is None else self.offset * float(nearest[self._p])
        return nearest[: self._p], bias - (self.y is None)


def _perceptron(points: Points, max_updates: int) -> Array:
    """A unit vector that separates the points, by adding the worst point again and again.

    The steps are those that bring the mean of the points that were added nearest to the origin
    (Gilbert 1966).  Its length bounds the best margin, so that a good one is known.
    """
    mean = points.combine(np.full(points.n, 1.0 / points.n))
    best, best_margin = mean, -math.inf
    for _ in range(max_updates):
        length = float(np.linalg.norm(mean))
        if length == 0:
            break
        products = points.dot(mean)
        worst = int(products.argmin())
        if products[worst] / length > best_margin:
            best, best_margin = mean / length, float(products[worst]) / length
        if best_margin >= _ENOUGH * length:
            return best
        move = points.columns(np.array([worst]))[:, 0] - mean
        share = -float(move @ mean) / float(move @ move)
        mean = mean + min(share, 1.0) * move
    if best_margin > 0:
        return best
    raise ValueError(
        f"no vector that separates the points from the origin was found in {max_updates} updates "
        "of the perceptron: the origin may lie in their convex hull, and then there is none and "
        "the least norm is 0. Give w if you know one, raise max_updates if the margin is small, or "
        "use soft_margin(X, y, C), which always has one."
    )


def _direction(w: Any, d: int) -> Array:
    w = finite_vector(w, "w", d, "coordinate of the points")
    length = float(np.linalg.norm(w))
    if length == 0:
        raise ValueError("w is zero; give a vector that separates the points from the origin.")
    return w / length


def _of_simplex(x: Any, n: int) -> Array:
    x = finite_vector(x, "x", n, "point")
    if x.min(initial=0.0) < -_FEASIBLE or abs(float(x.sum()) - 1.0) > _FEASIBLE:
        raise ValueError(
            f"x must lie in the simplex; its least entry is {x.min():g} and its sum {x.sum():g}."
        )
    return x
