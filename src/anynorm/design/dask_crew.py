"""The workers of a Dask cluster as a crew.

Blocks are results that the scheduler keeps where they were made, and makes again from their source
where a worker is lost.  A round is one task per worker, over all blocks that lie there.
"""

from __future__ import annotations

import itertools
import math
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from anynorm.design.crew import Begin, Block, Crew, Job, Sums, Turn
from anynorm.design.heap import give_back, kept_heap
from anynorm.design.threads import Threads
from anynorm.design.watch import watched

if TYPE_CHECKING:
    from distributed import Client, Future

_WAIT = 1.0  # seconds between two looks at the workers
_HELD = 0.4  # of a worker's limit that its process may take with the rows that stay in memory
_SPACIOUS = 0.5  # of the limit: below it, memory that is free may stay at hand
_LOOKS = 3  # at the workers, before it is believed that there are none
_TIMEOUT = "60s"  # that a cluster may be without any worker, unless the configuration says more
TIMEOUT_KEY = "anynorm.worker-timeout"
"""The entry of Dask's configuration that says how long that may be."""


class WorkersGone(RuntimeError):
    """A cluster has had no worker for longer than it may; `seconds` says how long that is."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the cluster has had no worker for {seconds:g} s. Start some, or wait longer: "
            f"dask.config.set({{{TIMEOUT_KEY!r}: '10 min'}})."
        )
        self.seconds = seconds


class NotWanted(Exception):
    """Nobody waits for the answer to a call any more."""


class Part(NamedTuple):
    """The blocks of one worker."""

    address: str
    blocks: list[Future]


class DaskCrew(Crew):
    """All workers that hold blocks.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    blocks : list of Future
        Each of a `Block`.
    """

    def __init__(self, client: Client, blocks: list[Future]) -> None:
        super().__init__()
        self.client, self._blocks = client, blocks
        try:
            self._parts = self._plan()
        except BaseException:  # Ctrl-C: whoever looks at the error must not hold the blocks
            self.close()
            raise
        self._stamp: int | None = None  # of the last round that has ended
        self._stamps = itertools.count()
        # Kept until the next round is sent: a client sends one message in 10 ms, and letting go of
        # futures is one.  So it goes with the next question, and does not hold that up.
        self._asked: list[Future] = []

    @classmethod
    def computing(cls, client: Client, blocks: list[Any]) -> Self:
        """Have workers that know this package compute delayed blocks."""
        check_installed(client)
        return cls(client, client.compute(blocks))

    @property
    def n_parts(self) -> int:
        return len(self._parts)

    def room(self) -> float:
        workers = workers_of(self.client).values()
        limits = [worker["memory_limit"] for worker in workers if worker["memory_limit"]]
        return float(min(limits, default=super().room()))

    def close(self) -> None:
        self._asked = []
        for block in self._blocks:
            block.release()

    @contextmanager
    def elsewhere(self, given: Any) -> Iterator[Begin]:
        # A copy for each worker: one that is busy with a call hands nothing on for seconds.
        first, *others = [part.address for part in self._parts]
        homes = itertools.chain([first], itertools.cycle(others or [first]))
        copies: dict[str, Future] = {}
        tasks: list[Future] = []

        def begin(job: Callable[..., Any], *more: Any) -> Callable[[], Any]:
            home = next(homes)
            if home not in copies:
                copies[home] = self._on(home, _itself, given)
            tasks.append(task := self._on(home, _called, job, copies[home], more))

            def answer() -> Any:
                wait_for(self.client, [task])
                return task.result()

            return answer

        try:
            yield begin
        finally:  # also after Ctrl-C: whoever looks at the error must not hold the workers
            self.client.cancel([*tasks, *copies.values()])

    def _on(self, address: str, function: Callable[..., Any], *given: Any) -> Future:
        """A task for the worker of this address, or for another one where that is lost."""
        return self.client.submit(
            function, *given, pure=False,
            workers=[address] if address else None, allow_other_workers=bool(address),
        )  # fmt: skip

    def _turned(self, turn: Turn, given: Any) -> Crew:
        # Sent once, and as the result of a task, which can be computed again.
        shared = self.client.submit(_itself, given, pure=False)
        return DaskCrew(
            self.client,
            [
                self._on(part.address, turn, block, shared)
                for part in self._parts
                for block in part.blocks
            ],
        )

    def _plan(self) -> list[Part]:
        """Wait for all blocks, and see where they are."""
        wait_for(self.client, self._blocks)
        for block in self._blocks:
            if block.status == "error":
                block.result()  # raises what went wrong there
        homes, parts = self.client.who_has(self._blocks), defaultdict(list)
        for block in self._blocks:
            places = homes.get(block.key, ())
            parts[min(places) if places else ""].append(block)
        return [Part(address, blocks) for address, blocks in sorted(parts.items())]

    def _sent(self, job: Job, message: Any, stamp: int) -> list[Future]:
        """A task for every part, in one graph: one each costs the scheduler a third more."""
        import dask

        keys = [f"{job.__name__}-{uuid.uuid4().hex}" for _ in self._parts]
        homes = {
            key: [part.address] if part.address else []
            for key, part in zip(keys, self._parts, strict=True)
        }
        given: list[list[Any]] = [[x] * len(keys) for x in (job, message, self._stamp, stamp)]
        with dask.annotate(workers=homes.__getitem__, allow_other_workers=True):
            return self.client.map(
                _work, [part.blocks for part in self._parts], *given, key=keys, pure=False
            )

    def _answers(self, job: Job, message: Any) -> list[Sums]:
        from distributed import KilledWorker

        while True:
            stamp = next(self._stamps)
            tasks = self._asked = self._sent(job, message, stamp)
            try:
                wait_for(self.client, tasks)
                answers = self.client.gather(tasks, direct=_reachable(self.client))
            except KilledWorker:
                self._parts = self._plan()
                continue
            except BaseException:  # Ctrl-C: the workers are for others now
                self.client.cancel(tasks)
                raise
            self._stamp = stamp
            if any(a.where != p.address for a, p in zip(answers, self._parts, strict=True)):
                self._parts = self._plan()
            return [answer.sums for answer in answers]


def _reachable(client: Client) -> bool | None:
    """Whether workers answer us without the scheduler in between, None where Dask is to choose.

    A p x p matrix of each of 16 workers costs the driver three times as much otherwise.  Where
    workers are elsewhere, only the user knows whether they can be reached from here.
    """
    from distributed import LocalCluster

    return True if isinstance(client.cluster, LocalCluster) else None


def worker_timeout() -> float:
    """The seconds that a cluster may be without any worker."""
    import dask

    return float(dask.utils.parse_timedelta(dask.config.get(TIMEOUT_KEY, _TIMEOUT)))


def wait_for(client: Client, futures: Sequence[Future]) -> None:
    """Wait for all of them, but no longer than the time-out while there is no worker."""
    from distributed import wait

    allowed, seen = worker_timeout(), time.monotonic()
    while True:
        try:
            wait(futures, timeout=_WAIT)
            return
        except TimeoutError:
            now = time.monotonic()
            if workers_of(client):
                seen = now
            if now - seen > allowed:
                raise WorkersGone(allowed) from None


def _itself(given: Any) -> Any:
    return given


class _Said(NamedTuple):
    """An answer, and the worker it comes from."""

    where: str
    sums: Sums


def _work(blocks: list[Block], job: Job, message: Any, before: int | None, now: int) -> _Said:
    """One part of a round, on a worker."""
    from distributed import get_worker

    for block in blocks:
        block.stamp(before, now)
    with _at_work():
        return _Said(get_worker().address, job(blocks, message))


@contextmanager
def _at_work() -> Iterator[None]:
    """The threads of this worker, and freed memory at hand while there is enough of it."""
    from distributed import get_worker

    spacious = memory_taken() <= _SPACIOUS
    with Threads(get_worker().state.nthreads), kept_heap() if spacious else nullcontext():
        yield
    if not spacious:
        give_back()


def _called(job: Callable[..., Any], given: Any, more: tuple[Any, ...]) -> Any:
    """A call on a worker, which ends early where nobody waits for it any more."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state != "executing":
            raise NotWanted(key)

    with _at_work(), watched(wanted):
        return job(given, *more)


def memory_taken() -> float:
    """The share of its limit that the process of this worker takes, 0 where there is none."""
    import psutil
    from distributed import get_worker

    limit = get_worker().memory_manager.memory_limit
    return psutil.Process().memory_info().rss / limit if limit else 0.0


def rows_may_stay() -> bool:
    """Whether rows that this worker has just read may stay in its memory."""
    return memory_taken() <= _HELD


def workers_of(client: Client) -> dict[str, Any]:
    """What the scheduler knows of the workers, by their addresses.

    From time to time a client asks it for everything but the workers, and if that is just now, its
    answer takes the place of ours: so where there are none, it is asked again.
    """
    for _ in range(_LOOKS):
        workers: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
        if workers:
            break
    return workers


def memory_left_of(client: Client) -> list[float]:
    """The bytes that each worker's rows may take, infinite where it has no limit."""
    workers = workers_of(client).values()
    return [
        max(0.0, float(worker["memory_limit"]) - float(worker["metrics"]["memory"]))
        if worker["memory_limit"]
        else math.inf
        for worker in workers
    ]


def check_installed(client: Client) -> None:
    """Raise where a worker cannot import this package."""
    said = client.run(eval, "__import__('importlib.util').util.find_spec('anynorm') is not None")
    missing = sorted(address for address, found in said.items() if not found)
    if missing:
        raise ModuleNotFoundError(
            f"anynorm is not installed on {len(missing)} of the cluster's {len(said)} workers, "
            f"e.g. {missing[0]}. Install it there: pip install 'anynorm[dask]'."
        )
