"""What a solve may spend: iterations and time."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager
from typing import Any

from anynorm.design.watch import watched
from anynorm.problem.solution import Status

_MOMENTS = ("deadline", "began", "_last")  # of this machine's clock
_PRODUCTS_PER_SECOND = 1e10  # multiplications inside BLAS, on one core: half of what most do


class OutOfTime(Exception):
    """The deadline passed in the middle of a piece of work that `Budget.watched` covers."""


class Budget:
    """Iterations and a deadline, shared by all methods that one solve tries.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    deadline : float, optional
        `time.monotonic()` value at which to stop.

    Examples
    --------
    >>> from anynorm.solvers.frame.budget import Budget
    >>> budget = Budget(max_iter=3)
    >>> [budget.spend() for _ in range(4)], budget.n_iter, budget.left
    ([True, True, True, False], 3, 0)
    """

    def __init__(self, max_iter: int, deadline: float | None = None) -> None:
        self.max_iter, self.n_iter = max_iter, 0
        self.deadline = math.inf if deadline is None else deadline
        self.began = self._last = time.monotonic()
        self._no_time_left = False

    @property
    def left(self) -> int:
        """The iterations that are left."""
        return max(self.max_iter - self.n_iter, 0)

    @property
    def seconds(self) -> float:
        """The seconds since the solve began."""
        return time.monotonic() - self.began

    def __getstate__(self) -> dict[str, Any]:
        """The same time left on another machine, whose clock began at another moment."""
        now = time.monotonic()
        return vars(self) | {name: getattr(self, name) - now for name in _MOMENTS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        now = time.monotonic()
        vars(self).update(state | {name: state[name] + now for name in _MOMENTS})

    def in_time(self) -> bool:
        """Whether the deadline has not passed."""
        return time.monotonic() < self.deadline

    def later(self, share: float) -> float:
        """The moment at which this share of the time up to the deadline is over."""
        now = time.monotonic()
        return now + share * max(0.0, self.deadline - now)

    def affords(self, products: float) -> bool:
        """Whether so many multiplications inside BLAS are done before the deadline."""
        return time.monotonic() + products / _PRODUCTS_PER_SECOND < self.deadline

    def last_moment(self, products: float) -> float:
        """The moment at which so many multiplications inside BLAS must begin to end in time."""
        return self.deadline - products / _PRODUCTS_PER_SECOND

    def leaves(self, products: float) -> bool:
        """As `affords`, for what a solve has to do at its end: where it is False, that is now."""
        self._no_time_left = not self.affords(products)
        return not self._no_time_left

    def watched(self) -> AbstractContextManager[None]:
        """Have work inside that looks up between its parts end in `OutOfTime` at the deadline."""
        return watched(self._end_in_time)

    def _end_in_time(self) -> None:
        if not self.in_time():
            raise OutOfTime

    def spend(self, steps: int = 1) -> bool:
        """Book iterations before they are made; False where they may not be."""
        if self.n_iter + steps > self.max_iter or not self.in_time():
            return False
        self.n_iter += steps
        return True

    def book(self, steps: int) -> None:
        """Book iterations that were made."""
        self.n_iter += steps

    def goes_on(self) -> bool:
        """Whether there are iterations and time left."""
        return self.n_iter < self.max_iter and self.in_time()

    def allows_another(self) -> bool:
        """Whether a step as long as the last, since this was asked before, would be in time."""
        now = time.monotonic()
        lasted, self._last = now - self._last, now
        self._no_time_left = now + lasted >= self.deadline
        return self.n_iter < self.max_iter and not self._no_time_left

    @property
    def stopped(self) -> Status:
        """The status of a solve that ends now without having reached its tolerance."""
        late = self._no_time_left or not self.in_time()
        return Status.TIME_LIMIT if late else Status.MAX_ITER
