"""What a search costs, roughly, before it is begun: what for the command chooses by itself.

A path has about as many joints as JOINTS_PER_ROW says, whatever the shape.  A joint takes as many
operations as the rows and columns have entries in the basis, which grows to the smaller of both.
A search over C with the squared hinge loss reads the entries of X some hundred times, and has work
of its own in every fold; on tables and texts of all sizes that is right to a factor of four.  Both
are counts, not times: the choice is the same on every machine, however busy.
"""

from __future__ import annotations

import math
from typing import Any

from anynorm.app.job.learning import Task
from anynorm.app.job.options import OptionError
from anynorm.app.tables import SparseFrame
from anynorm.design.threads import allowed
from anynorm.estimators._path_stages import JOINTS_PER_ROW, MOST_TOGETHER

PER_SECOND = 1e9  # such operations on one core
MOST_FOR_PATHS = 5e9  # operations: some seconds of one core, beyond which "auto" has the other
_PASSES = 300.0  # over the entries of X, for all C of a search
_FIXED = 3e7  # operations of a fold, whatever its size
_SPARSE = 4.0  # operations for an entry of a sparse matrix, which is somewhere in memory
_OVERHEAD = 8.0  # operations of a joint for each row and column, beside those of the basis
_LONG = 30.0  # seconds from which on a job is announced


def path_cost(task: Task, searches: int) -> float:
    """The operations for the paths of all folds in so many searches."""
    n, p = len(task.y), task.n_features
    n_train = n * _share(task) * (_share(task) if searches > 1 else 1.0)
    most = task.options.max_features
    basis = min(n_train, p, math.inf if most is None else most)
    joint = (basis / 2 + _OVERHEAD) * (n_train + p + basis / 2)
    paths = searches * (len(task.splits) + 1) * task.n_problems
    return paths * JOINTS_PER_ROW * n_train * joint


def price_cost(task: Task, searches: int) -> float:
    """The operations for a search over C with the squared hinge loss in all folds."""
    folds = searches * (len(task.splits) + 1) * task.n_problems
    entry = _SPARSE if isinstance(task.rows, SparseFrame) else 1.0
    return folds * (_FIXED + entry * _PASSES * task.n_entries * _share(task) ** 2)


def seconds_for(operations: float) -> float:
    """About how long these take, on the threads that are there."""
    return operations / PER_SECOND / max(1, allowed())


def in_words(seconds: float) -> str:
    """A rough time."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} minutes"
    return f"{round(seconds / 3600)} hours"


def method_for(task: Task, searches: int) -> tuple[str, list[str]]:
    """The loss of the sparse model where the command is to choose it, and what to say about it."""
    paths, prices = path_cost(task, searches), price_cost(task, searches)
    asked, many = task.options.loss, len(task.splits) > MOST_TOGETHER
    if asked == "squared_hinge" and many:
        raise OptionError(
            f"--loss squared_hinge has all folds in memory together, and takes at most "
            f"{MOST_TOGETHER}; --cv gives {len(task.splits)}. Use fewer folds, or --loss hinge."
        )
    if asked != "auto" or not other_loss_can(task) or paths <= MOST_FOR_PATHS:
        return "hinge" if asked == "auto" else asked, []
    return "squared_hinge", [
        "The squared hinge loss over a range of C, instead of the exact path of the hinge loss: "
        f"that would take about {in_words(seconds_for(paths))} here, this about "
        f"{in_words(seconds_for(prices))}. --loss hinge follows the path all the same."
    ]


def other_loss_can(task: Task) -> bool:
    """Whether the squared hinge loss over a range of C can do what the exact path was asked for."""
    return len(task.splits) <= MOST_TOGETHER and not task.options.keep


def announcement(task: Task, searches: int) -> str:
    """What to say before a long job; empty for a short one."""
    cost = {"hinge": path_cost, "squared_hinge": price_cost}.get(task.options.loss)
    if cost is None or task.options.model != "sparse":
        return ""
    seconds = seconds_for(cost(task, searches))
    if seconds < _LONG:
        return ""
    what = "the exact paths" if task.options.loss == "hinge" else "the searches over C"
    return f"This takes about {in_words(seconds)}: {what} of {searches} searches."


def _share(task: Task) -> float:
    """The share of the rows that a fold learns from."""
    return 1.0 - 1.0 / len(task.splits)


def entries_of(frame: Any, n_features: int) -> int:
    """The entries that are stored of a frame once it is prepared."""
    matrix = getattr(frame, "matrix", None)
    return int(matrix.nnz) if matrix is not None else len(frame) * n_features
