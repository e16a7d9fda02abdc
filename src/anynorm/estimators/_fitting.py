"""The way of a fit: one binary problem per class, in threads, then everything stored at once.

A fit that is interrupted or fails leaves the estimator as it was before, because nothing is
written to it until all the solutions are there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from anynorm.design import Matrix
from anynorm.design.device import to_host
from anynorm.design.threads import allowed, entry_point, run
from anynorm.design.watch import look
from anynorm.estimators._messages import say_certificates, warn_if_not_converged
from anynorm.estimators._notebook import SummarisedEstimator
from anynorm.estimators.checks.chunks import by_blocks, share_right
from anynorm.estimators.checks.devices import (
    device_rows,
    followed,
    from_device,
    in_memory,
    is_elsewhere,
    to_device,
)
from anynorm.estimators.checks.labels import Labelled
from anynorm.estimators.checks.matrices import is_collection, known_matrix
from anynorm.estimators.checks.parameters import check_parameters, intercept_kind, seed
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.certificate import joint_certificate
from anynorm.problem.solution import Progress, Solution

Report = Callable[[Progress], None]
Found = TypeVar("Found")


def deadline(time_limit: float | None) -> float | None:
    """The moment on `time.monotonic`'s clock at which `time_limit` seconds from now are over."""
    return None if time_limit is None else time.monotonic() + float(time_limit)


def earlier(end: float | None, share: float) -> float | None:
    """The moment at which this share of the time up to the deadline `end` is left."""
    return None if end is None else end - share * max(0.0, end - time.monotonic())


def is_over(end: float | None) -> bool:
    """Whether the deadline `end` has passed."""
    return end is not None and time.monotonic() >= end


def labels_of(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The label with the highest score; for two classes, the sign decides."""
    best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
    return classes[best]


class FittedClassifier(SummarisedEstimator, ClassifierMixin, BaseEstimator):
    """Base class of linear and kernel classifiers: how a fit begins, and labels from scores."""

    _kept: ClassVar[tuple[str, ...]] = ("_duals",)  # private, and a part of the fitted state
    _runs_on_devices: ClassVar[bool] = False
    """Whether X may be an array of PyTorch or CuPy."""

    time_limit: float | None
    intercept_: np.ndarray
    classes_: np.ndarray

    @entry_point
    @from_device
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to learn from; of a kernel classifier with ``kernel="precomputed"`` the kernel
            matrix, of shape (n, n).
        y : array-like of shape (n,)
            Their class labels, of two classes or more.
        sample_weight : array-like of shape (n,), float or None, default=None
            The weights of the rows, at least 0; None is 1 for all.

        Returns
        -------
        FittedClassifier
            The estimator itself, fitted.

        Raises
        ------
        ValueError
            Where a parameter, the kernel or the data cannot be used; the message says which and
            what to do.

        Examples
        --------
        >>> from anynorm import SVC, LinearSVC
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]
        >>> for model in (LinearSVC(C=10.0), SVC(C=10.0, slack="linf")):
        ...     model.fit(X, y, sample_weight=[1, 2, 2, 1]).predict([[0.4], [2.6]]).tolist()
        ['low', 'high']
        ['low', 'high']
        """
        self._check()
        return self._fit(X, y, sample_weight, deadline(self.time_limit))

    def _check(self) -> None:
        """Raise where a parameter cannot be used."""
        check_parameters(self)

    def _fit(self, X: Any, y: Any, sample_weight: Any, end: float | None) -> Self:
        """Check what was given, solve until the deadline, and store what is found."""
        raise NotImplementedError

    @by_blocks
    @to_device
    def predict(self, X: Any) -> np.ndarray:
        """Predict the class labels of the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to classify; of a kernel classifier with ``kernel="precomputed"`` their kernel
            with all training rows.

        Returns
        -------
        ndarray of shape (n,)
            The label with the highest score.
        """
        return labels_of(self.decision_function(X), to_host(self.classes_))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose label is predicted, by their weights.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to classify.
        y : array-like of shape (n,)
            Their true labels.
        sample_weight : array-like of shape (n,) or None, default=None
            The weights of the rows.

        Returns
        -------
        float
            The accuracy.
        """
        if is_collection(X):
            return share_right(self, X, y, sample_weight)
        rows = device_rows(X, type(self).__name__) if is_elsewhere(X) else X
        return super().score(rows, to_host(y), sample_weight=to_host(sample_weight))

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles have: arrays of a device as NumPy's."""
        state = dict(super().__getstate__())
        return {name: in_memory(value) for name, value in state.items()}

    def _rows(self, X: Any) -> Matrix:
        """The rows of X as the model knows them."""
        return known_matrix(X, self)


def limits(estimator: Any, end: float | None) -> dict[str, Any]:
    """Where a solver stops: at the estimator's tol or max_iter, or at the deadline `end`."""
    return {"tol": float(estimator.tol), "max_iter": int(estimator.max_iter), "deadline": end}


def binary_problem(estimator: Any, data: Labelled, index: int, **regulariser: Any) -> Problem:
    """Binary problem `index` of `data`, with the estimator's C, loss and intercept."""
    return Problem(
        y=data.signs(index),
        C=float(estimator.C),
        loss=get_loss(estimator.loss),
        X=data.X,
        sample_weight=data.weights,
        intercept=intercept_kind(estimator.fit_intercept, estimator.intercept_scaling),
        **regulariser,
    )


def solve_classes(
    estimator: Any,
    data: Labelled,
    solve: Callable[..., Found],
    end: float | None,
    *,
    report: Callable[[int, Progress], None] | None,
    **regulariser: Any,
) -> list[Found]:
    """Solve the estimator's binary problems with one of the solvers, until the deadline `end`.

    `regulariser` has the pieces of `Problem` that say what is penalised; none for the 2-norm.
    """
    starts, first = warm_starts(estimator, data), seed(estimator.random_state)

    def solved(index: int, progress: Report | None) -> Found:
        return solve(
            binary_problem(estimator, data, index, **regulariser),
            **limits(estimator, end),
            seed=first,
            start=starts[index],
            progress=progress,
        )

    return run_all(data.n_problems, solved, report=report)


def run_all(
    count: int,
    solve: Callable[[int, Report | None], Found],
    *,
    report: Callable[[int, Progress], None] | None,
    in_turn: bool = False,
) -> list[Found]:
    """What ``solve(index, progress)`` returns for each of `count` problems, some at a time.

    The problems share nothing that changes, so the result does not depend on the threads; or they
    are solved one after the other, `in_turn`.  ``report(index, progress)`` is called with every
    progress report.
    """
    if count == 1 or allowed() == 1 or in_turn:
        return [solve(k, bound_to(report, k)) for k in range(count)]

    def task(index: int) -> Found:
        inner = bound_to(report, index)

        def progress(state: Progress) -> None:
            look()  # whether another task has failed
            if inner is not None:
                inner(state)

        return solve(index, progress)

    return run(task, count)


def of_any(report: Report | None) -> Callable[[int, Progress], None] | None:
    """A report for `run_all` that does not ask which problem it is about."""
    if report is None:
        return None
    return lambda _, state: report(state)


def bound_to(report: Callable[[int, Progress], None] | None, index: int) -> Report | None:
    """A report for one of the problems, None where there is none."""
    if report is None:
        return None
    return lambda state: report(index, state)


def store_linear(
    estimator: Any,
    data: Labelled,
    solutions: Sequence[Solution],
    more: Mapping[str, Any] | None = None,
) -> Any:
    """Give a linear `estimator` its fitted attributes, in one step; see `store`.

    `more` has attributes beyond those that follow from the solutions, or instead of them.
    """
    coef = np.array([solution.coef for solution in solutions], dtype=np.float64)
    return store(estimator, data, solutions, {"coef_": coef} | dict(more or {}))


def store(
    estimator: Any, data: Labelled, solutions: Sequence[Solution], special: Mapping[str, Any]
) -> Any:
    """Give `estimator` its fitted attributes, in one step, and warn where tol was not reached.

    `special` has those of its family, and those that are to be others than the solutions'.
    """
    certificate = joint_certificate([solution.certificate for solution in solutions])
    fitted = {
        "intercept_": np.array([solution.intercept for solution in solutions], dtype=np.float64),
        "classes_": data.classes,
        "n_iter_": max(solution.n_iter for solution in solutions),
        "certificate_": certificate,
        "n_features_in_": data.X.shape[1],
    }
    if getattr(estimator, "warm_start", False):
        fitted["_duals"] = [solution.dual for solution in solutions]
    fitted = followed(fitted | dict(special), data.X)
    names = fitted.pop("feature_names_in_", data.feature_names)
    keep(estimator, fitted, names)
    say_certificates(estimator, data, certificate)
    most = getattr(estimator, "max_iter", math.inf)
    warn_if_not_converged(certificate, fitted["n_iter_"], most)
    return estimator


def keep(estimator: Any, fitted: Mapping[str, Any], names: np.ndarray | None) -> None:
    """Give `estimator` what was fitted, in one step; an error before leaves the old state.

    `names` are those of the features, None where X had none; so is ``n_features_in_``.
    """
    state = {k: v for k, v in vars(estimator).items() if k != "_duals" and not k.endswith("_")}
    named = {} if names is None else {"feature_names_in_": names}
    counted = {k: v for k, v in fitted.items() if k != "n_features_in_" or v is not None}
    estimator.__dict__ = state | named | counted


def warm_starts(estimator: Any, data: Labelled) -> Sequence[np.ndarray | None]:
    """The duals of the previous fit where `warm_start` asks for them and their shapes fit."""
    duals = getattr(estimator, "_duals", None) if estimator.warm_start else None
    shape = (data.n_problems, data.X.shape[0])
    if duals is None or (len(duals), len(duals[0])) != shape:
        return [None] * data.n_problems
    return duals
