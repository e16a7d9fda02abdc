"""Contents of reports made from data by plain cross-validation, independent of the command."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import StratifiedKFold

from anynorm import sparse_svm_path
from anynorm.app.report import ClassView, PathReport


def class_view(X, target, *, name="a", other="rest", n_splits=5, max_features=None):
    """A view with out-of-fold values at all knots of all folds, and the curve of its mean error."""
    path = sparse_svm_path(X, target, max_features=max_features)
    folds = list(StratifiedKFold(n_splits).split(X, target))
    paths = [sparse_svm_path(X[train], target[train], max_features=max_features)
             for train, _ in folds]  # fmt: skip
    s = np.unique(np.concatenate([found.knots.s for found in paths]))
    scores = np.full((len(s), len(target)), np.nan)
    for found, (_, test) in zip(paths, folds, strict=True):
        scores[:, test] = found.decision_function(X[test], s).T
    wrong = (scores > 0) != target
    errors = np.stack([wrong[:, test].mean(axis=1) for _, test in folds])
    error, spread = errors.mean(axis=0), errors.std(axis=0, ddof=1) / np.sqrt(len(folds))
    best = int(error.argmin())
    within = int((error <= error[best] + spread[best]).argmax())
    return ClassView(
        name, path, target, other=other, oof_s=s, oof_scores=scores, cv_s=s, cv_error=error,
        cv_error_se=spread, picks={"best": float(s[best]), "one_se": float(s[within])},
        chosen="best",
    )  # fmt: skip


def path_report(X, y, *, title="Report", **more):
    """A report of two or more classes; `more` goes to `PathReport`."""
    labels = np.unique(y)
    if len(labels) == 2:
        views = [class_view(X, y == labels[1], name=str(labels[1]), other=str(labels[0]))]
    else:
        views = [class_view(X, y == label, name=str(label)) for label in labels]
    chosen = views[0]
    certificate = chosen.path.certificate_at(chosen.picks["best"])
    return PathReport(title=title, classes=views, certificate=certificate, **more)
