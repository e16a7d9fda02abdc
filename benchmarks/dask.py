"""Rows on the workers of a Dask cluster of processes, against the same fit in one process.

    python -m benchmarks.dask [--quick] [--only TEXT] [--workers 2] [--share 0.1]

Both sides make the same rows, reach a gap of 1e-3 and are timed once they are compiled.  Printed
are seconds of wall and processor time (driver and workers together), how many rounds there were,
how many of them over all rows, and the numbers that a round brings to or from a worker, as
multiples of p or of p^2.  Wall times need a machine whose cores nobody else uses.  `--share` takes
so much of the rows.
"""

import argparse
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

GAP = 1e-3
BLOCKS = 16  # of rows
SLOWEST = 1.5  # of one process's processor time that the cluster may take
ROUNDS = 50  # at the most
FASTER = 1.5  # times as fast as one process, with two cores for two workers
NUMBERS = 4.0  # times p, or p^2 where matrices are summed, that a round may bring


@dataclass(frozen=True)
class Case:
    """A table, made block by block, and what is fitted to it."""

    name: str
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


def cases(quick: bool, share: float) -> list[Case]:
    """The tables of the goals, or small ones of the same kinds."""
    dense, wide = (
        ((200_000, 100), (100_000, 10_000)) if quick else ((2_000_000, 200), (10**6, 50_000))
    )
    many, few = (int(share * n) // BLOCKS * BLOCKS for n in (dense[0], wide[0]))
    return [
        Case("dense hinge", many, dense[1], 0, "hinge", 0.01),
        Case("dense logistic", many, dense[1], 0, "logistic", 0.01),
        Case("sparse hinge", few, wide[1], 20, "hinge", 0.1),
        Case("sparse logistic", few, wide[1], 20, "logistic", 0.1),
    ]


def model(case: Case) -> Any:
    from anynorm import LinearSVC

    return LinearSVC(C=case.C, loss=case.loss, tol=GAP)


def in_one_process(case: Case) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and the objective."""
    parts = [case.rows(k) for k in range(BLOCKS)]
    y = np.concatenate([y for _, y in parts])
    X: Any = [X for X, _ in parts]
    X = sp.vstack(X, format="csr") if case.entries else np.vstack(X)
    model(case).fit(*parts[0])
    del parts
    wall, busy = time.perf_counter(), time.process_time()
    found = model(case).fit(X, y)
    return time.perf_counter() - wall, time.process_time() - busy, found.certificate_.primal


@contextmanager
def watched_rounds() -> Iterator[list[tuple[str, float]]]:
    """The task of every round, and the most numbers that went to or came from a worker in it."""
    from anynorm.design.dask_crew import DaskCrew

    seen: list[tuple[str, float]] = []
    plain = DaskCrew._answers

    def answers(self: Any, job: Any, message: Any) -> Any:
        found = plain(self, job, message)
        sizes = [len(pickle.dumps(part)) for part in (message, *found)]
        seen.append((job.__name__, max(sizes) / 8))
        return found

    DaskCrew._answers = answers  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        DaskCrew._answers = plain  # type: ignore[method-assign]


def on_a_cluster(case: Case, client: Any) -> tuple[float, float, float, list[tuple[str, float]]]:
    """The same, and what the rounds were."""
    import dask
    import dask.array as da
    from distributed import wait

    n = case.n // BLOCKS
    meta = sp.csr_matrix((0, case.p)) if case.entries else None
    parts = [dask.delayed(case.rows, pure=True)(k) for k in range(BLOCKS)]
    X = da.concatenate([da.from_delayed(q[0], (n, case.p), float, meta) for q in parts]).persist()
    y = da.concatenate([da.from_delayed(q[1], (n,), bool) for q in parts]).persist()
    wait([X, y])
    # Rows of all blocks, so that every worker has compiled, and loaded, what it needs.
    some = [slice(k * n, k * n + n // 4) for k in range(BLOCKS)]
    model(case).fit(*(da.concatenate([given[rows] for rows in some]) for given in (X, y)))

    with watched_rounds() as seen:
        wall, before = time.perf_counter(), worker_time(client)
        found = model(case).fit(X, y)
        busy = worker_time(client) - before
        return time.perf_counter() - wall, busy, found.certificate_.primal, seen


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--share", type=float, default=1.0)
    asked = parser.parse_args()
    from benchmarks.dask_rows import ROWS

    share = 0.02 * asked.share if asked.quick else asked.share
    for name, row in ROWS.items():
        if asked.only in name:
            print(row(share, asked.workers), flush=True)
    for case in (case for case in cases(asked.quick, asked.share) if asked.only in case.name):
        wall, busy, objective = in_one_process(case)
        with local(asked.workers) as client:
            apart = on_a_cluster(case, client)
        rounds = apart[3]
        matrices = case.p <= case.n // 1000 and not case.entries
        numbers = max(size for _, size in rounds) / (case.p**2 if matrices else case.p)
        print(
            f"{case.name} {case.n} x {case.p}: one process {wall:.2f} s (processor {busy:.2f} s), "
            f"{asked.workers} workers {apart[0]:.2f} s (processor {apart[1]:.2f} s): "
            f"x{wall / apart[0]:.2f} (goal {FASTER}), processor x{apart[1] / busy:.2f} "
            f"(at most {SLOWEST}), {len(rounds)} rounds (at most {ROUNDS}), "
            f"{numbers:.1f} {'p^2' if matrices else 'p'} per round (at most {NUMBERS:g}), "
            f"objectives differ by {abs(apart[2] / objective - 1):.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
