"""No row of any benchmark is slower with the number of threads that a user has who sets nothing.

    python -m benchmarks.threads [BENCHMARK ...] [--only TEXT] [--seconds 15] [--record]

Whatever a row times of ours runs by turns with the threads that BLAS and others take by themselves
and with one thread, in one process that has nothing about threads in its environment; the ratio is
the median over every two pairs of runs, so what the machine does besides is in both.  What is asked
of us alone is in the functions named ``..._ours``; the peers are left out, and with them what has
nothing to do with the threads of a fit: first fits, imports, memory, and what is counted in entries
or in per cent.

Times are wall times, which only a quiet machine can tell.
"""

import argparse
import contextlib
import dataclasses
import importlib
import json
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks import harness, start
from benchmarks.cores import CORES, DEFAULT_GOAL
from benchmarks.harness import Row

RECORDED = harness.RESULTS / "threads.json"
BENCHMARKS = ("linear", "walk", "sparse", "kernel", "search", "small", "bridge", "job")


class _NotOurs(Exception):
    """What a row needs next is not for us to measure."""


class Turns:
    """What answers the calls of a row: ours are measured, the others end the row.

    Parameters
    ----------
    share : float
        Seconds for the runs of one piece of work.
    limit : float
        Seconds for one process.

    Attributes
    ----------
    rows : list of Row
        What was measured since it was last emptied.
    """

    def __init__(self, share: float, limit: float) -> None:
        self._share, self._limit = share, limit
        self._answers: dict[str, Any] = {}
        self.rows: list[Row] = []

    def __call__(
        self,
        function: str,
        arguments: dict[str, Any],
        limit: float,
        environment: dict[str, str] | None,
    ) -> list[Any]:
        """Answer `harness.call`; a piece of work that several rows share is measured once."""
        if not function.endswith("ours") or environment is not None:
            raise _NotOurs
        name = f"{function} {json.dumps(arguments, sort_keys=True)}"
        if name not in self._answers:
            *timings, self._answers[name] = self._measured(function, arguments)
            self.rows.extend(
                harness.turns_row("", timing["pairs"], DEFAULT_GOAL) for timing in timings
            )
        return [self._answers[name]]

    def _measured(self, function: str, arguments: dict[str, Any]) -> list[Any]:
        """What each piece of work took, and the answer of the function."""
        variables = {harness.BOTH_WAYS: str(self._share)}
        answers = harness.make_calls(function, arguments, self._limit, variables, one_thread=False)
        if answers and "pairs" not in answers[-1]:
            return answers
        note = f"{function} took over {self._limit:g} s"
        self.rows.append(Row("", "-", "-", None, bound=DEFAULT_GOAL, note=note))
        raise _NotOurs


def compile_all() -> None:
    """Make every kind of first fit, so that no first run waits for the compiler."""
    X, y = start.data()
    for fit in start.ours().values():
        fit(X, y)


def measured(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """The rows of a benchmark whose titles contain the text asked for."""
    turns = Turns(options.seconds, options.limit)
    module = importlib.import_module(f"benchmarks.{name}")
    own = argparse.ArgumentParser()  # what this benchmark alone can be asked for
    getattr(module, "add_options", lambda parser: None)(own)
    own.parse_args([], options)
    with tempfile.TemporaryDirectory() as folder:
        for title, job in module.prepare(pathlib.Path(folder), options):
            if options.only in title:
                with harness.calls_made_by(turns), contextlib.suppress(_NotOurs):
                    job()
            for k, row in enumerate(turns.rows):
                number = f", {k + 1} of {len(turns.rows)}" if len(turns.rows) > 1 else ""
                yield dataclasses.replace(row, work=f"{name}: {title}{number}")
            turns.rows.clear()


def main(arguments: list[str] | None = None) -> list[Row]:
    """Measure what is asked for; the table begins with what is slowest with many threads."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("benchmarks", nargs="*", metavar="BENCHMARK", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="small data: does it run at all?")
    parser.add_argument("--only", default="", help="the rows whose name contains this text")
    parser.add_argument(
        "--record", action="store_true", help="put the rows asked for among the recorded ones"
    )
    parser.add_argument("--seconds", type=float, default=15.0, help="for a row (default 15)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one process")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file for the results")
    options = parser.parse_args(arguments, argparse.Namespace(repeats=0))
    if unknown := set(options.benchmarks) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    packages = ["numpy", "scipy", "scikit-learn", "numba", "threadpoolctl"]
    measured_with = harness.machine(packages, f"Wall seconds, {CORES} cores")
    if options.record:
        harness.check_record(parser, options, RECORDED, measured_with)
    if not options.quick:
        harness.call("benchmarks.threads:compile_all", {})
    rows = []
    for name in options.benchmarks or BENCHMARKS:
        for row in measured(name, options):
            rows.append(dataclasses.replace(row, bound=None) if options.quick else row)
            print("  ".join(cell for cell in rows[-1].cells().values() if cell), flush=True)
    rows.sort(key=lambda row: row.ratio or 0.0)
    print(f"\n{harness.table(rows)}")
    whole = not (options.benchmarks or options.only or options.quick)
    output = options.output or (RECORDED if whole else None)
    if options.record:
        harness.add({row.work: row for row in rows}, RECORDED)
    elif output is not None:
        harness.save({row.work: row for row in rows}, output, measured_with)
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
