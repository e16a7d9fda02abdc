"""What a fit found, as the content of its report."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from anynorm.app.job.fit import Fitted
from anynorm.app.job.grid_learning import GridDetail
from anynorm.app.job.learning import GridScores
from anynorm.app.job.measures import MEASURES
from anynorm.app.job.path_learning import PathDetail
from anynorm.app.job.results import (
    BASELINE,
    choice_of,
    chosen_on,
    n_chosen,
    repeats_words,
    versions,
)
from anynorm.app.report import (
    BudgetReport,
    ClassView,
    Evaluation,
    GenericReport,
    GridView,
    PathReport,
    ReliabilityView,
    Report,
    WalkReport,
    steps,
)
from anynorm.app.report.path_report import ending_at
from anynorm.estimators._cross_validation import standard_error
from anynorm.estimators._probabilities import brier_score, reliability
from anynorm.estimators.paths.accuracy import knots_at

_MOST_ENTRIES = 20_000_000  # held-out decision values of one class along the path
_MOST_PLACES = 1000  # at which they are shown: more than a picture has points


def content_of(fitted: Fitted) -> Report:
    """Return what the report of this model shows."""
    learned, source = fitted.learned, pathlib.Path(fitted.table.source).name
    shared = {
        "title": f"{fitted.table.target_name or 'target'} from {source}",
        "facts": facts(fitted),
        "notes": [*fitted.notes, *fitted.problems],
        "certificate": learned.model.certificate_,
        "caution": caution(fitted),
        "feature_names": [str(name) for name in learned.preparation.get_feature_names_out()],
        "scales": learned.preparation.scales_ if fitted.options.scale == "standard" else None,
        "selection_frequency": learned.selection_frequency,
        "measure": MEASURES[fitted.options.scoring],
        "evaluation": _evaluation(fitted),
        "reliability": _reliability(fitted),
        "grid": _grid(fitted),
        "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
    }
    if isinstance(learned.detail, PathDetail):
        return _path_report(fitted, shared)
    return _REPORTS.get(fitted.options.model, _generic_report)(fitted, shared)


def _reliability(fitted: Fitted) -> ReliabilityView | None:
    """How good the probabilities of rows are that the model had no part in."""
    judged, names = fitted.judged, [str(label) for label in fitted.classes]
    if judged.probabilities is None:
        return None
    shown = [1] if len(names) == 2 else range(len(names))
    return ReliabilityView(
        class_names=[names[k] for k in shown],
        curves=[reliability(judged.y == k, judged.probabilities[:, k]) for k in shown],
        brier=brier_score(judged.y, judged.probabilities),
    )


def caution(fitted: Fitted) -> str:
    """What stands in amber beside the certificate: why the model is not to be praised."""
    if fitted.no_better:
        return fitted.no_better
    if fitted.cut:
        words = fitted.learned.cut_words or "--time-limit ended a part of the searches"
        return f"The best model in the time: {words}."
    if fitted.learned.still_rising:
        return (
            f"--max-features {fitted.options.max_features} ended the search where the error still "
            "fell."
        )
    return ""


def facts(fitted: Fitted) -> dict[str, str]:
    """Return the short facts of a fit, in order."""
    found = {}
    for error in fitted.errors:
        name = error.measure[0].upper() + error.measure[1:]
        found[name] = (
            f"{error.value:.1%} ± {error.standard_error:.1%} (95 % interval {error.low:.1%} to "
            f"{error.high:.1%}; {fitted.judged_by})"
        )
    if len(fitted.repeats) > 1:
        found["Repeated"] = repeats_words(fitted.repeats)
    found["Baseline"] = f"{fitted.baseline:.1%} ({BASELINE})"
    value, error_of_mean = fitted.selection_error
    found["Selection error"] = f"{value:.1%} ± {error_of_mean:.1%} ({chosen_on(fitted)})"
    judged = fitted.judged
    if judged.probabilities is not None:
        score = brier_score(judged.y, judged.probabilities)
        found["Brier score"] = f"{score:.3f} (of the probabilities; {fitted.judged_by})"
    model = fitted.learned.model
    if hasattr(model, "coef_"):
        found["Features"] = f"{n_chosen(fitted)} of {model.coef_.shape[1]}"
    else:
        found["Support vectors"] = f"{len(model.support_)} of {fitted.n_rows} rows"
    counted = zip(fitted.class_counts, fitted.classes, strict=True)
    each = ", ".join(f"{n} {label}" for n, label in counted)
    found["Rows"] = f"{fitted.n_rows} ({each})"
    found["Model"] = f"{type(model).__name__}, {choice_of(fitted)} (rule: {fitted.options.rule})"
    found["Time"] = f"{fitted.seconds:.2f} s"
    return found


def _path_report(fitted: Fitted, shared: dict[str, Any]) -> PathReport:
    detail: PathDetail = fitted.learned.detail
    return PathReport(
        classes=_views(fitted),
        sample_names=[str(name) for name in fitted.table.ids],
        in_common="C" if detail.found.scored.search.by_price else "s",
        prices=detail.prices(),
        **shared,
    )


def _views(fitted: Fitted) -> list[ClassView]:
    detail: PathDetail = fitted.learned.detail
    found, y = detail.found, fitted.oof.y
    scored, curve = found.scored, found.scored.curve
    error = 1.0 - curve.scores.mean(axis=1)
    errors = np.array([standard_error(scores) for scores in curve.scores])
    two = len(fitted.classes) == 2
    views = []
    for k, path in enumerate(found.paths):
        label = 1 if two else k
        low, high = curve.low, curve.high
        if scored.search.by_price:
            # the curve is one of C, and the explorer shows s: that of this path at every C
            low, high = (path.knots.s[knots_at(path, curve.values(each))] for each in (low, high))
        cv_s, cv_error, cv_error_se = steps(low, high, error, errors)
        if np.array_equal(curve.low, curve.high):
            cv_s, cv_error, cv_error_se = low, error, errors
        picks = detail.places(k)
        if scored.search.by_price:
            points = [
                (picks[rule], error[choice.row], errors[choice.row])
                for rule, choice in detail.chosen_last(fitted.options.rule)
            ]
            cv_s, cv_error, cv_error_se = ending_at([cv_s, cv_error, cv_error_se], points)
        places, held_out = _held_out_along(fitted, k)
        views.append(
            ClassView(
                name=str(fitted.classes[label]),
                other=str(fitted.classes[0]) if two else "rest",
                path=path,
                target=y == label,
                oof_s=places,
                oof_scores=held_out,
                cv_s=cv_s,
                cv_error=cv_error,
                cv_error_se=cv_error_se,
                picks=picks,
                chosen=fitted.options.rule,
            )
        )
    return views


def _held_out_along(fitted: Fitted, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Places on the path of a class, and the held-out decision values of the folds there.

    Where the folds share C, theirs at the C at which the path of all rows is at that place: at that
    of the rule where one picks it, otherwise at the last.
    """
    detail: PathDetail = fitted.learned.detail
    found = detail.found
    most = min(_MOST_PLACES, _MOST_ENTRIES // len(fitted.oof.y))
    if not found.scored.search.by_price:
        paths = [fold.paths[k] for fold in found.scored.folds]
        places = _thinned(np.unique(np.concatenate([path.knots.s for path in paths])), most)
        return places, found.scored.held_out_scores(places, k)
    knots, picks = found.paths[k].knots, detail.places(k)
    picked = np.searchsorted(knots.s, list(picks.values()))
    at = np.union1d(_thinned(np.arange(len(knots.s)), most), picked)
    penalties = knots.penalties[at]
    with np.errstate(divide="ignore"):
        prices = np.where(penalties > 0, 1.0 / penalties, np.inf)
    prices *= 1 - _BEFORE  # a path is at a knot up to the price at which it moves on
    for rule, choice in detail.chosen_last(fitted.options.rule):
        prices[knots.s[at] == picks[rule]] = choice.place
    return knots.s[at], found.scored.held_out_at_prices(prices, k)


_BEFORE = 1e-9  # relative: prices just below those at which a path moves on


def _thinned(places: np.ndarray, most: int) -> np.ndarray:
    """No more than `most` of some places, evenly by their number, with both ends."""
    if len(places) <= max(2, most):
        return places
    return places[np.unique(np.linspace(0, len(places) - 1, max(2, most)).round().astype(np.intp))]


def _evaluation(fitted: Fitted) -> Evaluation:
    """The rows that the errors of the fit are those of, which knew nothing of the choice."""
    judged = fitted.judged
    return Evaluation(
        class_names=_class_names(fitted),
        codes=judged.y,
        scores=judged.scores,
        training_scores=None if fitted.test is not None else fitted.training_scores,
        sample_names=[str(name) for name in judged.ids],
        judged_by=fitted.judged_by,
    )


def _class_names(fitted: Fitted) -> list[str]:
    return [str(label) for label in fitted.classes]


def _grid(fitted: Fitted) -> GridView | None:
    """The errors of all settings, where they are a grid of C and perhaps one thing more."""
    detail = fitted.learned.detail
    if not isinstance(detail, GridScores) or "budget" in detail.candidates[0]:
        return None
    names = {"width": "gamma / scale"}
    return GridView.of(detail.candidates, detail.scores, detail.chosen, names)


def _generic_report(fitted: Fitted, shared: dict[str, Any]) -> GenericReport:
    coefs = getattr(fitted.learned.model, "coef_", None)
    return GenericReport(coefs=coefs, class_names=_class_names(fitted), **shared)


def _walk_report(fitted: Fitted, shared: dict[str, Any]) -> WalkReport:
    return WalkReport.of(fitted.learned.model, class_names=_class_names(fitted), **shared)


def _budget_report(fitted: Fitted, shared: dict[str, Any]) -> BudgetReport:
    model, detail = fitted.learned.model, fitted.learned.detail
    assert isinstance(detail, GridDetail)
    tried = np.array([candidate["budget"] for candidate in detail.candidates])
    best = [
        places[detail.scores[places].mean(axis=1).argmax()]
        for places in (np.flatnonzero(tried == budget) for budget in np.unique(tried))
    ]
    best[int(np.searchsorted(np.unique(tried), tried[detail.chosen]))] = detail.chosen
    return BudgetReport(
        budgets=tried[best],
        n_support=detail.sizes[best].mean(axis=1),
        accuracy=detail.accuracies[best].mean(axis=1),
        accuracy_se=[standard_error(row) for row in detail.accuracies[best]],
        chosen=int(np.searchsorted(np.unique(tried), tried[detail.chosen])),
        reference=detail.reference,
        support_names=[str(fitted.table.ids[row]) for row in model.support_],
        support_weights=model.dual_coef_,
        support_labels=[str(label) for label in fitted.classes[fitted.oof.y[model.support_]]],
        class_names=_class_names(fitted),
        **shared,
    )


_REPORTS: dict[str, Callable[[Fitted, dict[str, Any]], Report]] = {
    "reweighted": _walk_report,
    "budget": _budget_report,
}
"""The models with a kind of report of their own."""
