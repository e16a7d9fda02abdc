"""The cross-validated score along a path."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from anynorm.plotting._axes import axes_or_new, draw_features, set_range, shown_end


class CVCurveDisplay:
    """The cross-validated score against s, with a band of one standard error, and the chosen s.

    Parameters
    ----------
    s_low, s_high : array-like of shape (m,)
        The ends of the intervals on which the score is constant; where they are the same, points
        at which it was evaluated.
    mean : array-like of shape (m,)
        The mean score over the folds.
    standard_error : array-like of shape (m,)
        Its standard error.
    n_features : array-like of shape (m,)
        The mean number of features.
    chosen : float or None, default=None
        The chosen s.
    score_name : str, default="score"
        What the score is called.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_ : matplotlib Axes
        The axes of the score.
    features_ax_ : matplotlib Axes
        The axes of the number of features, on the right.
    lines_ : list of matplotlib Line2D
        The score, the number of features, and the chosen s where there is one.
    band_ : matplotlib PolyCollection
        One standard error on both sides of the score.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from anynorm import SparseSVCCV
    >>> from anynorm.datasets import make_relevant
    >>> from anynorm.plotting import CVCurveDisplay
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> display = CVCurveDisplay.from_estimator(SparseSVCCV(max_features=10).fit(X, y))
    >>> display.ax_.get_ylabel()
    'cross-validated accuracy'
    """

    def __init__(
        self,
        s_low: Any,
        s_high: Any,
        mean: Any,
        standard_error: Any,
        n_features: Any,
        chosen: float | None = None,
        score_name: str = "score",
    ) -> None:
        self.s_low, self.s_high = np.asarray(s_low), np.asarray(s_high)
        self.mean, self.standard_error = np.asarray(mean), np.asarray(standard_error)
        self.n_features = np.asarray(n_features)
        self.chosen = chosen
        self.score_name = score_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        whole: bool = False,
        log: bool = False,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw the curve of a fitted estimator.

        Parameters
        ----------
        estimator : SparseSVCCV
            Fitted.
        whole : bool, default=False
            Whether to show the path to its end.  Otherwise it is shown to two and a half times the
            chosen s, where the rest would take most of the room, as in the report.
        log : bool, default=False
            Whether s is on a logarithmic axis.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **line : dict
            Further arguments of the score's line, e.g. ``color``.

        Returns
        -------
        CVCurveDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        results = getattr(estimator, "cv_results_", {})
        if "s_low" not in results:
            raise ValueError(
                f"{type(estimator).__name__} has no scores along a path; CVCurveDisplay draws "
                "SparseSVCCV."
            )
        folds = sum(key.startswith("split") for key in results)
        scoring = estimator.scoring
        name = "accuracy" if scoring is None else scoring if isinstance(scoring, str) else "score"
        display = cls(
            results["s_low"],
            results["s_high"],
            results["mean_test_score"],
            results["std_test_score"] / np.sqrt(max(folds - 1, 1)),
            results["mean_n_features"],
            float(np.ravel(estimator.s_)[0]),
            name,
        )
        return display.plot(ax=ax, whole=whole, log=log, **line)

    def plot(self, *, ax: Any = None, whole: bool = False, log: bool = False, **line: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        whole : bool, default=False
            Whether to show the path to its end.  Otherwise it is shown to two and a half times the
            chosen s, where the rest would take most of the room, as in the report.
        log : bool, default=False
            Whether s is on a logarithmic axis.
        **line : dict
            Further arguments of the score's line.

        Returns
        -------
        CVCurveDisplay
            The display itself.
        """
        ax = axes_or_new(ax)
        s = np.column_stack([self.s_low, self.s_high]).ravel()
        mean, error = np.repeat(self.mean, 2), np.repeat(self.standard_error, 2)
        style = {"color": "tab:blue", "label": f"mean {self.score_name}"} | line
        self.lines_ = ax.plot(s, mean, **style)
        colour = self.lines_[0].get_color()
        self.band_ = ax.fill_between(
            s,
            mean - error,
            mean + error,
            color=colour,
            alpha=0.2,
            linewidth=0,
            label="one standard error",
        )
        counts = np.repeat(self.n_features, 2)
        right, features = draw_features(ax, s, counts, "mean number of features", linestyle=":")
        self.lines_ += features
        handles = [self.lines_[0], self.band_, self.lines_[1]]
        if self.chosen is not None:
            self.lines_.append(
                ax.axvline(
                    self.chosen,
                    color="black",
                    linestyle="--",
                    linewidth=1.0,
                    label=f"chosen s = {self.chosen:.3g}",
                )
            )
            handles.append(self.lines_[-1])
        ax.set_xlabel("s, the 1-norm of the coefficients")
        ax.set_ylabel(f"cross-validated {self.score_name}")
        set_range(ax, s, shown_end(s, self.chosen, whole), log)
        # above the picture: both axes fill it
        ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        self.figure_, self.ax_, self.features_ax_ = ax.figure, ax, right
        return self
