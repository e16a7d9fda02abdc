"""Parts of a search on the workers of a Dask cluster, where joblib has been told to use one.

Each part is a task with one thread; what all parts have in common is sent once to a worker.  The
results are those of the same parts on this machine: threads do not show in them either.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from anynorm.design.threads import Threads
from anynorm.estimators._messages import warn

Shared = TypeVar("Shared")
Given = TypeVar("Given")
Found = TypeVar("Found")

_LARGE = 1 << 30  # bytes: joblib keeps what is large with the workers, and sends the rest each time


class Moment(NamedTuple):
    """A time on a clock that machines have in common; None: never."""

    clock: float | None

    @classmethod
    def of(cls, here: float | None) -> Moment:
        """From this machine's `time.monotonic`."""
        return cls(None if here is None else time.time() + here - time.monotonic())

    @property
    def here(self) -> float | None:
        """The same on `time.monotonic` of the machine that asks."""
        return None if self.clock is None else time.monotonic() + self.clock - time.time()


def spread(
    function: Callable[[Shared, Given], Found], shared: Shared, given: Sequence[Given]
) -> list[Found]:
    """Return ``[function(shared, each) for each in given]``, made by the workers of a cluster.

    The function must not change what is shared: tasks of one worker have the same.  What they warn
    of is warned of here.
    """
    from joblib import Parallel, delayed

    sent = _SentOnce(shared)
    parts = Parallel(batch_size=1, pre_dispatch="all")(
        delayed(_done)(function, sent, each) for each in given
    )
    found = []
    for result, said in parts:
        found.append(result)
        for message, category in said:
            warn(message, category)
    return found


class _SentOnce:
    """Something that joblib takes for large."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __sizeof__(self) -> int:
        return _LARGE


def _done(
    function: Callable[[Any, Any], Found], shared: _SentOnce, given: Any
) -> tuple[Found, list[tuple[str, type[Warning]]]]:
    """A part, and what it warned of."""
    with warnings.catch_warnings(record=True) as said, Threads(None):
        warnings.simplefilter("always")
        found = function(shared.value, given)
    return found, [(str(each.message), each.category) for each in said]
