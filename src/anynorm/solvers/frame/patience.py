"""Whether a search still gets anywhere."""

from __future__ import annotations

import math


class Patience:
    """Notices where a value no longer falls.

    Parameters
    ----------
    looks : int
        How often the value may be looked at without progress.
    progress : float
        A value below this times the best one so far is progress.

    Examples
    --------
    >>> from anynorm.solvers.frame.patience import Patience
    >>> patience = Patience(looks=1, progress=0.9)
    >>> [patience.is_over(value) for value in (1.0, 0.95, 0.5, 0.5, 0.5)]
    [False, False, False, False, True]
    """

    def __init__(self, looks: int, progress: float = 1.0) -> None:
        self.looks, self.progress = looks, progress
        self.forget()

    def forget(self) -> None:
        """Count anew."""
        self.best, self.since = math.inf, 0

    def is_over(self, value: float) -> bool:
        """Look at the value; whether it has not fallen for long."""
        if value < self.progress * self.best:
            self.best, self.since = value, 0
        else:
            self.since += 1
        return self.since > self.looks
