"""The walk to the 1-norm SVM, with the preparation fitted inside every fold."""

from __future__ import annotations

import numpy as np

from anynorm.app.job.folds import PreparedFolds
from anynorm.app.job.learning import Learned, Task, pipeline_of
from anynorm.app.job.measures import Scorer, all_classes
from anynorm.app.job.watching import Watch
from anynorm.design import Matrix
from anynorm.estimators._fitting import deadline
from anynorm.estimators.checks.labels import validate
from anynorm.estimators.reweighted_svc_cv import ReweightedSVCCV, fit_table, grid_of
from anynorm.problem.solution import Status

_GRID = np.logspace(-3, 2, 6)


def learn_walk(task: Task, watch: Watch, what: str) -> Learned:
    """Choose C and the number of rounds by cross-validation; parameters as in `learn_path`."""
    options, folds = task.options, task.folds()
    preparation, X = task.prepared()
    model = ReweightedSVCCV(
        Cs=_GRID,
        max_rounds=6,
        cv=len(folds.splits),
        scoring=None if options.scoring == "error" else Scorer(options.scoring, task.n_classes),
        rule=options.rule,
        n_jobs=options.jobs,
        random_state=options.seed,
    )
    data = validate(model._model(grid_of(_GRID)[-1], 1), X, task.y, None)
    watch.begin(what, 2 * len(folds.splits) + 1)
    end = deadline(watch.share_of_time())
    fit_table(model, data, task.y, None, _Watched(folds, watch), end, watch.report)
    watch.step(model.certificate_.gap)
    stages = []
    for fold, (train, _) in enumerate(folds.splits):
        stage = model._model(model.C_, model.n_rounds_)
        stages.append(stage.fit(folds.train(fold), task.y[train]))
        watch.step(stage.certificate_.gap)
    n_classes = task.n_classes
    held_out = np.full(len(task.y) if n_classes == 2 else (len(task.y), n_classes), np.nan)
    for fold, (stage, (_, test)) in enumerate(zip(stages, folds.splits, strict=True)):
        held_out[test] = all_classes(stage, folds.test(fold), n_classes)
    used = [stage.coef_.any(axis=0) for stage in stages]
    table, k = model.cv_results_, model.best_index_
    model.scoring = None
    return Learned(
        pipeline=pipeline_of(preparation, model),
        fold_scores=np.array([table[f"split{f}_test_score"][k] for f in range(len(folds.splits))]),
        held_out=held_out,
        splits=folds.splits,
        choice={"C": model.C_, "rounds": model.n_rounds_},
        selection_frequency=np.mean(used, axis=0),
        detail=None,
        cut=model.certificate_.status is Status.TIME_LIMIT,
    )


class _Watched:
    """Folds whose rows are counted when they are first asked for."""

    def __init__(self, folds: PreparedFolds, watch: Watch) -> None:
        self.splits, self._folds, self._watch = folds.splits, folds, watch
        self._seen: set[int] = set()

    def train(self, fold: int) -> Matrix:
        """The rows to learn from."""
        return self._folds.train(fold)

    def test(self, fold: int) -> Matrix:
        """The rows that are held out."""
        if fold not in self._seen:
            self._seen.add(fold)
            self._watch.step(None)
        return self._folds.test(fold)
