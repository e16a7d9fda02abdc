"""The results of `benchmarks.papers.walk` as tables and figures of docs/papers-walk.md.

python -m benchmarks.papers.walk_report
"""

import json
import pathlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.papers import page, walk
from benchmarks.papers.page import markdown
from benchmarks.papers.protocol import BIASES, ONE_NORM, method_name
from benchmarks.papers.walk import RESULTS, ROUNDS, ROWS

PAGE = page.DOCS / "papers-walk.md"
METHODS = (*(method_name(k) for k in ROUNDS), ONE_NORM)

# Table 2 of the paper, in percent, with the empirical standard deviations given there.
PAPER = {
    "REUTERS": "93.4 93.5 93.5 93.4 93.3 -",
    "REUTERS-SAMPLED": "85.9±0.2 84.9±0.3 83.7±0.3 82.2±0.3 80.6±0.3 72.8±0.8",
    "DLBCL": "68.6±1.0 91.4±0.7 93.2±0.7 93.5±0.8 91.7±1.1 85.3±1.3",
    "LEUKEMIA": "82.7±1.0 95.2±0.6 96.0±0.5 95.8±0.6 94.7±0.8 90.1±1.5",
    "PROSTATA": "90.8±0.6 91.4±0.5 92.0±0.5 92.5±0.5 91.6±0.6 88.5±0.8",
    "SRBCT": "88.8±1.1 98.1±0.4 98.7±0.3 98.0±0.5 96.8±0.6 95.7±0.5",
    "SONAR": "73.3±0.7 73.0±0.6 73.1±0.7 72.8±0.8 72.6±0.7 72.2±0.8",
}
BIAS_NAMES = {
    "feature": "bias feature of 1",
    "free": "free bias",
    "reweighted": "bias feature, re-weighted",
}


# ---------------------------------------------------------------- Table 2


def by_row(results: Mapping[str, Any]) -> dict[tuple[str, str], list[dict[str, float]]]:
    """The accuracies of all repeats, by row and bias."""
    rows: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for key, value in results.items():
        name, bias, _ = key.split("/")
        rows[name, bias].append(value["accuracy"])
    return rows


def table2(results: Mapping[str, Any]) -> str:
    """Our accuracies below the paper's, row by row."""
    found = by_row(results)
    lines = [["data", "who", "repeats", *METHODS]]
    for name, row in ROWS.items():
        ours = [bias for bias in BIASES if (name, bias) in found]
        if not ours:
            continue
        if row.paper is not None:
            repeats = "1" if row.split == "given" else "30"
            lines.append([name, f"paper: {row.paper}", repeats, *PAPER[row.paper].split()])
        for bias in ours:
            outcomes = found[name, bias]
            cells = [_accuracy(outcomes, method) for method in METHODS]
            label = "" if row.paper is not None or bias != ours[0] else name
            lines.append([label, f"ours, {BIAS_NAMES[bias]}", str(len(outcomes)), *cells])
    return "\n" + markdown(lines) + "\n\n"


def _accuracy(outcomes: Sequence[dict[str, float]], method: str) -> str:
    """Mean and its standard error in percent: the paper's deviations are of that size too."""
    if method not in outcomes[0]:
        return "-"
    values = 100 * np.array([outcome[method] for outcome in outcomes])
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{values.mean():.1f}±{values.std(ddof=1) / np.sqrt(len(values)):.1f}"


# ---------------------------------------------------------------- Figure 2


def excesses(results: Mapping[str, Any], kind: str) -> dict[str, np.ndarray]:
    """By data set: (objective - optimum) / optimum, one row per C and one column per round."""
    curves: dict[str, list[np.ndarray]] = defaultdict(list)
    for name in walk.FIGURE_2_SETS:
        for C in walk.FIGURE_2_CS:
            value = results.get(f"{name}/{C:g}")
            if value is not None:
                curves[name].append(np.array(value[kind]) / value["optimum"] - 1)
    return {name: np.array(rows) for name, rows in curves.items()}


def summaries(curves: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The paper's four curves by round.

    The first two are over the sets, each with the C that is worst in the last round; the other
    two are over all sets and values of C.
    """
    worst = np.array([rows[rows[:, -1].argmax()] for rows in curves.values()])
    everything = np.concatenate(list(curves.values()))
    return {
        "worst case": worst.max(axis=0),
        "mean": worst.mean(axis=0),
        "true mean": everything.mean(axis=0),
        "true median": np.median(everything, axis=0),
    }


def figure2_table(results: Mapping[str, Any]) -> str:
    """Some rounds of the four curves as numbers."""
    shown = (1, 2, 3, 5, 10, 20)
    lines = [["curve", "columns dropped", *(f"round {k}" for k in shown)]]
    for kind, label in (("plain", "no"), ("pruned", "yes")):
        for name, curve in summaries(excesses(results, kind)).items():
            lines.append([name, label, *(f"{max(curve[k - 1], 0):.2g}" for k in shown)])
    n_sets = len(excesses(results, "plain"))
    return f"\n{markdown(lines)}\n\nOver {n_sets} data sets.\n\n"


def draw_figure2(results: Mapping[str, Any], path: pathlib.Path) -> None:
    """The four curves by round, without and with pruning."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    panels = ((left, "plain", "as in the paper"), (right, "pruned", "columns dropped (prune=True)"))
    styles = ("C3-", "C1--", "C0-.", "C2:")
    for axes, kind, title in panels:
        for (name, curve), style in zip(
            summaries(excesses(results, kind)).items(), styles, strict=True
        ):
            rounds = np.arange(1, len(curve) + 1)
            axes.plot(rounds, np.maximum(curve, 1e-8), style, label=name, linewidth=2)
        axes.set(yscale="log", xlabel="round", title=title, ylim=(1e-6, 10), xlim=(1, len(curve)))
        axes.set_xticks([1, 5, 10, 15, 20])
        axes.grid(alpha=0.3)
    left.set_ylabel("(1-norm objective - optimum) / optimum")
    right.legend(loc="upper right")
    figure.savefig(path, dpi=100)


# ---------------------------------------------------------------- Figure 3


def errors(results: Mapping[str, Any], panel: str) -> dict[str, dict[int, np.ndarray]]:
    """Test errors by method and number of relevant features, one entry per repeat."""
    table: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, value in results.items():
        relevant = int(key.split("/")[0])
        for method, accuracy in value[panel].items():
            table[method][relevant].append(1 - accuracy)
    return {method: {d: np.array(row[d]) for d in sorted(row)} for method, row in table.items()}


def figure3_table(results: Mapping[str, Any]) -> str:
    """The curves as numbers, in percent."""
    relevant = sorted({int(key.split("/")[0]) for key in results})
    lines = [["panel", "method", *(f"{d} relevant" for d in relevant)]]
    for panel in ("left", "right"):
        for method, row in errors(results, panel).items():
            cells = [f"{100 * row[d].mean():.1f}" for d in relevant]
            lines.append([panel, method, *cells])
    counts = [len(row) for row in errors(results, "left")[ONE_NORM].values()]
    return f"\n{markdown(lines)}\n\nMeans of {_range(counts)} repeats, in percent.\n\n"


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def draw_figure3(results: Mapping[str, Any], path: pathlib.Path) -> None:
    """Errors against the number of relevant features, both panels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    titles = {"left": "as solved", "right": "weights below 1e-4 count as 50 %"}
    methods = [*(method_name(k) for k in walk.FIGURE_3_ROUNDS), ONE_NORM]
    styles = ("C0-o", "C2--s", "C1-.^", "C3:D")
    for axes, panel in ((left, "left"), (right, "right")):
        found = errors(results, panel)
        for method, style in zip(methods, styles, strict=True):
            row = found[method]
            mean = [100 * values.mean() for values in row.values()]
            axes.plot(list(row), mean, style, label=method, markersize=4)
        axes.set(xscale="log", xlabel="relevant features of 200", title=titles[panel])
        axes.set_xticks(list(row), labels=[str(d) for d in row])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    left.set_ylabel("test error in percent")
    left.legend()
    figure.savefig(path, dpi=100)


# ---------------------------------------------------------------- the page


MAKERS = {"table2": table2, "figure2": figure2_table, "figure3": figure3_table}
DRAWINGS: page.Drawings = {
    "walk-figure2.png": (("figure2",), draw_figure2),
    "walk-figure3.png": (("figure3",), draw_figure3),
}


def text(content: Mapping[str, Any]) -> str:
    """All tables that there are results for."""
    return page.text(content, MAKERS)


def write(content: Mapping[str, Any]) -> None:
    """Bring the page and the figures up to date."""
    page.write(PAGE, content, MAKERS, DRAWINGS)


if __name__ == "__main__":
    write(json.loads(RESULTS.read_text()))
