"""What every kernel classifier does: the way of its fit, and predictions from support vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from anynorm.design import Matrix, design_of
from anynorm.design.device import to_host
from anynorm.design.device_design import DeviceDesign
from anynorm.design.far_columns import far_means
from anynorm.design.limits import MEGABYTE
from anynorm.design.threads import allowed, entry_point
from anynorm.estimators._fitting import (
    FittedClassifier,
    Report,
    limits,
    run_all,
    store,
    warm_starts,
)
from anynorm.estimators._linear_model import linear_scores
from anynorm.estimators._messages import classes_printer
from anynorm.estimators.checks.chunks import by_blocks
from anynorm.estimators.checks.devices import to_device
from anynorm.estimators.checks.labels import Labelled, usable_weights, validate
from anynorm.kernels import Kernel, kernel_of, takes_matrix
from anynorm.kernels.gram import Gram, gram_of, make_gram
from anynorm.kernels.sums import KernelSums
from anynorm.losses import Loss
from anynorm.problem import Problem
from anynorm.problem.solution import Solution

if TYPE_CHECKING:
    from anynorm.solvers.kernel import KernelRows

_MEASURED_ROWS = 64  # by which float32 kernel values are judged
_NARROW_ERROR = 1e-3  # of a score, where a margin is 1, that float32 kernel values may cause


class KernelClassifier(FittedClassifier):
    """Base class: a fit, and scores from ``support_vectors_``, ``dual_coef_``, ``intercept_``.

    A subclass has its parameters and says what `_loss` they mean, perhaps more.
    """

    _kernel_of_rows: ClassVar[str] = "_sums"  # what has the kernel of the support vectors

    kernel: Any
    C: float
    n_jobs: int | None
    _duals_sum_to_zero = True
    """Whether the weights of the support vectors do, so that a linear kernel may be centred."""
    _runs_on_devices = True

    support_vectors_: Matrix
    dual_coef_: np.ndarray
    _sums: KernelSums

    def _fit(self, X: Any, y: Any, sample_weight: Any, end: float | None) -> Self:
        data, gram = validate_kernel(self, X, y, sample_weight)
        problems = kernel_problems(data, gram, self._loss(data), float(self.C))
        solutions, more = self._solved(problems, data, end, sample_weight)
        return store_kernel(self, data, gram, solutions, more)

    def _loss(self, data: Labelled) -> Loss:
        """What the slacks of these rows cost."""
        raise NotImplementedError

    def _solved(
        self, problems: Sequence[Problem], data: Labelled, end: float | None, sample_weight: Any
    ) -> tuple[Sequence[Solution], Mapping[str, Any]]:
        """The solutions of the binary problems, and fitted attributes that come with them."""
        return solve_kernels(self, data, problems, end), {}

    @by_blocks
    @to_device
    @entry_point
    def decision_function(self, X: Any) -> np.ndarray:
        """Score the rows of X: how far, and on which side of the surface, they lie.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to score.  With ``kernel="precomputed"``, the kernel of the rows to score with
            all training rows.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            ``kernel(X, support_vectors_) @ dual_coef_.T + intercept_``.  For two classes one
            score per row, above 0 for ``classes_[1]``; otherwise one column per class.  Kernel
            values are float32 where X is, here and in `fit`, and scores of the training rows come
            out within 0.001 so; otherwise they are float64.
        """
        check_is_fitted(self)
        X = self._rows(X)
        weights, intercept = to_host(self.dual_coef_), to_host(self.intercept_)
        if self._is_linear():
            return linear_scores(X, to_host(self.coef_), intercept)
        scores = self._sums_of(X)(X, weights.T) + intercept
        if not np.isfinite(scores).all():
            raise ValueError(
                "the kernel of X with the support vectors has NaN or infinite values. Check the "
                "kernel, and that X is scaled as the training data were."
            )
        return scores.ravel() if scores.shape[1] == 1 else scores

    def _sums_of(self, X: Matrix) -> KernelSums:
        """What makes the scores of X: where X is, and in float64 where X is."""
        sums, place = self._sums, getattr(X, "place", None)
        dtype = np.dtype(np.float64) if X.dtype == np.float64 and sums.narrows else sums.dtype
        if (sums.place, sums.dtype) == (place, dtype):
            return sums
        check_given_matrix(sums.kernel, X)
        points = to_host(self.support_vectors_)
        if place is not None:
            dense = points.toarray() if sp.issparse(points) else points
            points = DeviceDesign(place.put(dense), None, place)
        return gram_of(sums.kernel, points, sums.origin).sums(slice(None), dtype)

    @property
    @entry_point
    def coef_(self) -> np.ndarray:
        """The weights of the features, of shape (1, p) or (K, p), where the kernel is linear."""
        check_is_fitted(self)
        if not self._is_linear():
            used = self._used_kernel()
            raise AttributeError(
                f"coef_ is there for linear kernels only; this model has kernel={used!r}."
            )
        found = design_of(self.support_vectors_).rmatvec(to_host(self.dual_coef_).T).T
        place = getattr(design_of(self.support_vectors_), "place", None)
        return found if place is None else place.put(found)

    def _used_kernel(self) -> Any:
        """The kernel of the model, as it was given."""
        return self.kernel

    def _is_linear(self) -> bool:
        return kernel_of(self._used_kernel(), gamma="scale", degree=1, coef0=0.0).is_inner_product

    def _takes_matrix(self) -> bool:
        """Whether X is a kernel matrix."""
        return takes_matrix(self.kernel)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._takes_matrix()
        tags.input_tags.sparse = not self._takes_matrix()
        return tags


def validate_kernel(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Labelled, Gram]:
    """Check what was given to `fit`; returns it with the kernel of its rows.

    ``gamma="scale"`` counts a row as often as `sample_weight` says.
    """
    check_given_matrix(estimator.kernel, X)
    data = validate(estimator, X, y, sample_weight)
    weights = usable_weights(sample_weight, data.X.shape[0])
    resolved = given_kernel(estimator).resolved(data.X, weights)
    return data, kernel_gram(data.X, resolved, may_shift=estimator._duals_sum_to_zero)


def given_kernel(estimator: Any) -> Kernel:
    """The kernel that the parameters name, before it has seen data."""
    return kernel_of(
        estimator.kernel,
        gamma=estimator.gamma,
        degree=estimator.degree,
        coef0=float(estimator.coef0),
    )


def check_given_matrix(kernel: Any, X: Any) -> None:
    """Raise where X is to be a kernel matrix and is sparse."""
    if takes_matrix(kernel) and sp.issparse(X):
        raise ValueError(
            "X is sparse, which a precomputed kernel must not be; give a dense matrix, e.g. "
            "X.toarray()."
        )
    if takes_matrix(kernel) and isinstance(X, DeviceDesign):
        raise ValueError(
            f"X lives in {X.place}, where a precomputed kernel cannot be used; give it as a NumPy "
            "array, or a kernel and the rows instead."
        )


def kernel_gram(X: Matrix, kernel: Kernel, *, may_shift: bool = True) -> Gram:
    """The kernel of rows; inner products of rows far from the origin are those around their mean.

    Duals that sum to zero do not see the shift: others must not have it.
    """
    rows = X.tocsr() if sp.issparse(X) else X
    means = far_means(design_of(rows)) if may_shift and kernel.is_inner_product else None
    return make_gram(rows if means is None else less_means(rows, means), kernel)


def less_means(X: Any, means: np.ndarray) -> Any:
    """Dense rows, in float64, less the means of their columns."""
    if isinstance(X, DeviceDesign):
        return X.shifted(means)
    return np.asarray(X, np.float64) - means


def kernel_problems(data: Labelled, gram: Gram, loss: Loss, C: float) -> list[Problem]:
    """The binary problems of rows; a norm that cannot have these rows or weights says so."""
    problems = [
        Problem(
            y=data.signs(k),
            C=C,
            loss=loss,
            gram=gram,
            sample_weight=data.weights,
        )
        for k in range(data.n_problems)
    ]
    problems[0].zero_primal()
    return problems


def kernel_rows(estimator: Any, gram: Any, n_problems: int) -> KernelRows:
    """The rows of a kernel matrix, within the estimator's cache_size, for all its problems."""
    from anynorm.solvers.kernel import KernelRows  # Numba: for those who fit, not predict

    size = int(float(estimator.cache_size) * MEGABYTE)
    holders = min(n_problems, allowed())
    return KernelRows(gram, size, sharers=n_problems, holders=holders)


def solve_kernels(
    estimator: Any,
    data: Labelled,
    problems: Sequence[Problem],
    end: float | None,
    starts: Sequence[np.ndarray | None] | None = None,
) -> list[Solution]:
    """Solve binary problems, from `kernel_problems`, that share the rows of their kernel matrix.

    They start from the duals of the previous fit, where nothing else is given.
    """
    from anynorm.solvers.kernel import solve_kernel  # Numba: for those who fit, not predict
    from anynorm.solvers.linear import solve_linear

    rows = kernel_rows(estimator, problems[0].gram, len(problems))
    if starts is None:
        starts = warm_starts(estimator, data)

    def run(index: int, progress: Report | None) -> Solution:
        return solve_kernel(
            problems[index],
            **limits(estimator, end),
            rows=rows,
            start=starts[index],
            progress=progress,
            solve_features=solve_linear,
        )

    report = classes_printer(estimator, data)
    return run_all(len(problems), run, report=report, in_turn=rows.in_turn)


def store_kernel(
    estimator: Any,
    data: Labelled,
    gram: Gram,
    solutions: Sequence[Solution],
    more: Mapping[str, Any],
) -> Any:
    """Give a kernel `estimator` its fitted attributes, in one step; see `store`.

    `more` has attributes beyond those that follow from the solutions, or instead of them.
    """
    coefs = [coef_of(solution) for solution in solutions]
    support, counts = support_of(data, coefs)
    weights = np.array([data.signs(k)[support] * coef[support] for k, coef in enumerate(coefs)])
    if gram.kernel.is_inner_product and gram.X is not None and estimator._duals_sum_to_zero:
        gram, solutions = _as_given(gram, data.X, support, weights, solutions)
    sums = _sums_for(gram, data.X, support, weights.T)
    fitted = {
        "support_": support.astype(np.int32),
        "support_vectors_": _support_vectors(gram, support, sums),
        "dual_coef_": weights,
        "n_support_": counts,
        "_sums": sums,
    }
    return store(estimator, data, solutions, fitted | dict(more))


def _as_given(
    gram: Gram,
    X: Matrix,
    support: np.ndarray,
    weights: np.ndarray,
    solutions: Sequence[Solution],
) -> tuple[Gram, Sequence[Solution]]:
    """The linear kernel of the rows that were given, and biases for it, if means were taken off.

    The weights of the features are rounded, and a bias goes with them as they are.
    """
    means = far_means(design_of(X))
    if means is None:
        return gram, solutions
    coefs = design_of(X[support]).rmatvec(weights.T).T
    return make_gram(X, gram.kernel), [
        replace(solution, intercept=solution.intercept - float(coef @ means))
        for solution, coef in zip(solutions, coefs, strict=True)
    ]


def coef_of(solution: Solution) -> np.ndarray:
    """What the rows' kernel functions have as weights, but for the labels."""
    assert solution.coef is not None
    return solution.coef


def support_of(data: Labelled, coefs: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The rows with a coefficient that is not zero, ordered by class; how many of each class."""
    used = np.flatnonzero(np.any([coef != 0 for coef in coefs], axis=0))
    codes = data.codes[used]
    counts = np.bincount(codes, minlength=len(data.classes)).astype(np.int32)
    return used[np.argsort(codes, kind="stable")], counts


def _sums_for(gram: Gram, X: Matrix, support: np.ndarray, weights: np.ndarray) -> KernelSums:
    """What predictions are made by: float32 kernel values where X is and they are good enough."""
    wide = gram.sums(support)
    if X.dtype != np.float32 or not wide.narrows:
        return wide
    narrow = gram.sums(support, np.float32)
    few = X[np.unique(np.linspace(0, X.shape[0] - 1, _MEASURED_ROWS).astype(int))]
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(narrow(few, weights) - wide(few, weights)).max(initial=0.0)
    return narrow if error <= _NARROW_ERROR else wide


def _support_vectors(gram: Gram, support: np.ndarray, sums: KernelSums) -> Matrix:
    """The rows of X, the very ones that sums are made of where these are unchanged."""
    if gram.X is None:
        return np.empty((0, 0))
    if isinstance(gram.X, DeviceDesign):
        return gram.X[support].stored
    unchanged = sums.columns.dtype == gram.X.dtype and gram.origin is None
    return sums.columns if unchanged else gram.X[support]
