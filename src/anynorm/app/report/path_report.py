"""The exact path of the 1-norm SVM, explored along s.

The page needs the path at its knots, where coefficients change their slope, and straight lines in
between: a few thousand numbers where a dense table would have millions.  Coefficients are kept in
float64, so that the page computes what `SolutionPath.coef_at` does; decision values in float32.
Paths and tables beyond the limits below are kept at fewer places, and the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from anynorm.app.report.content import (
    Array,
    Report,
    array,
    numbers,
    optional,
    require_both,
    require_increasing,
    require_names,
    require_shape,
    texts,
)
from anynorm.estimators.paths.solution_path import SolutionPath

COEFFICIENTS = 1 << 19
"""The most coefficients that a report keeps."""

SCORES = 1 << 19
"""The most out-of-fold decision values that a report keeps."""

TRAINING_SCORES = 1 << 17
"""The most decision values of training rows that it keeps: they are only there to compare."""

TRAINING_ROWS = 5000
"""The most training rows that are scored for a report."""


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
        require_both(self, "oof_s", "oof_scores")
        require_both(self, "cv_s", "cv_error")
        if self.oof_scores is not None:
            if self.target is None:
                raise ValueError("ClassView with oof_scores needs target, the rows' classes.")
            require_shape(self, "oof_scores", (len(numbers(self.oof_s)), len(numbers(self.target))))
            require_increasing(self, "oof_s", strictly=True)
        if self.cv_s is not None:
            require_increasing(self, "cv_s")
            require_shape(self, "cv_error", (len(numbers(self.cv_s)),))
            require_shape(self, "cv_error_se", (len(numbers(self.cv_s)),))
        if self.training_scores is not None:
            rows = len(numbers(self.target)) if self.target is not None else None
            require_shape(self, "training_scores", (rows, len(self.path.knots.s)))
        if self.chosen is not None and self.chosen not in self.picks:
            raise ValueError(
                f"chosen must be one of the picks ({', '.join(self.picks) or 'none given'}); "
                f"got {self.chosen!r}."
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class PathReport(Report):
    """The exact path of the 1-norm SVM, one view per class (a single one for two classes).

    Parameters
    ----------
    classes : sequence of ClassView
        At least one; all with the same rows and features.
    sample_names : sequence of str or None, default=None
        The rows' names; None numbers them.
    in_common : {"s", "C", "nothing"}, default="s"
        What several classes have in common: moving one moves the others to the same s or the same
        C, or leaves them where they are.
    prices : mapping of str to float, default={}
        For each rule the C that all classes have there, where that is what they have in common.
    """

    kind = "path"
    scripts = ("path.js", "explorer.js")

    classes: Sequence[ClassView]
    sample_names: Sequence[str] | None = None
    in_common: str = "s"
    prices: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.in_common not in ("s", "C", "nothing"):
            raise ValueError(
                f"in_common must be one of 's', 'C', 'nothing'; got {self.in_common!r}."
            )
        if not self.classes:
            raise ValueError("PathReport needs at least one ClassView in classes.")
        p = {view.path.n_features_in_ for view in self.classes}
        rows = {len(numbers(view.target)) for view in self.classes if view.target is not None}
        if len(p) > 1 or len(rows) > 1:
            raise ValueError("all ClassViews of a PathReport must have the same rows and features.")
        self._check_features(p.pop())
        if rows:
            require_names(self, "sample_names", rows.pop())

    def packed(self) -> dict[str, Any]:
        page = self._shared(self.classes[0].path.n_features_in_)
        views = [_class(view, len(self.classes)) for view in self.classes]
        thinned = [note for _, notes in views for note in notes]
        return page | {
            "samples": texts(self.sample_names),
            "inCommon": self.in_common,
            "prices": {str(rule): float(C) for rule, C in self.prices.items()},
            "classes": [view for view, _ in views],
            "notes": page["notes"] + list(dict.fromkeys(thinned)),
        }


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
    >>> from anynorm import report
    >>> places, error = report.steps([0.0, 1.0], [1.0, 3.0], [0.5, 0.25])
    >>> places.tolist(), error.tolist()
    ([0.0, 1.0, 1.0, 3.0], [0.5, 0.5, 0.25, 0.25])
    """
    places = np.column_stack([numbers(low), numbers(high)]).ravel()
    return (places, *(np.repeat(numbers(value), 2) for value in values))


def ending_at(curve: Sequence[Array], points: Sequence[tuple[float, ...]]) -> tuple[Array, ...]:
    """Return a curve that has these points last wherever it jumps at their place.

    Where classes have C in common, one s belongs to a range of C with several scores; a pick is at
    one of them.

    Parameters
    ----------
    curve : sequence of ndarray of shape (m,)
        The places, not decreasing, and values there.
    points : sequence of tuple
        A place and its values each; of several at one place the last counts.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.app.report.path_report import ending_at
    >>> places, error = ending_at([np.array([0.0, 1.0, 1.0, 3.0]), np.full(4, 0.5)], [(1.0, 0.25)])
    >>> places.tolist(), error.tolist()
    ([0.0, 1.0, 1.0, 1.0, 3.0], [0.5, 0.5, 0.5, 0.25, 0.5])
    """
    found = tuple(curve)
    for place, *values in points:
        after = int(np.searchsorted(found[0], place, side="right"))
        pairs = zip(found, (place, *values), strict=True)
        found = tuple(np.insert(along, after, value) for along, value in pairs)
    return found


def _class(view: ClassView, n_classes: int) -> tuple[dict[str, Any], list[str]]:
    """One class, and what the reader must know about places that were left out."""
    picks = np.array(list(view.picks.values()), dtype=np.float64)
    path, notes = _path(view.path, picks, COEFFICIENTS // n_classes)
    page = path | {
        "name": str(view.name),
        "other": str(view.other),
        "picks": [[str(rule), float(s)] for rule, s in view.picks.items()],
        "chosen": view.chosen if view.chosen is not None else next(iter(view.picks), None),
        "cv": None,
        "oof": None,
    }
    if view.cv_s is not None:
        page["cv"] = {
            "s": array(view.cv_s, "f8"),
            "error": array(view.cv_error, "f4"),
            "se": optional(view.cv_error_se, "f4"),
        }
    if view.oof_scores is not None:
        s, scores = np.asarray(view.oof_s, dtype=np.float64), np.asarray(view.oof_scores)
        places = _places(s, picks, SCORES // n_classes // scores.shape[1])
        if len(places) < len(s):
            scores = _mixing(s, places) @ scores
            notes.append(
                f"Out-of-fold decision values are kept at {len(places)} of {len(s)} places, the "
                "picks of the rules among them, and run straight in between."
            )
        page["oof"] = {"s": array(places, "f8"), "scores": array(scores, "f4")}
    target, page["training"] = _training(view, picks, TRAINING_SCORES // n_classes)
    page["target"] = None if target is None else array(target, "u1")
    return page, notes


def _path(
    path: SolutionPath, picks: NDArray[np.float64], room: int
) -> tuple[dict[str, Any], list[str]]:
    knots, notes = path.knots, []
    count = len(knots.s) if knots.coefs.nnz <= room else len(knots.s) * room // knots.coefs.nnz
    places = _places(knots.s, picks, count)
    coefs, intercepts, losses = knots.coefs, knots.intercepts, knots.losses
    keep = np.searchsorted(knots.s, places, side="right") - 1
    if len(places) < len(knots.s):
        mixing = knots.mixing(places)
        coefs, intercepts, losses = mixing @ coefs, mixing @ intercepts, mixing @ losses
        notes.append(
            f"The path has {len(knots.s)} knots with {knots.coefs.nnz} coefficients; this file "
            f"keeps {len(places)} places of it, the picks of the rules among them, and draws "
            "straight lines in between."
        )
    return {
        "s": array(places, "f8"),
        "penalties": array(knots.penalties[keep], "f8"),
        "gaps": array(knots.gaps[keep], "f8"),
        "intercepts": array(intercepts, "f8"),
        "losses": array(losses, "f8"),
        "indptr": array(coefs.indptr, "i4"),
        "indices": array(coefs.indices, "i4"),
        "values": array(coefs.data, "f8"),
        "stopped": path.stopped,
        "joints": path.n_joints,
    }, notes


def _training(
    view: ClassView, picks: NDArray[np.float64], room: int
) -> tuple[NDArray[np.bool_] | None, dict[str, Any] | None]:
    """The rows' classes and their decision values by the model that was fitted to them."""
    target = None if view.target is None else np.asarray(view.target, dtype=bool)
    knots, rows = view.path.knots, view.path.training_rows()
    if view.training_scores is not None and target is not None:
        scores = np.asarray(view.training_scores)
        places = _places(knots.s, picks, room // max(1, len(scores)))
        if len(places) < len(knots.s):
            scores = scores @ knots.mixing(places).T
    elif rows is not None and len(rows[1]) <= TRAINING_ROWS:
        places = _places(knots.s, picks, room // len(rows[1]))
        scores = knots.scores(rows[0], places)
        target = rows[1] if target is None else target
    else:
        return target, None
    return target, {"s": array(places, "f8"), "scores": array(scores.T, "f4")}


def _places(s: NDArray[np.float64], picks: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """All of s where it is no more than `count`, otherwise so many of them, and the picks."""
    if len(s) <= count:
        return s
    some = s[np.linspace(0, len(s) - 1, max(2, count)).astype(np.intp)]
    return np.unique(np.append(some, np.clip(picks, s[0], s[-1])))


def _mixing(s: NDArray[np.float64], places: NDArray[np.float64]) -> sp.csr_array:
    """The matrix that takes values at s to values at places between them."""
    after = np.clip(np.searchsorted(s, places, side="right"), 1, len(s) - 1)
    share = (places - s[after - 1]) / (s[after] - s[after - 1])
    rows = np.arange(len(places))
    pairs = np.concatenate([rows, rows]), np.concatenate([after - 1, after])
    return sp.csr_array((np.concatenate([1 - share, share]), pairs), shape=(len(places), len(s)))
