"""The results of `benchmarks.papers.path` as tables and figures of docs/papers-path.md.

python -m benchmarks.papers.path_report
"""

import json
import pathlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.papers import page, path
from benchmarks.papers.page import markdown
from benchmarks.papers.protocol import ONE_NORM, method_name

PAGE = page.DOCS / "papers-path.md"
COUNTS = ("joints", "knots", "pivots")
ERRORS = ("1-norm", "2-norm", "no penalty", "end of the path")

# Table 1 of the paper by the number of noise inputs, with its deviations.
PAPER_ERRORS = {
    0: "0.073(0.010) 0.08(0.02) 0.08(0.01) -",
    2: "0.074(0.014) 0.10(0.02) 0.12(0.03) -",
    4: "0.074(0.009) 0.13(0.03) 0.20(0.05) -",
    6: "0.082(0.009) 0.15(0.03) 0.22(0.06) -",
    8: "0.084(0.011) 0.18(0.03) 0.22(0.06) -",
}
PAPER_JOINTS = {0: (94, 13), 2: (149, 20), 4: (225, 30), 6: (374, 52), 8: (499, 67)}
PAPER_TABLE_2 = {"1-norm": "2 2 17 104", "UR": "2 3 22 -", "RFE": "2 1 31 -"}
TABLE_2_NAMES = {
    "1-norm": "1-norm SVM",
    "UR": "univariate ranking, 2-norm SVM",
    "RFE": "recursive elimination, 2-norm SVM",
}
SCALING_NAMES = {"raw": "as measured", "standard": "standardised", "log": "logarithms"}


# ---------------------------------------------------------------- Table 1


def by_noise(results: Mapping[str, Any]) -> dict[int, list[dict[str, Any]]]:
    """The experiments of all repeats, by number of noise inputs."""
    rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for key, value in results.items():
        rows[int(key.split("/")[0])].append(value)
    return dict(sorted(rows.items()))


def table1(results: Mapping[str, Any]) -> str:
    """Test errors, then joints, the paper's above ours."""
    rows = by_noise(results)
    errors = [["noise inputs", "who", "repeats", *ERRORS]]
    joints = [["bases", "paper", "ours", "events", "pivots", "separable", "ours where it is not"]]
    for noise, found in rows.items():
        errors.append([str(noise), "paper", "50", *PAPER_ERRORS[noise].split()])
        cells = [_spread([value["errors"][name] for value in found], 3) for name in ERRORS]
        errors.append(["", "ours", str(len(found)), *cells])
        mean, deviation = PAPER_JOINTS[noise]
        separable = [value["separable"] for value in found]
        other = [value["joints"] for value in found if not value["separable"]]
        joints.append([
            str(found[0]["bases"]), f"{mean}({deviation})",
            *(_spread([value[name] for value in found], 0) for name in COUNTS),
            f"{100 * np.mean(separable):.0f} %", _spread(other, 0) if other else "-",
        ])  # fmt: skip
    worst = max(value["gap"] for found in rows.values() for value in found)
    note = f"Every joint is verified; the worst relative gap of all paths is {worst:.0e}."
    return f"\n{markdown(errors)}\n\n{markdown(joints)}\n\n{note}\n\n"


def counts(results: Mapping[str, Any]) -> str:
    """Joints by reading and number of bases, the paper's first."""
    found = by_noise(results)
    bases = {0: 5, 2: 14, 4: 27, 6: 44, 8: 65}
    lines = [["reading", *(f"{bases[noise]} bases" for noise in found)]]
    lines.append(["paper", *("{}({})".format(*PAPER_JOINTS[noise]) for noise in found)])
    for reading in next(iter(found.values()))[0]:
        cells = [[row[reading] for row in rows] for rows in found.values()]
        lines.append([reading, *(_spread(values, 0) for values in cells)])
    repeats = _range([len(rows) for rows in found.values()])
    return f"\n{markdown(lines)}\n\nMeans over {repeats} repeats.\n\n"


def _spread(values: Sequence[float], digits: int) -> str:
    """Mean and standard deviation as the paper writes them."""
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):.{digits}f}({deviation:.{digits}f})"


# ---------------------------------------------------------------- Table 2


def table2(results: Mapping[str, Any]) -> str:
    """Errors and genes of the three methods, the paper's above ours."""
    lines = [
        ["method", "who", "fold seeds", "CV errors of 38", "test errors of 34", "genes", "joints"]
    ]
    rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for key, value in results.items():
        for method, found in value.items():
            rows[method, key.split("/")[0]].append(found)
    for method, name in TABLE_2_NAMES.items():
        lines.append([name, "paper", "1", *PAPER_TABLE_2[method].split()])
        for scaling, label in SCALING_NAMES.items():
            trials = rows.get((method, scaling), [])
            if trials:
                cells = [_range([t[column] for t in trials]) for column in ("cv", "test", "genes")]
                joints = str(trials[0]["joints"]) if "joints" in trials[0] else "-"
                lines.append(["", f"ours, {label}", str(len(trials)), *cells, joints])
    return f"\n{markdown(lines)}\n\n"


def _range(values: Sequence[float]) -> str:
    """The median, and the least and largest where they differ."""
    middle = f"{np.median(values):g}"
    low, high = min(values), max(values)
    return middle if low == high else f"{middle} ({low:g} to {high:g})"


# ---------------------------------------------------------------- the hybrid SVM


def hybrid(results: Mapping[str, Any]) -> str:
    """Accuracy and features used by method, on every gene set."""
    methods = [*(method_name(k) for k in path.HYBRID_ROUNDS), ONE_NORM, path.HYBRID]
    lines = [["data", "repeats", "", *methods]]
    for name in path.GENE_SETS:
        found = [value for key, value in results.items() if key.startswith(f"{name}/")]
        if not found:
            continue
        accuracy = [100 * np.array([f["accuracy"][m] for f in found]) for m in methods]
        used = [np.median([f["n_features"][m] for f in found]) for m in methods]
        lines.append([name, str(len(found)), "accuracy", *map(_mean, accuracy)])
        lines.append(["", "", "features", *(f"{count:.0f}" for count in used)])
    return f"\n{markdown(lines)}\n\n"


def _mean(values: np.ndarray) -> str:
    """Mean and its standard error."""
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{values.mean():.1f}±{values.std(ddof=1) / np.sqrt(len(values)):.1f}"


# ---------------------------------------------------------------- the figures


def draw_path(axes: Any, drawn: Mapping[str, Any], names: Mapping[int, str]) -> None:
    """Coefficients against s; the named ones in colour, joints as thin lines."""
    s, coefs = np.array(drawn["s"]), np.array(drawn["coefs"])
    for joint in s:
        axes.axvline(joint, color="0.85", linewidth=0.5, zorder=0)
    for j in range(coefs.shape[1]):
        if j not in names:
            axes.plot(s, coefs[:, j], color="0.55", linewidth=0.8)
    for color, (j, name) in zip(("C0", "C3"), names.items(), strict=True):
        axes.plot(s, coefs[:, j], color=color, linewidth=2, label=name)
    axes.set(xlabel="s = ‖w‖₁", ylabel="coefficient", xlim=(0, s[-1]))
    axes.legend(loc="upper left")


def squares(n_bases: int) -> dict[int, str]:
    """Where x1² and x2² are among the bases: q inputs, q (q - 1) / 2 products, then q squares."""
    q = next(q for q in range(2, n_bases) if 2 * q + q * (q - 1) // 2 == n_bases)
    first = n_bases - q
    return {first: "x₁²", first + 1: "x₂²"}


def draw_figure1(results: Mapping[str, Any], file: pathlib.Path) -> None:
    """The path of the small example."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    drawn = results["path"]
    draw_path(axes, drawn, squares(len(drawn["coefs"][0])))
    figure.savefig(file, dpi=100)


def draw_figure2(results: Mapping[str, Any], joints: Mapping[str, Any], file: pathlib.Path) -> None:
    """A path, the test error along it, and joints against the number of bases."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    drawn, error = results["path"], results["error"]
    draw_path(left, drawn, squares(len(drawn["coefs"][0])))
    end = drawn["s"][-1]
    s, share = np.array(error["s"]), np.array(error["error"])
    middle.step([*s, end], [*share, share[-1]], where="post", color="C0", linewidth=1)
    best = int(share.argmin())
    middle.axhline(share[best], color="0.5", linestyle="--", linewidth=1)
    middle.axvline(s[best], color="0.5", linestyle="--", linewidth=1)
    middle.set(xlabel="s = ‖w‖₁", ylabel="test error", xlim=(0, end))
    found = by_noise(joints)
    bases = [rows[0]["bases"] for rows in found.values()]
    counts = [[row["joints"] for row in rows] for rows in found.values()]
    means, deviations = [np.mean(c) for c in counts], [np.std(c) for c in counts]
    right.errorbar(bases, means, deviations, fmt="C0o-", capsize=3, label="ours")
    paper = [PAPER_JOINTS[noise] for noise in found]
    right.errorbar(bases, *zip(*paper, strict=True), fmt="C3s--", capsize=3, label="paper")
    right.set(xlabel="number of bases", ylabel="joints", ylim=(0, None))
    right.legend(loc="upper left")
    figure.savefig(file, dpi=100)


# ---------------------------------------------------------------- the page


MAKERS = {"table1": table1, "counts": counts, "table2": table2, "hybrid": hybrid}
DRAWINGS: page.Drawings = {
    "path-figure1.png": (("figure1",), draw_figure1),
    "path-figure2.png": (("figure2", "table1"), draw_figure2),
}


def text(content: Mapping[str, Any]) -> str:
    """All tables that there are results for."""
    return page.text(content, MAKERS)


def write(content: Mapping[str, Any]) -> None:
    """Bring the page and the figures up to date."""
    page.write(PAGE, content, MAKERS, DRAWINGS)


if __name__ == "__main__":
    write(json.loads(path.RESULTS.read_text()))
