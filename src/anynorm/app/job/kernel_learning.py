"""The kernel SVM with C and gamma by one search, the preparation fitted inside every fold."""

from __future__ import annotations

from copy import copy

import numpy as np

from anynorm.app.job.learning import GridScores, Learned, Task, edge_words, pipeline_of
from anynorm.app.job.measures import CALIBRATION, SCORERS, scorer
from anynorm.app.job.schedule import Schedule
from anynorm.estimators._fitting import deadline
from anynorm.estimators._kernel_grid import SKIPPED, KernelGrid
from anynorm.estimators.checks.labels import validate
from anynorm.estimators.svc_cv import SVCCV
from anynorm.problem.solution import Status

_GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # each C ten times the last
_WIDTHS = 5  # from a sixteenth to 16 times gamma="scale"


def learn_kernel(task: Task, schedule: Schedule, what: str) -> Learned:
    """Choose C and gamma by cross-validation; parameters as in `learn_path`."""
    options, labels = task.options, task.labels
    preparation, X = task.prepared()
    grid_of_C = np.array(options.C or _GRID)
    schedule.begin(what, len(task.splits) * len(grid_of_C) * _WIDTHS + 1)
    model = SVCCV(
        Cs=grid_of_C,
        gammas=_WIDTHS,
        cv=len(task.splits),
        scoring=SCORERS[options.scoring],
        rule=options.rule,
        calibration=CALIBRATION,
        class_weight=task.class_weight,
        n_jobs=options.jobs,
    )
    grid = KernelGrid(
        estimator=model,
        data=validate(model, task.placed(X), labels, None, C=float(grid_of_C[-1])),
        y=labels,
        weights=None,
        folds=task.folds(),
        scorer=scorer(options.scoring, task.classes),
        end=deadline(schedule.share_of_time()),
        on_fit=schedule.step,
    )
    model = copy(grid.fit())  # in memory, wherever it was fitted
    schedule.step(model.certificate_.gap)
    table = model.cv_results_
    scores = np.column_stack([table[f"split{k}_test_score"] for k in range(len(task.splits))])
    # what is hopeless is left out after some folds; what no fold has tried, for lack of time
    untried = (grid.status == SKIPPED).all(axis=2)
    late = (grid.status == Status.TIME_LIMIT.value).any() or untried.any()
    return Learned(
        pipeline=pipeline_of(preparation, model),
        fold_scores=scores[model.best_index_],
        held_out=model.oof_decision_function_,
        choice=dict(model.best_params_),
        selection_frequency=None,
        detail=GridScores(table["params"], scores, model.best_index_),
        at_edge=edge_words(
            {name: np.asarray(table[f"param_{name}"], dtype=float) for name in model.best_params_},
            model.best_params_,
        ),
        cut=bool(late) or model.certificate_.status is Status.TIME_LIMIT,
    )
