"""The contents of reports as JSON: arrays in base64, paths sparse.

The page needs the path at its knots, where coefficients change their slope, and straight lines in
between: a few thousand numbers where a dense table would have millions.  Coefficients are kept in
float64, so that the page computes what `SolutionPath.coef_at` does; decision values in float32.
Paths and tables beyond the limits below are kept at fewer places, and the page says so.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.app.report.content import (
    BudgetReport,
    ClassView,
    Evaluation,
    GenericReport,
    PathReport,
    Report,
    WalkReport,
)
from anynorm.estimators.paths.solution_path import SolutionPath
from anynorm.problem.certificate import Certificate

COEFFICIENTS = 1 << 19
"""The most coefficients that a report keeps."""

SCORES = 1 << 19
"""The most out-of-fold decision values that a report keeps."""

TRAINING_SCORES = 1 << 17
"""The most decision values of training rows that it keeps: they are only there to compare."""

TRAINING_ROWS = 5000
"""The most training rows that are scored for a report."""


def packed(content: Report) -> dict[str, Any]:
    """Return the content as what `json.dumps` takes."""
    if isinstance(content, PathReport):
        return _path_page(content)
    if isinstance(content, WalkReport):
        return _walk_page(content)
    if isinstance(content, BudgetReport):
        return _budget_page(content)
    if isinstance(content, GenericReport):
        return _generic_page(content)
    raise TypeError(
        "content must be a PathReport, WalkReport, BudgetReport or GenericReport; "
        f"got {type(content).__name__}."
    )


def array(values: Any, dtype: str) -> str:
    """Return the numbers in base64, as little-endian `dtype` ("f8", "f4", "i4", "u1")."""
    flat = np.ascontiguousarray(values, dtype="<" + dtype)
    return base64.b64encode(flat.tobytes()).decode("ascii")


def _optional(values: Any, dtype: str) -> str | None:
    return None if values is None else array(values, dtype)


def _common(content: Report, kind: str, p: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "title": str(content.title),
        "facts": _pairs(content.facts),
        "notes": [str(note) for note in content.notes],
        "certificate": _certificate(content.certificate),
        "p": p,
        "features": _names(content.feature_names),
        "scales": _optional(content.scales, "f8"),
        "frequency": _optional(content.selection_frequency, "f4"),
        "measure": str(content.measure),
    }


def _pairs(facts: Mapping[str, str]) -> list[list[str]]:
    return [[str(name), str(value)] for name, value in facts.items()]


def _names(names: Sequence[Any] | None) -> list[str] | None:
    return None if names is None else [str(name) for name in names]


def _certificate(certificate: Certificate | str | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    if isinstance(certificate, str):
        return {"text": certificate}
    return {
        "text": str(certificate),
        "status": str(certificate.status),
        "primal": _number(certificate.primal),
        "dual": _number(certificate.dual),
        "gap": _number(certificate.gap),
        "tol": _number(certificate.tol),
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _path_page(content: PathReport) -> dict[str, Any]:
    page = _common(content, "path", content.classes[0].path.n_features_in_)
    views = [_class(view, len(content.classes)) for view in content.classes]
    thinned = [note for _, notes in views for note in notes]
    return page | {
        "samples": _names(content.sample_names),
        "classes": [view for view, _ in views],
        "notes": page["notes"] + list(dict.fromkeys(thinned)),
    }


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
            "se": _optional(view.cv_error_se, "f4"),
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


def _evaluation(evaluation: Evaluation | None) -> dict[str, Any] | None:
    if evaluation is None:
        return None
    scores = np.asarray(evaluation.scores, dtype=np.float64)
    training = evaluation.training_scores
    return {
        "classes": _names(evaluation.class_names),
        "codes": array(evaluation.codes, "i4"),
        "scores": array(scores.T, "f4"),
        "training": None if training is None else array(np.asarray(training).T, "f4"),
        "samples": _names(evaluation.sample_names),
    }


def _walk_page(content: WalkReport) -> dict[str, Any]:
    coefs = np.asarray(content.coefs, dtype=np.float64)
    rounds, problems, p = coefs.shape
    flat = sp.csr_array(coefs.reshape(rounds * problems, p))
    return _common(content, "walk", p) | {
        "objectives": array(content.objectives, "f8"),
        "bound": None if content.bound is None else _number(content.bound),
        "counts": array((coefs != 0).any(axis=1).sum(axis=1), "i4"),
        "indptr": array(flat.indptr, "i4"),
        "indices": array(flat.indices, "i4"),
        "values": array(flat.data, "f4"),
        "classes": _names(content.class_names),
        "error": _optional(content.cv_error, "f8"),
        "se": _optional(content.cv_error_se, "f8"),
        "chosen": int(content.chosen_round or rounds) - 1,
        "evaluation": _evaluation(content.evaluation),
    }


def _budget_page(content: BudgetReport) -> dict[str, Any]:
    m = len(np.asarray(content.budgets))
    weights, reference = content.support_weights, content.reference
    return _common(content, "budget", 0) | {
        "budgets": array(content.budgets, "f8"),
        "support": array(content.n_support, "f8"),
        "accuracy": array(content.accuracy, "f8"),
        "se": _optional(content.accuracy_se, "f8"),
        "chosen": int(content.chosen) % m,
        "reference": None if reference is None else [str(reference[0]), *map(float, reference[1:])],
        "supportNames": _names(content.support_names),
        "supportWeights": None if weights is None else array(np.atleast_2d(weights), "f8"),
        "classes": _names(content.class_names),
        "evaluation": _evaluation(content.evaluation),
    }


def _generic_page(content: GenericReport) -> dict[str, Any]:
    p = 0 if content.coefs is None else np.shape(content.coefs)[1]
    return _common(content, "generic", p) | {
        "coefs": _optional(content.coefs, "f8"),
        "classes": _names(content.class_names),
        "evaluation": _evaluation(content.evaluation),
    }
