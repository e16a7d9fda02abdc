"""What the displays share: axes, and the number of features on the right."""

from __future__ import annotations

from typing import Any


def axes_or_new(ax: Any, **figure: Any) -> Any:
    """The axes given, or those of a new figure."""
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **figure)[1] if ax is None else ax


def draw_features(ax: Any, x: Any, counts: Any, label: str, **line: Any) -> tuple[Any, Any]:
    """Draw numbers of features against an axis of their own on the right; that and the lines."""
    from matplotlib.ticker import MaxNLocator

    right = ax.twinx()
    lines = right.plot(x, counts, color="tab:orange", label="features", **line)
    right.set_ylabel(label)
    right.set_ylim(bottom=0)
    right.yaxis.set_major_locator(MaxNLocator(integer=True))
    return right, lines
