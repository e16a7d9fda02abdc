"""More rows of `make bench-dask`: strict budgets, dask-ml, and a limit on memory.

Sizes are multiplied by `share`, so that a smaller machine can run them too; every row names the
size that was run.
"""

import importlib.util
import pathlib
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from benchmarks.dask import BLOCKS, FASTER, GAP, SLOWEST, Case, local, worker_time

PEER_FASTER = 3.0  # times as fast as dask-ml at equal objective
PEER_STEPS = (2, 5, 10, 20, 50, 100)  # iterations that the peer is given, the fewest that do
PEER_PATIENCE = 20.0  # times our processor time, after which a peer gets no more of them
BUDGET = 200
QUARTER = 0.25  # of the data: the memory that workers may take beyond what they have before


def rings(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two classes that no plane separates."""
    rng = np.random.default_rng(k)
    X = rng.standard_normal((n, 20))
    radius = (X[:, :5] ** 2).sum(axis=1) + 0.5 * rng.standard_normal(n)
    return X, radius > 4.35


def as_arrays(n: int, p: int, rows: Any) -> tuple[Any, Any]:
    """Dask arrays of blocks that `rows` makes."""
    import dask
    import dask.array as da

    parts = [dask.delayed(rows, pure=True)(n // BLOCKS, k) for k in range(BLOCKS)]
    size = n // BLOCKS
    X = da.concatenate([da.from_delayed(q[0], (size, p), float) for q in parts])
    return X, da.concatenate([da.from_delayed(q[1], (size,), bool) for q in parts])


def strict_budget(share: float, workers: int) -> str:
    """RBF, 5,000,000 x 20, B = 200: two workers against blocks in one process."""
    from anynorm import BudgetSVC

    n = int(5_000_000 * share) // BLOCKS * BLOCKS
    model = BudgetSVC(BUDGET, C=0.01, gamma=0.05, strict=True, tol=GAP)
    small = as_arrays(16_000, 20, rings)
    X, y = as_arrays(n, 20, rings)
    model.fit(*small)
    wall, busy = time.perf_counter(), time.process_time()
    model.fit(X, y)
    one = time.perf_counter() - wall, time.process_time() - busy, model.certificate_.primal
    with local(workers) as client:
        from distributed import wait

        held = [given.persist() for given in (X, y)]
        wait(held)
        model.fit(*small)
        wall, busy = time.perf_counter(), worker_time(client)
        model.fit(*held)
        two = time.perf_counter() - wall, worker_time(client) - busy, model.certificate_.primal
    return (
        f"strict budget {BUDGET}, RBF, {n:,} x 20: blocks in one process {one[0]:.1f} s (processor "
        f"{one[1]:.1f} s), {workers} workers {two[0]:.1f} s (processor {two[1]:.1f} s): "
        f"x{one[0] / two[0]:.2f} (goal {FASTER}), processor x{two[1] / one[1]:.2f} (at most "
        f"{SLOWEST}), objectives differ by {abs(two[2] / one[2] - 1):.1e}"
    )


def beside_dask_ml(share: float, workers: int) -> str:
    """The logistic loss without a bias, to one objective: dask-ml's two usual solvers."""
    from anynorm import LinearSVC

    n = int(2_000_000 * share) // BLOCKS * BLOCKS
    case = Case("", n, 200, 0, "logistic", 0.01)
    name = f"logistic loss, {n:,} x {case.p}, no bias, to {GAP:g} of the optimum"
    if importlib.util.find_spec("dask_ml") is None:
        return f"{name}: dask-ml is not installed"

    with local(workers) as client:
        from distributed import wait

        X, y = (given.persist() for given in as_arrays(n, case.p, lambda _, k: case.rows(k)))
        wait([X, y])
        model = LinearSVC(C=case.C, loss="logistic", fit_intercept=False, tol=GAP)
        model.fit(X[::16], y[::16])
        wall, busy = time.perf_counter(), worker_time(client)
        model.fit(X, y)
        ours = time.perf_counter() - wall, worker_time(client) - busy
        bound = model.certificate_.dual
        most = PEER_PATIENCE * ours[1]
        peers = [_peer(solver, case, X, y, bound, client, most) for solver in ("lbfgs", "admm")]
    said = [f"{solver} {text}" for solver, text in zip(("lbfgs", "admm"), peers, strict=True)]
    return (
        f"{name}: {workers} workers {ours[0]:.1f} s (processor {ours[1]:.1f} s); dask-ml "
        f"{'; '.join(said)} (goal {PEER_FASTER:g} times our time)"
    )


def _peer(solver: str, case: Case, X: Any, y: Any, bound: float, client: Any, most: float) -> str:
    """The seconds of dask-ml with the fewest iterations that come near enough."""
    import dask.array as da
    from dask_ml.linear_model import LogisticRegression

    labels, gap, text = y.astype(int).persist(), np.inf, ""
    for steps in PEER_STEPS:
        peer = LogisticRegression(
            solver=solver, C=case.C, fit_intercept=False, max_iter=steps, tol=1e-12
        )
        wall, busy = time.perf_counter(), worker_time(client)
        peer.fit(X, labels)
        seconds = time.perf_counter() - wall, worker_time(client) - busy
        w = np.asarray(peer.coef_).ravel()
        margins = (2 * labels - 1) * (X @ w)
        loss = float(da.logaddexp(0.0, -margins).sum().compute())
        gap = 1.0 - bound / (0.5 * float(w @ w) + case.C * loss)
        text = (
            f"{seconds[0]:.1f} s (processor {seconds[1]:.1f} s, {steps} iterations, gap {gap:.0e})"
        )
        if gap <= GAP:
            return text
        if seconds[1] > most:
            break
    return f"not near enough after {text}"


@contextmanager
def peaks_of(client: Any) -> Iterator[dict[int, int]]:
    """The most memory of each worker's process, looked at ten times a second."""
    import os

    import psutil

    seen: dict[int, int] = {}
    processes = [psutil.Process(number) for number in client.run(os.getpid).values()]
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.1):
            for process in processes:
                with suppress(psutil.NoSuchProcess):  # its nanny has ended it
                    seen[process.pid] = max(seen.get(process.pid, 0), process.memory_info().rss)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def within_a_quarter(share: float, workers: int) -> str:
    """`anynorm fit` on Parquet files: workers may take a quarter of the data, beyond their start.

    The nannies of Dask end a worker that takes more.
    """
    import os

    import dask
    import pandas as pd
    import psutil

    from anynorm.app.apart import Asked, run_fit_apart
    from anynorm.app.job import FitOptions

    n, p = int(2_500_000 * share) // BLOCKS * BLOCKS, 200
    case = Case("", n, p, 0, "hinge", 0.01)
    options = FitOptions(model="linear", C=(0.01,), cv=3, scale="none")
    # Workers are ended at 95 % of their limit; none is to pause, or write rows to disk, before.
    memory = dict.fromkeys(("target", "spill", "pause"), False)
    dask.config.set({f"distributed.worker.memory.{name}": x for name, x in memory.items()})
    with tempfile.TemporaryDirectory() as folder:
        for k in range(BLOCKS):
            X, y = case.rows(k)
            frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(p)]).assign(y=y)
            name = pathlib.Path(folder, f"part{k:02d}.parquet")
            frame.to_parquet(name, row_group_size=2000, index=False)
        first = pathlib.Path(folder, "part00.parquet")
        with local(workers) as client:  # what a worker takes once all is compiled and loaded
            run_fit_apart(client, Asked(first, "y"), options)
            taken = max(client.run(lambda: psutil.Process(os.getpid()).memory_info().rss).values())
        data = 8 * n * p
        limit = taken + int(QUARTER * data / workers)
        with local(workers, memory_limit=limit) as client:
            started = set(client.run(os.getpid).values())
            with peaks_of(client) as seen:
                wall = time.perf_counter()
                found = run_fit_apart(client, Asked(folder, "y"), options)
                wall = time.perf_counter() - wall
            lost = len(started - set(client.run(os.getpid).values()))
    return (
        f"command, hinge, {n:,} x {p} in Parquet ({data / 1e9:.2f} GB), {workers} workers of "
        f"{limit / 1e9:.2f} GB ({taken / 1e9:.2f} GB before, and a quarter of the data together): "
        f"{wall:.0f} s, peaks {', '.join(f'{peak / 1e9:.2f}' for peak in seen.values())} GB, "
        f"{lost} workers ended by their nannies, {found.learned.model.certificate_.status}, gap "
        f"{found.learned.model.certificate_.gap:.0e}"
    )


ROWS = {"budget": strict_budget, "dask-ml": beside_dask_ml, "memory": within_a_quarter}
"""By the name that `--only` knows."""
