"""The exact path of the Lasso with a bound on the 1-norm.

        minimise_x   ||A x - b||^2   subject to   ||x||_1 <= r,      for all r from 0 to the end

The solutions are piecewise linear in r.  `segments.py` goes from joint to joint among the
columns whose products with the residual are largest.  After a number of joints, one product of all
columns with all their residuals shows which joints hold: up to the first one at which a column
outside has a larger product than lambda.  From the joint before it the way goes on with that
column, so that nothing is recorded that is not optimal among all columns.  The same product gives
the certificates, one for each joint, and removes the rounding that has come together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design.limits import FLOOR, VERIFIED
from anynorm.design.views import CentredDesign
from anynorm.problem import LassoProblem
from anynorm.problem.certificate import Certificate, certificate_of
from anynorm.problem.solution import Progress, Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.lasso.segments import Event, Rounding, Segments
from anynorm.solvers.lasso.working_columns import WorkingColumns

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_TOO_MUCH = 1e-3  # the largest gap of a joint: rounding has ended the path where none is smaller
_TIES = (1e-11, 1e-9, 1e-7)  # of lambda: products that near count as equal, one after the other
_FEW = 1000  # columns that are all at work from the start
_JOIN = 200  # columns that join the work at once, or half as many as are in use
_NEAR, _FAR = 0.6, 0.5  # of lambda: which columns join and which leave the work
_MOST = 64  # joints between two looks at all columns
_ENTRIES = 1 << 22  # of the products of one look
_STOPPED = {Event.END: "end", Event.RADIUS: "radius_max"}
_APART = 1e-13  # of the radius: nearer joints are one
_IDLE = 20  # segments of no length that show a tie which is not one


@dataclass(frozen=True)
class LassoRecord:
    """The joints of a path.

    Attributes
    ----------
    radii : ndarray of shape (k,)
        The 1-norms, strictly rising from 0.
    penalties : ndarray of shape (k,)
        Lambda at the joints, the largest product of a column with the residual; it falls, straight
        between two joints, to 0 at the end.
    coefs : CSR array of shape (k, p)
        The coefficients.
    certificates : tuple of Certificate
        Their sums of squares, with what these are certified for.
    stopped : str
        "end", "max_features", "max_joints", "radius_max", "time_limit", or "stuck" where rounding
        left no way on.
    """

    radii: Array
    penalties: Array
    coefs: sp.csr_array
    certificates: tuple[Certificate, ...]
    stopped: str


class _Joint(NamedTuple):
    """A place of the path: lambda, the columns in use and their coefficients."""

    penalty: float
    columns: Index
    x: Array
    event: Event


def follow_lasso(
    design: CentredDesign,
    b: Array,
    *,
    max_features: int | None = None,
    max_joints: int | None = None,
    radius_max: float | None = None,
    deadline: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> LassoRecord:
    """Follow the path of the Lasso from x = 0.

    Parameters
    ----------
    design, b : CentredDesign, ndarray
        The columns, and what they are to come near to.
    max_features, max_joints, radius_max : optional
        Stop before more columns than that are in use, at that many joints, or at that radius.
    deadline : float, optional
        `time.monotonic()` value at which to stop.
    progress : callable, optional
        Called after every look at all columns with the values at the last joint.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design import design_of
    >>> from anynorm.solvers.lasso.homotopy import follow_lasso
    >>> design = design_of(np.diag([2.0, 1.0])).centred(None, False)
    >>> record = follow_lasso(design, np.array([2.0, 3.0]))
    >>> record.radii.round(9), record.penalties.round(9), record.stopped
    (array([0.  , 0.25, 4.  ]), array([4., 3., 0.]), 'end')
    """
    most = 1 << 62 if max_joints is None else int(max_joints)
    homotopy = _Homotopy(design, b, Budget(most, deadline))
    homotopy.max_features = design.shape[1] if max_features is None else int(max_features)
    homotopy.radius_max = math.inf if radius_max is None else float(radius_max)
    return homotopy.follow(progress)


class _Homotopy:
    """The path as far as it is verified, and the columns at work."""

    max_features: int
    radius_max: float

    def __init__(self, design: CentredDesign, b: Array, budget: Budget) -> None:
        self.design, self.b, self.budget = design, b, budget
        self.zero_primal = float(b @ b)
        norms = np.sqrt(design.column_norms_squared(before=True))
        self.rounding = Rounding(norms, math.sqrt(self.zero_primal))
        self.shortest = norms * design.cancellation
        self.pull = design.rmatvec(b)
        penalty = float(np.abs(self.pull).max(initial=0.0))
        nothing = np.empty(0, dtype=np.intp)
        self.joints = [_Joint(penalty, nothing, np.empty(0), Event.JOINT)]
        self.certificates = [self._certificate(0.0, b, penalty)]
        self.work = WorkingColumns(design)
        self.level, self.count = 0, 4
        self.most = max(1, min(_MOST, _ENTRIES // design.shape[1]))

    def follow(self, progress: Callable[[Progress], None] | None) -> LassoRecord:
        """The record of the path."""
        self._grow(np.empty(0, dtype=np.intp))
        stopped = self._stopped()
        while not stopped:
            joints, stopped = self._ahead()
            if joints and self._verify(joints) < len(joints):
                stopped = ""
            elif not joints and not stopped:
                self.level += 1
            if progress is not None:
                last = self.certificates[-1]
                place, seconds = len(self.joints) - 1, self.budget.seconds
                progress(Progress(place, last.primal, last.dual, last.gap, seconds))
            stopped = stopped or self._stopped()
        return self._record(stopped)

    def _stopped(self) -> str:
        """Why the path ends at the last joint, if it does."""
        last = self.joints[-1]
        if last.event is not Event.JOINT:
            return _STOPPED[last.event]
        if last.penalty <= self.rounding.least(last.columns, last.x):
            return _STOPPED[Event.END]
        if len(self.joints) >= self.budget.max_iter:
            return "max_joints"
        if self.level >= len(_TIES):
            return "stuck"
        return "" if self.budget.in_time() else "time_limit"

    def _ahead(self) -> tuple[list[_Joint], str]:
        """The next joints, as far as the columns at work know, and why there are no more."""
        last, index = self.joints[-1], self.work.index
        segments = Segments(self.work, self.rounding, self.shortest, _TIES[self.level])
        x = np.zeros(self.design.shape[1])
        x[last.columns] = last.x
        segments.begin(x[index], self.pull[index], last.penalty)
        joints: list[_Joint] = []
        idle, radius = 0, float(np.abs(last.x).sum())
        while len(joints) < min(self.count, self.budget.max_iter - len(self.joints)):
            segments.turn()
            if len(segments.S) > self.max_features:
                return joints, "max_features"
            if not len(segments.S) and not segments.tied.any():
                return joints, _STOPPED[Event.END]  # only constant columns, centred, are left
            if not len(segments.S) or idle > _IDLE:
                break
            event = segments.step(self.radius_max)
            idle += 1
            if float(np.abs(segments.x).sum()) > radius * (1 + _APART):
                used = np.flatnonzero(segments.x)
                joints.append(_Joint(segments.penalty, index[used], segments.x[used], event))
                idle, radius = 0, float(np.abs(segments.x).sum())
            elif event is not Event.JOINT:
                return joints, _STOPPED[event]
            if event is not Event.JOINT or not self.budget.in_time():
                break
        return joints, ""

    def _verify(self, joints: list[_Joint]) -> int:
        """Record the joints that hold, up to the first that does not; returns how many."""
        index = self.work.index
        X = np.zeros((self.design.shape[1], len(joints)))
        for k, joint in enumerate(joints):
            X[joint.columns, k] = joint.x
        residuals = self.b[:, None] - self.work.block.matvec(X[index])
        pulls = self.design.rmatvec(residuals)
        pulls[index] = self.work.block.rmatvec(residuals)
        outside = ~self.work.member
        sizes = np.abs(pulls)
        tops = sizes.max(axis=0)
        for k, joint in enumerate(joints):
            limit = joint.penalty * (1 + _TIES[0]) + self.rounding.noise(joint.columns, joint.x)
            above = np.flatnonzero(outside & (sizes[:, k] > limit))
            above = above[np.argsort(-sizes[above, k])[: self._room()]]
            radius = float(np.abs(joint.x).sum())
            certificate = self._certificate(radius, residuals[:, k], float(tops[k]))
            if len(above) or certificate.gap_at_scale > self._allowed(
                joint, radius, certificate.primal
            ):
                return self._partly(k, above)
            self.joints.append(joint)
            self.certificates.append(certificate)
            self.pull = pulls[:, k]
        self.count, self.level = min(2 * self.count, self.most), 0
        self._grow(np.empty(0, dtype=np.intp))
        return len(joints)

    def _allowed(self, joint: _Joint, radius: float, primal: float) -> float:
        """The gap that a joint may have: what rounding of the products explains, at least."""
        noise = self.rounding.noise(joint.columns, joint.x)[joint.columns]
        uncertain = 8 * radius * float(noise.max(initial=0.0))
        return min(_TOO_MUCH, max(VERIFIED, uncertain / max(primal, FLOOR * self.zero_primal)))

    def _partly(self, verified: int, above: Index) -> int:
        """Make the best of joints of which the first `verified` hold."""
        if not len(above) and not verified and self.count == 1:
            self.level += 1
        self.count = max(1, verified, self.count // 2)
        self._grow(above)
        return verified

    def _certificate(self, radius: float, residual: Array, top: float) -> Certificate:
        values = LassoProblem(self.design, self.b, radius).values_of(residual, residual, top)
        return certificate_of(values, VERIFIED, stopped=Status.UNCERTIFIED)

    def _grow(self, above: Index) -> None:
        """Let the columns join the work that are above lambda, and those that come near."""
        size, last = np.abs(self.pull), self.joints[-1]
        n_used, index = len(last.columns), self.work.index
        if len(index) > max(_FEW, 4 * (n_used + 2 * _JOIN)):
            used = np.isin(index, np.concatenate([last.columns, above]))
            self.work.keep(np.flatnonzero(used | (size[index] >= _FAR * last.penalty)))
        size[self.work.member] = 0.0
        if len(size) <= _FEW:
            fresh = np.flatnonzero(~self.work.member)
        else:
            room = self._room()
            fresh = np.argpartition(size, len(size) - room)[len(size) - room :]
            fresh = np.union1d(fresh[size[fresh] > _NEAR * last.penalty], above)
        if len(fresh):
            self.work.extend(fresh)

    def _room(self) -> int:
        """How many columns may join the work at once."""
        return max(_JOIN, len(self.joints[-1].columns) // 2)

    def _record(self, stopped: str) -> LassoRecord:
        indptr = np.concatenate([[0], np.cumsum([len(joint.x) for joint in self.joints])])
        indices = np.concatenate([joint.columns for joint in self.joints])
        data = np.concatenate([joint.x for joint in self.joints])
        shape = (len(self.joints), self.design.shape[1])
        coefs = sp.csr_array((data, indices, indptr), shape=shape)
        coefs.sort_indices()
        return LassoRecord(
            np.array([float(np.abs(joint.x).sum()) for joint in self.joints]),
            np.array([joint.penalty for joint in self.joints]),
            coefs,
            tuple(self.certificates),
            stopped,
        )
