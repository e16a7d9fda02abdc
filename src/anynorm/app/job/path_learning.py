"""The 1-norm SVM along its exact path, with the preparation fitted inside every fold."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from anynorm.app.job.learning import Learned, Task, pipeline_of
from anynorm.app.job.measures import Scorer
from anynorm.app.job.options import RULES
from anynorm.app.job.watching import Watch
from anynorm.estimators._fitting import store_linear
from anynorm.estimators._path_search import PathSearch, SearchedPaths
from anynorm.estimators.checks.labels import validate
from anynorm.estimators.paths.solution_path import SolutionPath
from anynorm.estimators.sparse_path import warn_of_gaps
from anynorm.estimators.sparse_svc_cv import SparseSVCCV

_STORED_SCORING = {"error": None, "balanced": "balanced_accuracy", "auc": "roc_auc"}


@dataclass(frozen=True)
class PathDetail:
    """The paths that were searched, the chosen s, and what each rule would pick."""

    found: SearchedPaths
    s: float
    picks: dict[str, float]


def learn_path(task: Task, watch: Watch, what: str) -> Learned:
    """Choose a place on the exact path by cross-validation.

    Parameters
    ----------
    task : Task
        The rows and the options.
    watch : Watch
        Is told of every path; gives the time.
    what : str
        What this search is, for the watch.
    """
    began, options, folds = time.monotonic(), task.options, task.folds()
    preparation, X = task.prepared()
    exact = options.scoring == "error"
    model = SparseSVCCV(
        cv=len(folds.splits),
        scoring=None if exact else Scorer(options.scoring, task.n_classes),
        rule=options.rule,
        max_features=options.max_features,
        n_jobs=options.jobs,
    )
    data = validate(model, X, task.y, None)
    watch.begin(what, (len(folds.splits) + 1) * data.n_problems)
    model.time_limit = watch.share_of_time()
    named = replace(data, feature_names=preparation.get_feature_names_out())
    search = PathSearch(
        model, named, task.y, None, None, folds, began,
        report=watch.report, on_path=lambda path: watch.step(_worst_gap(path)),
    )  # fmt: skip
    found = search.run()
    tolerance = float(model.score_tolerance)
    index, s = found.curve.choose(options.rule, tolerance)
    model.scoring = _STORED_SCORING[options.scoring]
    store_linear(model, data, found.solutions(s), found.attributes(index, s))
    found.warn_of_time(s)
    paths = [path for fold in found.folds for path in fold.paths]
    warn_of_gaps([*paths, *found.paths])
    picks = {rule: found.curve.choose(rule, tolerance)[1] for rule in RULES["sparse"]}
    return Learned(
        pipeline=pipeline_of(preparation, model),
        fold_scores=found.curve.scores[index],
        held_out=model.oof_decision_function_,
        splits=folds.splits,
        choice={"s": s, "C": model.C_},
        selection_frequency=model.selection_frequency_,
        detail=PathDetail(found, s, picks),
        cut=any(path.stopped == "time_limit" for path in paths)
        or any(path.stopped == "time_limit" and path.s[-1] < s for path in found.paths),
    )


def _worst_gap(path: SolutionPath) -> float:
    return float(np.max(path.gaps))
