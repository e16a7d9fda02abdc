"""Table 2 and Figures 2 and 3 of "A Walk from 2-Norm SVM to 1-Norm SVM", made again.

    python -m benchmarks.papers.walk [--parts table2 figure2 figure3] [--sets NAME ...]
                                     [--repeats 30] [--bias feature free reweighted]
                                     [--quick] [--fresh] [--results FILE]

Every experiment is kept in a JSON file as soon as it is done, and is not done again: a run that
was stopped goes on where it was, `--fresh` starts anew.  Tables and figures are then made from
that file and put into docs/papers-walk.md; those of a quick run, or of another file, are printed.
A data set that is not at hand is skipped.
"""

import argparse
import functools
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from anynorm.datasets import make_relevant
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.solvers.linear import walk
from benchmarks.papers import protocol
from benchmarks.papers.one_norm import one_norm_grid
from benchmarks.papers.protocol import Grid, powers_of_ten
from benchmarks.papers.store import Store, carry_out, command_line, load, recorded

RESULTS = recorded("walk")
PARTS = ("table2", "figure2", "figure3")
ROUNDS = (1, 2, 3, 5, 10)
GENE_CS, OTHER_CS = powers_of_ten(-9, 2), powers_of_ten(-5, 5)


class Row(NamedTuple):
    """A row of Table 2: the data, how they are split, and the paper's name of the row."""

    data: str
    paper: str | None
    scaling: str
    Cs: Sequence[float]
    split: str = "halves"  # or "given", or "sampled": 250 of the given training part
    one_norm: str | None = "simplex"


ROWS = {
    "dlbcl_7070": Row("dlbcl_7070", "DLBCL", "standard", GENE_CS),
    "leukemia_5147": Row("leukemia_5147", "LEUKEMIA", "standard", GENE_CS),
    "prostate_12533": Row("prostate_12533", "PROSTATA", "standard", GENE_CS),
    "srbct": Row("srbct", "SRBCT", "standard", GENE_CS),
    "sonar": Row("sonar", "SONAR", "none", OTHER_CS),
    "rcv1_ccat_sampled": Row("rcv1_ccat_small", "REUTERS-SAMPLED", "none", OTHER_CS, "sampled"),
    "rcv1_ccat_small": Row("rcv1_ccat_small", "REUTERS", "none", OTHER_CS, "given", None),
    "reuters21578": Row("reuters21578", None, "unit", OTHER_CS, "given", None),
}
N_SAMPLED = 250

FIGURE_2_SETS = (
    "abalone", "glass", "segment", "australian", "ionosphere", "sonar", "bupa", "iris", "vehicle",
    "wine", "ecoli", "wisconsin_original", "german_numeric", "page_blocks", "leukemia_5147",
    "dlbcl_7070",
)  # fmt: skip
FIGURE_2_ROUNDS = 20
FIGURE_2_TOL = 1e-6
FIGURE_2_CS = powers_of_ten(-3, 3)

RELEVANT = (1, 2, 4, 8, 16, 32, 64, 128, 200)
FIGURE_3_ROUNDS = (1, 2, 3)
N_TEST = 1000


# ---------------------------------------------------------------- Table 2


def table2(store: Store, names: Sequence[str], repeats: int, bias: str) -> Iterator[str]:
    """One experiment per repeat and row; yields a line of progress for each."""
    for name in names:
        row = ROWS[name]
        loaded = load(row.data, row.scaling)
        if loaded is None:
            continue
        X, y, splits = loaded
        grid = Grid(row.Cs, ROUNDS, bias, row.one_norm)
        for repeat in range(1 if row.split == "given" else repeats):
            key = f"{name}/{bias}/{repeat}"
            if store.done("table2", key):
                continue
            start = time.monotonic()
            train, test = _split(row, y, splits, repeat)
            held = (X[test], y[test])
            fit = functools.partial(protocol.fit_grid, grid=grid)
            [outcome] = protocol.evaluate(X, y, train, held, fit, grid.Cs, seed=repeat)
            store.add("table2", key, outcome._asdict())
            accuracy = "  ".join(f"{m} {100 * a:.1f}" for m, a in outcome.accuracy.items())
            yield f"table 2  {key}: {accuracy}  ({time.monotonic() - start:.1f} s)"


def _split(row: Row, y: np.ndarray, splits: list[Any], repeat: int) -> tuple[Any, Any]:
    if row.split == "halves":
        return protocol.random_half(y, repeat)
    train, test = splits[0]
    if row.split == "sampled":
        train = np.random.default_rng(repeat).choice(train, N_SAMPLED, replace=False)
    return train, test


# ---------------------------------------------------------------- Figure 2


def figure2(store: Store, names: Sequence[str], n_rounds: int) -> Iterator[str]:
    """The 1-norm objective after each round, and its optimum, for every set and C."""
    for name in names:
        missing = [C for C in FIGURE_2_CS if not store.done("figure2", f"{name}/{C:g}")]
        loaded = load(name, "standard") if missing else None
        if loaded is None:
            continue
        X, y, _ = loaded
        optima = one_norm_grid(X, y, FIGURE_2_CS, free_bias=True)
        for C, optimum in zip(FIGURE_2_CS, optima, strict=True):
            if C not in missing:
                continue
            start = time.monotonic()
            problem = Problem(y=y, C=C, loss=get_loss("hinge"), X=X)
            objectives = {
                kind: [r.objective for r in walk(problem, n_rounds=n_rounds, prune=prune,
                                                 tol=FIGURE_2_TOL)]
                for kind, prune in (("plain", False), ("pruned", True))
            }  # fmt: skip
            value = {"optimum": optimum.objective, "gap": optimum.gap, **objectives}
            store.add("figure2", f"{name}/{C:g}", value)
            excess = objectives["plain"][-1] / optimum.objective - 1
            took = time.monotonic() - start
            yield f"figure 2  {name} C={C:g}: {excess:.1e} above the optimum  ({took:.1f} s)"


# ---------------------------------------------------------------- Figure 3


def figure3(store: Store, relevant: Sequence[int], repeats: int) -> Iterator[str]:
    """Test errors by number of relevant features, without and with the rule for tiny weights."""
    grid = Grid(OTHER_CS, FIGURE_3_ROUNDS, "feature", "interior")
    for repeat in range(repeats):
        for d in relevant:
            key = f"{d}/{repeat}"
            if store.done("figure3", key):
                continue
            start = time.monotonic()
            # Training on a random half of 100 examples is training on 50; more test examples
            # than the other 50 make the curves smoother and leave their expectation as it is.
            X, y = make_relevant(50, n_relevant=d, random_state=2 * repeat)
            test = make_relevant(N_TEST, n_relevant=d, random_state=2 * repeat + 1)
            left, right = protocol.evaluate(
                X, y, np.arange(len(y)), test, functools.partial(protocol.fit_grid, grid=grid),
                grid.Cs, seed=repeat, least_norms=(0.0, protocol.TINY),
            )  # fmt: skip
            store.add("figure3", key, {"left": left.accuracy, "right": right.accuracy})
            took = time.monotonic() - start
            yield f"figure 3  {d} relevant, repeat {repeat}  ({took:.1f} s)"


# ---------------------------------------------------------------- the command


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then make the tables and figures."""
    parser = command_line("walk", __doc__, PARTS, repeats=30)
    parser.add_argument("--sets", nargs="*", help="rows of Table 2 or sets of Figure 2")
    parser.add_argument(
        "--bias", choices=protocol.BIASES, nargs="*", default=protocol.BIASES[:2],
        help="of Table 2: what they are is said in protocol.py (default: feature free)",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    from benchmarks.papers import walk_report

    carry_out("walk", options, _experiments, walk_report)


def _experiments(store: Store, options: argparse.Namespace) -> Iterator[str]:
    repeats = min(options.repeats, 2) if options.quick else options.repeats
    rows = [name for name in ROWS if not options.sets or name in options.sets]
    sets = [name for name in FIGURE_2_SETS if not options.sets or name in options.sets]
    relevant: Sequence[int] = RELEVANT
    if options.quick and not options.sets:
        rows, sets, relevant = ["srbct"], ["sonar", "iris", "wine"], RELEVANT[::4]
    if "table2" in options.parts:
        for bias in options.bias:
            yield from table2(store, rows, repeats, bias)
    if "figure2" in options.parts:
        yield from figure2(store, sets, FIGURE_2_ROUNDS)
    if "figure3" in options.parts:
        yield from figure3(store, relevant, repeats)


if __name__ == "__main__":
    main()
