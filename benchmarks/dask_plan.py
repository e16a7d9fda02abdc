"""What a fit on many Dask workers would take: a model of its rounds, stragglers and lost workers.

    python -m benchmarks.dask_plan            prints the table of docs/dask.md and writes it there
    python -m benchmarks.dask_plan --measure  measures what the model is made of, on this machine

A fit is `rounds` rounds.  In each of them every worker works on its rows, all wait for the slowest
one, and the driver adds the answers up one after the other:

    seconds of a round = latency + work / (rows * rounds) * slowest(W) + W * bytes / bandwidth

What is assumed, and not measured, stands in `Assumptions`, each with its reason.
"""

import argparse
import dataclasses
import pathlib
import re
import time

import numpy as np

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "dask.md"
_BLOCK = re.compile(r"(<!-- dask plan -->\n).*?(<!-- end -->)", re.DOTALL)
_RUNS = 200  # simulated fits, of which the table has medians and ninetieth percentiles
WORKERS = (10, 100, 1000)


@dataclasses.dataclass(frozen=True)
class Assumptions:
    """What a simulated fit is made of.

    Attributes
    ----------
    rows, columns : float, int
        Of X, dense in float64.
    rounds : int
        To a gap of 1e-3 with the hinge: 26 were counted on 2,000,000 x 200, and more rows do not
        need more.
    seconds_per_row : float
        Of processor time in the whole fit, all rounds together: 1.6e-6 was measured on two workers
        with 2,000,000 rows, what Dask itself takes included, on a machine that others used too.
    latency : float
        Of a round, in seconds: 13 ms at best were measured on this machine (`--measure`).
    numbers : float
        Of an answer, in columns squared; 3 at the most were counted.
    bandwidth : float
        Bytes that the driver receives and adds up in a second: a network of 10 Gbit/s.
    spread : float
        Of the seconds of a worker from round to round, as the deviation of their logarithm.
    stragglers, slowness : float, float
        The share of answers that take several times as long, and how many times: figures that are
        reported of shared clusters.
    lost_per_hour : float
        Of a worker: one in a hundred hours, as of machines that may be taken back at any time.
    notice : float
        Seconds until Dask gives a silent worker up (its default).
    reading : float
        Bytes of rows that a worker reads in a second to replace those that were lost.
    rounds_again : int
        That a loss costs beside the one it falls into: the duals of its rows begin anew.
    """

    rows: float = 1e9
    columns: int = 200
    rounds: int = 26
    seconds_per_row: float = 2e-6
    latency: float = 0.02
    numbers: float = 3.0
    bandwidth: float = 1.2e9
    spread: float = 0.1
    stragglers: float = 0.01
    slowness: float = 5.0
    lost_per_hour: float = 0.01
    notice: float = 30.0
    reading: float = 2e8
    rounds_again: int = 3


def planned(workers: int, a: Assumptions) -> float:
    """Seconds of a fit in which nothing goes wrong: the formula of the page."""
    answer = 8 * a.numbers * a.columns**2
    rounds = a.rounds * (a.latency + workers * answer / a.bandwidth)
    return rounds + a.rows * a.seconds_per_row / workers


def simulated(workers: int, a: Assumptions, rng: np.random.Generator) -> tuple[float, int]:
    """Seconds of one fit, and how many workers were lost in it."""
    share = a.rows * a.seconds_per_row / workers / a.rounds
    answers = workers * 8 * a.numbers * a.columns**2 / a.bandwidth
    seconds, lost, left = 0.0, 0, a.rounds
    while left > 0:
        left -= 1
        times = share * np.exp(a.spread * rng.standard_normal(workers))
        times[rng.random(workers) < a.stragglers] *= a.slowness
        length = a.latency + times.max() + answers
        gone = int(np.sum(rng.random(workers) < 1 - np.exp(-a.lost_per_hour * length / 3600)))
        seconds += length
        if gone:
            lost += gone
            # Its blocks are read by all others together, then the rows' duals are made anew.
            others = max(1, workers - gone)
            size = gone * 8 * a.rows / workers * a.columns
            seconds += a.notice + size / others / a.reading
            left += a.rounds_again
    return seconds, lost


def table(a: Assumptions) -> str:
    """The page's table: the formula, and the simulation with and without trouble."""
    calm = dataclasses.replace(a, stragglers=0.0, lost_per_hour=0.0)
    lines = [
        "| workers | rows of each | by the formula | spread alone | with stragglers | "
        "and lost workers (90th percentile) | lost in a fit |",
        "|---|---|---|---|---|---|---|",
    ]
    for workers in WORKERS:
        rng = np.random.default_rng(workers)
        even = [simulated(workers, calm, rng)[0] for _ in range(_RUNS)]
        slow = dataclasses.replace(a, lost_per_hour=0.0)
        straggling = [simulated(workers, slow, rng)[0] for _ in range(_RUNS)]
        all_of_it = [simulated(workers, a, rng) for _ in range(_RUNS)]
        times = [seconds for seconds, _ in all_of_it]
        losses = float(np.mean([count for _, count in all_of_it]))
        size = 8 * a.rows * a.columns / workers / 1e9
        lines.append(
            f"| {workers} | {a.rows / workers:.0e} ({size:.1f} GB)"
            f" | {planned(workers, a):.0f} s | {np.median(even):.0f} s"
            f" | {np.median(straggling):.0f} s | {np.median(times):.0f} s"
            f" ({np.quantile(times, 0.9):.0f} s) | {losses:.2f} |"
        )
    return "\n".join(lines)


def measure() -> None:
    """Print the seconds per row of a whole fit in blocks, and the latency of a round."""
    from distributed import Client, LocalCluster

    from benchmarks.dask_fits import Case, on_a_cluster

    case = Case(160_000, 200, 0, "hinge", 0.01)
    for workers in (1, 2):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as home,
            Client(home) as client,
        ):
            wall, work, _, rounds = on_a_cluster(case, client)
            trips = []
            for k in range(50):
                began = time.perf_counter()
                client.gather(client.map(abs, [-k - 1] * workers, pure=False))
                trips.append(time.perf_counter() - began)
            print(
                f"{workers} workers: {work / case.n:.1e} s of processor time per row, "
                f"{len(rounds)} rounds, {wall:.2f} s of wall time, a round trip "
                f"{np.median(trips) * 1e3:.0f} ms (at best {min(trips) * 1e3:.0f} ms)",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--measure", action="store_true")
    if parser.parse_args().measure:
        measure()
        return
    found = table(Assumptions())
    print(found)
    PAGE.write_text(_BLOCK.sub(lambda m: f"{m[1]}\n{found}\n\n{m[2]}", PAGE.read_text()))


if __name__ == "__main__":
    main()
