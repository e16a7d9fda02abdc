"""The results of `benchmarks.papers.bridge` as tables and figures of docs/papers-bridge.md.

python -m benchmarks.papers.bridge_report
"""

import json
import pathlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.papers import bridge, page
from benchmarks.papers.page import markdown

PAGE = page.DOCS / "papers-bridge.md"
MARKERS = "os^Dv"
LOSS_NAMES = {"hinge": "hinge", "squared_hinge": "squared hinge"}


# ---------------------------------------------------------------- tables


def _errors_by(results: Mapping[str, Any]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The experiments by the first part of their keys (rows or radius), then by solver."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for key, value in results.items():
        for solver, error in value["errors"].items():
            row = {"translation": value["translation"], "error": error}
            found[key.split("/")[0]][solver].append(row)
    return found


def _errors_table(results: Mapping[str, Any], first: str) -> str:
    """Median and largest error of each solver."""
    found = _errors_by(results)
    solvers = list(next(iter(found.values())))
    lines = [[first, "D²/sigma", "problems", *solvers]]
    for group, rows in found.items():
        reach = [row["translation"] for row in rows[solvers[0]]]
        cells = [_middle_and_worst([row["error"] for row in rows[name]]) for name in solvers]
        span = f"{min(reach):.2g} to {max(reach):.2g}"
        lines.append([group, span, str(len(reach)), *cells])
    return f"\n{markdown(lines)}\n\n"


def _middle_and_worst(errors: Sequence[float]) -> str:
    return f"{np.median(errors):.0e} ({max(errors):.0e})"


def svm(results: Mapping[str, Any]) -> str:
    """Errors of Lasso solvers by the number of rows."""
    return _errors_table(results, "rows")


def lasso(results: Mapping[str, Any]) -> str:
    """Errors of SVM solvers by radius."""
    stopped = sum(value["stopped"] for value in results.values())
    note = f"libsvm stopped at its limit of iterations in {stopped} of {len(results)} problems."
    return f"{_errors_table(results, 'share of the radius')}{note}\n\n"


def sweeps(results: Mapping[str, Any]) -> str:
    """Errors of coordinate descent by sweeps."""
    rows, C = bridge.SWEEPS_PROBLEM
    lines = [["sweeps for each penalty", f"error, {rows} rows, C = {C:g}"]]
    lines += [[f"{int(count):,}", _middle_and_worst(e)] for count, e in results.items()]
    return f"\n{markdown(lines)}\n\n"


def signal(results: Mapping[str, Any]) -> str:
    """How often the right wave is found, and how many are in use."""
    rows = {key: value for key, value in results.items() if key != "drawn"}
    names = list(next(iter(rows.values()))["right"])
    lines = [["spikes", "draws", *names, "nearest in the 1-norm"]]
    for key, value in rows.items():
        cells = [
            f"{100 * value['right'][name] / value['draws']:.0f} % ({value['used'][name]:g})"
            for name in names
        ]
        nearest = f"{100 * value['nearest'] / value['draws']:.0f} %"
        lines.append([f"{100 * float(key):.0f} %", str(value["draws"]), *cells, nearest])
    return f"\n{markdown(lines)}\n\n"


def _by_eps(results: Mapping[str, Any]) -> dict[float, dict[int, list[dict[str, Any]]]]:
    found: dict[float, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for key, value in results.items():
        n, eps, _ = key.split("/")
        found[float(eps)][int(n)].append(value)
    return found


def sublinear(results: Mapping[str, Any]) -> str:
    """Shares read and the least margins."""
    lines = [["n = d", "eps", "draws", "share read", "least margin", "asked for", "the mean's"]]
    for eps, rows in _by_eps(results).items():
        for n, values in rows.items():
            share = np.mean([value["share"] for value in values])
            least = min(value["margin"] for value in values)
            wanted = f"{bridge.MARGIN - eps:.2f}"
            mean = max(value["mean"] for value in values)
            lines.append(
                [f"{n:,}", f"{eps:g}", str(len(values)), f"{100 * share:.0f} %", f"{least:.3f}",
                 wanted, f"{mean:.3f}"]
            )  # fmt: skip
    return f"\n{markdown(lines)}\n\n"


def screening(results: Mapping[str, Any]) -> str:
    """Shares of certain rows by loss and gap: the mean and the least along C."""
    names = [*(f"{gap:g}" for gap in bridge.SCREEN_GAPS), bridge.NEAR]
    lines = [["loss", *(_gap_name(name) for name in names), "at the optimum", "mistakes"]]
    for loss, label in LOSS_NAMES.items():
        rows = [value for key, value in results.items() if key.startswith(f"{loss}/")]
        cells = []
        for name in names:
            shares = [100 * row["shares"][name] for row in rows]
            cells.append(f"{np.mean(shares):.0f} % ({min(shares):.0f})")
        limits = [100 * row["limit"] for row in rows]
        mistakes = sum(row["mistakes"] for row in rows)
        limit = f"{np.mean(limits):.0f} % ({min(limits):.0f})"
        lines.append([label, *cells, limit, str(mistakes)])
    return f"\n{markdown(lines)}\n\n"


def _gap_name(name: str) -> str:
    return f"from {bridge.NEAR_SHARE:g} C" if name == bridge.NEAR else f"gap {float(name):.0e}"


# ---------------------------------------------------------------- figures


def draw_errors(svms: Mapping[str, Any], lassos: Mapping[str, Any], file: pathlib.Path) -> None:
    """Relative errors against D^2 / sigma, both ways."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    titles = ("an SVM by Lasso solvers", "a Lasso by SVM solvers")
    for ax, results, title in zip(axes, (svms, lassos), titles, strict=True):
        solvers: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for value in results.values():
            for name, error in value["errors"].items():
                solvers[name].append((value["translation"], error))
        for k, (name, spots) in enumerate(solvers.items()):
            style = {"markersize": 5, "markerfacecolor": "none", "linestyle": "none"}
            ax.loglog(*zip(*spots, strict=True), MARKERS[k], color=f"C{k}", label=name, **style)
        ax.axhline(np.finfo(float).eps, color="0.6", linewidth=0.8, linestyle=":")
        ax.set(title=title, xlabel="D² / sigma")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False)
    axes[0].set(ylabel="relative error of the objective")
    figure.savefig(file, dpi=100)


def draw_signal(results: Mapping[str, Any], file: pathlib.Path) -> None:
    """One signal, the coefficients for it, and how often the right wave is found."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    t, A = bridge.pulses()
    drawn = results["drawn"]
    left.plot(t, drawn["b"], ".", color="0.5", markersize=5, label="signal, 20 % spikes")
    left.plot(t, A[:, drawn["true"]], color="C3", label="its wave")
    left.set(xlabel="time", title="a signal", ylim=(-4.5, 6))
    left.legend(loc="upper right")
    for k, (name, coef) in enumerate(drawn["coefs"].items()):
        places = np.arange(len(coef)) + 0.25 * (k - 1)
        middle.vlines(places, 0, coef, color=f"C{k}", linewidth=2.5, label=name)
    middle.axvline(drawn["true"], color="C3", linewidth=0.8, linestyle=":", label="its wave")
    middle.axhline(0, color="0.6", linewidth=0.8)
    middle.set(xlabel="wave of the dictionary", title="coefficients for it")
    middle.legend()
    rows = {float(key): value for key, value in results.items() if key != "drawn"}
    for k, name in enumerate(drawn["coefs"]):
        shares = [value["right"][name] / value["draws"] for value in rows.values()]
        right.plot([100 * s for s in rows], [100 * s for s in shares], f"C{k}{MARKERS[k]}-",
                   label=name)  # fmt: skip
    right.set(xlabel="samples with a spike (%)", ylim=(0, 104), title="right wave found (%)")
    right.legend(loc="lower left")
    figure.savefig(file, dpi=100)


def draw_sublinear(results: Mapping[str, Any], file: pathlib.Path) -> None:
    """The share of entries read, and the margins, against the size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, (eps, rows) in enumerate(_by_eps(results).items()):
        sizes = list(rows)
        shares = [100 * np.mean([value["share"] for value in values]) for values in rows.values()]
        left.loglog(sizes, shares, f"C{k}{MARKERS[k]}-", label=f"eps = {eps:g}")
        spots = [(n, value["margin"]) for n, values in rows.items() for value in values]
        right.semilogx(*zip(*spots, strict=True), f"C{k}{MARKERS[k]}", label=f"eps = {eps:g}")
        right.axhline(bridge.MARGIN - eps, color=f"C{k}", linewidth=1, linestyle="--")
    for ax in (left, right):
        ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
        ax.minorticks_off()
        ax.set(xlabel="n = d")
    ticks = (5, 10, 20, 50, 100)
    left.set_yticks(ticks, map(str, ticks))
    left.set(title="entries read (%)")
    right.axhline(bridge.MARGIN, color="0.5", linewidth=1)
    right.set(title="margin found (dashed: asked for; grey: planted)", ylim=(0, 0.55))
    left.legend()
    right.legend(loc="lower right")
    figure.savefig(file, dpi=100)


def draw_screening(results: Mapping[str, Any], file: pathlib.Path) -> None:
    """The share of certain rows along C, for rough and for fine solutions."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    names = [f"{gap:g}" for gap in bridge.SCREEN_GAPS]
    colors = colormaps["viridis"](np.linspace(0.9, 0.1, len(names)))
    for ax, (loss, label) in zip(axes, LOSS_NAMES.items(), strict=True):
        rows = {
            float(key.split("/")[1]): value
            for key, value in results.items()
            if key.startswith(f"{loss}/")
        }
        limit = [100 * value["limit"] for value in rows.values()]
        ax.semilogx(list(rows), limit, color="0.7", linewidth=5, label="at the optimum")
        for name, color in zip(names, colors, strict=True):
            shares = [100 * value["shares"][name] for value in rows.values()]
            ax.semilogx(list(rows), shares, color=color, marker=".", label=_gap_name(name))
        shares = [100 * value["shares"][bridge.NEAR] for value in rows.values()]
        ax.semilogx(list(rows), shares, "C3--", label=_gap_name(bridge.NEAR))
        ax.set(xlabel="C", title=f"{label}: rows that are certain (%)", ylim=(-3, 103))
    axes[1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(file, dpi=100)


# ---------------------------------------------------------------- the page


MAKERS = {
    "svm": svm, "sweeps": sweeps, "lasso": lasso, "signal": signal, "sublinear": sublinear,
    "screening": screening,
}  # fmt: skip
DRAWINGS: page.Drawings = {
    "bridge-errors.png": (("svm", "lasso"), draw_errors),
    "bridge-signal.png": (("signal",), draw_signal),
    "bridge-sublinear.png": (("sublinear",), draw_sublinear),
    "bridge-screening.png": (("screening",), draw_screening),
}


def text(content: Mapping[str, Any]) -> str:
    """All tables that there are results for."""
    return page.text(content, MAKERS)


def write(content: Mapping[str, Any]) -> None:
    """Bring the page and the figures up to date."""
    page.write(PAGE, content, MAKERS, DRAWINGS)


if __name__ == "__main__":
    write(json.loads(bridge.RESULTS.read_text()))
