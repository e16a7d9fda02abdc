"""What every benchmark shares: fresh processes, timing, peak memory, and the table of ratios.

Each side of a comparison runs in an interpreter of its own with one thread.  Times are the median
of repeated runs after a first one, which is reported apart because it may load or compile code.
Ratios are of CPU time: with one thread it says the same as wall time on a quiet machine, and still
says it on a machine that others share.  Wall times are kept beside it in the JSON file.
"""

import argparse
import contextlib
import dataclasses
import gc
import importlib
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
THREADS = (
    *(f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON", "BLIS")),
    "VECLIB_MAXIMUM_THREADS",
)
BOTH_WAYS = "ANYNORM_BENCHMARK_BOTH_WAYS"  # seconds for `timed` to take with and without threads
_MARK = "RESULT "
_MOST_PAIRS = 100  # of runs of a short piece of work


def call(
    function: str,
    arguments: dict[str, Any],
    *,
    limit: float = 600.0,
    environment: dict[str, str] | None = None,
) -> Any:
    """Run ``"package.module:function"`` in a fresh one-threaded interpreter.

    Arguments and result travel as JSON.  Raises TimeoutError after `limit` seconds, and
    RuntimeError with the end of the process's own message when it fails.
    """
    answers = call_each(function, arguments, limit=limit, environment=environment)
    if not answers:
        raise TimeoutError(f"{function} took over {limit:g} s")
    return answers[-1]


def call_each(
    function: str,
    arguments: dict[str, Any],
    *,
    limit: float = 600.0,
    environment: dict[str, str] | None = None,
) -> list[Any]:
    """Run a generator function likewise; returns what it had yielded by the time limit."""
    make = _makers[-1] if _makers else make_calls
    return make(function, arguments, limit, environment)


def make_calls(
    function: str,
    arguments: dict[str, Any],
    limit: float,
    environment: dict[str, str] | None,
    *,
    one_thread: bool = True,
) -> list[Any]:
    """Start the process of `call_each`, with one thread or with what a user has."""
    command = [sys.executable, "-m", "benchmarks.harness", function, json.dumps(arguments)]
    given = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *([given] if given else [])])
    variables = {name: value for name, value in os.environ.items() if name not in THREADS}
    variables.update(dict.fromkeys(THREADS, "1") if one_thread else {})
    variables.update(PYTHONPATH=path, **(environment or {}))
    with subprocess.Popen(
        command,
        env=variables,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            output, message = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            output, message = process.communicate()
        else:
            if process.returncode:
                raise RuntimeError(f"{function} failed in its process:\n{message[-2000:]}")
    lines = [line for line in output.splitlines() if line.startswith(_MARK)]
    return [json.loads(line.removeprefix(_MARK)) for line in lines]


Maker = Callable[[str, dict[str, Any], float, dict[str, str] | None], list[Any]]
_makers: list[Maker] = []


@contextlib.contextmanager
def calls_made_by(maker: Maker) -> Iterator[None]:
    """Have something else than `make_calls` answer what is asked of `call` and `call_each`."""
    _makers.append(maker)
    try:
        yield
    finally:
        _makers.pop()


@dataclasses.dataclass(frozen=True)
class Timing:
    """Median seconds of a piece of work, and those of its first run in the process."""

    wall: float
    cpu: float
    first_wall: float
    first_cpu: float
    runs: int


def timed(work: Callable[[], Any], *, repeats: int, budget: float = 20.0) -> tuple[Timing, Any]:
    """Run `work` once, then up to `repeats` times more while `budget` seconds last.

    Returns the timing and the last result.  A piece of work that uses up the budget in its first
    run is not repeated: that run is then the measurement.
    """
    if BOTH_WAYS in os.environ:
        runs, result = _both_ways(work, float(os.environ[BOTH_WAYS]))
    else:
        runs, result = [], None
        while len(runs) <= repeats and sum(run.wall for run in runs) <= budget:
            run, result = once(work)
            runs.append(run)
    warm = runs[1:] or runs
    timing = Timing(
        wall=statistics.median(run.wall for run in warm),
        cpu=statistics.median(run.cpu for run in warm),
        first_wall=runs[0].wall,
        first_cpu=runs[0].cpu,
        runs=len(warm),
    )
    return timing, result


class Run(NamedTuple):
    """One run of a piece of work."""

    wall: float
    cpu: float


def once(work: Callable[[], Any]) -> tuple[Run, Any]:
    """Run a piece of work once, with nothing to be collected from before."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return Run(time.perf_counter() - wall, time.process_time() - cpu), result


def _both_ways(work: Callable[[], Any], share: float) -> tuple[list[Run], Any]:
    """Run it by turns with the threads that libraries take by themselves and with one thread.

    All in one process: the same data at another place in memory take up to a fifth more or less.
    The first run, which may load code and takes memory from the system, does not count.  The wall
    times of the pairs, the one with one thread second, are an answer of their own.
    """
    from threadpoolctl import threadpool_limits

    result: Any = None

    def run(one_thread: bool) -> Run:
        nonlocal result
        with threadpool_limits(1 if one_thread else None):
            times, result = once(work)
        return times

    run(one_thread=False)
    began = time.monotonic()
    pairs: list[tuple[Run, Run]] = []
    while not pairs or (len(pairs) < _MOST_PAIRS and time.monotonic() - began < share):
        if len(pairs) % 2:  # the first of two may find another machine than the second
            left = run(one_thread=False)
            pairs.append((left, run(one_thread=True)))
        else:
            held = run(one_thread=True)
            pairs.append((run(one_thread=False), held))
    _answer({"pairs": [[left.wall, held.wall] for left, held in pairs]})
    return [held for _, held in pairs], result


def _answer(answer: Any) -> None:
    print(_MARK + json.dumps(answer), flush=True)


_LONG = 10.0  # seconds from which one run of a peer is measurement enough


def loosest(
    solve: Callable[[float], Any],
    gap_of: Callable[[Any], float],
    dial: Sequence[float],
    gap: float,
    repeats: int,
) -> Iterator[dict[str, Any]]:
    """Look for the loosest setting of a peer's dial that reaches `gap` and time it there.

    The dial is tightened step by step, then the last step is halved twice.  Yields every trial,
    the best setting's timing last.
    """

    def trial(tol: float, repeats: int = 0) -> dict[str, Any]:
        timing, result = timed(lambda: solve(tol), repeats=repeats)
        return {**dataclasses.asdict(timing), "tol": tol, "gap": gap_of(result)}

    loose = 10 * dial[0]
    for tol in dial:
        latest = trial(tol)
        yield latest
        if latest["gap"] <= gap:
            break
        loose = tol
    if latest["gap"] > gap or latest["cpu"] > _LONG:
        return
    for _ in range(2):
        latest = trial(math.sqrt(loose * tol))
        yield latest
        if latest["gap"] <= gap:
            tol = latest["tol"]
        else:
            loose = latest["tol"]
    yield trial(tol, repeats)


def import_time(statement: str) -> dict[str, float]:
    """Seconds that an import statement takes; to be called in a fresh process."""
    code = compile(statement, "<import>", "exec")
    wall, cpu = time.perf_counter(), time.process_time()
    exec(code, {})
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


# A process whose memory is measured gets these: large blocks go back to the system when freed, so
# that what one fit leaves behind does not hide what the next one takes.
MEMORY_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def peak_memory(work: Callable[[], Any]) -> int:
    """Bytes of resident memory that `work` takes at its peak, above what was there before (Linux).

    `work` is run once beforehand, so that code loaded or compiled on the way does not count.  To be
    called in a process that has `MEMORY_ENVIRONMENT`: in any other, what was freed before may still
    be held, and `work` then takes nothing from the system.
    """
    if any(os.environ.get(name) != value for name, value in MEMORY_ENVIRONMENT.items()):
        raise RuntimeError(
            "memory is measured in a process of its own: "
            "harness.call(..., environment=harness.MEMORY_ENVIRONMENT)"
        )
    work()
    gc.collect()
    if _reset_peak():
        before = _status("VmRSS:")
        work()
        return max(_status("VmHWM:") - before, 0)
    before = _status("VmRSS:")
    return max(_sampled_peak(work) - before, 0)


def _reset_peak() -> bool:
    """Start a new peak at the present size; False where the system does not let us."""
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    # Some sandboxes take the request and ignore it: the peak is then still far above the size.
    return _status("VmHWM:") <= _status("VmRSS:") + 2**22


def _sampled_peak(work: Callable[[], Any], interval: float = 5e-4) -> int:
    """The largest resident size seen by a thread that looks every `interval` seconds."""
    seen = [_status("VmRSS:")]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(interval):
            seen.append(_status("VmRSS:"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return max(seen)


def _status(field: str) -> int:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of a benchmark: what was compared, the ratio, and whether the goal was met.

    `sense` is ">=" for a speed-up over a peer and "<=" for a cost relative to a baseline;
    a row without `bound` is information only.  `ratio` is None where it could not be had, and
    `note` says why.
    """

    work: str
    ours: str
    other: str
    ratio: float | None
    sense: str = ">="
    bound: float | None = None
    unit: str = "x"
    note: str = ""
    details: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """True or False; None where there is no goal."""
        if self.bound is None:
            return None
        if self.ratio is None:
            return False
        return self.ratio >= self.bound if self.sense == ">=" else self.ratio <= self.bound

    def cells(self) -> dict[str, str]:
        """The row as text, by column."""
        ratio = "-" if self.ratio is None else f"{self.ratio:.3g} {self.unit}"
        goal = "-" if self.bound is None else f"{self.sense} {self.bound:g} {self.unit}"
        verdict = {True: "yes", False: "NO", None: "-"}[self.met]
        texts = (self.work, self.ours, self.other, ratio, goal, verdict, self.note)
        return dict(zip(COLUMNS, texts, strict=True))


COLUMNS = ("work", "ours", "against", "ratio", "goal", "met", "note")


def table(rows: Sequence[Row], columns: Sequence[str] = COLUMNS) -> str:
    """All rows as a Markdown table whose columns line up."""
    cells = [row.cells() for row in rows]
    lines = [list(columns), *([cell[column] for column in columns] for cell in cells)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([text[0], rule, *text[1:]])


ONE_THREAD = "CPU seconds, one thread each side"


def save(rows: dict[str, Row], path: pathlib.Path, measured_with: dict[str, Any]) -> None:
    """Write the rows by their names and what they were measured with as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": measured_with, "rows": _as_json(rows)}
    path.write_text(json.dumps(content, indent=1) + "\n")


def add(rows: dict[str, Row], path: pathlib.Path) -> None:
    """Put rows into recorded ones, in place of those of the same name or at the end."""
    content = json.loads(path.read_text())
    left = {row["name"]: row for row in _as_json(rows)}
    content["rows"] = [left.pop(row.get("name"), row) for row in content["rows"]]
    content["rows"] += left.values()
    path.write_text(json.dumps(content, indent=1) + "\n")


def _as_json(rows: dict[str, Row]) -> list[dict[str, Any]]:
    return [{"name": name, **dataclasses.asdict(row), "met": row.met} for name, row in rows.items()]


def machine(packages: Sequence[str], clock: str) -> dict[str, Any]:
    """Processor, clock, Python and package versions: what a ratio depends on."""
    model = platform.processor() or platform.machine()
    information = pathlib.Path("/proc/cpuinfo")
    if information.exists():
        names = [line for line in information.read_text().splitlines() if "model name" in line]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "clock": clock,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in packages},
    }


Jobs = Sequence[tuple[str, Callable[[], Row]]]


def command(
    name: str,
    about: str | None,
    prepare: Callable[[pathlib.Path, argparse.Namespace], Jobs],
    packages: Sequence[str],
    arguments: Sequence[str] | None = None,
    *,
    clock: str | Callable[[argparse.Namespace], str] = ONE_THREAD,
    add_options: Callable[[argparse.ArgumentParser], None] | None = None,
    record_as: Callable[[argparse.Namespace], str] | None = None,
) -> list[Row]:
    """The command line of a benchmark: run the rows asked for, print each, and the table.

    `prepare` gets a folder for data, which is there while the rows run, and the options; it returns
    the rows by their names.  A full run is written to benchmarks/results; so are parts of one, with
    `--record`, where the recorded rest was measured with the same machine and packages.
    `add_options` adds what this benchmark alone can be asked for, on which the clock may depend, as
    may the name of the recorded results (`record_as`), otherwise that of the benchmark.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=about)
    parser.add_argument("--quick", action="store_true", help="small data: does it run at all?")
    parser.add_argument("--only", default="", help="run the rows whose name contains this text")
    parser.add_argument(
        "--record", action="store_true", help="put the rows of --only among the recorded ones"
    )
    parser.add_argument("--repeats", type=int, default=5, help="runs after the first (default 5)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one process")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file for the results")
    if add_options is not None:
        add_options(parser)
    options = parser.parse_args(arguments)
    clock = clock if isinstance(clock, str) else clock(options)
    recorded = RESULTS / f"{name if record_as is None else record_as(options)}.json"
    if options.record:
        check_record(parser, options, recorded, machine(packages, clock))
    output = options.output
    if output is None and not options.quick and not options.only:
        output = recorded
    rows: dict[str, Row] = {}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for title, job in prepare(pathlib.Path(folder), options):
            if options.only in title:
                row = job()
                # Goals are about the full size.
                row = dataclasses.replace(row, bound=None) if options.quick else row
                rows[title] = row
                print("  ".join(cell for cell in row.cells().values() if cell), flush=True)
                if options.record:
                    add({title: row}, recorded)
    print(f"\n{clock}, {time.monotonic() - start:.0f} s in all\n")
    print(table(list(rows.values())))
    if output is not None and not options.record:
        save(rows, output, machine(packages, clock))
        print(f"\nwritten to {output}")
    return list(rows.values())


def check_record(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    recorded: pathlib.Path,
    measured_with: dict[str, Any],
) -> None:
    """End with an error unless rows of this run may stand among the recorded ones."""
    if options.quick or options.output or not recorded.exists():
        parser.error("--record needs recorded rows of the full size, and no other file")
    if json.loads(recorded.read_text())["machine"] != measured_with:
        parser.error(f"{recorded} is of another machine or other packages: run all rows")


def in_time(
    limit: float, work: str, goal: float | None, job: Callable[[], Row]
) -> Callable[[], Row]:
    """The job, whose row says so where our side was stopped by the limit in seconds."""

    def row() -> Row:
        try:
            return job()
        except TimeoutError as error:
            return Row(work, f"over {limit:g} s", "-", None, bound=goal, note=str(error))

    return row


def measured(measurement: dict[str, Any]) -> str:
    """The time that a measurement took, and the gap that it reached where that is known."""
    gap = measurement["gap"]
    return seconds(measurement["cpu"]) + ("" if gap is None else f" (gap {max(gap, 0):.1e})")


def setting(measurement: dict[str, Any]) -> str:
    """How a peer was run: its tolerance, and whether one cold run is all there was time for."""
    tol = f" at tol={measurement['tol']:.1e}" if "tol" in measurement else ""
    return tol + (", one cold run:" if measurement.get("runs") == 1 else ":" if tol else "")


def memory_row(work: str, used: dict[str, int], part: str, goal: float) -> Row:
    """The bytes of the data and of what was done with them, relative to those of the data."""
    data, more = used["data"], used[part]
    return Row(
        work=work,
        ours=f"{more / 2**20:.3g} MiB on top",
        other=f"data {data / 2**20:.3g} MiB",
        ratio=(data + more) / data,
        sense="<=",
        bound=goal,
        details=used,
    )


def turns_row(work: str, pairs: list[list[float]], goal: float) -> Row:
    """What was timed both ways: the threads that libraries take by themselves, and one."""
    left, held = (statistics.median(side) for side in zip(*pairs, strict=True))
    # Two pairs, in both orders, at a time: of some work each second run takes longer, whosever.
    whole = pairs[: len(pairs) // 2 * 2] or pairs
    sums = [
        [sum(side) for side in zip(*whole[k : k + 2], strict=True)] for k in range(0, len(whole), 2)
    ]
    return Row(
        work=work,
        ours=f"as a user has it {seconds(left)}",
        other=f"one thread {seconds(held)}",
        ratio=float(statistics.median(one / other for other, one in sums)),
        bound=goal,
        note=f"{len(pairs)} pairs" if len(pairs) > 1 else "one pair",
        details={"pairs": pairs},
    )


def seconds(value: float) -> str:
    """A duration with three digits, in ms below a second."""
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def _serve() -> None:
    """The other side of `call_each`: one line of output per result."""
    module, function = sys.argv[1].split(":")
    result = getattr(importlib.import_module(module), function)(**json.loads(sys.argv[2]))
    for answer in result if isinstance(result, Iterator) else [result]:
        _answer(answer)


if __name__ == "__main__":
    _serve()
