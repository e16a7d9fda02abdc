"""Probabilities of held-out rows, beside what came to pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from anynorm.estimators._ordered_labels import places_of
from anynorm.estimators._probabilities import (
    RELIABILITY_BINS,
    Reliability,
    brier_score,
    reliability,
)
from anynorm.plotting._axes import axes_or_new


class ReliabilityDisplay:
    """The reliability curves of probabilities: on the diagonal, what was said came to pass.

    Parameters
    ----------
    curves : sequence of Reliability
        For each class the probabilities that were said, the shares that came to pass and the
        numbers of rows, bin by bin.
    names : sequence of str
        The classes.
    brier : float or None, default=None
        The mean squared error of the probabilities.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_ : matplotlib Axes
        The axes.
    lines_ : list of matplotlib Line2D
        The diagonal, and a curve for each class.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from anynorm import SVCCV
    >>> from anynorm.plotting import ReliabilityDisplay
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = SVCCV(Cs=[1.0, 10.0], gammas=3, calibration="sigmoid").fit(X, y)
    >>> display = ReliabilityDisplay.from_estimator(model, y)
    >>> display.ax_.get_ylabel(), display.brier < 0.1
    ('share of the rows', True)
    """

    def __init__(
        self, curves: Sequence[Reliability], names: Sequence[str], brier: float | None = None
    ) -> None:
        self.curves, self.names, self.brier = list(curves), list(names), brier

    @classmethod
    def from_estimator(
        cls, estimator: Any, y: Any, *, n_bins: int = RELIABILITY_BINS, ax: Any = None, **line: Any
    ) -> Self:
        """Draw the out-of-fold probabilities of a fitted estimator.

        Parameters
        ----------
        estimator : SVCCV, SparseSVCCV or ReweightedSVCCV
            Fitted, with a `calibration`.
        y : array-like of shape (n,)
            The labels that it was fitted to.
        n_bins : int, default=10
            The number of bins, of equally many rows each.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **line : dict
            Further arguments of the curves, e.g. ``color``.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        probabilities = getattr(estimator, "oof_predict_proba_", None)
        if probabilities is None:
            raise ValueError(
                f"{type(estimator).__name__} has no out-of-fold probabilities. Fit a "
                "cross-validated estimator with calibration='sigmoid' or 'isotonic'."
            )
        if len(y) != len(probabilities):
            raise ValueError(
                f"y has {len(y)} labels, but the estimator was fitted to {len(probabilities)} rows."
            )
        classes = estimator.classes_
        codes = places_of(np.asarray(y), classes)
        shown = [1] if len(classes) == 2 else range(len(classes))
        display = cls(
            [reliability(codes == k, probabilities[:, k], n_bins) for k in shown],
            [str(classes[k]) for k in shown],
            brier_score(codes, probabilities),
        )
        return display.plot(ax=ax, **line)

    def plot(self, *, ax: Any = None, **line: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **line : dict
            Further arguments of the curves.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        ax = axes_or_new(ax)
        self.lines_ = ax.plot(
            [0, 1], [0, 1], color="grey", linestyle=":", label="as often as was said"
        )
        for curve, name in zip(self.curves, self.names, strict=True):
            style = {"marker": "o", "label": f"class {name}"} | line
            self.lines_ += ax.plot(curve.predicted, curve.observed, **style)
        ax.set_xlabel("out-of-fold probability")
        ax.set_ylabel("share of the rows")
        if self.brier is not None:
            ax.set_title(f"Brier score {self.brier:.3f}")
        ax.set_aspect("equal")
        ax.legend()
        self.figure_, self.ax_ = ax.figure, ax
        return self
