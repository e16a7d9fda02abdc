"""Blocks of rows that live apart, and who works on them: the executor of all chunked data.

A chunked X is never in one place.  Its blocks lie on the workers of a cluster (`dask_crew.py`), or
are read one after the other by this process (`OneProcess`).  Either way a method asks the crew,

    crew.ask(task, message)     sum over the parts of task(blocks of the part, message)

where a part is all blocks of one worker: what travels is the message and one sum per worker.  What
belongs to the rows of a block (duals, scores) stays in its `notes`, beside the rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from anynorm.design import Design, Matrix, design_of
from anynorm.design.watch import look


class RowsLost(Exception):
    """A worker is gone, and with it what was kept beside its rows; the rows are there again."""


class Sums(SimpleNamespace):
    """Named terms that are added up name by name.

    Examples
    --------
    >>> from anynorm.design.crew import Sums
    >>> (Sums(loss=1.0, rows=2) + Sums(loss=0.5, rows=1)).loss
    1.5
    """

    def __add__(self, other: Sums) -> Sums:
        one, two = vars(self), vars(other)
        names = {*one, *two}
        return Sums(
            **{n: one[n] + two[n] if n in one and n in two else (one | two)[n] for n in names}
        )


class Block:
    """Rows that lie together, with their labels and weights.

    Parameters
    ----------
    X : matrix, or callable
        The rows, or what reads them anew whenever they are asked for.
    labels : ndarray of shape (n,)
        As the user gave them.
    weights : ndarray of shape (n,) or None
        As the user gave them.
    columns : int
        How many the rows have.
    sparse : bool
        Whether they are stored so.
    number : int
        The place of the block among all.
    """

    def __init__(
        self,
        X: Matrix | Callable[[], Matrix],
        labels: np.ndarray,
        weights: np.ndarray | None,
        *,
        columns: int,
        sparse: bool = False,
        number: int = 0,
    ) -> None:
        self._X, self.labels, self.weights = X, labels, weights
        self.columns, self.sparse, self.number = columns, sparse, number
        self._design: Design | None = None
        self.notes: dict[Any, Any] = {}
        self._stamp: int | None = None

    def read_by(self, read: Callable[[], Matrix]) -> Block:
        """The same block without its rows, which are read anew whenever they are asked for."""
        return Block(
            read,
            self.labels,
            self.weights,
            columns=self.columns,
            sparse=self.sparse,
            number=self.number,
        )

    def stamp(self, before: int | None, now: int) -> None:
        """Forget the notes unless they are of the round `before`; those of `now` come next.

        A cluster may hold several copies of a block, of which one alone was asked in a round.
        """
        if self._stamp != before:
            self.notes.clear()
        self._stamp = now

    @property
    def held(self) -> bool:
        """Whether the rows are in memory."""
        return not callable(self._X)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.labels)

    def design(self) -> Design:
        """The rows as a design: the same one each time where they are held."""
        if not self.held:
            return design_of(self._X()).as_block()
        if self._design is None:
            self._design = design_of(self._X).as_block()
        return self._design

    def __getstate__(self) -> dict[str, Any]:
        """All but the design, which the next process makes anew."""
        return vars(self) | {"_design": None}


Job: TypeAlias = Callable[[Sequence[Block], Any], Sums]
"""What a part is asked: it may change the blocks' notes, and answers with sums."""

Turn: TypeAlias = Callable[[Block, Any], Block]
"""What makes another block of one, with something that all of them are given."""


Begin: TypeAlias = Callable[..., Callable[[], Any]]
"""``begin(job, *more)`` begins a call ``job(given, *more)``, and returns a function without
arguments that waits for the answer."""

Elsewhere: TypeAlias = Callable[[Any], AbstractContextManager[Begin]]
"""Where calls about one thing may be made side by side: ``with elsewhere(given) as begin: ...``.
Calls that have no answer yet when that is left are given up."""


@contextmanager
def called_here(given: Any) -> Iterator[Begin]:
    """Make calls in this thread, none of them before its answer is asked for.

    Examples
    --------
    >>> from anynorm.design.crew import called_here
    >>> with called_here(2) as begin:
    ...     answer = begin(pow, 10)
    ...     answer()
    1024
    """
    yield lambda job, *more: partial(job, given, *more)


class Crew(ABC):
    """Who works on the blocks of one X.

    Attributes
    ----------
    shape : (int, int)
        Of all blocks together.
    sparse : bool
        Whether the blocks are.
    held : bool
        Whether all blocks are known to stay in memory.
    rounds : int
        How many times the parts were asked.
    on_round : callable or None
        Called without arguments after each time; crews of turned blocks have the same.
    """

    def __init__(self) -> None:
        self.shape, self.sparse, self.held, self.rounds = (0, 0), False, False, 0
        self.on_round: Callable[[], None] | None = None

    def describe(self) -> Sums:
        """Look at all blocks once: labels, weights; afterwards the attributes are known."""
        seen = self.ask(_described)
        columns = sorted(seen.columns)
        if len(columns) > 1:
            raise ValueError(
                f"the blocks of X have {columns[0]} and {columns[-1]} columns; give blocks of rows "
                "that all have the same columns."
            )
        self.shape, self.sparse = (seen.n, columns[0]), seen.sparse > 0
        self.held = seen.held == seen.blocks
        return seen

    def ask(self, job: Job, message: Any = None) -> Sums:
        """Return the sum of what `job` answers for every part; `RowsLost` where notes are."""
        self.rounds += 1
        first, *others = self._answers(job, message)
        answer = sum(others, start=first)
        if self.on_round is not None:
            self.on_round()
        if getattr(answer, "lost", 0):
            raise RowsLost
        return answer

    def turned(self, turn: Turn, given: Any, columns: int) -> Crew:
        """Return the crew of what ``turn(block, given)`` makes of each block, where that lies.

        Its blocks are dense and have so many columns.
        """
        crew = self._turned(turn, given)
        crew.shape, crew.on_round = (self.shape[0], columns), self.on_round
        return crew

    @abstractmethod
    def _turned(self, turn: Turn, given: Any) -> Crew:
        """The same, of a shape that it does not know yet."""

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """How many parts work at the same time."""

    @abstractmethod
    def _answers(self, job: Job, message: Any) -> list[Sums]:
        """What each part answers, in their order."""

    def elsewhere(self, given: Any) -> AbstractContextManager[Begin]:
        """Where calls that are about no rows of the blocks are made, to be begun longest first."""
        return called_here(given)

    @abstractmethod
    def close(self) -> None:
        """Let go of the blocks; nothing is asked any more."""

    def room(self) -> float:
        """The memory of a worker in bytes, infinite where no limit is known."""
        return math.inf


class OneProcess(Crew):
    """One process, ours, block after block; what is not held is read again for every question.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.crew import Block, OneProcess, Sums
    >>> crew = OneProcess([Block(np.eye(2), np.zeros(2), None, columns=2) for _ in range(3)])
    >>> crew.ask(lambda blocks, message: Sums(total=sum(b.n * message for b in blocks)), 10).total
    60
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        super().__init__()
        self.blocks = blocks

    @property
    def n_parts(self) -> int:
        return 1

    def close(self) -> None:
        self.blocks = ()

    def _turned(self, turn: Turn, given: Any) -> Crew:
        return OneProcess([turn(block, given) for block in self.blocks])

    def _answers(self, job: Job, message: Any) -> list[Sums]:
        return [job(self.blocks, message)]


def each_block(blocks: Sequence[Block], job: Callable[[Block], Sums], empty: Sums) -> Sums:
    """The sum of what a job answers for every block that has rows; `empty` where none has."""
    total = empty
    for block in blocks:
        if block.n:
            total = total + job(block)
            look()
    return total


def _described(blocks: Sequence[Block], message: Any) -> Sums:
    """How many rows of which labels there are, what they weigh, and how they are stored."""
    counts: Counter[Any] = Counter()
    weights: Counter[Any] = Counter()
    for block in blocks:
        found, places = np.unique(block.labels, return_inverse=True)
        totals = np.bincount(places.ravel(), weights=block.weights, minlength=len(found))
        counts.update(dict.fromkeys(found.tolist(), 1))
        weights.update(dict(zip(found.tolist(), totals.tolist(), strict=True)))
    return Sums(
        n=sum(block.n for block in blocks),
        blocks=len(blocks),
        columns=Counter(block.columns for block in blocks),
        sparse=sum(block.sparse for block in blocks if block.n),
        held=sum(block.held for block in blocks),
        labels=counts,
        weights=weights,
    )
