"""Time and progress of a job of several searches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from anynorm.problem.solution import Progress

Show = Callable[[float, str, float | None], None]
"""``show(share, what, gap)``: the share that is done, what is being done, the last gap."""


class Schedule:
    """Says how far a job of several searches is, and how long each may take of `time_limit`."""

    def __init__(self, show: Show | None, searches: int, time_limit: float | None = None) -> None:
        self.began = time.monotonic()
        self._show, self._searches, self._limit = show, searches, time_limit
        self._finished = -1
        self._steps = self._step = 0
        self._what = ""
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """The seconds since the beginning."""
        return time.monotonic() - self.began

    def begin(self, what: str, steps: int) -> None:
        """Begin the next search, of so many steps."""
        self._finished += 1
        self._what, self._steps, self._step = what, steps, 0
        self._tell(None)

    def step(self, gap: float | None) -> None:
        """Say that a step is done, with the gap that was reached where it is known."""
        with self._lock:
            self._step += 1
        self._tell(gap)

    def report(self, state: Progress) -> None:
        """Pass on what a running solver says."""
        self._tell(state.gap)

    def share_of_time(self) -> float | None:
        """The seconds for the search that has begun: an even share of what is left."""
        if self._limit is None:
            return None
        left = self._limit - self.seconds
        return max(1e-3, left / (self._searches - self._finished))

    def _tell(self, gap: float | None) -> None:
        if self._show is not None:
            inside = min(1.0, self._step / max(1, self._steps))
            self._show((self._finished + inside) / self._searches, self._what, gap)
