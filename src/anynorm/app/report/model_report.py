"""The report of a fitted model, from what it knows of itself and of rows that it never saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from anynorm.app.report.content import (
    Evaluation,
    GridView,
    ReliabilityView,
    Report,
    fold_scores,
)
from anynorm.app.report.generic_report import GenericReport
from anynorm.app.report.path_report import ClassView, PathReport, ending_at, steps
from anynorm.app.report.walk_report import WalkReport
from anynorm.estimators._cross_validation import standard_error
from anynorm.estimators._fitting import FittedClassifier, labels_of
from anynorm.estimators._notebook import facts_of
from anynorm.estimators._prepared_folds import names_made_by
from anynorm.estimators._probabilities import brier_score, reliability
from anynorm.estimators.paths.accuracy import knots_at
from anynorm.estimators.paths.solution_path import SolutionPath
from anynorm.estimators.reweighted_svc import ReweightedSVC
from anynorm.estimators.sparse_svc_cv import SparseSVCCV
from anynorm.estimators.svc_cv import SVCCV


def report_of(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
    sample_names: Sequence[str] | None = None,
) -> Report:
    """Return what the report of a model or a path shows.

    Parameters
    ----------
    model : classifier, Pipeline or SolutionPath
        A fitted classifier of anynorm, a pipeline that ends in one, or a path.
    X, y : array-like or None, default=None
        Rows that the model has not seen, and their labels: the page begins with how it does on
        them.  None shows what the model knows of itself.
    title : str or None, default=None
        The page's heading; None is the name of the class.
    sample_names : sequence of str or None, default=None
        The names of the rows of X; None numbers them.

    Returns
    -------
    Report
        A `PathReport` of `SparseSVCCV` or a path, a `WalkReport` of a re-weighted model, otherwise
        a `GenericReport`.

    Examples
    --------
    >>> from anynorm import SparseSVCCV, report
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(100, n_relevant=4, random_state=0)
    >>> model = SparseSVCCV(rule="one_se").fit(X[:80], y[:80])
    >>> content = report.report_of(model, X[80:], y[80:])
    >>> type(content).__name__, list(content.facts)
    ('PathReport', ['Error', 'Cross-validated accuracy', 'Features', 'Rule'])
    """
    if isinstance(model, SolutionPath):
        return path_content(model, title or "Solution path")
    *before, last = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if not isinstance(last, FittedClassifier):
        raise TypeError(
            "model must be a fitted classifier of anynorm, a pipeline that ends in one, a "
            f"SolutionPath or a Report; got {type(last).__name__}."
        )
    check_is_fitted(last)
    if (X is None) != (y is None):
        raise ValueError("X and y go together: rows that the model has not seen, and their labels.")
    facts = {name: text for name, text in facts_of(last) if name != "Certificate"}
    shared: dict[str, Any] = {
        "title": title or type(last).__name__,
        "certificate": last.certificate_,
        "selection_frequency": getattr(last, "selection_frequency_", None),
        **_features(last, before),
    }
    if X is not None:
        seen = _Seen(model, last, X, y, sample_names)
        facts = {"Error": seen.error} | facts
        shared |= {"evaluation": seen.evaluation(), "reliability": seen.reliability()}
    if hasattr(last, "rule"):
        facts["Rule"] = str(last.rule)
    shared["facts"] = facts
    classes = [str(label) for label in last.classes_]
    if isinstance(last, SparseSVCCV):
        common = _IN_COMMON[last.multiclass] if len(classes) > 2 else "s"
        return PathReport(classes=_views(last, classes), in_common=common, **shared)
    if isinstance(last, ReweightedSVC):
        return WalkReport.of(last, class_names=classes, grid=_grid(last), **shared)
    return GenericReport(coefs=_coefs(last), class_names=classes, grid=_grid(last), **shared)


def path_content(path: SolutionPath, title: str) -> PathReport:
    """Return what the report of a path alone shows."""
    classes = [str(label) for label in getattr(path, "classes_", ("rest", "positive"))]
    return PathReport(
        title=title,
        classes=[ClassView(classes[1], path, other=classes[0])],
        feature_names=getattr(path, "feature_names_in_", None),
    )


class _Seen:
    """How a model does on rows that are given to the report."""

    def __init__(self, model: Any, last: Any, X: Any, y: Any, names: Any) -> None:
        labels, self.classes = column_or_1d(y), last.classes_
        known = {label: place for place, label in enumerate(self.classes.tolist())}
        missing = sorted({str(label) for label in labels.tolist() if label not in known})
        if missing:
            raise ValueError(
                f"y has the label {missing[0]!r}, which the model does not know; it knows "
                f"{', '.join(map(repr, known))}."
            )
        self.codes = np.array([known[label] for label in labels.tolist()])
        self.scores = model.decision_function(X)
        self.proba = model.predict_proba(X) if hasattr(model, "predict_proba") else None
        self.names = names

    @property
    def error(self) -> str:
        wrong = labels_of(self.scores, self.classes) != self.classes[self.codes]
        return (
            f"{wrong.mean():.1%} ± {standard_error(wrong):.1%} ({len(wrong)} rows it had not seen)"
        )

    def evaluation(self) -> Evaluation:
        return Evaluation(
            class_names=[str(label) for label in self.classes],
            codes=self.codes,
            scores=self.scores,
            sample_names=self.names,
            judged_by="rows that it had not seen",
        )

    def reliability(self) -> ReliabilityView | None:
        if self.proba is None:
            return None
        shown = [1] if len(self.classes) == 2 else range(len(self.classes))
        return ReliabilityView(
            class_names=[str(self.classes[k]) for k in shown],
            curves=[reliability(self.codes == k, self.proba[:, k]) for k in shown],
            brier=brier_score(self.codes, self.proba),
        )


def _features(last: Any, before: list[Any]) -> dict[str, Any]:
    """The names of the model's features, and what they were divided by."""
    if hasattr(last, "preprocessor_"):
        maker = last.preprocessor_
    elif before:
        maker = Pipeline([(str(place), step) for place, step in enumerate(before)])
    else:
        return {"feature_names": getattr(last, "feature_names_in_", None)}
    if _coefs(last) is None:
        return {}
    scaler = maker[-1] if isinstance(maker, Pipeline) else maker
    divides = isinstance(scaler, StandardScaler | MaxAbsScaler | RobustScaler)
    return {
        "feature_names": names_made_by(maker),
        "scales": scaler.scale_ if divides else None,
    }


def _coefs(last: Any) -> Any:
    coefs: Any = getattr(last, "coef_", None)
    return coefs.toarray() if hasattr(coefs, "toarray") else coefs


_IN_COMMON = {"one_C": "C", "one_s": "s", "each": "nothing"}


def _views(model: Any, classes: list[str]) -> list[ClassView]:
    """The path of each class, with the curve and the choice of the cross-validation."""
    table = model.cv_results_
    scores = fold_scores(table)
    error, spread = 1.0 - scores.mean(axis=1), np.array([standard_error(row) for row in scores])
    views = []
    for k, path in enumerate(model.paths_):
        ends = [table.get("s_low"), table.get("s_high")]
        if ends[0] is None:  # several classes have one C: the curve is one of that
            prices = [table["C_low"], table["C_high"]]
            ends = [path.knots.s[knots_at(path, each)] for each in prices]
        curve = steps(*ends, error, spread)
        pick = float(np.atleast_1d(model.s_)[k])
        if "s_low" not in table:
            row = model.best_index_
            curve = ending_at(curve, [(pick, error[row], spread[row])])
        s, along, band = curve
        two = len(classes) == 2
        views.append(
            ClassView(
                name=classes[1 if two else k],
                other=classes[0] if two else "rest",
                path=path,
                cv_s=s,
                cv_error=along,
                cv_error_se=band,
                picks={str(model.rule): pick},
            )
        )
    return views


def _grid(model: Any) -> GridView | None:
    """The errors of all settings, where they are a grid of C and perhaps one thing more."""
    if not isinstance(model, SVCCV) and not hasattr(model, "n_rounds_"):
        return None
    table = model.cv_results_
    tried = table["params"]
    if any(not {"C"} <= set(each) <= {"C", "gamma", "n_rounds"} for each in tried):
        return None
    return GridView.of(tried, fold_scores(table), model.best_index_, {"n_rounds": "rounds"})
