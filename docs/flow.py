"""Draw the way of four calls: from the entry to the innermost loop, and back.

    python docs/flow.py        writes docs/_static/flow.svg

The hops are data, so that a test can follow the calls and compare.  The picture takes its colours
from the page that it stands in, light or dark; on its own it follows the reader's system.
"""

import pathlib
from typing import NamedTuple
from xml.sax.saxutils import escape

FILE = pathlib.Path(__file__).parent / "_static" / "flow.svg"

CALLS = (
    "LinearSVC().fit(X, y)",
    "SparseSVC().fit(X, y)",
    "SVC(slack=TopK(5)).fit(X, y)",
    "min_norm_point(A)",
)


class Hop(NamedTuple):
    """Functions of one file, and how many of the calls, side by side, come through them."""

    functions: tuple[str, ...]
    file: str
    calls: int = 1


def _hop(functions: str, file: str, calls: int = 1) -> Hop:
    return Hop(tuple(functions.split(", ")), file, calls)


# What happens, and a hop for each call; None where a call has no such hop.
THERE = (
    (
        "the entry",
        _hop("FittedClassifier.fit", "estimators/_fitting.py", 3),
        _hop("min_norm_point", "estimators/min_norm_point.py"),
    ),
    (
        "parameters",
        _hop("check_values", "estimators/checks/parameters.py", 4),
    ),
    (
        "data, once",
        _hop("validate", "estimators/checks/labels.py", 2),
        _hop("validate_kernel", "estimators/_kernel_model.py"),
        _hop("as_points", "design/points.py"),
    ),
    (
        "problems",
        _hop("solve_classes", "estimators/_fitting.py", 2),
        _hop("kernel_problems, solve_kernels", "estimators/_kernel_model.py"),
        None,
    ),
    ("in threads", _hop("run_all", "estimators/_fitting.py", 3), None),
    (
        "the family",
        _hop("solve_linear", "solvers/linear/solve.py"),
        _hop("solve_one_norm", "solvers/one_norm/solve.py"),
        _hop("solve_kernel", "solvers/kernel/solve.py"),
        _hop("solve_min_norm", "solvers/simplex/min_norm.py"),
    ),
    ("able methods", _hop("methods_for", "solvers/frame/methods.py", 3), None),
    (
        "the method",
        _hop("solve_augmented", "solvers/linear/augmented_lagrangian.py"),
        _hop("solve_linear_programme", "solvers/one_norm/linear_programs.py"),
        _hop("solve_box", "solvers/kernel/box_duals.py"),
        _hop("HullSearch.run", "solvers/simplex/min_norm.py"),
    ),
    (
        "its iterations",
        _hop("minimise_smooth", "solvers/linear/newton.py"),
        _hop("Engine.run", "solvers/one_norm/engine.py"),
        _hop("minimise_box", "solvers/kernel/smo.py"),
        _hop("Corral.descend", "solvers/simplex/corral.py"),
    ),
    (
        "innermost loop",
        _hop("Design.weighted_gram", "design/interface.py"),
        _hop("advance", "solvers/one_norm/pivots.py"),
        _hop("solve_block", "solvers/kernel/block_loops.py"),
        _hop("solve", "solvers/frame/factor_loops.py"),
    ),
)
BACK = (
    (
        "values",
        _hop("Problem.values", "problem/svm.py", 3),
        _hop("HullProblem.values", "problem/hull.py"),
    ),
    (
        "the best kept",
        _hop("Incumbent.offer", "solvers/frame/incumbent.py"),
        _hop("Incumbent.replace", "solvers/frame/incumbent.py", 2),
        None,
    ),
    ("its certificate", _hop("certificate_of", "problem/certificate.py", 4)),
    (
        "stored, told",
        _hop("store_linear", "estimators/_fitting.py", 2),
        _hop("store_kernel", "estimators/_kernel_model.py"),
        _hop("warn_if_not_converged", "estimators/_messages.py"),
    ),
)

_WIDTH, _HEIGHT, _HEAD, _GAP, _SPACE, _TURN = 250, 61, 42, 12, 20, 24
_STYLE = """
  svg.flow { --ink: #1f2328; --soft: #59636e; --cell: #eef2f8; --edge: #c5d0e0; --line: #8794a8; }
  @media (prefers-color-scheme: dark) {
    svg.flow { --ink: #e6e6e6; --soft: #a3a8ae; --cell: #22262d; --edge: #444c58; --line: #77808c; }
  }
  svg.flow text { font-family: system-ui, "Segoe UI", sans-serif; text-anchor: middle; }
  svg.flow .call { fill: var(--color-foreground-primary, var(--ink)); font-size: 13px; }
  svg.flow .call { font-weight: 600; }
  svg.flow .what { fill: var(--color-foreground-secondary, var(--soft)); font-size: 11px; }
  svg.flow .what { text-anchor: start; font-style: italic; }
  svg.flow .name { fill: var(--color-foreground-primary, var(--ink)); font-size: 12.5px; }
  svg.flow .name { font-weight: 600; }
  svg.flow .file { fill: var(--color-foreground-secondary, var(--soft)); font-size: 11px; }
  svg.flow rect { fill: var(--color-background-secondary, var(--cell)); rx: 5px; }
  svg.flow rect { stroke: var(--color-background-border, var(--edge)); }
  svg.flow path { fill: none; stroke: var(--color-foreground-muted, var(--line)); }
  svg.flow path.turn { stroke-dasharray: 3 4; }
"""


def ways(rows):
    """The hops of each call, in their order."""
    found = [[] for _ in CALLS]
    for _, *hops in rows:
        place = 0
        for hop in hops:
            calls = 1 if hop is None else hop.calls
            if hop is not None:
                for way in found[place : place + calls]:
                    way.append(hop)
            place += calls
    return found


def _text(x, y, kind, text):
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(text)}</text>'


def _middle(place, calls=1):
    return place * _WIDTH + (calls * _WIDTH - _GAP) / 2 + 1


def _row(y, row, last):
    """One row: what happens, its boxes, and the arrows to the next one."""
    what, *hops = row
    lines, place = [_text(1, y - 5, "what", what)], 0
    for hop in hops:
        calls = 1 if hop is None else hop.calls
        if hop is not None:
            x, middle = place * _WIDTH + 1, _middle(place, calls)
            width, height = calls * _WIDTH - _GAP, _HEIGHT - _SPACE
            lines += [
                f'<rect x="{x}" y="{y}" width="{width}" height="{height}"/>',
                _text(middle, y + 18, "name", ", ".join(hop.functions)),
                _text(middle, y + 34, "file", hop.file),
            ]
        for call in range(place, place + calls):
            x, top = _middle(call), y if hop is None else y + _HEIGHT - _SPACE
            end = y + _HEIGHT
            if not last:
                lines.append(f'<path d="M{x:g} {top}V{end}"/>')
        place += calls
    return lines


def _heads(y, row):
    """The heads of the arrows that come to the boxes of a row."""
    place, lines = 0, []
    for hop in row[1:]:
        calls = 1 if hop is None else hop.calls
        for call in range(place, place + calls):
            if hop is not None:
                x = _middle(call)
                lines.append(f'<path d="M{x - 4:g} {y - 6}L{x:g} {y - 1}L{x + 4:g} {y - 6}"/>')
        place += calls
    return lines


def drawing():
    """The picture as SVG."""
    rows = (*THERE, *BACK)
    width = len(CALLS) * _WIDTH - _GAP + 2
    height = _HEAD + len(rows) * _HEIGHT + _TURN - _SPACE + 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flow" viewBox="0 0 {width} {height}"',
        '  width="100%" role="img" aria-label="The way of four calls, also told in the text">',
        f"<style>{_STYLE}</style>",
    ]
    lines += [_text(_middle(place), 19, "call", call) for place, call in enumerate(CALLS)]
    for number, row in enumerate(rows):
        y = _HEAD + number * _HEIGHT + (_TURN if number >= len(THERE) else 0)
        lines += _row(y, row, last=number == len(rows) - 1)
        if number:
            lines += _heads(y, row)
    turn = _HEAD + len(THERE) * _HEIGHT
    lines += [f'<path d="M{_middle(place):g} {turn}v{_TURN}"/>' for place in range(len(CALLS))]
    lines += [
        f'<path class="turn" d="M0 {turn + 7}H{width}"/>',
        _text(1, turn + 2, "what", "and back:"),
    ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    FILE.write_text(drawing())
