"""Kernel models of few support vectors: budgets, C and gamma from a grid.

In a fold the rows are chosen once for each gamma, by forward selection, for the largest budget and
a C in the middle: the first B of them do for a budget of B.  Their kernel functions are features
(`kernels/landmarks.py`), the first B of which a linear model with any C has.  The model of the
choice is a `BudgetSVC`, whose rows are chosen for its own C and with more care.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import numpy as np

from anynorm.app.job.grid_learning import Candidate, GridDetail, Trial, learn_grid
from anynorm.app.job.learning import Learned, Task
from anynorm.app.job.schedule import Schedule
from anynorm.design import Matrix
from anynorm.estimators._fitting import Report
from anynorm.estimators.budget_svc import BudgetSVC
from anynorm.estimators.linear_svc import LinearSVC
from anynorm.kernels.gamma import resolve_gamma

_TOL = 1e-3  # the gap of fits that candidates are compared by, as in `SVCCV`


def learn_budget(task: Task, schedule: Schedule, what: str) -> Learned:
    """Choose the budget, C and gamma by cross-validation; parameters as in `learn_path`."""
    return learn_grid(task, schedule, what, trial_of=BudgetTrial)


class BudgetTrial(Trial):
    """The scores of all candidates in all folds, with rows chosen once for each gamma."""

    def fold(self, fold: int, _: Report | None) -> None:
        """Fit every candidate to the rows of one fold."""
        X, labels = self.folds.train(fold), self.task.labels[self.task.splits[fold][0]]
        held_out = self.task.placed(self.folds.test(fold))

        def width(c: int) -> float:
            return self.candidates[c]["width"]

        for _width, some in groupby(sorted(range(len(self.candidates)), key=width), key=width):
            self._one_width(fold, list(some), X, labels, held_out)

    def _one_width(
        self, fold: int, places: list[int], X: Matrix, labels: np.ndarray, held_out: Matrix
    ) -> None:
        """Fit the candidates of one gamma."""
        candidates = [self.candidates[c] for c in places]
        Cs = [each["C"] for each in candidates]
        chooser = BudgetSVC(
            budget=max(self._count(each, X) for each in candidates),
            C=float(np.sqrt(min(Cs) * max(Cs))),
            slack="squared_l2",
            gamma=candidates[0]["width"] * resolve_gamma("scale", X),
            strict=True,
            class_weight=self.task.class_weight,
            random_state=self.task.options.seed,
        )
        span = chooser._landmarks(self.task.placed(X), labels, self.end)
        Z, Z_held = span.design().dense(), span.features_of(held_out)
        for c, candidate in zip(places, candidates, strict=True):
            count = min(self._count(candidate, X), Z.shape[1])
            model = LinearSVC(
                C=candidate["C"],
                tol=_TOL,
                class_weight=self.task.class_weight,
                random_state=self.task.options.seed,
                time_limit=self.time_for(self.left),
            ).fit(Z[:, :count], labels)
            self.note(c, fold, model, Z_held[:, :count], count)

    @staticmethod
    def _count(candidate: Candidate, X: Matrix) -> int:
        """The budget of a candidate in rows."""
        budget = candidate["budget"]
        return int(budget) if budget >= 1 else max(1, int(budget * X.shape[0]))


def with_other_budgets(task: Task, learned: Learned) -> Learned:
    """The same choice with what its report shows beside it: other budgets, and none.

    All with the chosen C and gamma, in the same folds.
    """
    detail: GridDetail = learned.detail
    choice = detail.candidates[detail.chosen]
    if task.options.budget is not None:
        budgets = _budgets_around(choice["budget"], len(task.y))
        candidates = [choice | {"budget": budget} for budget in budgets]
        trial: Trial = BudgetTrial(task, candidates, Schedule(None, 1), None)
        trial.run()
        place = budgets.index(choice["budget"])
        detail = GridDetail(candidates, trial.scores, place, trial.accuracies, trial.sizes)
    plain = replace(task, options=replace(task.options, model="kernel", budget=None))
    without = {name: value for name, value in choice.items() if name != "budget"}
    trial = Trial(plain, [without], Schedule(None, 1), None)
    trial.run()
    reference = ("SVC without a budget", float(trial.sizes.mean()), float(trial.accuracies.mean()))
    return replace(learned, detail=replace(detail, reference=reference))


def _budgets_around(budget: float, n: int) -> list[float]:
    """A quarter, a half and twice a budget, as far as they leave 2 rows and no more than all."""
    if budget < 1:
        return [
            b for b in (budget / 4, budget / 2, budget, 2 * budget) if b == budget or 4 / n < b < 1
        ]
    around = {max(2, int(budget) // 4), max(2, int(budget) // 2), int(budget), 2 * int(budget)}
    return sorted(b for b in around if b == budget or b < n)
