"""What `make bench-dask` measures: linear fits on a cluster of processes and in one process.

Both sides make the same rows, reach a gap of 1e-3 and are timed once they are compiled, each up to
five times, of which the medians count.  The rows are in memory before, in one matrix or in as many
blocks on each worker; what is timed is `fit`, with its checks of the rows.  Processor time is that
of driver and workers together.
"""

import os
import pickle
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

GAP = 1e-3
BLOCKS = 16  # of rows
_TRIPS = 30  # rounds in which nothing is done
_RUNS, _SECONDS = 5, 30.0  # of a fit, the most of either


@dataclass(frozen=True)
class Case:
    """A table, made block by block, and what is fitted to it."""

    n: int
    p: int
    entries: int  # per row; 0 is dense
    loss: str
    C: float

    def rows(self, k: int) -> tuple[Any, np.ndarray]:
        """Block k, and its labels."""
        n, rng = self.n // BLOCKS, np.random.default_rng(k)
        w = np.random.default_rng(10**6).standard_normal(self.p)
        if not self.entries:
            X, noise = rng.standard_normal((n, self.p)), 5.0
            return X, X @ w / np.sqrt(self.p) * noise + rng.standard_normal(n) > 0
        # Columns as those of text: some in many rows, most in few.
        columns = (self.p * rng.random((n, self.entries)) ** 2).astype(np.int32)
        starts = np.arange(0, n * self.entries + 1, self.entries)
        values = np.full(n * self.entries, self.entries**-0.5)
        X = sp.csr_matrix((values, columns.ravel(), starts), shape=(n, self.p))
        X.sum_duplicates()
        return X, X @ w + 0.5 * rng.standard_normal(n) > 0


def model(case: Case) -> Any:
    from anynorm import LinearSVC

    return LinearSVC(C=case.C, loss=case.loss, tol=GAP)


def timed(fit: Callable[[], Any], busy: Callable[[], float]) -> tuple[float, float, Any]:
    """Wall seconds and processor seconds of a fit, medians of some runs, and the last one's model.

    `busy` says how many seconds of processor time have been taken so far.
    """
    runs: list[tuple[float, float]] = []
    while len(runs) < _RUNS and sum(wall for wall, _ in runs) < _SECONDS:
        wall, before = time.perf_counter(), busy()
        found = fit()
        runs.append((time.perf_counter() - wall, busy() - before))
    walls, busys = zip(*runs, strict=True)
    return statistics.median(walls), statistics.median(busys), found


def in_one_process(case: Case) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and the objective."""
    parts = [case.rows(k) for k in range(BLOCKS)]
    y = np.concatenate([y for _, y in parts])
    X: Any = [X for X, _ in parts]
    X = sp.vstack(X, format="csr") if case.entries else np.vstack(X)
    model(case).fit(*parts[0])
    del parts
    wall, busy, found = timed(lambda: model(case).fit(X, y), time.process_time)
    return wall, busy, found.certificate_.primal


class Round(NamedTuple):
    """A question to all workers.

    Attributes
    ----------
    task : str
        What they were asked.
    numbers : float
        The most that went to or came from a worker.
    seconds : float
        Of wall time until all answers were there.
    """

    task: str
    numbers: float
    seconds: float


@contextmanager
def watched_rounds() -> Iterator[list[Round]]:
    """The rounds of what is fitted meanwhile, known at the end."""
    from anynorm.design.dask_crew import DaskCrew

    seen: list[Round] = []
    said: list[tuple[str, list[Any], float]] = []
    plain = DaskCrew._answers

    def answers(self: Any, job: Any, message: Any) -> Any:
        began = time.perf_counter()
        found = plain(self, job, message)
        said.append((job.__name__, [message, *found], time.perf_counter() - began))
        return found

    DaskCrew._answers = answers  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        DaskCrew._answers = plain  # type: ignore[method-assign]
        # Afterwards, so that it takes no time of the fit.
        seen += [
            Round(task, max(len(pickle.dumps(part)) for part in parts) / 8, seconds)
            for task, parts, seconds in said
        ]


def on_a_cluster(case: Case, client: Any) -> tuple[float, float, float, list[Round]]:
    """The same, and what the rounds were."""
    import dask
    import dask.array as da
    from distributed import wait

    n, homes = case.n // BLOCKS, sorted(client.scheduler_info(n_workers=-1)["workers"])
    meta = sp.csr_matrix((0, case.p)) if case.entries else None
    # As many blocks on each worker as on the others, where they stay.
    made = [client.submit(case.rows, k, workers=[homes[k % len(homes)]]) for k in range(BLOCKS)]
    parts = [dask.delayed(pair) for pair in made]
    X = da.concatenate([da.from_delayed(q[0], (n, case.p), float, meta) for q in parts]).persist()
    y = da.concatenate([da.from_delayed(q[1], (n,), bool) for q in parts]).persist()
    wait([X, y])
    # Rows of all blocks, so that every worker has compiled, and loaded, what it needs.
    some = [slice(k * n, k * n + n // 4) for k in range(BLOCKS)]
    model(case).fit(*(da.concatenate([given[rows] for rows in some]) for given in (X, y)))

    wall, busy, _ = timed(lambda: model(case).fit(X, y), lambda: worker_time(client))
    with watched_rounds() as seen:
        found = model(case).fit(X, y)
    return wall, busy, found.certificate_.primal, seen


def worker_time(client: Any) -> float:
    """The seconds of processor time that this process and all workers have taken."""
    return time.process_time() + sum(client.run(time.process_time).values())


@contextmanager
def local(workers: int, **options: Any) -> Iterator[Any]:
    """A client of so many processes on this machine, of one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, **options
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def compared(case: dict[str, Any], workers: int) -> dict[str, Any]:
    """A fit on so many workers against the same one in this process."""
    given, load = Case(**case), os.getloadavg()[0]
    wall, cpu, objective = in_one_process(given)
    with local(workers) as client:
        apart = on_a_cluster(given, client)
    tasks = [each.task for each in apart[3]]
    return {
        "one": {"wall": wall, "cpu": cpu},
        "workers": {"wall": apart[0], "cpu": apart[1]},
        "rounds": {task: tasks.count(task) for task in sorted(set(tasks))},
        "numbers": max(each.numbers for each in apart[3]),
        "difference": abs(apart[2] / objective - 1),
        "load": load,
    }


def by_workers(case: dict[str, Any], counts: list[int]) -> list[dict[str, Any]]:
    """The same fit on more and more workers, of one thread each and without a limit on memory."""
    return [_on_so_many(Case(**case), workers) for workers in counts]


def _on_so_many(case: Case, workers: int) -> dict[str, Any]:
    # A limit would be a share of the machine's memory, which one worker alone may have to exceed.
    with local(workers, memory_limit=0) as client:
        wall, cpu, objective, rounds = on_a_cluster(case, client)
        return {
            "workers": workers,
            "wall": wall,
            "cpu": cpu,
            "objective": objective,
            "rounds": len(rounds),
            "in rounds": sum(each.seconds for each in rounds),
            "latency": latency(client, workers),
        }


def latency(client: Any, workers: int) -> float:
    """Seconds of a round in which nothing is done, the median of some."""
    from anynorm.design.dask_crew import DaskCrew

    homes = sorted(client.scheduler_info(n_workers=-1)["workers"])
    crew = DaskCrew(client, [client.submit(_empty, k, workers=[homes[k]]) for k in range(workers)])
    times = []
    for _ in range(_TRIPS):
        began = time.perf_counter()
        crew.ask(_nothing)
        times.append(time.perf_counter() - began)
    crew.close()
    return float(np.median(times))


def _empty(number: int) -> Any:
    from anynorm.design.crew import Block

    return Block(np.empty((0, 1)), np.empty(0), None, columns=1, number=number)


def _nothing(blocks: Any, message: Any) -> Any:
    from anynorm.design.crew import Sums

    return Sums(n=0)
