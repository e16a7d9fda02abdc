"""Draw the grid of models: what the slacks cost, by what keeps the function simple.

    python docs/grid.py        writes docs/_static/grid.svg

The picture takes its colours from the page that it stands in, light or dark; on its own it
follows the reader's system.  A cell links to the page about it.
"""

import pathlib
from xml.sax.saxutils import escape

FILE = pathlib.Path(__file__).parent / "_static" / "grid.svg"

COLUMNS = (
    ("all features", "½‖w‖², linear"),
    ("fewer features", "from 2-norm to 1-norm"),
    ("few features", "‖w‖₁, linear"),
    ("kernels", "½‖f‖², non-linear"),
)
# (what the slacks cost, its formula), then a cell per column: (what to write, its page) or None.
ROWS = (
    (
        ("their sum", "hinge"),
        ("LinearSVC()", "linear"),
        ("ReweightedSVC()", "walk"),
        ("SparseSVC()", "sparse"),
        ("SVC()", "kernel"),
    ),
    (
        ("their squares", "squared hinge"),
        ('LinearSVC(loss="squared_hinge")', "linear"),
        ('ReweightedSVC(loss="squared_hinge")', "walk"),
        ('SparseSVC(loss="squared_hinge")', "sparse"),
        ('SVC(slack="squared_l2")', "kernel"),
    ),
    (
        ("the B largest", "budget"),
        ('BudgetSVC(B, kernel="linear")', "budget"),
        None,
        None,
        ("BudgetSVC(B)", "budget"),
    ),
    (
        ("any other norm N", "l2, linf, Lp, K12, ..."),
        ('SVC(slack=N, kernel="linear")', "kernel"),
        None,
        None,
        ("SVC(slack=N)", "kernel"),
    ),
    (
        ("both sides, sum", "absolute"),
        ('LinearSVC(loss="absolute")', "least-norm"),
        ('ReweightedSVC(loss="absolute")', "walk"),
        ('SparseSVC(loss="absolute")', "sparse"),
        ("LeastNormSVC()", "least-norm"),
    ),
    (
        ("both sides, squares", "least squares"),
        ('LinearSVC(loss="squared")', "least-squares"),
        ('ReweightedSVC(loss="squared")', "walk"),
        ("ConstrainedLasso()", "bridge"),
        ("LeastSquaresSVC()", "least-squares"),
    ),
    (
        ("logistic", "log(1 + exp(-margin))"),
        ('LinearSVC(loss="logistic")', "linear"),
        ('ReweightedSVC(loss="logistic")', "walk"),
        ('SparseSVC(loss="logistic")', "sparse"),
        None,
    ),
)

_LABEL, _WIDTH, _HEIGHT, _HEAD, _GAP = 150, 160, 46, 52, 4
_STYLE = """
  svg.grid { --ink: #1f2328; --soft: #59636e; --cell: #eef2f8; --edge: #c5d0e0; --link: #0a58ca; }
  @media (prefers-color-scheme: dark) {
    svg.grid { --ink: #e6e6e6; --soft: #a3a8ae; --cell: #22262d; --edge: #444c58; --link: #8ab4f8; }
  }
  svg.grid a { text-decoration: none; }
  svg.grid text { font-family: system-ui, "Segoe UI", sans-serif; text-anchor: middle; }
  svg.grid .name { fill: var(--color-foreground-primary, var(--ink)); font-size: 13px; }
  svg.grid .name { font-weight: 600; }
  svg.grid .about { fill: var(--color-foreground-secondary, var(--soft)); font-size: 11px; }
  svg.grid .call { fill: var(--color-link, var(--link)); font-size: 12.5px; font-weight: 600; }
  svg.grid .with { fill: var(--color-link, var(--link)); font-size: 11px; }
  svg.grid rect { fill: var(--color-background-secondary, var(--cell)); rx: 5px; }
  svg.grid rect { stroke: var(--color-background-border, var(--edge)); }
  svg.grid rect.none { fill: none; stroke-dasharray: 3 4; }
"""


def cells():
    """Every call in the grid with the page it belongs to."""
    return [cell for row in ROWS for cell in row[1:] if cell is not None]


def _text(x, y, kind, text):
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(text)}</text>'


def _cell(x, y, cell):
    box = f'<rect x="{x}" y="{y}" width="{_WIDTH - _GAP}" height="{_HEIGHT - _GAP}"'
    if cell is None:
        return [f'{box} class="none"/>']
    call, page = cell
    middle = x + (_WIDTH - _GAP) / 2
    name, arguments = call.split("(", 1)
    arguments = arguments[:-1]
    lines = [_text(middle, y + (19 if arguments else 26), "call", name)]
    if arguments:
        lines.append(_text(middle, y + 34, "with", arguments))
    return [f'<a href="{page}.html">{box}/>', *lines, "</a>"]


def drawing():
    """The picture as SVG."""
    width, height = _LABEL + len(COLUMNS) * _WIDTH, _HEAD + len(ROWS) * _HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="grid" viewBox="0 0 {width} {height}"',
        '  width="100%" role="img" aria-label="The grid of models, also given as a table below">',
        f"<style>{_STYLE}</style>",
        _text(_LABEL / 2, 19, "name", "what slacks cost"),
    ]
    for number, (name, about) in enumerate(COLUMNS):
        middle = _LABEL + number * _WIDTH + (_WIDTH - _GAP) / 2
        lines += [_text(middle, 19, "name", name), _text(middle, 37, "about", about)]
    for number, ((name, about), *row) in enumerate(ROWS):
        y = _HEAD + number * _HEIGHT
        lines += [
            _text(_LABEL / 2, y + 18, "name", name),
            _text(_LABEL / 2, y + 34, "about", about),
        ]
        for column, cell in enumerate(row):
            lines += _cell(_LABEL + column * _WIDTH, y, cell)
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    FILE.write_text(drawing())
