"""What the commands print: results to stdout; progress, notes and errors to stderr."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from anynorm.app.job.measures import Estimate
    from anynorm.app.job.schedule import Doing, Show

# Exit codes; 130 as shells do at Ctrl-C.
OK, BAD_INPUT, NOT_CONVERGED, NO_BETTER, INTERRUPTED = 0, 2, 3, 4, 130

_WIDEST = 100_000  # characters: wider than any table, so that its own width is measured
_LONG = 30.0  # seconds


def out() -> Console:
    """Where results go."""
    return Console(highlight=False, soft_wrap=True)


def err() -> Console:
    """Where everything else goes."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


@contextmanager
def exit_codes(*, quiet: bool = False) -> Iterator[None]:
    """Turn what can go wrong into one message and an exit code; a wait has its reason told."""
    from anynorm.design.waiting import tell_no_more, tell_of_compiling  # not for --help

    console = err()
    if not quiet:
        tell_of_compiling(console, lambda line: console.print(escape(line)))
    try:
        yield
    except KeyboardInterrupt:
        err().print("Interrupted; no file was changed.")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python must not complain when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(OK) from None
    except (ValueError, OSError) as error:
        err().print(f"[bold red]Error:[/] {escape(_in_words(error))}")
        raise typer.Exit(BAD_INPUT) from None
    finally:
        tell_no_more(console)


def _in_words(error: Exception) -> str:
    """What an error says; those of the system without their numbers."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    where = "" if error.filename is None else f"{os.fspath(error.filename)}: "
    return f"{where}the system says: {error.strerror[0].lower()}{error.strerror[1:]}."


def escape(text: str) -> str:
    """The text without what Rich would take for markup."""
    from rich.markup import escape

    return escape(text)


@contextmanager
def progress_bar(*, hidden: bool, hint: str = "") -> Iterator[Show]:
    """A bar on the terminal, with what is being done and the time that is left.

    Where stderr is no terminal, there is no bar, but the announcement of a long job.  `hint` is
    printed where the work turns out to be long.
    """
    console, began, told = err(), time.monotonic(), hidden or not hint
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    disabled = hidden or not console.is_terminal
    progress = Progress(*columns, console=console, transient=True, disable=disabled)
    with nullcontext() if disabled else progress:  # Rich 14 ends even a disabled one with a line
        task = progress.add_task("reading", total=1.0, detail="", left="")

        def show(doing: Doing) -> None:
            nonlocal told
            if doing.what == "preparing" and doing.detail and not hidden:
                progress.console.print(escape(doing.detail))
            if not told and doing.share < 0.5 and time.monotonic() - began > _LONG:
                told = True
                progress.console.print(hint)
            left = "" if doing.left is None else f"about {_clock(doing.left)} left"
            progress.update(
                task,
                completed=doing.share,
                description=doing.what,
                detail=escape(doing.detail),
                left=left,
            )

        yield show


def _clock(seconds: float) -> str:
    """A time as minutes and seconds."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes}:{rest:02d}"


def print_json(values: Any) -> None:
    """Print values as JSON, with null for what is not a number."""
    typer.echo(json.dumps(_finite(values), indent=2, ensure_ascii=False))


def _finite(values: Any) -> Any:
    if isinstance(values, dict):
        return {str(name): _finite(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_finite(value) for value in values]
    if isinstance(values, float) and not math.isfinite(values):
        return None
    return values.item() if hasattr(values, "item") else values


def print_facts(console: Console, facts: Sequence[tuple[str, str]]) -> None:
    """Print names and values below each other."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        console.print(f"[bold]{name:<{width}}[/]  {escape(value)}")


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, texts: Collection[str]
) -> None:
    """Print a table; the columns in `texts` stand to the left, the numbers to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in header:
        table.add_column(name, justify="left" if name in texts else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    # Rich cuts what does not fit into the width it is told; tables are printed whole.
    width = Console(width=_WIDEST).measure(table).maximum
    Console(highlight=False, width=width + 1).print(table)


def percent(share: float) -> str:
    """A share in per cent with one decimal."""
    return f"{100 * share:.1f} %"


def error_fact(error: Estimate, judged_by: str) -> tuple[str, str]:
    """The name of an error, and its value with what is known about it."""
    name = error.measure[0].upper() + error.measure[1:]
    return name, (
        f"{percent(error.value)} ± {percent(error.standard_error)} "
        f"(95 %: {percent(error.low)} to {percent(error.high)}; {judged_by})"
    )
