"""The coefficients of a path against s."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from anynorm.estimators.paths.solution_path import SolutionPath
from anynorm.plotting._axes import axes_or_new, set_range, shown_end

_ROOM = 0.05  # of the coefficients' range, above and below
_LINE_HEIGHT = 1.25  # of the size of the letters: lines of text stay apart


class PathDisplay:
    """The coefficients of the 1-norm SVM's path against s.

    The features with the largest coefficients where the figure ends are coloured and labelled, all
    others that are ever in use are thin grey lines.  Short strokes along the lower edge mark the
    joints.

    Parameters
    ----------
    s : array-like of shape (n_joints,)
        The joints.
    coefs : {array-like, sparse matrix} of shape (n_joints, p)
        The coefficients at the joints.
    feature_names : array-like of shape (p,) or None, default=None
        The features' names; None is x0, x1, ...
    chosen : float or None, default=None
        An s to mark.

    Attributes
    ----------
    figure_ : matplotlib Figure
        The figure.
    ax_ : matplotlib Axes
        The axes.
    lines_ : list of matplotlib Line2D
        The lines of the labelled features, the largest coefficient first.
    labels_ : list of matplotlib Annotation
        Their labels, in the same order.
    others_ : matplotlib LineCollection
        The lines of all other features that are ever in use.
    joints_ : matplotlib Line2D
        The marks of the joints.
    chosen_ : matplotlib Line2D or None
        The mark of `chosen`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from anynorm import sparse_svm_path
    >>> from anynorm.datasets import make_relevant
    >>> from anynorm.plotting import PathDisplay
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> display = PathDisplay.from_path(sparse_svm_path(X, y), n_labels=4)
    >>> len(display.lines_), display.ax_.get_ylabel()
    (4, 'coefficient')
    """

    def __init__(
        self, s: Any, coefs: Any, feature_names: Any = None, chosen: float | None = None
    ) -> None:
        self.s = np.asarray(s, dtype=np.float64)
        self.coefs = sp.csc_array(coefs)
        self.feature_names = feature_names
        self.chosen = chosen

    @classmethod
    def from_path(
        cls,
        path: SolutionPath,
        *,
        chosen: float | None = None,
        n_labels: int = 10,
        whole: bool = False,
        log: bool = False,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw a path.

        Parameters
        ----------
        path : SolutionPath
            What `sparse_svm_path` returns.
        chosen : float or None, default=None
            An s to mark.
        n_labels : int, default=10
            The most features to label.
        whole : bool, default=False
            Whether to show the path to its end.  Otherwise it is shown to two and a half times the
            chosen s, where the rest would take most of the room, as in the report.
        log : bool, default=False
            Whether s is on a logarithmic axis.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **line : dict
            Further arguments of the labelled features' lines, e.g. ``linewidth``.

        Returns
        -------
        PathDisplay
            The display, drawn.
        """
        names = getattr(path, "feature_names_in_", None)
        display = cls(path.s, path.coefs, names, chosen)
        return display.plot(ax=ax, n_labels=n_labels, whole=whole, log=log, **line)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        class_label: Any = None,
        n_labels: int = 10,
        whole: bool = False,
        log: bool = False,
        ax: Any = None,
        **line: Any,
    ) -> Self:
        """Draw the path of a fitted estimator, and the s that it chose.

        Parameters
        ----------
        estimator : SparseSVCCV
            Fitted.
        class_label : object, default=None
            The class whose path against the rest is drawn; needed for more than two classes.
        n_labels : int, default=10
            The most features to label.
        whole : bool, default=False
            Whether to show the path to its end.  Otherwise it is shown to two and a half times the
            chosen s, where the rest would take most of the room, as in the report.
        log : bool, default=False
            Whether s is on a logarithmic axis.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **line : dict
            Further arguments of the labelled features' lines.

        Returns
        -------
        PathDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        paths = getattr(estimator, "paths_", None)
        if paths is None:
            raise ValueError(
                f"{type(estimator).__name__} has no path; PathDisplay draws SparseSVCCV and what "
                "sparse_svm_path returns."
            )
        index = 0
        if len(paths) > 1:
            classes = estimator.classes_.tolist()
            if class_label not in classes:
                raise ValueError(
                    f"class_label must be one of {classes}, the class whose path is drawn; got "
                    f"{class_label!r}."
                )
            index = classes.index(class_label)
        chosen = float(np.ravel(estimator.s_)[index])
        shown: dict[str, Any] = {"n_labels": n_labels, "whole": whole, "log": log, "ax": ax}
        return cls.from_path(paths[index], chosen=chosen, **shown, **line)

    def plot(
        self,
        *,
        ax: Any = None,
        n_labels: int = 10,
        whole: bool = False,
        log: bool = False,
        **line: Any,
    ) -> Self:
        """Draw the coefficients.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        n_labels : int, default=10
            The most features to label.
        whole : bool, default=False
            Whether to show the path to its end.  Otherwise it is shown to two and a half times the
            chosen s, where the rest would take most of the room, as in the report.
        log : bool, default=False
            Whether s is on a logarithmic axis.
        **line : dict
            Further arguments of the labelled features' lines.

        Returns
        -------
        PathDisplay
            The display itself.
        """
        import matplotlib
        from matplotlib.collections import LineCollection

        ax = axes_or_new(ax, figsize=(8.0, 5.0))
        self.figure_, self.ax_ = ax.figure, ax
        self._end = shown_end(self.s, self.chosen, whole)
        largest, others = self._features(n_labels)
        grey = [np.column_stack([self.s, self._drawn(j)]) for j in others]
        self.others_ = LineCollection(grey, colors="0.7", linewidths=0.7, zorder=1)
        ax.add_collection(self.others_)
        colours = matplotlib.color_sequences["tab10" if len(largest) <= 10 else "tab20"]
        self.lines_ = []
        for rank, j in enumerate(largest):
            style = {
                "color": colours[rank % len(colours)],
                "linewidth": 1.6,
                "label": self._name(j),
            }
            self.lines_ += ax.plot(self.s, self._drawn(j), **(style | line))
        ax.axhline(0.0, color="0.4", linewidth=0.6, zorder=0)
        joints = self.s[(self.s <= self._end) & ((self.s > 0) | (not log))]
        (self.joints_,) = ax.plot(
            joints,
            np.zeros(len(joints)),
            "|",
            color="black",
            markersize=7,
            alpha=0.6,
            transform=ax.get_xaxis_transform(),
            clip_on=False,
            label="joints",
        )
        self.chosen_ = None
        if self.chosen is not None:
            self.chosen_ = ax.axvline(self.chosen, color="black", linestyle="--", linewidth=1.0)
        ax.margins(x=0.0)
        ax.autoscale()
        set_range(ax, self.s, self._end, log)
        low, high = self._reach()
        ax.set_ylim(low - _ROOM * (high - low), high + _ROOM * (high - low))
        ax.set_xlabel("s, the 1-norm of the coefficients")
        ax.set_ylabel("coefficient")
        self.labels_ = self._label_ends(largest)
        return self

    def _features(self, n_labels: int) -> tuple[list[int], list[int]]:
        """The features to label, the largest at the end shown first, and all others ever in use."""
        used = np.flatnonzero(np.diff(self.coefs.indptr))
        ends = np.abs(self._at_end()[used])
        peaks = abs(self.coefs).max(axis=0).toarray().ravel()[used]  # a row in SciPy 1.12
        order = used[np.lexsort((used, -peaks, -ends))].tolist()
        return order[:n_labels], order[n_labels:]

    def _at_end(self) -> np.ndarray:
        """The coefficients where the figure ends."""
        k = min(int(np.searchsorted(self.s, self._end)), len(self.s) - 1)
        after = self.coefs[[k]].toarray()[0]
        if k == 0 or self.s[k] == self._end:
            return after
        share = (self._end - self.s[k - 1]) / (self.s[k] - self.s[k - 1])
        return (1 - share) * self.coefs[[k - 1]].toarray()[0] + share * after

    def _reach(self) -> tuple[float, float]:
        """The smallest and the largest coefficient in the figure; -1 and 1 where all are 0."""
        shown = self.coefs.tocsr()[np.flatnonzero(self.s <= self._end)]
        values = np.concatenate([shown.data, self._at_end(), [0.0]])
        low, high = float(values.min()), float(values.max())
        return (low, high) if high > low else (-1.0, 1.0)

    def _values(self, j: int) -> np.ndarray:
        return self.coefs[:, [j]].toarray()[:, 0]

    def _drawn(self, j: int) -> np.ndarray:
        """The values where the feature is in use or about to be; NaN, not drawn, elsewhere."""
        values = self._values(j)
        near = np.convolve(values != 0, [1, 1, 1], mode="same") > 0
        return np.where(near, values, np.nan)

    def _name(self, j: int) -> str:
        return f"x{j}" if self.feature_names is None else str(self.feature_names[j])

    def _label_ends(self, features: list[int]) -> list[Any]:
        """Names beside the ends of the lines, moved apart where they would overlap."""
        ends = self._at_end()[features]
        height = self.ax_.get_window_extent().height
        size = 9.0
        room = _LINE_HEIGHT * size * self.figure_.dpi / 72 / height
        low, high = self.ax_.get_ylim()
        places = spread((ends - low) / (high - low), room)
        return [
            self.ax_.annotate(
                self._name(j),
                xy=(self._end, end),
                xytext=(1.03, place),
                textcoords=self.ax_.transAxes,
                va="center",
                fontsize=size,
                color=line.get_color(),
                annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": line.get_color(), "linewidth": 0.6},
            )
            for j, end, place, line in zip(features, ends, places, self.lines_, strict=True)
        ]


def spread(places: np.ndarray, room: float) -> np.ndarray:
    """Places in [0, 1] moved, in their order, to be at least `room` apart and stay near."""
    order = np.argsort(places, kind="stable")
    groups: list[list[float]] = []  # [sum of wished starts, number]: runs of touching labels
    for rank, place in enumerate(places[order]):
        groups.append([place - rank * room, 1])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] >= groups[-1][0] / groups[-1][1]:
            total, count = groups.pop()
            groups[-1][0] += total
            groups[-1][1] += count
    starts = np.concatenate([np.full(int(n), total / n) for total, n in groups] or [np.empty(0)])
    moved = np.empty(len(places))
    moved[order] = starts + room * np.arange(len(places))
    overflow = max(0.0, float(moved.max(initial=1.0)) - 1.0)
    return moved - overflow
