"""The 1-norm SVM along its exact path, with the preparation fitted inside every fold."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from anynorm.app.job.learning import Learned, Task, pipeline_of
from anynorm.app.job.measures import CALIBRATION, SCORERS, scorer
from anynorm.app.job.options import RULES
from anynorm.app.job.schedule import Schedule
from anynorm.estimators._cross_validation import BALANCED, standard_error
from anynorm.estimators._path_search import PathSearch
from anynorm.estimators._searched_paths import Choice, SearchedPaths
from anynorm.estimators.checks.labels import usable_penalties, validate
from anynorm.estimators.sparse_svc_cv import SparseSVCCV


@dataclass(frozen=True)
class PathDetail:
    """The paths that were searched, and what each rule would pick."""

    found: SearchedPaths
    picks: dict[str, Choice]

    def places(self, index: int) -> dict[str, float]:
        """The s that each rule picks on the path of a class."""
        scored, path = self.found.scored, self.found.paths[index]
        places = {}
        for rule, choice in self.picks.items():
            of_class = choice._replace(
                prices=None if choice.prices is None else choice.prices[[index]]
            )
            places[rule] = scored.places([path], of_class)[0]
        return places

    def chosen_last(self, rule: str) -> list[tuple[str, Choice]]:
        """What the rules pick, that of the rule that was asked for at the end."""
        return sorted(self.picks.items(), key=lambda pick: pick[0] == rule)

    def prices(self) -> dict[str, float]:
        """The C that all classes have where a rule picks it; nothing where they share s."""
        if not self.found.scored.search.by_price:
            return {}
        return {rule: choice.place for rule, choice in self.picks.items()}


def learn_path(task: Task, schedule: Schedule, what: str) -> Learned:
    """Choose a place on the exact path by cross-validation.

    The schedule is told of every path, and `what` this search is; it gives the time.
    """
    began, options = time.monotonic(), task.options
    preparation, X = task.prepared()
    schedule.begin(what)
    model = SparseSVCCV(
        cv=len(task.splits),
        scoring=SCORERS[options.scoring],
        rule=options.rule,
        max_features=options.max_features,
        calibration=CALIBRATION,
        class_weight=task.class_weight,
        time_limit=schedule.share_of_time(),
        n_jobs=options.jobs,
    )
    if options.keep:
        model.set_params(penalty_weights=_penalties(preparation, options.keep))
    labels = task.labels
    data = validate(model, X, labels, None)
    search = PathSearch(
        estimator=model,
        data=data,
        y=labels,
        weights=None,
        penalty_weights=usable_penalties(model.penalty_weights, data),
        folds=task.folds(),
        scorer=BALANCED if options.scoring == "balanced" else scorer(options.scoring, task.classes),
        began=began,
        feature_names=preparation.get_feature_names_out(),
        whole=not task.judging,
        tell=lambda state: schedule.tell(state.share, state.doing, state.score),
    )
    found = search.run()
    choice = found.keep()
    schedule.end()
    rules = [options.rule] if task.judging else RULES["sparse"]
    scores, cut = found.scored.curve.scores, found.is_cut(choice)
    reached = scores[choice.row]
    gained = reached.mean() > scores[0].mean() + standard_error(reached) and model.coef_.any()
    return Learned(
        pipeline=pipeline_of(preparation, model),
        fold_scores=reached,
        held_out=_known(model.oof_decision_function_, task),
        choice=_chosen(model, choice),
        selection_frequency=model.selection_frequency_,
        detail=PathDetail(found, {rule: found.scored.pick(rule) for rule in rules}),
        cut=cut,
        cut_words=_cut_words(found),
        stopped=model.stopped_,
        still_rising=found.cut_while_rising,
        in_vain=cut and not gained,
    )


def _chosen(model: SparseSVCCV, choice: Choice) -> dict[str, Any]:
    """Where the model is: s on the paths of all rows, and one C where all classes have it."""
    ends = [float(path.s[-1]) for path in model.paths_]
    if choice.prices is None or np.any(choice.place > model.C_):  # a limit may end paths before it
        return {"s": np.minimum(model.s_, ends if len(ends) > 1 else ends[0]), "C": model.C_}
    return {"s": model.s_, "C": choice.place}


def _penalties(preparation: Any, keep: tuple[str, ...]) -> np.ndarray:
    """0 for the features of columns that are used in any case, otherwise 1."""
    return np.array([0.0 if name in keep else 1.0 for name in preparation.columns_behind()])


def _known(held_out: np.ndarray, task: Task) -> np.ndarray:
    """Decision values with those of the most frequent class where there was no time for a fold."""
    unknown = np.isnan(held_out)
    if not unknown.any():
        return held_out
    most = int(np.bincount(task.y, minlength=len(task.classes)).argmax())
    if held_out.ndim == 1:
        return np.where(unknown, 1.0 if most == 1 else -1.0, held_out)
    present = np.unique(task.y)
    return np.where(unknown, np.where(present == most, 1.0, -1.0), held_out)


def _cut_words(found: SearchedPaths) -> str:
    short = found.scored.short
    if not short:
        return ""
    fewest, count = min(path.n_joints for path in short), len(short)
    ended = f"{count} path{'s' if count > 1 else ''} of the folds"
    left = found.scored.missing
    without = f", and left no time for {left} of the folds" if left else ""
    return f"--time-limit ended {ended}, the first after {fewest} joints{without}"
