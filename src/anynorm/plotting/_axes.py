"""What the displays share: axes, the range of s that matters, the number of features."""

from __future__ import annotations

from typing import Any

import numpy as np

_BEYOND = 2.5  # times the chosen s: as far as a path is shown at first
_WORTH = 0.4  # of the path: a range that is longer than that is not worth a cut


def axes_or_new(ax: Any, **figure: Any) -> Any:
    """The axes given, or those of a new figure."""
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **figure)[1] if ax is None else ax


def shown_end(s: np.ndarray, chosen: float | None, whole: bool) -> float:
    """Where to stop: paths may run on for long after the s that was chosen."""
    end = float(s[-1])
    if whole or chosen is None or not 0 < _BEYOND * chosen < _WORTH * end:
        return end
    return _BEYOND * chosen


def set_range(ax: Any, s: np.ndarray, end: float, log: bool) -> None:
    """Show s from 0, or where it is on a logarithmic axis from its first joint on, to an end."""
    above = s[(s > 0) & (s < end)]
    if log and len(above):
        ax.set_xscale("log")
        ax.set_xlim(above[0], end)
    elif end > 0:
        ax.set_xlim(0.0, end)


def draw_features(ax: Any, x: Any, counts: Any, label: str, **line: Any) -> tuple[Any, Any]:
    """Draw numbers of features against an axis of their own on the right; that and the lines."""
    from matplotlib.ticker import MaxNLocator

    right = ax.twinx()
    lines = right.plot(x, counts, color="tab:orange", label="features", **line)
    right.set_ylabel(label)
    right.set_ylim(bottom=0)
    right.yaxis.set_major_locator(MaxNLocator(integer=True))
    return right, lines
