"""The walk by rounds: the 1-norm objective and the number of features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from anynorm.plotting._axes import axes_or_new, draw_features


class WalkDisplay:
    """The 1-norm objective and the number of features in use after each round.

    Parameters
    ----------
    objectives : array-like of float
        The 1-norm objective by round.
    n_features : array-like of int
        The number of features by round.
    bound : float or None, default=None
        A value that no objective can go below, drawn as a line.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_ : matplotlib Axes
        The axes of the objective.
    features_ax_ : matplotlib Axes
        The axes of the number of features, on the right.
    lines_ : list of matplotlib Line2D
        The objective, the bound where there is one, and the number of features.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from anynorm import ReweightedSVC
    >>> from anynorm.datasets import make_relevant
    >>> from anynorm.plotting import WalkDisplay
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> model = ReweightedSVC(C=0.1, n_rounds=6).fit(X, y)
    >>> display = WalkDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel()
    'round'
    """

    def __init__(self, objectives: Any, n_features: Any, bound: float | None = None) -> None:
        self.objectives = np.asarray(objectives, dtype=np.float64)
        self.n_features = np.asarray(n_features)
        self.bound = bound

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line: Any) -> Self:
        """Draw the walk of a fitted estimator.

        Parameters
        ----------
        estimator : ReweightedSVC or ReweightedSVCCV
            Fitted.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **line : dict
            Further arguments of the objective's line, e.g. ``color``.

        Returns
        -------
        WalkDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        history = getattr(estimator, "history_", None)
        if not history or not hasattr(history[0], "l1_certificate"):
            raise ValueError(
                f"{type(estimator).__name__} has no history of 1-norm objectives; WalkDisplay "
                "draws ReweightedSVC and ReweightedSVCCV."
            )
        bound = max(record.l1_certificate.dual for record in history)
        display = cls(
            [record.objective for record in history],
            [record.n_nonzero for record in history],
            bound if bound > 0 else None,
        )
        return display.plot(ax=ax, **line)

    def plot(self, *, ax: Any = None, **line: Any) -> Self:
        """Draw the two curves.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **line : dict
            Further arguments of the objective's line.

        Returns
        -------
        WalkDisplay
            The display itself.
        """
        from matplotlib.ticker import MaxNLocator

        ax = axes_or_new(ax)
        rounds = np.arange(1, len(self.objectives) + 1)
        style = {"marker": "o", "color": "tab:blue", "label": "1-norm objective"} | line
        self.lines_ = ax.plot(rounds, self.objectives, **style)
        if self.bound is not None:
            self.lines_.append(
                ax.axhline(self.bound, color="grey", linestyle=":", label="lower bound")
            )
        right, features = draw_features(
            ax, rounds, self.n_features, "number of features", marker="s", linestyle="--"
        )
        self.lines_ += features
        ax.set_xlabel("round")
        ax.set_ylabel("1-norm objective")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        # above the picture: both axes fill it
        ax.legend(handles=self.lines_, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        self.figure_, self.ax_, self.features_ax_ = ax.figure, ax, right
        return self
