"""Linear classification on the way from the 2-norm to the 1-norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from anynorm.estimators._chunked import solve_chunked_classes
from anynorm.estimators._docs import documented_like
from anynorm.estimators._fitting import labels_of, solve_classes, store_linear
from anynorm.estimators._linear_model import LinearClassifier, linear_scores
from anynorm.estimators._messages import classes_printer
from anynorm.estimators.checks.chunks import ChunkedLabelled
from anynorm.estimators.checks.labels import Labelled
from anynorm.estimators.checks.matrices import known_matrix
from anynorm.estimators.linear_svc import LinearSVC
from anynorm.losses import Loss
from anynorm.problem.certificate import Certificate, joint_certificate
from anynorm.problem.solution import Progress

if TYPE_CHECKING:
    from anynorm.solvers.linear import Round
    from anynorm.solvers.linear.chunked import ChunkedRound


@dataclass(frozen=True, eq=False)
class WalkRecord:
    """One round of a fit, all its binary problems together.

    Attributes
    ----------
    coef : ndarray of shape (1, p) or (K, p)
        The coefficients after the round.
    intercept : ndarray of shape (1,) or (K,)
        The intercepts.
    objective : float
        The 1-norm objective, summed over the binary problems.
    n_nonzero : int
        The number of features that at least one binary problem uses.
    feature_scale : ndarray of shape (1, p) or (K, p)
        The weights of the features in the round's 2-norm problems, 0 for those left out.
    certificate : Certificate
        Of the round's 2-norm problems, as `certificate_`.
    l1_certificate : Certificate
        Of the 1-norm problems, from the same coefficients and from the rescaled duals: its
        ``dual`` is a bound that no objective can go below.
    n_iter : int
        The most iterations that a binary problem took in this round.
    """

    coef: np.ndarray
    intercept: np.ndarray
    objective: float
    n_nonzero: int
    feature_scale: np.ndarray
    certificate: Certificate
    l1_certificate: Certificate
    n_iter: int


@documented_like(LinearSVC)
class ReweightedSVC(LinearClassifier):
    r"""Linear classifier between the 2-norm and the 1-norm SVM, by re-weighted 2-norm problems.

    The first round is the 2-norm SVM.  Each further round solves it again with feature j weighted
    by :math:`\sqrt{|u_j|}`, u being the coefficients of the round before,

    .. math:: \min_{u, b}\ \tfrac12 \sum_j u_j^2 / |u_j^{\text{before}}|
              + C \sum_i v_i \, \ell\bigl(y_i (x_i^\top u + b)\bigr),

    which lowers the 1-norm objective :math:`\|u\|_1 + C \sum_i v_i \ell` in every round.  Features
    that do not help fade away; a few rounds often predict better than either end of the walk.

    Parameters
    ----------
    C : as in `LinearSVC`
    n_rounds : int, default=3
        The number of rounds; 1 is the 2-norm SVM, as `LinearSVC` fits it.
    prune : bool, default=True
        Whether to drop features that do not matter between two rounds, as exact zeros: those with
        the smallest coefficients, as long as that lowers the 1-norm objective or raises it by no
        more than the share `tol` of itself.  A feature that is missed later comes back.
    loss, fit_intercept : as in `LinearSVC`
    intercept_scaling : float or None, default=None
        None leaves the intercept unpenalised, and out of the re-weighting.  A number s makes it
        the weight of a constant feature of value s, penalised and re-weighted like all others.
    class_weight : as in `LinearSVC`
    tol : float, default=1e-4
        The relative duality gap to which every round is solved.
    max_iter : int, default=10_000
        The most iterations per round and binary problem.
    time_limit : float or None, default=None
        The most seconds for the whole fit; rounds beyond it stay where the last one was.
    warm_start : bool, default=False
        Start the first round from the previous fit's dual variables, where there are some of the
        same shape.
    n_jobs, random_state, verbose : as in `LinearSVC`

    Attributes
    ----------
    coef_ : ndarray of shape (1, p) or (K, p)
        The coefficients of the last round; dropped ones are exactly zero.
    intercept_ : ndarray of shape (1,) or (K,)
        The intercepts of the last round.
    classes_ : as in `LinearSVC`
    history_ : list of WalkRecord
        One record per round: ``coef``, ``intercept``, ``objective`` (the 1-norm objective),
        ``n_nonzero``, ``certificate``, ``l1_certificate``, ``n_iter``.  With several classes the
        objectives and certificates are sums over the one-against-the-rest problems.
    certificate_ : Certificate
        Of the last round's 2-norm problem at ``coef_`` and ``intercept_``; summed over the
        classes, with the parts in ``certificate_.per_class``.
    n_iter_ : int
        The most iterations that a round of a binary problem took.
    n_features_in_, feature_names_in_ : as in `LinearSVC`

    See Also
    --------
    ReweightedSVCCV : Chooses C and the number of rounds together.
    Reweighted : The same walk around any estimator with ``coef_``.
    LinearSVC : The first round alone.

    References
    ----------
    "A Walk from 2-Norm SVM to 1-Norm SVM", Algorithm 1.

    Examples
    --------
    >>> from anynorm import ReweightedSVC
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> model = ReweightedSVC(C=0.1, n_rounds=5).fit(X, y)
    >>> len(model.history_), model.history_[0].n_nonzero
    (5, 200)
    >>> print([f"{record.objective:.2f}" for record in model.history_])      # of the 1-norm problem
    ['6.32', '3.85', '3.68', '3.62', '3.60']
    >>> print(model.certificate_)                                            # of the last round
    optimal: primal 2.488..., dual 2.488..., relative gap ... (tol 1e-04)
    """

    _takes_chunks = True

    history_: list[WalkRecord]

    def __init__(
        self,
        C: float = 1.0,
        *,
        n_rounds: int = 3,
        prune: bool = True,
        loss: str | Loss = "hinge",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.n_rounds = n_rounds
        self.prune = prune
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit_chunks(self, data: ChunkedLabelled, end: float | None) -> Self:
        from anynorm.solvers.linear.chunked import walk_chunked  # Numba: for those who fit

        solve = partial(walk_chunked, n_rounds=int(self.n_rounds), prune=bool(self.prune))
        return store_walks(self, data, solve_chunked_classes(self, data, solve, end))

    def _fit_rows(self, data: Labelled, end: float | None) -> Self:
        return store_walks(self, data, self._walks(data, end, classes_printer(self, data)))

    def _walks(
        self, data: Labelled, end: float | None, report: Callable[[int, Progress], None] | None
    ) -> list[list[Round]]:
        """The rounds of every binary problem."""
        from anynorm.solvers.linear import walk  # Numba: for those who fit, not predict

        solve = partial(walk, n_rounds=int(self.n_rounds), prune=bool(self.prune))
        return solve_classes(self, data, solve, end, report=report)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Score the rows of X after each round.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to score.

        Yields
        ------
        ndarray of shape (n,) or (n, K)
            The `decision_function` of round 1, 2, ...

        Examples
        --------
        >>> from anynorm import ReweightedSVC
        >>> from anynorm.datasets import make_relevant
        >>> X, y = make_relevant(n_relevant=4, random_state=0)
        >>> model = ReweightedSVC(n_rounds=3).fit(X, y)
        >>> [scores.shape for scores in model.staged_decision_function(X)]
        [(100,), (100,), (100,)]
        """
        check_is_fitted(self)
        X = known_matrix(X, self)
        for record in self.history_:
            yield linear_scores(X, record.coef, record.intercept)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predict the class labels of the rows of X after each round.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to classify.

        Yields
        ------
        ndarray of shape (n,)
            What `predict` returns for round 1, 2, ...

        Examples
        --------
        >>> from anynorm import ReweightedSVC
        >>> from anynorm.datasets import make_relevant
        >>> X, y = make_relevant(n_relevant=4, random_state=0)
        >>> test, truth = make_relevant(n_relevant=4, random_state=1)
        >>> model = ReweightedSVC(C=0.1).fit(X, y)
        >>> accuracy = [(labels == truth).mean() for labels in model.staged_predict(test)]
        >>> print([f"{share:.0%}" for share in accuracy])
        ['87%', '95%', '95%']
        """
        for scores in self.staged_decision_function(X):
            yield labels_of(scores, self.classes_)


def store_walks(
    estimator: Any,
    data: Labelled,
    walks: Sequence[Sequence[Round | ChunkedRound]],
    more: dict[str, Any] | None = None,
) -> Any:
    """Give `estimator` the last rounds as its solution and all rounds as its history."""
    more = dict(more or {})
    more["history_"] = [record_of(rounds) for rounds in zip(*walks, strict=True)]
    more["n_iter_"] = max(max(part.n_iter for part in rounds) for rounds in walks)
    if getattr(estimator, "warm_start", False):
        more["_duals"] = [rounds[0].dual for rounds in walks]
    return store_linear(estimator, data, [rounds[-1] for rounds in walks], more)


def record_of(rounds: Sequence[Round | ChunkedRound]) -> WalkRecord:
    """The same round of several binary problems as one record."""
    coef = np.array([part.coef for part in rounds], dtype=np.float64)
    return WalkRecord(
        coef=coef,
        intercept=np.array([part.intercept for part in rounds], dtype=np.float64),
        objective=float(sum(part.objective for part in rounds)),
        n_nonzero=int(np.count_nonzero(coef.any(axis=0))),
        feature_scale=np.array([part.feature_scale for part in rounds]),
        certificate=joint_certificate([part.certificate for part in rounds]),
        l1_certificate=joint_certificate([part.l1_certificate for part in rounds]),
        n_iter=max(part.n_iter for part in rounds),
    )
