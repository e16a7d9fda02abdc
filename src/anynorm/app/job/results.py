"""What a fit found, as tables and as plain values."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pandas as pd

from anynorm.app.job.fit import Fitted
from anynorm.app.job.judging import Held
from anynorm.app.job.measures import MEASURES, Estimate, predicted
from anynorm.estimators._probabilities import brier_score
from anynorm.estimators.paths.solution_path import SolutionPath

BASELINE = "always the most frequent class"


def chosen_on(fitted: Fitted) -> str:
    """Return where the selection error comes from, in words."""
    measure = MEASURES[fitted.options.scoring]
    flattered = "" if fitted.learned.cut else ", which flatter it"
    return f"{measure} on the folds that chose the model{flattered}"


def feature_table(fitted: Fitted) -> pd.DataFrame:
    """Return a row for each feature, heaviest first.

    Of more than two classes each has its rows.  A model without weights gives the names alone.
    """
    learned = fitted.learned
    names = np.asarray(learned.preparation.get_feature_names_out())
    coef = getattr(learned.model, "coef_", None)
    if coef is None:
        return pd.DataFrame({"feature": names})
    originals, _ = learned.preparation.to_original_units(coef, learned.model.intercept_)
    frequency = learned.selection_frequency
    paths = getattr(learned.model, "paths_", [None] * len(coef))
    places = np.broadcast_to(getattr(learned.model, "s_", np.nan), len(coef))
    parts = []
    for k, (weights, path) in enumerate(zip(coef, paths, strict=True)):
        part = pd.DataFrame({"feature": names, "weight": weights})
        part["weight_original_units"] = originals[k]
        part["s_at_entry"] = np.nan if path is None else entries(path, float(places[k]))
        part["selection_frequency"] = 1.0 if frequency is None else frequency
        order = np.lexsort(
            [part["s_at_entry"], -part["selection_frequency"], -part["weight"].abs()]
        )
        part = part.iloc[order]
        if len(coef) > 1:
            part.insert(0, "class", str(fitted.classes[k]))
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def entries(path: SolutionPath, s: float) -> np.ndarray:
    """Return for each feature where it enters the path, NaN where it never does.

    Features may leave and return: of those in use at s the last entry before it, of others the
    next one after it, or else their last.
    """
    knots = path.knots
    found = np.full(path.n_features_in_, np.nan)
    coefs = knots.coefs.tocsc()
    coefs.eliminate_zeros()
    for j in np.flatnonzero(np.diff(coefs.indptr)):
        rows = np.sort(coefs.indices[coefs.indptr[j] : coefs.indptr[j + 1]])
        ends = np.flatnonzero(np.diff(rows) > 1)  # runs of knots at which it is in use
        firsts, lasts = rows[np.append(0, ends + 1)], rows[np.append(ends, len(rows) - 1)]
        left = np.append(knots.s, np.inf)[lasts + 1]  # it is zero again at the knot after
        stretch = min(int(np.searchsorted(left, s, side="right")), len(firsts) - 1)
        found[j] = knots.s[max(int(firsts[stretch]) - 1, 0)]  # it leaves zero at the knot before
    return found


def prediction_table(held: Held, classes: np.ndarray) -> pd.DataFrame:
    """Return names, labels, predictions and decision values of rows that were held out."""
    table = pd.DataFrame({"id": held.ids, "label": classes[held.y]})
    table["predicted"] = classes[predicted(held.scores)]
    table = table.assign(**score_columns(held.scores, classes))
    if held.probabilities is not None:
        table = table.assign(**probability_columns(held.probabilities, classes))
    if held.folds is not None:
        table["fold"] = held.folds
    return table


def score_columns(scores: np.ndarray, classes: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of decision values: one for two classes, otherwise one for each."""
    if scores.ndim == 1:
        return {"decision_value": scores}
    return {f"decision_value_{x}": column for x, column in zip(classes, scores.T, strict=True)}


def probability_columns(probabilities: np.ndarray, classes: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of probabilities, one for each class."""
    columns = zip(classes, probabilities.T, strict=True)
    return {f"probability_{label}": column for label, column in columns}


def summary(fitted: Fitted) -> dict[str, Any]:
    """Return the results as values that JSON can hold."""
    learned, model = fitted.learned, fitted.learned.model
    certificate = model.certificate_
    value, error = fitted.selection_error
    labels = fitted.classes.tolist()
    found: dict[str, Any] = {
        "model": fitted.options.model,
        "estimator": type(model).__name__,
        "data": str(fitted.table.source),
        "target": fitted.table.target_name,
        "rows": fitted.n_rows,
        "features": len(learned.preparation.get_feature_names_out()),
        "classes": labels,
        "class_counts": fitted.class_counts.tolist(),
        "positive": labels[1] if len(labels) == 2 else None,
        "error": {**estimate_values(fitted.errors[0]), "judged_by": fitted.judged_by},
        "repeats": fitted.repeats,
        "baseline": {"value": fitted.baseline, "no_better": bool(fitted.no_better)},
        "selection_error": {
            "measure": MEASURES[fitted.options.scoring],
            "value": value,
            "standard_error": error,
            "rule": fitted.options.rule,
        },
        "choice": {name: np.asarray(value).tolist() for name, value in learned.choice.items()},
        "certificate": {
            "status": str(certificate.status),
            "primal": certificate.primal,
            "dual": certificate.dual,
            "gap": certificate.gap,
            "tol": certificate.tol,
        },
        "converged": fitted.converged,
        "cut_by_time_limit": fitted.cut,
        "seconds": fitted.seconds,
        "notes": fitted.notes,
        "problems": fitted.problems,
        "versions": versions(),
    }
    if len(fitted.errors) > 1:
        found["plain_error"] = estimate_values(fitted.errors[1])
    judged = fitted.judged
    if judged.probabilities is not None:
        found["brier_score"] = brier_score(judged.y, judged.probabilities)
    if hasattr(model, "coef_"):
        table = feature_table(fitted)
        found["n_chosen"] = n_chosen(fitted)
        found["intercept"] = model.intercept_.tolist()
        used = table[table["weight"] != 0].astype(object)
        found["chosen_features"] = used.where(used.notna(), None).to_dict("records")
    else:
        found["n_support_vectors"] = len(model.support_)
    return found


def n_chosen(fitted: Fitted) -> int:
    """The number of features that the model uses, for at least one class."""
    return int(np.count_nonzero(fitted.learned.model.coef_.any(axis=0)))


def choice_of(fitted: Fitted) -> str:
    """What was chosen, as ``name = value``."""
    choice = {
        name: [f"{each:.4g}" for each in np.atleast_1d(value)]
        for name, value in fitted.learned.choice.items()
    }
    model = fitted.learned.model
    if hasattr(model, "paths_") and len(choice.get("C", ())) == len(model.paths_):
        places = zip(model.paths_, np.atleast_1d(model.s_), np.atleast_1d(model.C_), strict=True)
        choice["C"] = [_price(path, s, C) for path, s, C in places]
    return ", ".join(f"{name} = {', '.join(values)}" for name, values in choice.items())


def _price(path: SolutionPath, s: float, C: float) -> str:
    """The C of a place on a path, in words; at its end any C from some value on will do."""
    knots = path.knots
    knot = knots.segment(s)
    if knots.penalties[knot] > 0:
        return f"{C:.4g}"
    return "any" if knot == 0 else f"from {knots.price(knot - 1):.4g} up"


def repeats_words(repeats: list[float]) -> str:
    """What several nested cross-validations say together.

    Examples
    --------
    >>> from anynorm.app.job.results import repeats_words
    >>> repeats_words([0.03, 0.05, 0.04])
    '4.0% on average, 3.0% to 5.0% (3 nested cross-validations with other folds)'
    """
    mean = sum(repeats) / len(repeats)
    return (
        f"{mean:.1%} on average, {min(repeats):.1%} to {max(repeats):.1%} ({len(repeats)} nested "
        "cross-validations with other folds)"
    )


def versions() -> dict[str, str]:
    """Of the package and of what its numbers depend on."""
    import scipy
    import sklearn

    from anynorm import __version__

    return {
        "anynorm": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def estimate_values(estimate: Estimate) -> dict[str, Any]:
    """Return an error as values that JSON can hold."""
    return {
        "measure": estimate.measure,
        "value": estimate.value,
        "standard_error": estimate.standard_error,
        "interval_95": [estimate.low, estimate.high],
        "rows": estimate.n_rows,
    }
