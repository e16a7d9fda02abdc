"""The main job against what everybody has: a nested grid of scikit-learn's 1-norm LinearSVC.

    python -m benchmarks.job [--quick] [--only TEXT] [--limit 300] [--output FILE]

* Ours is `anynorm fit` from a table in memory to the files on disk: a search with 5 folds, 5 more
  to judge it, and the report.  Theirs is ``cross_val_score`` over ``GridSearchCV`` with 10 values
  of C, 5 x 5 folds, scaled inside every fold.
* Ratios are of CPU time: both sides share out their folds alike.  A peer is stopped once it has
  taken PEER_LIMIT times as long as ours: the ratio is then at least that of what it has taken.
* Each side's error is that of its outer folds; a row's note says where ours is worse by more than
  one standard error.
* A second row for each: our wall time with two threads, at most 90 s.

Spambase, satimage, dna and the newsgroups are generated data of their kind and size (see
`generators`): skewed and mostly zero, correlated bands of whole numbers, zeros and ones with many
ties, counts of words.
"""

import argparse
import dataclasses
import functools
import pathlib
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import harness
from benchmarks.generators import Data
from benchmarks.harness import Row, seconds

FASTER_GOAL, WALL_GOAL = 3.0, 90.0
PEER_LIMIT = 5.0  # times our CPU time, after which the peer is stopped
LEAST_LIMIT = 10.0  # CPU seconds that it gets in any case
CS = np.logspace(-3, 2, 10)
FOLDS = 5
LOOK = 2.0  # seconds from one look at a peer to the next
WDBC = "breast cancer"

TABLES = (
    Data(WDBC, 569, 30, 0),
    Data("microarray", 62, 2000, 0),
    Data("dense", 2000, 100, 0),
    Data("dense", 10_000, 20, 0),
    Data("skewed", 4601, 57, 0),
    Data("bands", 6435, 36, 0),
    Data("codes", 3186, 180, 0),
    Data("counts", 1943, 3289, 0),
    Data("dense", 100_000, 50, 0),
    Data("dense", 5000, 2000, 0),
    Data("text", 20_000, 50_000, 0),
)
QUICK = (Data(WDBC, 569, 30, 0), Data("counts", 120, 200, 0))


# ---------------------------------------------------------------- what runs in fresh processes


def load(folder: str, data: dict[str, Any]) -> tuple[Any, np.ndarray]:
    """The rows and labels of a table."""
    if data["kind"] == WDBC:
        from sklearn.datasets import load_breast_cancer

        return load_breast_cancer(return_X_y=True)
    return Data(**data).load(folder)


def ours(folder: str, data: dict[str, Any]) -> dict[str, Any]:
    """The job, after one on a few rows that has compiled everything."""
    import pandas as pd

    from anynorm import job, tables

    X, y = load(folder, data)
    names = [f"x{column}" for column in range(X.shape[1])]
    frame = tables.SparseFrame(X, names) if sp.issparse(X) else pd.DataFrame(X, columns=names)

    def run(rows: np.ndarray, loss: str) -> Any:
        ids = rows.astype(str)
        source = pathlib.Path("data")
        table = tables.Table(frame.iloc[rows], y[rows].astype(int), ids, None, None, source)
        found = job.run_fit(table, job.FitOptions(jobs=2, loss=loss))
        with tempfile.TemporaryDirectory() as out:
            job.write_results(found, out)
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for loss in ("hinge", "squared_hinge"):
            run(np.arange(50), loss)
        timing, found = harness.timed(lambda: run(np.arange(len(y)), "auto"), repeats=0)
    error = found.errors[0]
    return {
        "wall": timing.wall,
        "cpu": timing.cpu,
        "error": error.value,
        "standard_error": error.standard_error,
        "baseline": found.baseline,
        "model": type(found.learned.model).__name__,
    }


def peer(folder: str, data: dict[str, Any], most: float) -> Iterator[dict[str, Any]]:
    """The nested grid, one fold after the other: what it has taken so far, every few seconds.

    It ends when it is done, or after `most` seconds of CPU time.
    """
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    X, y = load(folder, data)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    model = make_pipeline(
        StandardScaler(with_mean=not sp.issparse(X)), LinearSVC(penalty="l1", dual=False)
    )
    search = GridSearchCV(model, {"linearsvc__C": CS}, cv=folds)
    errors: list[float] = []
    wall, cpu = time.perf_counter(), time.process_time()

    def nested() -> None:
        for train, test in folds.split(X, y):
            errors.append(1.0 - search.fit(X[train], y[train]).score(X[test], y[test]))

    warnings.simplefilter("ignore")
    work = threading.Thread(target=nested, daemon=True)
    work.start()
    taken, done = 0.0, False
    while not done and taken < most:
        work.join(LOOK)
        done = not work.is_alive()
        taken = time.process_time() - cpu
        yield {
            "wall": time.perf_counter() - wall,
            "cpu": taken,
            "folds": len(errors),
            "error": float(np.mean(errors)) if errors else None,
        }


# ---------------------------------------------------------------- rows


class Run:
    """The rows of one run; each table is measured once."""

    def __init__(self, folder: pathlib.Path, limit: float) -> None:
        self.folder, self.limit = str(folder), limit

    @functools.cache  # noqa: B019  # a run lives as long as the process
    def measured(self, data: Data) -> dict[str, Any]:
        """Our side."""
        given = {"folder": self.folder, "data": dataclasses.asdict(data)}
        return harness.call("benchmarks.job:ours", given, limit=self.limit)

    def against(self, data: Data) -> Row:
        """How much faster, and how good."""
        found = self.measured(data)
        given = {
            "folder": self.folder,
            "data": dataclasses.asdict(data),
            "most": max(LEAST_LIMIT, PEER_LIMIT * found["cpu"]),
        }
        answers = harness.call_each("benchmarks.job:peer", given, limit=self.limit)
        mine = f"{seconds(found['cpu'])} ({found['model']}, error {found['error']:.1%})"
        if not answers:
            raise TimeoutError("the peer did not begin")
        other = answers[-1]
        note, theirs = "", f"over {seconds(other['cpu'])}"
        if other["folds"] < FOLDS:
            note = f"the ratio is at least that: the peer was stopped in fold {other['folds'] + 1}"
        else:
            theirs = f"{seconds(other['cpu'])} (error {other['error']:.1%})"
            if found["error"] - other["error"] > found["standard_error"]:
                note = "WORSE by more than one standard error"
        return Row(
            work=f"job {data}",
            ours=mine,
            other=theirs,
            ratio=other["cpu"] / found["cpu"],
            bound=FASTER_GOAL,
            note=note,
            details={"ours": found, "peer": other},
        )

    def wall(self, data: Data) -> Row:
        """Our wall time."""
        found = self.measured(data)
        return Row(
            work=f"job {data}, wall time on two threads",
            ours=seconds(found["wall"]),
            other="-",
            ratio=found["wall"],
            sense="<=",
            bound=WALL_GOAL,
            unit="s",
            details={"ours": found},
        )


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The rows."""
    run = Run(folder, options.limit)
    rows: list[Any] = []
    for data in QUICK if options.quick else TABLES:
        for row in (run.against, run.wall):
            work = f"job {data}{', wall time' if row == run.wall else ''}"
            goal = FASTER_GOAL if row == run.against else WALL_GOAL
            job = functools.partial(row, data)
            rows.append((work, harness.in_time(options.limit, work, goal, job)))
    return rows


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the rows asked for."""
    packages = ["numpy", "scipy", "scikit-learn", "numba", "pandas"]
    clock = "CPU seconds, all threads of each side; wall time where it says so"
    return harness.command("job", __doc__, prepare, packages, arguments, clock=clock)


if __name__ == "__main__":
    main(sys.argv[1:])
