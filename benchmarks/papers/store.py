"""What the experiments of all papers share: results that are kept, and the command line."""

import argparse
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks import harness
from benchmarks.papers import protocol


class Store:
    """Results by part and key, written to the file after each experiment."""

    def __init__(self, path: pathlib.Path, *, fresh: bool = False) -> None:
        self.path = path
        known = path.exists() and not fresh
        self.content: dict[str, dict[str, Any]] = json.loads(path.read_text()) if known else {}

    def done(self, part: str, key: str) -> bool:
        return key in self.content.get(part, {})

    def add(self, part: str, key: str, value: Any) -> None:
        self.content.setdefault(part, {})[key] = value
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.content, separators=(",", ":")).replace("},", "},\n"))
        os.replace(partial, self.path)


def recorded(name: str) -> pathlib.Path:
    """The file with the results that the documentation shows."""
    return harness.RESULTS / f"papers_{name}.json"


def open_store(name: str, options: argparse.Namespace) -> Store:
    """The store that the options ask for; a quick run has one of its own."""
    quick = harness.ROOT / ".cache" / f"papers_{name}_quick.json"
    path = options.results or (quick if options.quick else recorded(name))
    return Store(path, fresh=options.fresh)


def command_line(
    name: str, about: str | None, parts: Sequence[str], repeats: int
) -> argparse.ArgumentParser:
    """The options that every paper has."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.papers.{name}", description=about)
    parser.add_argument("--parts", nargs="*", choices=parts, default=parts)
    parser.add_argument("--repeats", type=int, default=repeats, help=f"default {repeats}")
    parser.add_argument("--quick", action="store_true", help="a small run of its own, in a minute")
    parser.add_argument("--fresh", action="store_true", help="forget all earlier results")
    parser.add_argument(
        "--results", type=pathlib.Path, help="JSON file, instead of the recorded one"
    )
    return parser


def carry_out(
    name: str,
    options: argparse.Namespace,
    experiments: Callable[[Store, argparse.Namespace], Iterable[str]],
    report: Any,
) -> None:
    """Run what is missing, a line for each; then bring the page up to date, or print the tables.

    `report` has `write` for the recorded results and `text` for all others.
    """
    store = open_store(name, options)
    for line in experiments(store, options):
        print(line, flush=True)
    if store.path == recorded(name):
        report.write(store.content)
    else:
        print(report.text(store.content))


def load(name: str, scaling: str) -> tuple[Any, Any, list[Any]] | None:
    """A data set, or None with a line that says why not."""
    try:
        return protocol.load_binary(name, scaling)
    except (ValueError, OSError) as error:
        print(f"skipped {name}: {str(error)[:150]}", flush=True)
        return None
