"""Cross-validated scores along a line, and the rules that choose a place on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anynorm.design.limits import ROUNDING
from anynorm.estimators._cross_validation import score_columns, standard_error, tolerance_of

_FIRST_HALF = 0.5  # of the followed range: a best score beyond it may not be the last word
_AT_THE_END = 0.75  # of the followed range: a best score beyond it was still rising
_WINDOW_OF_S, _WINDOW_OF_C = 4.0, 10.0  # factors over which "steady" averages the score
_MOST_OF_RANGE = 0.25  # of the followed range, as a factor: a window is no wider


@dataclass(frozen=True)
class ScoreCurve:
    """Cross-validated scores along s or C, on intervals or (where low equals high) at points.

    Attributes
    ----------
    low, high : ndarray of shape (m,)
        The ends of the intervals, ascending; of C they are log(C / least).
    scores : ndarray of shape (m, folds)
        The folds' scores.
    features : ndarray of shape (m, folds)
        The numbers of features that the folds use.
    least : float or None, default=None
        What C is relative to; None where the line is that of s.
    """

    low: np.ndarray
    high: np.ndarray
    scores: np.ndarray
    features: np.ndarray
    least: float | None = None

    def joined(self) -> ScoreCurve:
        """The curve with neighbours joined where every fold has the same score and features."""
        both = np.hstack([self.scores, self.features])
        new = np.append(True, np.any(np.abs(np.diff(both, axis=0)) > ROUNDING, axis=1))
        last = np.append(new[1:], True)
        kept = self.low[new], self.high[last], self.scores[new], self.features[new]
        return ScoreCurve(*kept, self.least)

    def choose(self, rule: str, tolerance: float | None) -> tuple[int, float]:
        """The place in the table that a rule takes, and s or C.

        "best" takes the highest mean score, "one_se" the smallest s (or C) within one standard
        error of it, "fewest" the fewest features within `tolerance` of it (see
        `tolerance_of`).  All take the middle of a stretch that is as good: the widest for "best",
        for the others the leftmost.  "steady" takes the middle of the window in which the score is
        highest on average.
        """
        if rule == "steady":
            return self._steadiest()
        mean, used = self.scores.mean(axis=1), self.features.mean(axis=1)
        same = ROUNDING * max(1.0, float(np.abs(mean).max()))
        top = int(mean.argmax())
        if rule == "best":
            good = mean >= mean[top] - same
        elif rule == "one_se":
            enough = mean >= mean[top] - standard_error(self.scores[top]) - same
            good = np.abs(mean - mean[int(enough.argmax())]) <= same
        else:
            enough = mean >= mean[top] - tolerance_of(tolerance, self.scores[top]) - same
            good = enough & (used <= used[enough].min() + same)
        first, last = self._stretch(good, widest=rule == "best")
        middle = self.low[first] + (self.high[last] - self.low[first]) / 2
        index = first + int(np.searchsorted(self.high[first : last + 1], middle))
        return index, float(self.values(np.clip(middle, self.low[index], self.high[index])))

    def _stretch(self, good: np.ndarray, widest: bool) -> tuple[int, int]:
        """The first and last place of the leftmost stretch of good ones, or of the widest.

        By a factor of s or C: a high score that holds for long is less of an accident.
        """
        ends = np.flatnonzero(np.diff(np.concatenate([[0], good, [0]])))
        firsts, lasts = ends[::2], ends[1::2] - 1
        low, high = self._by_factors()
        k = int((high[lasts] - low[firsts]).argmax()) if widest else 0
        return int(firsts[k]), int(lasts[k])

    def _steadiest(self) -> tuple[int, float]:
        """The middle of the window that has the highest score on average, by factors of s or C.

        The highest step of a curve of many steps is an accident as often as not.  Beyond its ends
        the curve is taken to go on as it is there.
        """
        low, high = self._by_factors()
        # points stand for all that is nearer to them than to others
        between = high[:-1] + (low[1:] - high[:-1]) / 2
        edges = np.concatenate([low[:1], between, high[-1:]])
        mean, length = self.scores.mean(axis=1), edges[-1] - edges[0]
        window = _WINDOW_OF_S if self.least is None else _WINDOW_OF_C
        half = min(float(np.log(window)), _MOST_OF_RANGE * length) / 2
        # the average is linear between these, so that its maximum is at one of them
        turns = np.unique(np.clip([edges, edges - half, edges + half], edges[0], edges[-1]))
        if np.array_equal(self.low, self.high):
            turns = low
        ends = np.concatenate([edges[:1] - half, edges, edges[-1:] + half])
        parts = np.concatenate([[half * mean[0]], mean * np.diff(edges), [half * mean[-1]]])
        area = np.append(0.0, np.cumsum(parts))
        gain = np.interp(turns + half, ends, area) - np.interp(turns - half, ends, area)
        same = ROUNDING * max(1.0, float(np.abs(mean).max())) * (2 * half + length)
        good = gain >= gain.max() - same
        first = int(good.argmax())
        last = first + int(np.append(good[first:], False).argmin()) - 1
        middle = turns[first] + (turns[last] - turns[first]) / 2
        index = int(np.clip(np.searchsorted(edges, middle) - 1, 0, len(mean) - 1))
        place = float(np.exp(middle)) if self.least is None else float(middle)
        if self.low[index] == 0 and self.least is None:  # all of it is one place by factors
            place = float(self.high[index]) / 2
        return index, float(self.values(np.clip(place, self.low[index], self.high[index])))

    def _by_factors(self) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the intervals as logarithms."""
        if self.least is not None:
            return self.low, self.high
        positive = self.high[self.high > 0]  # s begins at 0, which no factor leads to
        least = positive.min() if len(positive) else 1.0
        return np.log(np.maximum(self.low, least)), np.log(np.maximum(self.high, least))

    def rises_at_the_end(self) -> bool:
        """Whether the best score is at the end of the line, and above all of its first half."""
        mean, end = self.scores.mean(axis=1), self.high[-1]
        late = self.high > _AT_THE_END * end
        early = self.low < _FIRST_HALF * end
        top = mean.max() - ROUNDING
        return bool((mean[late] >= top).any() and (mean[early] < top).all())

    def values(self, places: Any) -> Any:
        """The s or the C of places on the line."""
        return places if self.least is None else self.least * np.exp(places)

    def results(self) -> dict[str, Any]:
        """The curve as scikit-learn's searches present their tables."""
        name = "s" if self.least is None else "C"
        middle = self.values(self.low + (self.high - self.low) / 2)
        return {
            f"{name}_low": self.values(self.low),
            f"{name}_high": self.values(self.high),
            f"param_{name}": middle,
            "params": [{name: place} for place in middle.tolist()],
            **score_columns(self.scores, self.features),
        }
