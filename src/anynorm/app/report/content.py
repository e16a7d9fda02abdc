"""What a report shows, as plain data: filled by whoever fitted, written by `write_report`.

Every report has a title, facts, notes and a certificate.  What else there is decides the page:

    PathReport      the exact path of the 1-norm SVM, explored along s
    WalkReport      a re-weighted model, explored round by round
    BudgetReport    accuracy against the number of support vectors
    GenericReport   weights and out-of-fold results of any other model

Decision values of rows by folds that held them out stand apart from those of the rows a model was
fitted to: with more features than rows the latter are perfect, and say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anynorm.estimators.paths.solution_path import SolutionPath
from anynorm.problem.certificate import Certificate

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassView:
    """One class against the others: its path, and what cross-validation says along it.

    Parameters
    ----------
    name : str
        The class for which a positive decision value speaks.
    path : SolutionPath
        The path of all rows, in the units of the matrix it was fitted on.
    target : array-like of bool of shape (n,) or None, default=None
        Whether each row is of this class; None where nothing but the path is known.
    other : str, default="rest"
        What the other rows are called: the other class's name where there are two.
    oof_s : array-like of shape (m,) or None, default=None
        Increasing places at which held-out decision values are given: all knots of all folds, so
        that the values in between are exact.
    oof_scores : array-like of shape (m, n) or None, default=None
        The decision values there of each row, by the fold that held it out; NaN where none did.
    cv_s : array-like of shape (k,) or None, default=None
        Places of the cross-validation curve, not decreasing.  A step function gives the ends of
        every step: the same place twice where it jumps (`steps` arranges that).
    cv_error, cv_error_se : array-like of shape (k,) or None, default=None
        The mean error over the folds and its standard error.
    picks : mapping of str to float, default={}
        For each rule, the s that it picks.
    chosen : str or None, default=None
        The rule that was asked for; None takes the first of `picks`.
    training_scores : array-like of shape (n, n_knots) or None, default=None
        Decision values of the training rows at the knots of the path; None asks the path, which
        knows them unless it was stored without its data.
    """

    name: str
    path: SolutionPath
    target: ArrayLike | None = None
    other: str = "rest"
    oof_s: ArrayLike | None = None
    oof_scores: ArrayLike | None = None
    cv_s: ArrayLike | None = None
    cv_error: ArrayLike | None = None
    cv_error_se: ArrayLike | None = None
    picks: Mapping[str, float] = field(default_factory=dict)
    chosen: str | None = None
    training_scores: ArrayLike | None = None

    def __post_init__(self) -> None:
        _together(self, "oof_s", "oof_scores")
        _together(self, "cv_s", "cv_error")
        if self.oof_scores is not None:
            if self.target is None:
                raise ValueError("ClassView with oof_scores needs target, the rows' classes.")
            _shaped(self, "oof_scores", (len(_array(self.oof_s)), len(_array(self.target))))
            _increasing(self, "oof_s", strictly=True)
        if self.cv_s is not None:
            _increasing(self, "cv_s")
            _shaped(self, "cv_error", (len(_array(self.cv_s)),))
            _shaped(self, "cv_error_se", (len(_array(self.cv_s)),))
        if self.training_scores is not None:
            rows = len(_array(self.target)) if self.target is not None else None
            _shaped(self, "training_scores", (rows, len(self.path.knots.s)))
        if self.chosen is not None and self.chosen not in self.picks:
            raise ValueError(
                f"chosen must be one of the picks ({', '.join(self.picks) or 'none given'}); "
                f"got {self.chosen!r}."
            )


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Decision values of rows by models that never saw them.

    Parameters
    ----------
    class_names : sequence of str
        The classes; a positive decision value of two speaks for the second.
    codes : array-like of int of shape (n,)
        The places of the rows' labels among them.
    scores : array-like of shape (n,) or (n, K)
        Out-of-fold decision values: one for two classes, one per class otherwise; NaN where a row
        was never held out.
    training_scores : array-like of the same shape or None, default=None
        The decision values of the final model, which was fitted to these rows.
    sample_names : sequence of str or None, default=None
        The rows' names; None numbers them.
    """

    class_names: Sequence[str]
    codes: ArrayLike
    scores: ArrayLike
    training_scores: ArrayLike | None = None
    sample_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        n, K = len(_array(self.codes)), len(self.class_names)
        shape = (n,) if np.ndim(self.scores) == 1 else (n, K)
        if K < 2 or (len(shape) == 1 and K != 2):
            raise ValueError(
                f"scores of shape {np.shape(self.scores)} do not go with {K} class_names: one "
                "column for two classes, one per class otherwise."
            )
        _shaped(self, "scores", shape)
        _shaped(self, "training_scores", shape)
        _named(self, "sample_names", n)


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """What all reports have.

    Parameters
    ----------
    title : str
        The page's heading.
    facts : mapping of str to str, default={}
        Short facts in order, e.g. the error with its standard error, the time, the versions.
    notes : sequence of str, default=()
        What was done to the data, in plain sentences.
    certificate : Certificate, str or None, default=None
        How far the model can be from the optimum.
    feature_names : sequence of str or None, default=None
        The names of the p features; None is x0, x1, ...
    scales : array-like of shape (p,) or None, default=None
        What the features were divided by before fitting: weights are then shown per original
        unit too.
    selection_frequency : array-like of shape (p,) or None, default=None
        The share of the folds that use the feature.
    measure : str, default="error"
        What the cross-validated error measures, e.g. "error", "balanced error", "1 - AUC".
    """

    title: str
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    certificate: Certificate | str | None = None
    feature_names: Sequence[str] | None = None
    scales: ArrayLike | None = None
    selection_frequency: ArrayLike | None = None
    measure: str = "error"

    def _check_features(self, p: int) -> None:
        _named(self, "feature_names", p)
        _shaped(self, "scales", (p,))
        _shaped(self, "selection_frequency", (p,))


@dataclass(frozen=True, kw_only=True, eq=False)
class PathReport(Report):
    """The exact path of the 1-norm SVM, one view per class (a single one for two classes).

    Parameters
    ----------
    classes : sequence of ClassView
        At least one; all with the same rows and features.
    sample_names : sequence of str or None, default=None
        The rows' names; None numbers them.
    """

    classes: Sequence[ClassView]
    sample_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not self.classes:
            raise ValueError("PathReport needs at least one ClassView in classes.")
        p = {view.path.n_features_in_ for view in self.classes}
        rows = {len(_array(view.target)) for view in self.classes if view.target is not None}
        if len(p) > 1 or len(rows) > 1:
            raise ValueError("all ClassViews of a PathReport must have the same rows and features.")
        self._check_features(p.pop())
        if rows:
            _named(self, "sample_names", rows.pop())


@dataclass(frozen=True, kw_only=True, eq=False)
class WalkReport(Report):
    """A re-weighted model, round by round.

    Parameters
    ----------
    objectives : array-like of shape (rounds,)
        The 1-norm objective after each round.
    coefs : array-like of shape (rounds, 1, p) or (rounds, K, p)
        The coefficients after each round.
    class_names : sequence of str
        All K classes.
    bound : float or None, default=None
        A value that no objective can go below.
    cv_error, cv_error_se : array-like of shape (rounds,) or None, default=None
        The mean error over the folds after each round and its standard error.
    chosen_round : int or None, default=None
        The round that the model stops at, counted from 1; None is the last.
    evaluation : Evaluation or None, default=None
        The chosen model's out-of-fold results.
    """

    objectives: ArrayLike
    coefs: ArrayLike
    class_names: Sequence[str]
    bound: float | None = None
    cv_error: ArrayLike | None = None
    cv_error_se: ArrayLike | None = None
    chosen_round: int | None = None
    evaluation: Evaluation | None = None

    def __post_init__(self) -> None:
        rounds = len(_array(self.objectives))
        problems = 1 if len(self.class_names) == 2 else len(self.class_names)
        _shaped(self, "coefs", (rounds, problems, None))
        _shaped(self, "cv_error", (rounds,))
        _shaped(self, "cv_error_se", (rounds,))
        self._check_features(np.shape(self.coefs)[2])
        if self.chosen_round is not None and not 1 <= self.chosen_round <= rounds:
            raise ValueError(
                f"chosen_round must be from 1 to {rounds}, the number of rounds; "
                f"got {self.chosen_round!r}."
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class BudgetReport(Report):
    """Kernel models on budgets: accuracy against the number of support vectors.

    Parameters
    ----------
    budgets : array-like of shape (m,)
        The budgets that were tried.
    n_support : array-like of shape (m,)
        The numbers of support vectors (in the mean over the folds, or of the fit to all rows).
    accuracy, accuracy_se : array-like of shape (m,)
        The cross-validated accuracies and their standard errors (None where unknown).
    chosen : int, default=-1
        The place of the chosen budget.
    reference : tuple of (str, float, float) or None, default=None
        A model without a budget to compare with: its name, number of support vectors, accuracy.
    support_names, support_weights : sequences or None, default=None
        The names of the support vectors of the final model, and their dual coefficients, of shape
        (n_support,) or (K, n_support).
    class_names : sequence of str, default=()
        All classes, which name the rows of `support_weights`.
    evaluation : Evaluation or None, default=None
        The chosen model's out-of-fold results.
    """

    budgets: ArrayLike
    n_support: ArrayLike
    accuracy: ArrayLike
    accuracy_se: ArrayLike | None = None
    chosen: int = -1
    reference: tuple[str, float, float] | None = None
    support_names: Sequence[str] | None = None
    support_weights: ArrayLike | None = None
    class_names: Sequence[str] = ()
    evaluation: Evaluation | None = None

    def __post_init__(self) -> None:
        m = len(_array(self.budgets))
        for name in ("n_support", "accuracy", "accuracy_se"):
            _shaped(self, name, (m,))
        if not -m <= self.chosen < m:
            raise ValueError(f"chosen must be a place among the {m} budgets; got {self.chosen!r}.")
        _together(self, "support_names", "support_weights")
        if self.support_names is not None:
            n = np.atleast_2d(np.asarray(self.support_weights)).shape[1]
            _named(self, "support_names", n)


@dataclass(frozen=True, kw_only=True, eq=False)
class GenericReport(Report):
    """Any other model: its weights, where it has some, and its out-of-fold results.

    Parameters
    ----------
    coefs : array-like of shape (1, p) or (K, p), or None, default=None
        The weights of the features.
    class_names : sequence of str, default=()
        All K classes, which name the rows of `coefs`.
    evaluation : Evaluation or None, default=None
        Out-of-fold results.
    """

    coefs: ArrayLike | None = None
    class_names: Sequence[str] = ()
    evaluation: Evaluation | None = None

    def __post_init__(self) -> None:
        if self.coefs is not None:
            _shaped(self, "coefs", (None, None))
            self._check_features(np.shape(self.coefs)[1])


def steps(low: ArrayLike, high: ArrayLike, *values: ArrayLike) -> tuple[Array, ...]:
    """Return a step function by the ends of its steps, as `ClassView` takes its curve.

    Parameters
    ----------
    low, high : array-like of shape (m,)
        The ends of the steps, as ``s_low`` and ``s_high`` of ``SparseSVCCV.cv_results_``.
    *values : array-like of shape (m,)
        What holds on each step.

    Returns
    -------
    tuple of ndarray
        The places, of shape (2 m,), and for each of the values its value there.

    Examples
    --------
    >>> from anynorm.app.report import steps
    >>> places, error = steps([0.0, 1.0], [1.0, 3.0], [0.5, 0.25])
    >>> places.tolist(), error.tolist()
    ([0.0, 1.0, 1.0, 3.0], [0.5, 0.5, 0.25, 0.25])
    """
    places = np.column_stack([_array(low), _array(high)]).ravel()
    return (places, *(np.repeat(_array(value), 2) for value in values))


def _array(values: Any) -> Array:
    return np.asarray(values, dtype=np.float64)


def _together(content: Any, first: str, second: str) -> None:
    if (getattr(content, first) is None) != (getattr(content, second) is None):
        raise ValueError(f"{type(content).__name__} needs both {first} and {second}, or neither.")


def _shaped(content: Any, name: str, shape: tuple[int | None, ...]) -> None:
    """Raise where an array that is given has another shape; None in it stands for any length."""
    value = getattr(content, name)
    if value is None:
        return
    found = np.shape(value)
    fits = len(found) == len(shape) and all(
        wanted in (None, got) for wanted, got in zip(shape, found, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{name} of {type(content).__name__} has shape {found}, not ({wanted}).")


def _increasing(content: Any, name: str, *, strictly: bool = False) -> None:
    places = _array(getattr(content, name))
    falls = np.diff(places) <= 0 if strictly else np.diff(places) < 0
    if not len(places) or falls.any() or not np.isfinite(places).all():
        raise ValueError(
            f"{name} of {type(content).__name__} must be finite numbers that "
            f"{'increase' if strictly else 'do not decrease'}."
        )


def _named(content: Any, name: str, n: int) -> None:
    names = getattr(content, name)
    if names is not None and len(names) != n:
        raise ValueError(f"{name} of {type(content).__name__} has {len(names)} names for {n}.")
