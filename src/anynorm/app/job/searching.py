"""One search by whichever model is asked for, and what its solvers warn of."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

from anynorm.app.job.budget_learning import learn_budget
from anynorm.app.job.grid_learning import learn_grid
from anynorm.app.job.kernel_learning import learn_kernel
from anynorm.app.job.learning import Learned, Task
from anynorm.app.job.path_learning import learn_path
from anynorm.app.job.price_learning import learn_prices
from anynorm.app.job.schedule import Schedule
from anynorm.app.job.walk_learning import learn_walk

_LEARN = {"reweighted": learn_walk, "kernel": learn_kernel, "budget": learn_budget}
_LEARN_SPARSE = {"hinge": learn_path, "squared_hinge": learn_prices}


def learn(task: Task, schedule: Schedule, what: str) -> Learned:
    """The model of a task; parameters as in `learn_path`."""
    if task.options.model == "sparse":
        return _LEARN_SPARSE[task.options.loss](task, schedule, what)
    return _LEARN.get(task.options.model, learn_grid)(task, schedule, what)


@contextmanager
def collected() -> Iterator[list[str]]:
    """Warnings of solvers, as sentences about the command's options."""
    problems: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        yield problems
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
            continue
        text = str(warning.message)
        for name in ("time_limit", "max_features"):
            text = text.replace(name, f"--{name.replace('_', '-')}")
        text = text if text.startswith("--") else text[0].upper() + text[1:]
        if text not in problems:
            problems.append(text)
