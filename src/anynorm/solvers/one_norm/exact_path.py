"""The exact solution path of the 1-norm SVM, from w = 0 to the end.

        minimise_{w, b}   sum_i c_i (1 - y_i (x_i'w + b))_+   subject to   sum_j u_j |w_j| <= s

is piecewise linear in s.  With a penalty lambda instead of the constraint it is a parametric linear
programme, which `pivots` follows from vertex to vertex; here it is set up, kept going, stopped and
made into a record.  The absolute loss (equality constraints) is the same with a_i in [-c_i, c_i].

Columns that are never penalised come first, in a path of their own on which they alone are: its end
is where the path proper begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from anynorm.design.blocks import ranges
from anynorm.design.far_columns import FAR, far_means
from anynorm.design.limits import BLOCK_ENTRIES, ROUNDING, VERIFIED
from anynorm.problem import Problem
from anynorm.problem.path_record import PathRecord, compacted
from anynorm.problem.solution import Progress
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.one_norm.engine import END_SHARE, STRENGTHS, Engine
from anynorm.solvers.one_norm.state import (
    BIAS,
    COEF_END,
    DUAL,
    DUAL_END,
    ENDED,
    FEATURES,
    GAP,
    KNOTS,
    LAMBDA,
    LEAST_PENALTY,
    LEAVING,
    LOSS,
    MORE,
    MOST_FEATURES,
    MOST_KNOTS,
    MOST_S,
    N_COEFS,
    N_DUALS,
    N_KNOTS,
    PENALTY,
    PLACE,
    RADIUS,
    STUCK,
    TRUE_COST,
    VALUE,
    WEIGHT,
    S,
)

_STRAIGHT = 1e-8  # of the slopes: the path turns where they differ by more
_NO_END = 1 << 62  # pivots: a path is limited by other things
_SAME_PENALTY = 1e-11  # relative: lambdas that differ by rounding alone
_STOPPED = {
    MORE: "time_limit",
    ENDED: "end",
    FEATURES: "max_features",
    KNOTS: "max_joints",
    RADIUS: "s_max",
    PENALTY: "penalty_min",
    STUCK: "stuck",
}


class RecordInterrupted(KeyboardInterrupt):
    """Ctrl-C while a path was followed; `record` holds what was done."""

    def __init__(self, record: PathRecord) -> None:
        super().__init__(f"interrupted after {len(record.s)} knots of the path")
        self.record = record


def follow_path(
    problem: Problem,
    *,
    max_features: int | None = None,
    max_joints: int | None = None,
    s_max: float | None = None,
    penalty_min: float = 0.0,
    deadline: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> PathRecord:
    """Follow the path of the 1-norm problem from w = 0.

    Parameters
    ----------
    problem : Problem
        With features X, the 1-norm regulariser and the hinge or the absolute loss; its C is not
        used.
    max_features, max_joints : int, optional
        Stop before more features than that are used, or at that many joints.
    s_max : float, optional
        Stop where the weighted 1-norm of the coefficients is s_max.
    penalty_min : float
        Stop at this lambda, with the duals that belong to it.
    deadline : float, optional
        `time.monotonic()` value at which to stop.
    progress : callable, optional
        Called a few times a second with the values at the last knot.

    Returns
    -------
    PathRecord
        The knots; `stopped` says why it ends where it does.

    Raises
    ------
    RecordInterrupted
        At Ctrl-C, with the record so far.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.one_norm import follow_path
    >>> X, y = np.array([[2.0, 1.0], [-2.0, 0.0]]), np.array([1.0, -1.0])
    >>> record = follow_path(Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X, regulariser="l1"))
    >>> record.s.round(9), record.penalties.round(9), record.losses.round(9), record.stopped
    (array([0. , 0.5]), array([4., 0.]), array([2., 0.]), 'end')
    """
    path = PathInProgress(problem, max_features=max_features, max_joints=max_joints)
    return path.follow(s_max=s_max, penalty_min=penalty_min, deadline=deadline, progress=progress)


class PathInProgress:
    """A path that is followed in parts, each from where the last one ended.

    Parameters are those of `follow_path`.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.one_norm import PathInProgress
    >>> X, y = np.array([[2.0, 1.0], [-2.0, 0.0]]), np.array([1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X, regulariser="l1")
    >>> path = PathInProgress(problem)
    >>> path.follow(s_max=0.2).s.round(9), path.follow().s.round(9)
    (array([0. , 0.2]), array([0. , 0.5]))
    """

    def __init__(
        self, problem: Problem, *, max_features: int | None = None, max_joints: int | None = None
    ) -> None:
        self._problem, self._limits = problem, (max_features, max_joints)
        self._attempts = iter(range(len(STRENGTHS)))
        self._attempt = _Attempt(problem, next(self._attempts), *self._limits)

    def follow(
        self,
        *,
        s_max: float | None = None,
        penalty_min: float = 0.0,
        deadline: float | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> PathRecord:
        """Go on to s_max, to penalty_min or to the deadline; returns the path from w = 0."""
        limits = (np.inf if s_max is None else s_max, penalty_min, deadline, progress)
        best, record = self._attempt, self._attempt.follow(*limits)
        while not best.can_rest(record) and record.stopped != "time_limit":
            number = next(self._attempts, None)
            if number is None:
                break
            other = _Attempt(self._problem, number, *self._limits)
            again = other.follow(*limits)
            if not again.gaps.max() > record.gaps.max():
                best, record = other, again
        self._attempt = best
        return record


class _Attempt:
    """One attempt at the whole path, and its record.

    The first takes the means off far columns alone, so that ties among whole numbers stay ties;
    the others off all: columns that are nearly constant all leave few digits together.
    """

    def __init__(
        self, problem: Problem, attempt: int, max_features: int | None, max_joints: int | None
    ) -> None:
        far = FAR if attempt == 0 else 0.0
        self._means = far_means(problem.design, far) if problem.free_bias else None
        if self._means is not None:
            problem = replace(problem, X=problem.design.dense() - self._means)
        self.engine = Engine(problem, attempt, Budget(_NO_END))
        self.most_knots = np.inf if max_joints is None else max_joints
        limits = self.engine.scalar
        limits[MOST_FEATURES] = problem.n_coefs if max_features is None else max_features
        limits[MOST_KNOTS] = self.most_knots
        self.sound = True
        self._ended = False
        self._open: tuple[int, np.ndarray, float] | None = None

    def follow(
        self,
        s_max: float,
        penalty_min: float,
        deadline: float | None,
        progress: Callable[[Progress], None] | None,
    ) -> PathRecord:
        """The path as far as the limits allow, from where it was left."""
        engine = self.engine
        engine.budget = Budget(_NO_END, deadline)
        engine.scalar[[MOST_S, LEAST_PENALTY]] = s_max, penalty_min
        if engine.record is None:
            engine.start()
            engine.free_columns()
            engine.from_the_top(END_SHARE)
            engine.begin_record()
        else:
            self._reopen()

        def report() -> None:
            if progress is not None and engine.scalar[N_KNOTS] > 1:
                progress(self._progress())

        try:
            code = ENDED if self._ended else self._run(report)
        except KeyboardInterrupt:
            self._close()
            raise RecordInterrupted(self._record("interrupted")) from None
        self._open = self._last_knot()
        self._ended = code == ENDED
        if code in (ENDED, PENALTY):
            engine.finish_record(engine.scalar[LEAST_PENALTY] if code == PENALTY else 0.0)
        elif code in (MORE, STUCK):
            self._close()
        self.sound = code != STUCK
        return self._record(_STOPPED[code])

    def can_rest(self, record: PathRecord) -> bool:
        """Whether no other attempt is called for: gaps are small, or as large as rounding is.

        Rounding in the sums X'(y a), about the means, is a larger and larger part of a lambda that
        falls; whoever follows the path, this is what is left of its last knots.
        """
        lam = np.where(record.penalties > 0, record.penalties, np.roll(record.penalties, 1))
        explained = record.gaps * lam <= ROUNDING * self._largest_pull()
        return self.sound and bool(np.all(explained | (record.gaps <= VERIFIED)))

    def _largest_pull(self) -> float:
        """What duals of full size can pull at most, in units of a column's weight."""
        problem = self.engine.problem
        design, n = problem.design, problem.n_rows
        squares = design.column_norms_squared(np.ones(n))
        if problem.free_bias:
            squares = squares - n * design.rmatvec(np.full(n, 1.0 / n)) ** 2
        weights = self.engine.column[WEIGHT, : problem.n_coefs]
        sizes = np.sqrt(np.maximum(squares, 0.0))[weights > 0] / weights[weights > 0]
        costs = self.engine.row[TRUE_COST]
        return float(sizes.max(initial=0.0)) * float(np.linalg.norm(costs))

    def _last_knot(self) -> tuple[int, np.ndarray, float]:
        """The last knot as it is before it gets the duals of an end."""
        engine = self.engine
        assert engine.record is not None
        k = int(engine.scalar[N_KNOTS]) - 1
        return k, engine.record[0][:, k].copy(), float(engine.scalar[N_DUALS])

    def _reopen(self) -> None:
        """Take back what made the last knot an end."""
        assert self._open is not None
        assert self.engine.record is not None
        k, knot, n_duals = self._open
        self.engine.record[0][:, k], self.engine.scalar[N_DUALS] = knot, n_duals

    def _run(self, report: Callable[[], None]) -> int:
        """Pivot; knots that are no joints do not count for the limit."""
        engine, most = self.engine, self.most_knots
        while True:
            code = engine.run(report)
            missing = most - int(self._record("").joint.sum()) if code == KNOTS else 0
            if missing <= 0:
                return code
            engine.scalar[MOST_KNOTS] += missing

    def _close(self) -> None:
        """Duals for the last knot, where the path was left in the middle."""
        engine = self.engine
        assert engine.record is not None
        if engine.record[0][LEAVING, int(engine.scalar[N_KNOTS]) - 1] == 0.0:
            engine.finish_record(engine.scalar[LAMBDA])

    def _progress(self) -> Progress:
        engine = self.engine
        assert engine.record is not None
        knot = engine.record[0][:, int(engine.scalar[N_KNOTS]) - 2]
        primal = knot[LOSS] + knot[LEAVING] * knot[S]
        return Progress(engine.n_pivots, primal, knot[DUAL], knot[GAP], engine.budget.seconds)

    def _record(self, stopped: str) -> PathRecord:
        engine = self.engine
        assert engine.record is not None
        ends = engine.scalar[[N_KNOTS, N_COEFS, N_DUALS]].astype(int)
        knots, coefs, duals = (
            table[:, :end].copy() for table, end in zip(engine.record, ends, strict=True)
        )
        dual_indptr = np.append(0, knots[DUAL_END]).astype(int)
        dual_indptr[-1] = ends[2]
        record = PathRecord(
            s=knots[S],
            penalties=knots[LEAVING],
            indptr=np.append(0, knots[COEF_END]).astype(int),
            indices=coefs[PLACE].astype(int),
            data=coefs[VALUE],
            intercepts=knots[BIAS],
            losses=knots[LOSS],
            joint=np.ones(ends[0], dtype=bool),
            dual_indptr=dual_indptr,
            dual_rows=duals[PLACE].astype(int),
            dual_values=duals[VALUE],
            gaps=np.maximum(knots[GAP], 0.0),
            stopped=stopped,
            n_pivots=engine.n_pivots,
        )
        record = _merged(record)
        if record.s[-1] > engine.scalar[MOST_S] and len(record.s) > 1:
            record = _cut_last(record, float(engine.scalar[MOST_S]), engine.p)
            record = replace(record, stopped=_STOPPED[RADIUS] if stopped == "end" else stopped)
        record = replace(record, joint=_slope_changes(record))
        return record if self._means is None else record.shifted(self._means)


def _merged(record: PathRecord) -> PathRecord:
    """The record without knots at which lambda does not fall.

    Where events tie, several edges share one lambda; as all their points are solutions for it, so
    are those of the straight line from the first knot to the last.
    """
    kept = np.ones(len(record.s), dtype=bool)
    if (record.penalties[1:] < (1 - _SAME_PENALTY) * record.penalties[:-1]).all():
        return record
    last = 0
    for k in range(1, len(kept)):
        kept[k] = record.penalties[k] < (1 - _SAME_PENALTY) * record.penalties[last]
        last = k if kept[k] else last
    return _chosen(record, kept)


def _chosen(record: PathRecord, kept: np.ndarray) -> PathRecord:
    """The record of some of its knots."""

    def rows(indptr: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        lengths = np.diff(indptr)
        chosen = np.repeat(kept, lengths)
        ends = np.concatenate([[0], np.cumsum(lengths[kept])])
        return ends, *(array[chosen] for array in arrays)

    indptr, indices, data = rows(record.indptr, record.indices, record.data)
    dual_indptr, dual_rows, dual_values = rows(
        record.dual_indptr, record.dual_rows, record.dual_values
    )
    return replace(
        record,
        s=record.s[kept],
        penalties=record.penalties[kept],
        indptr=indptr,
        indices=indices,
        data=data,
        intercepts=record.intercepts[kept],
        losses=record.losses[kept],
        joint=record.joint[kept],
        gaps=record.gaps[kept],
        dual_indptr=dual_indptr,
        dual_rows=dual_rows,
        dual_values=dual_values,
    )


def _cut_last(record: PathRecord, s: float, p: int) -> PathRecord:
    """The record with its last knot moved back, along its segment, to where the norm is s."""
    if s <= record.s[-2]:
        return _chosen(record, np.arange(len(record.s)) < len(record.s) - 1)
    share = (s - record.s[-2]) / (record.s[-1] - record.s[-2])
    coefs = sp.csr_array((record.data, record.indices, record.indptr), shape=(len(record.s), p))
    last = (1 - share) * coefs[[-2]] + share * coefs[[-1]]
    start = record.indptr[-2]

    def between(values: np.ndarray) -> np.ndarray:
        return np.append(values[:-1], (1 - share) * values[-2] + share * values[-1])

    begin = slice(*record.dual_indptr[-3:-1])
    return replace(
        record,
        s=np.append(record.s[:-1], s),
        penalties=np.append(record.penalties[:-1], record.penalties[-2]),
        indptr=np.append(record.indptr[:-1], start + last.nnz),
        indices=np.append(record.indices[:start], last.indices),
        data=np.append(record.data[:start], last.data),
        intercepts=between(record.intercepts),
        losses=between(record.losses),
        dual_indptr=np.append(record.dual_indptr[:-1], 2 * begin.stop - begin.start),
        dual_rows=np.append(record.dual_rows[: begin.stop], record.dual_rows[begin]),
        dual_values=np.append(record.dual_values[: begin.stop], record.dual_values[begin]),
    )


def _slope_changes(record: PathRecord) -> np.ndarray:
    """Where (w, b) turns, and both ends; a path passes straight through the other knots."""
    count = len(record.s)
    joint = np.ones(count, dtype=bool)
    used, places = compacted(record.indices)
    width = len(used) + 1
    for inner in ranges(max(0, count - 2), max(8, BLOCK_ENTRIES // width)):
        # the knots of this block, and one more at each end
        knots = np.zeros((inner.stop - inner.start + 2, width))
        entries = slice(record.indptr[inner.start], record.indptr[inner.stop + 2])
        lengths = np.diff(record.indptr[inner.start : inner.stop + 3])
        knots[np.repeat(np.arange(len(knots)), lengths), places[entries]] = record.data[entries]
        knots[:, -1] = record.intercepts[inner.start : inner.stop + 2]
        slopes = np.diff(knots, axis=0)
        slopes /= np.diff(record.s[inner.start : inner.stop + 2])[:, None]
        turns = np.diff(slopes, axis=0)
        turns = np.abs(turns, out=turns).max(axis=1)
        sizes = np.abs(slopes, out=slopes).max(axis=1)
        joint[1:-1][inner] = turns > _STRAIGHT * np.maximum(sizes[1:], sizes[:-1])
    return joint
