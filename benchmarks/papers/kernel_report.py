"""The results of `benchmarks.papers.kernel` as tables and figures of docs/papers-kernel.md.

python -m benchmarks.papers.kernel_report
"""

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anynorm.datasets import make_two_gaussians
from benchmarks.papers import kernel, page
from benchmarks.papers.page import markdown

PAGE = page.DOCS / "papers-kernel.md"

# Table 2 of the Least 1-norm paper: error, support vectors and iterations of LS, then of Least 1.
PAPER_TABLE_2 = {
    "ida_titanic": "22.4±1.0 150.0±0.0 390.1±14.7 22.4±1.0 71.4±9.8 53.7±6.1",
    "ida_heart": "15.6±3.2 169.9±0.3 261.3±7.8 15.6±3.5 169.9±0.3 120.1±14.7",
    "ida_breast_cancer": "25.7±4.5 199.8±0.5 424.6±7.9 25.9±4.5 195.9±2.3 3510.7±701.9",
    "ida_german": "23.3±2.1 699.4±0.8 3329.8±38.0 23.3±2.2 699.9±0.3 16167.4±1419.3",
}
SOLVERS = {
    "first order": "paper's SMO",
    "second order": "second-order pairs",
    "ours": "anynorm",
}
NEAR = 0.005  # of the error: what counts as nearly the accuracy without a budget


# ---------------------------------------------------------------- Least 1-norm SVM


def choice(results: Mapping[str, Any]) -> str:
    """The C and sigma that were chosen, and how many others are within half a point."""
    lines = [["data", "method", "C", "sigma", "CV error, %", "choices within 0.5 points"]]
    for key, value in results.items():
        name, method = key.split("/")
        errors = np.array(value["errors"])
        near = int(np.sum(errors <= errors.min() + NEAR))
        lines.append([
            name, method, f"{value['C']:.3g}", f"{value['sigma']:.3g}",
            f"{100 * errors.min():.1f}", f"{near} of {errors.size}",
        ])  # fmt: skip
    return f"\n{markdown(lines)}\n\n"


def table2(results: Mapping[str, Any]) -> str:
    """Errors, support vectors and iterations, the paper's above ours."""
    columns = ("% err.", "#SV", "#It.")
    lines = [
        ["data", "who", "splits", *(f"{m}: {column}" for m in kernel.METHODS for column in columns)]
    ]
    for name in kernel.IDA_SETS:
        found = [value for key, value in results.items() if key.startswith(f"{name}/")]
        if not found:
            continue
        lines.append([name, "paper", "100", *PAPER_TABLE_2[name].split()])
        for solver, label in SOLVERS.items():
            cells = []
            for method in kernel.METHODS:
                rows = [value[method][solver] for value in found]
                cells.append(_spread([100 * row["error"] for row in rows]))
                cells.append(_spread([row["n_support"] for row in rows]))
                cells.append(_spread([row["n_iter"] for row in rows]))
            lines.append(["", label, str(len(found)), *cells])
    worst = max(value[method]["ours"]["gap"] for value in results.values() for method in value)
    return f"\n{markdown(lines)}\n\nThe worst certified gap of ours is {worst:.0e}.\n\n"


def _spread(values: Sequence[float]) -> str:
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):.1f}±{deviation:.1f}"


def outliers(results: Mapping[str, Any]) -> str:
    """How far the planes turn when two labels are switched."""
    angles = {
        method: np.array([value[method]["turned"] for value in results.values()])
        for method in kernel.METHODS
    }
    lines = [["method", "draws", "median turn", "lower quartile", "upper quartile", "largest"]]
    for method, turned in angles.items():
        low, middle, high = np.percentile(turned, [25, 50, 75])
        cells = [f"{angle:.1f}°" for angle in (middle, low, high, turned.max())]
        lines.append([method, str(len(turned)), *cells])
    less = np.mean(angles["Least 1-norm"] < angles["LS"])
    note = f"The Least 1-norm plane turns less in {100 * less:.0f} % of the draws."
    return f"\n{markdown(lines)}\n\n{note}\n\n"


def draw_outliers(results: Mapping[str, Any], file: pathlib.Path, draw: int = 1) -> None:
    """Contours -1, 0 and 1 of both classifiers, before and after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for line, when, n_switched in ((0, "before", 0), (1, "after", 2)):
        X, y = make_two_gaussians(n_switched=n_switched, random_state=draw)
        switched = np.flatnonzero(y != make_two_gaussians(n_switched=0, random_state=draw)[1])
        edges = [(X[:, k].min() - 1, X[:, k].max() + 1) for k in (0, 1)]
        first, second = np.meshgrid(*(np.linspace(*edge, 200) for edge in edges))
        for axes, method in zip(panels[line], kernel.METHODS, strict=True):
            w1, w2, b = results[str(draw)][method][when]
            values = w1 * first + w2 * second + b
            lines = axes.contour(
                first, second, values, levels=[-1, 0, 1], colors="0.3",
                linestyles=["dashed", "solid", "dashed"],
            )  # fmt: skip
            axes.clabel(lines)
            axes.scatter(*X[y > 0].T, c="C0", marker="o", s=18)
            axes.scatter(*X[y < 0].T, c="C3", marker="x", s=22)
            axes.scatter(*X[switched].T, s=110, facecolors="none", edgecolors="k")
            axes.set_title(f"{method}, {when}")
    figure.savefig(file, dpi=100)


# ---------------------------------------------------------------- SVM on a budget


def shares(results: Mapping[str, Any], counts: Sequence[Any]) -> np.ndarray:
    """Sums of errors over the problems as average shares."""
    sums = results["sums"]
    return np.array(counts) / (sums["done"] * sums["n_test"])


def fewest(errors: np.ndarray, sizes: Sequence[int], level: float) -> str:
    """The least size whose error is at most `level`."""
    good = np.flatnonzero(errors <= level + 1e-12)
    return str(sizes[good[0]]) if len(good) else "none"


def budget(results: Mapping[str, Any]) -> str:
    """How few support vectors reach the accuracy without a budget."""
    columns = [_headline(results, slack) for slack in kernel.SLACKS]
    lines = [["", *(f"budget-{slack}" for slack in kernel.SLACKS)]]
    lines += [[name, *(column[name] for column in columns)] for name in columns[0]]
    note = f"Means over {results['sums']['done']} problems."
    return f"\n{markdown(lines)}\n\n{note}\n\n"


def _headline(results: Mapping[str, Any], slack: str) -> dict[str, str]:
    sums = results["sums"]
    sizes, found = sums["budgets"], sums["values"][slack]
    kept, again = shares(results, found["kept"]), shares(results, found["again"])
    used = np.array(found["n_support"]) / sums["done"]
    plain = shares(results, found["plain"])
    best = int(plain.argmin())
    plain_used = found["plain_n_support"][best] / sums["done"]
    answers = {
        "no budget, the paper's C: error": f"{100 * plain[0]:.2f} %",
        "its support vectors": f"{found['plain_n_support'][0] / sums['done']:.0f}",
        "with the bias of the fewest training errors": f"{100 * again[-1, -1]:.2f} %",
        "no budget, the best C: error": f"{100 * plain[best]:.2f} %",
        "its support vectors, and C": (
            f"{plain_used:.0f}, {kernel.FACTORS[best]:g} times the paper's"
        ),
        "least error with a budget": _cell(kept, sizes),
        "least error, bias fitted again": _cell(again, sizes),
    }
    for words, level in (
        ("the error with the paper's C", min(plain[0], again[-1, -1])),
        (f"the best C's + {100 * NEAR:g} points", plain[best] + NEAR),
    ):
        answers[f"fewest for {words}: bias kept"] = fewest(kept.min(axis=0), sizes, level)
        answers[f"fewest for {words}: bias again"] = fewest(again.min(axis=0), sizes, level)
        answers[f"fewest for {words}: s = B, bias again"] = fewest(np.diag(again), sizes, level)
    for target in (sizes[0], sizes[len(sizes) // 10], sizes[len(sizes) // 2]):
        answers[f"support vectors at B = {target}"] = f"{used[sizes.index(target)]:.0f}"
    return answers


def _cell(errors: np.ndarray, sizes: Sequence[int]) -> str:
    row, column = divmod(int(errors.argmin()), errors.shape[1])
    return f"{100 * errors.min():.2f} % (B = {sizes[row]}, s = {sizes[column]})"


def means(results: Mapping[str, Any], name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors by count, how much they are above those without a budget, and support vectors.

    All are means over the problems; the second has a row of standard errors below.
    """
    errors, plain, used = [], [], []
    for found in results.values():
        errors.append(np.array(found[name]["errors"]) / found["n_test"])
        plain.append(np.array(found["no budget"]["errors"]) / found["n_test"])
        used.append(found[name]["n_support"])
    above = np.array(errors) - plain
    deviation = above.std(axis=0, ddof=1) if len(above) > 1 else np.zeros(above.shape[1])
    spread = np.vstack([above.mean(axis=0), deviation / np.sqrt(len(above))])
    return np.mean(errors, axis=0), spread, np.mean(used, axis=0)


def counts(results: Mapping[str, Any]) -> str:
    """Errors by the number of support vectors, and the fewest that cost nothing."""
    first = next(iter(results.values()))
    sizes, names = first["counts"], [n for n in first if n not in ("counts", "n_test")]
    head = ["", *(f"{size} allowed: error, % (used)" for size in sizes)]
    lines = [[*head, "fewest within one standard error of no budget"]]
    for name in names:
        error, above, used = means(results, name)
        cells = [f"{100 * e:.2f} ({n:.0f})" for e, n in zip(error, used, strict=True)]
        good = np.flatnonzero(above[0] <= above[1] + 1e-12)
        lines.append([name, *cells, f"{used[good[0]]:.0f}" if len(good) else "none"])
    return f"\n{markdown(lines)}\n\nMeans over {len(results)} problems.\n\n"


def draw_counts(results: Mapping[str, Any], file: pathlib.Path) -> None:
    """Errors against the number of support vectors that are used."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    first = next(iter(results.values()))
    for name in (n for n in first if n not in ("counts", "n_test")):
        error, _, used = means(results, name)
        axes.plot(used, 100 * error, "k*" if name == "no budget" else "o-", label=name)
    axes.set(xlabel="support vectors", ylabel="test error, %", ylim=(0, 60))
    axes.legend()
    figure.savefig(file, dpi=100)


def draw_budget(results: Mapping[str, Any], file: pathlib.Path) -> None:
    """The heat maps, bias kept and fitted again; dark is an error of 50 %, light one of 5 %."""
    from matplotlib.figure import Figure

    sizes = results["sums"]["budgets"]
    figure = Figure(figsize=(10, 8), layout="constrained")
    panels = figure.subplots(2, 2)
    for line, bias in zip(panels, ("kept", "again"), strict=True):
        for axes, slack in zip(line, kernel.SLACKS, strict=True):
            errors = 100 * shares(results, results["sums"]["values"][slack][bias]).T
            image = axes.pcolormesh(sizes, sizes, errors, cmap="gray_r", vmin=5, vmax=50)
            words = "bias kept" if bias == "kept" else "bias fitted again"
            axes.set(xlabel="B", ylabel="s", title=f"budget-{slack}, {words}")
            figure.colorbar(image, ax=axes, label="test error, %")
    figure.savefig(file, dpi=100)


# ---------------------------------------------------------------- the page


MAKERS = {
    "choice": choice, "table2": table2, "outliers": outliers, "budget": budget, "counts": counts,
}  # fmt: skip
DRAWINGS: page.Drawings = {
    "kernel-outliers.png": (("outliers",), draw_outliers),
    "kernel-budget.png": (("budget",), draw_budget),
    "kernel-counts.png": (("counts",), draw_counts),
}


def text(content: Mapping[str, Any]) -> str:
    """All tables that there are results for."""
    return page.text(content, MAKERS)


def write(content: Mapping[str, Any]) -> None:
    """Bring the page and the figures up to date."""
    page.write(PAGE, content, MAKERS, DRAWINGS)


if __name__ == "__main__":
    write(json.loads(kernel.RESULTS.read_text()))
