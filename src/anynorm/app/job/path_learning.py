"""The 1-norm SVM along its exact path, with the preparation fitted inside every fold."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from anynorm.app.job.learning import Learned, Task, pipeline_of
from anynorm.app.job.measures import CALIBRATION, SCORERS, scorer
from anynorm.app.job.options import RULES
from anynorm.app.job.schedule import Schedule
from anynorm.estimators._path_search import PathSearch, SearchedPaths
from anynorm.estimators.checks.labels import validate
from anynorm.estimators.sparse_svc_cv import SparseSVCCV


@dataclass(frozen=True)
class PathDetail:
    """The paths that were searched, the chosen s, and what each rule would pick."""

    found: SearchedPaths
    s: float
    picks: dict[str, float]


def learn_path(task: Task, schedule: Schedule, what: str) -> Learned:
    """Choose a place on the exact path by cross-validation.

    The schedule is told of every path, and `what` this search is; it gives the time.
    """
    began, options = time.monotonic(), task.options
    preparation, X = task.prepared()
    n_classes = len(np.unique(task.y))
    schedule.begin(what, (len(task.splits) + 1) * (1 if n_classes == 2 else n_classes))
    model = SparseSVCCV(
        cv=len(task.splits),
        scoring=SCORERS[options.scoring],
        rule=options.rule,
        max_features=options.max_features,
        calibration=CALIBRATION,
        time_limit=schedule.share_of_time(),
        n_jobs=options.jobs,
    )
    labels = task.labels
    search = PathSearch(
        estimator=model,
        data=validate(model, X, labels, None),
        y=labels,
        weights=None,
        penalty_weights=None,
        folds=task.folds(),
        scorer=scorer(options.scoring, task.classes),
        began=began,
        feature_names=preparation.get_feature_names_out(),
        report=schedule.report,
        on_path=lambda path: schedule.step(float(np.max(path.gaps))),
    )
    found = search.run()
    found.keep()
    picks = {rule: found.pick(rule)[1] for rule in RULES["sparse"]}
    s = picks[options.rule]
    return Learned(
        pipeline=pipeline_of(preparation, model),
        fold_scores=found.curve.scores[model.best_index_],
        held_out=model.oof_decision_function_,
        choice={"s": s, "C": model.C_},
        selection_frequency=model.selection_frequency_,
        detail=PathDetail(found, s, picks),
        cut=found.is_cut(s),
    )
