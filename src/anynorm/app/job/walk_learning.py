"""The walk to the 1-norm SVM, with the preparation fitted inside every fold."""

from __future__ import annotations

import numpy as np

from anynorm.app.job.learning import GridScores, Learned, Task, edge_words, pipeline_of
from anynorm.app.job.measures import CALIBRATION, SCORERS, all_classes, scorer
from anynorm.app.job.schedule import Schedule
from anynorm.estimators._fitting import deadline
from anynorm.estimators.checks.labels import validate
from anynorm.estimators.reweighted_svc_cv import ReweightedSVCCV, WalkSearch
from anynorm.problem.solution import Status

_GRID = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # each C ten times the last


def learn_walk(task: Task, schedule: Schedule, what: str) -> Learned:
    """Choose C and the number of rounds by cross-validation; parameters as in `learn_path`."""
    options, folds, labels = task.options, task.folds(), task.labels
    preparation, X = task.prepared()
    Cs = np.array(options.C or _GRID)
    schedule.begin(what, len(task.splits) * (len(Cs) + 1) + 1)
    model = ReweightedSVCCV(
        Cs=Cs,
        loss="hinge" if options.loss == "auto" else options.loss,
        max_rounds=6,
        cv=len(task.splits),
        scoring=SCORERS[options.scoring],
        class_weight=task.class_weight,
        rule=options.rule,
        calibration=CALIBRATION,
        n_jobs=options.jobs,
        random_state=options.seed,
    )
    WalkSearch(
        estimator=model,
        data=validate(model._model(model._largest_C(), 1), X, labels, None),
        y=labels,
        weights=None,
        folds=folds,
        scorer=scorer(options.scoring, task.classes),
        end=deadline(schedule.share_of_time()),
        on_fit=schedule.step,
    ).fit()
    schedule.step(model.certificate_.gap)
    held_out, used = task.no_scores(), []
    for fold, (train, test) in enumerate(task.splits):
        stage = model._model(model.C_, model.n_rounds_).fit(folds.train(fold), labels[train])
        held_out[test] = all_classes(stage, folds.test(fold), task.classes)
        used.append(stage.coef_.any(axis=0))
        schedule.step(stage.certificate_.gap)
    table = model.cv_results_
    scores = np.column_stack([table[f"split{k}_test_score"] for k in range(len(task.splits))])
    tried = zip(table["param_C"].tolist(), table["param_n_rounds"].tolist(), strict=True)
    return Learned(
        pipeline=pipeline_of(preparation, model),
        fold_scores=scores[model.best_index_],
        held_out=held_out,
        choice={"C": model.C_, "rounds": model.n_rounds_},
        selection_frequency=np.mean(used, axis=0),
        detail=GridScores([{"C": C, "rounds": k} for C, k in tried], scores, model.best_index_),
        at_edge=edge_words({"C": Cs.tolist()}, {"C": model.C_}),
        cut=model.certificate_.status is Status.TIME_LIMIT,
    )
