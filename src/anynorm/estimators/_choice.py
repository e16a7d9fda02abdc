"""How a place of a path is chosen from its cross-validated scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anynorm.design.limits import ROUNDING
from anynorm.estimators._cross_validation import score_columns, standard_error


@dataclass(frozen=True)
class ScoreCurve:
    """Cross-validated scores along s, on intervals or (where low equals high) at points.

    Attributes
    ----------
    low, high : ndarray of shape (m,)
        The ends of the intervals, ascending.
    scores : ndarray of shape (m, folds)
        The folds' scores.
    features : ndarray of shape (m, folds)
        The numbers of features that the folds use.
    """

    low: np.ndarray
    high: np.ndarray
    scores: np.ndarray
    features: np.ndarray

    def joined(self) -> ScoreCurve:
        """The curve with neighbours joined where every fold has the same score and features."""
        both = np.hstack([self.scores, self.features])
        new = np.append(True, np.any(np.abs(np.diff(both, axis=0)) > ROUNDING, axis=1))
        last = np.append(new[1:], True)
        return ScoreCurve(self.low[new], self.high[last], self.scores[new], self.features[new])

    def choose(self, rule: str, tolerance: float) -> tuple[int, float]:
        """The place in the table that a rule takes, and s.

        "best" takes the highest mean score, "one_se" the smallest s within one standard error of
        it, "fewest" the fewest features within `tolerance` of it.  All take the middle of the
        leftmost stretch that is as good.
        """
        mean, used = self.scores.mean(axis=1), self.features.mean(axis=1)
        same = ROUNDING * max(1.0, float(np.abs(mean).max()))
        top = int(mean.argmax())
        if rule == "best":
            good = mean >= mean[top] - same
        elif rule == "one_se":
            enough = mean >= mean[top] - standard_error(self.scores[top]) - same
            good = np.abs(mean - mean[int(enough.argmax())]) <= same
        else:
            enough = mean >= mean[top] - tolerance - same
            good = enough & (used <= used[enough].min() + same)
        first = int(good.argmax())
        last = first + int(np.append(~good[first:], True).argmax()) - 1
        middle = self.low[first] + (self.high[last] - self.low[first]) / 2
        index = first + int(np.searchsorted(self.high[first : last + 1], middle))
        return index, float(np.clip(middle, self.low[index], self.high[index]))

    def results(self) -> dict[str, Any]:
        """The curve as scikit-learn's searches present their tables."""
        middle = self.low + (self.high - self.low) / 2
        return {
            "s_low": self.low,
            "s_high": self.high,
            "param_s": middle,
            "params": [{"s": s} for s in middle.tolist()],
            **score_columns(self.scores, self.features),
        }
