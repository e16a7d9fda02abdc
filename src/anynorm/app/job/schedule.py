"""Time and progress of a job of several searches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_WRITING = 0.06  # of the time limit, for the report and the files
_EARLY = 0.02  # of a job: the share from which the time that is left is foretold


@dataclass(frozen=True)
class Doing:
    """How far a job is.

    Attributes
    ----------
    share : float
        About how much of it is done.
    what : str
        Which of its searches is on: choosing the model, or judging it.
    detail : str
        What is being done in it, and the best score so far.
    left : float or None
        About the seconds that are left, where that can be told.
    """

    share: float
    what: str
    detail: str = ""
    left: float | None = None


Show = Callable[[Doing], None]
"""Called with a `Doing` as the work goes on."""


class Schedule:
    """Says how far a job of several searches is, and how long each may take of `time_limit`.

    The time counts from `began`, on `time.monotonic`'s clock: now, where that is None.
    """

    def __init__(
        self,
        show: Show | None,
        searches: int,
        time_limit: float | None = None,
        began: float | None = None,
    ) -> None:
        self.began = time.monotonic() if began is None else began
        self._show, self._searches, self._limit = show, searches, time_limit
        self._first = time.monotonic()
        self._finished, self._share = -1, 0.0
        self._what = ""
        self._steps = self._step = 0
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """The seconds since the beginning."""
        return time.monotonic() - self.began

    def begin(self, what: str, steps: int = 1) -> None:
        """Begin the next search, of so many steps."""
        self._finished += 1
        self._what, self._steps, self._step = what, steps, 0
        self.tell(0.0, "", np.nan)

    def again(self) -> None:
        """Let the next search be the one that has begun, in another way."""
        self._finished -= 1

    def step(self, gap: float | None) -> None:
        """Say that a step is done, with the gap that was reached where it is known."""
        with self._lock:
            self._step += 1
            done = self._step
        detail = f"{done} of {self._steps} models" + ("" if gap is None else f", gap {gap:.0e}")
        self.tell(done / max(1, self._steps), detail, np.nan)

    def end(self) -> None:
        """Say that the search is done."""
        self.tell(1.0, "", np.nan)

    def tell(self, part: float, detail: str, score: float) -> None:
        """Say how much of the search is done, what is being done, and the best score so far."""
        if self._show is None:
            return
        with self._lock:  # of several threads none is to turn the bar back
            share = (self._finished + min(1.0, part)) / self._searches
            self._share = share = max(share, self._share)
        gone = time.monotonic() - self._first
        left = gone * (1 - share) / share if share > _EARLY else None
        if np.isfinite(score):
            detail = f"{detail}, error so far {100 * (1 - score):.1f} %"
        self._show(Doing(share, self._what, detail, left))

    @property
    def is_over(self) -> bool:
        """Whether no time is left for another search."""
        return self._limit is not None and self.seconds >= self._limit * (1 - _WRITING)

    def share_of_time(self) -> float | None:
        """The seconds for the search that has begun: an even share of what is left."""
        left = self.time_left()
        return None if left is None else max(1e-3, left / (self._searches - self._finished))

    def time_left(self) -> float | None:
        """The seconds for this search and all others.

        One that has found nothing in its share takes more: a model that is judged by the folds
        that chose it is worth more than none.
        """
        if self._limit is None:
            return None
        return max(1e-3, self._limit * (1 - _WRITING) - self.seconds)
