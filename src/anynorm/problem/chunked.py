"""The problem over rows that live apart: its values are sums over blocks of rows.

        minimise_{w, b}   R(w) + sum_i g_i(1 - y_i (x_i'w + b))

(`svm.py`) with R = 1/2 sum_j (w_j / v_j)^2 or sum_j u_j |w_j|, and a loss that is a sum over the
rows.  The dual variables stay beside their rows.  What their repair needs of them are sums: the two
signs of beta = y * a are pulled back apart, so that the heavier one can be scaled down afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Literal, NamedTuple

import numpy as np

from anynorm.design import Design
from anynorm.design.crew import Block, Crew, Sums, each_block
from anynorm.losses import Loss
from anynorm.norms.dual_sets import Box, CurvedBox
from anynorm.problem.certificate import Values
from anynorm.problem.svm import rounding_of_scores

_NUMBERS = count()


@dataclass(frozen=True, eq=False)
class RowTerms:
    """What a worker has to know of a problem to speak for its rows.

    Attributes
    ----------
    classes : ndarray
        All labels that have weight.
    positive : int
        The place in `classes` of the one that is +1.
    class_weights : ndarray or None
        The factors of the rows' weights, by class.
    C, loss : float, Loss
        As in `Problem`.
    stride : int
        1, or only every so-many-th row takes part, weighing that much more.
    number : int
        Another one for every problem of a process: what was kept for others is dropped.
    """

    classes: np.ndarray
    positive: int
    class_weights: np.ndarray | None
    C: float
    loss: Loss
    stride: int = 1
    number: int = field(default_factory=lambda: next(_NUMBERS))

    def of(self, block: Block) -> BlockRows:
        """The rows of a block as this problem sees them, with what was kept beside them.

        A sample is over once all rows are asked: its features are a 16th of all that there are.
        """
        asked = self.number, self.stride
        if asked not in block.notes:
            block.notes.clear()
            block.notes[asked] = BlockRows(block, self)
        rows = block.notes[asked]
        assert isinstance(rows, BlockRows)
        return rows


class Awake(NamedTuple):
    """The rows that coordinate descent still visits, and the gradients at which they drop out."""

    active: np.ndarray
    thresholds: tuple[float, float]


class BlockRows:
    """Some rows, their signs and weights, and what a solve keeps beside them.

    Attributes
    ----------
    y, weights : ndarray of shape (n,)
        Signs, and the weights of rows and classes.
    dual : ndarray of shape (n,)
        The dual variables, zero at first.
    scores, along : ndarray of shape (n,)
        X w at the present w, and X d of the last direction.
    centre, curved : ndarray of shape (n,), (ndarray, ndarray), or None
        What Newton's method keeps: the centre of the smoothing, and which rows have curvature,
        with how much.
    norms : ndarray of shape (n,) or None
        The squared norms of the scaled rows, for coordinate descent.
    awake : Awake or None
        What coordinate descent has left of them, None before it began.
    fresh : bool
        True until something was kept here.
    """

    def __init__(self, block: Block, terms: RowTerms) -> None:
        labels, step = block.labels[:: terms.stride], terms.stride
        self.terms, self._block = terms, block
        self.y = np.where(labels == terms.classes[terms.positive], 1.0, -1.0)
        weights = np.ones(len(labels)) if block.weights is None else block.weights[::step]
        if terms.class_weights is not None:
            # Classes without weight are not among those of the problem.
            place = np.minimum(np.searchsorted(terms.classes, labels), len(terms.classes) - 1)
            known = terms.classes[place] == labels
            weights = weights * np.where(known, terms.class_weights[place], 0.0)
        self.weights = float(step) * weights
        self.dual = np.zeros(len(labels))
        self.scores = self.along = np.zeros(len(labels))
        self.centre: np.ndarray | None = None
        self.curved: tuple[np.ndarray, np.ndarray] | None = None
        self.norms: np.ndarray | None = None
        self.awake: Awake | None = None
        self.fresh = True
        self._part: tuple[np.ndarray, Design] | None = None
        self._sample: Design | None = None
        if step > 1:
            whole = block.design()
            self._sample = whole.take_rows(np.arange(0, whole.n, step))

    def design(self) -> Design:
        """The features of the rows."""
        return self._block.design() if self._sample is None else self._sample

    def some_columns(self, design: Design, columns: np.ndarray | None) -> Design:
        """Some columns of `design()`, kept while the same ones are asked for."""
        if columns is None:
            return design
        if not self._block.held:
            return design.take_columns(columns)
        if self._part is None or not np.array_equal(self._part[0], columns):
            self._part = columns, design.take_columns(columns)
        return self._part[1]

    @cached_property
    def bounds(self) -> Box | CurvedBox:
        """Where the dual variables may be."""
        found = self.terms.loss.dual_set(self.terms.C, self.weights)
        assert isinstance(found, Box | CurvedBox)  # the estimator has asked for nothing else
        return found

    @cached_property
    def _weigh(self) -> bool:
        """Whether any row has weight, as losses want it."""
        return bool(self.weights.any())

    def cost(self, residual: np.ndarray) -> float:
        """The loss of some residuals of the rows."""
        loss, C = self.terms.loss, self.terms.C
        return loss.value(residual, C, self.weights) if self._weigh else 0.0

    def allowed_dual(self) -> np.ndarray:
        """The dual variables, those that are not allowed repaired."""
        loss, C = self.terms.loss, self.terms.C
        return loss.clip_dual(self.dual, C, self.weights) if self._weigh else np.zeros(len(self))

    def gain(self, a: np.ndarray) -> float:
        """The part of the dual objective that is the loss's."""
        loss, C = self.terms.loss, self.terms.C
        return loss.dual_gain(a, C, self.weights) if self._weigh else 0.0

    def reported(self) -> int:
        """1 where the rows are fresh; from now on it is known that their duals are 0."""
        fresh, self.fresh = self.fresh, False
        return int(fresh)

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class ChunkedProblem:
    """A binary problem whose rows are with a crew.

    Attributes
    ----------
    crew : Crew
        Has the blocks.
    terms : RowTerms
        What the rows cost.
    intercept : "free", None or float
        As in `Problem`.
    feature_scale : ndarray of shape (p,), optional
        v; v_j = 0 forces w_j = 0 ("l2" only).
    regulariser : {"l2", "l1"}
        As in `Problem`.
    penalty_weights : ndarray of shape (p,), optional
        u, above 0; infinity leaves a column out ("l1" only).
    """

    crew: Crew
    terms: RowTerms
    intercept: Literal["free"] | float | None = "free"
    feature_scale: np.ndarray | None = None
    regulariser: Literal["l2", "l1"] = "l2"
    penalty_weights: np.ndarray | None = None

    @property
    def n_coefs(self) -> int:
        """The number of features."""
        return self.crew.shape[1]

    @property
    def precision(self) -> float:
        """The price of the squared bias: 0 where it is free, infinite where there is none."""
        if self.intercept is None:
            return np.inf
        return 0.0 if isinstance(self.intercept, str) else float(self.intercept) ** -2

    @property
    def bias_feature(self) -> float:
        """The value of the constant feature of a regularised bias, 0 where there is none."""
        return 0.0 if self.intercept in ("free", None) else float(self.intercept)

    def bias_slopes(self, biases: np.ndarray) -> np.ndarray:
        """Return the slopes of the regulariser at some biases; not where there is no bias."""
        if self.regulariser == "l1":
            return np.sign(biases) / self.bias_feature if self.bias_feature else 0.0 * biases
        return self.precision * biases

    def penalties(self) -> np.ndarray:
        """Return u, ones where there is none."""
        return np.ones(self.n_coefs) if self.penalty_weights is None else self.penalty_weights

    def one_norm(self, coef: np.ndarray, intercept: float) -> float:
        """Return sum u_j |w_j|, with the part of a regularised bias."""
        used = np.flatnonzero(coef)
        bias = abs(intercept) / self.bias_feature if self.bias_feature else 0.0
        return float(np.abs(coef[used]) @ self.penalties()[used]) + bias

    def pressure(self, pull: np.ndarray, balance: float) -> float:
        """Return the largest ``|X_j'beta| / u_j``, at most 1 where the duals are allowed ("l1")."""
        sizes = np.abs(pull) / self.penalties()
        return max(float(sizes.max(initial=0.0)), abs(self.bias_feature * balance))

    def scale(self) -> np.ndarray:
        """Return v, ones where there is none."""
        return np.ones(self.n_coefs) if self.feature_scale is None else self.feature_scale

    def scaled_coef(self, coef: np.ndarray) -> np.ndarray:
        """Return u = w/v, 0 where v is."""
        v = self.scale()
        return np.divide(coef, v, out=np.zeros_like(coef), where=v > 0)

    def regularisation(self, coef: np.ndarray, intercept: float) -> float:
        """Return 1/2 sum (w_j/v_j)^2, with the part of a regularised bias."""
        u = self.scaled_coef(coef)
        bias = 0.5 * self.precision * intercept * intercept if 0 < self.precision < np.inf else 0.0
        return 0.5 * float(u @ u) + bias

    def values(self, coef: np.ndarray, intercept: float) -> Values:
        """Return primal and dual value at (coef, intercept) and at the duals beside the rows.

        The scores are computed anew; the dual variables are repaired as `repair.py` does.
        """
        if self.regulariser == "l1":
            return self.one_norm_values(coef, intercept)[0]
        seen = self.crew.ask(_both_sides, (self.terms, coef, intercept))
        up, down = _balanced(seen.up, seen.down) if self.precision == 0.0 else (1.0, 1.0)
        pulled = self.scale() * (up * seen.pulled_up + down * seen.pulled_down)
        curvature = float(pulled @ pulled)
        if 0 < self.precision < np.inf:
            curvature += (up * seen.up - down * seen.down) ** 2 / self.precision
        gain = self._gain(seen, up, down)
        primal = self.regularisation(coef, intercept) + seen.loss
        return Values(primal, max(0.0, gain - 0.5 * curvature), seen.zero, True, seen.rounding)

    def one_norm_values(self, coef: np.ndarray, intercept: float) -> tuple[Values, np.ndarray]:
        """Return the values of the 1-norm problem there, and X'(y a) of the duals.

        For the dual value they are scaled to be allowed in the 1-norm problem.
        """
        seen = self.crew.ask(_both_sides, (self.terms, coef, intercept))
        up, down = _balanced(seen.up, seen.down) if self.precision == 0.0 else (1.0, 1.0)
        pull = up * seen.pulled_up + down * seen.pulled_down
        pressure = self.pressure(pull, up * seen.up - down * seen.down)
        scale = min(1.0, 1.0 / pressure) if pressure > 0 else 1.0
        gain = self._gain(seen, scale * up, scale * down)
        primal = self.one_norm(coef, intercept) + seen.loss
        return Values(primal, max(0.0, gain), seen.zero, True, seen.rounding), pull

    def _gain(self, seen: Sums, up: float, down: float) -> float:
        """The loss's part of the dual objective, the signs of beta scaled."""
        if "linear" in vars(seen):
            sizes = np.array([up, down])
            return float(seen.linear @ sizes - 0.5 * (seen.quadratic @ sizes**2))
        return float(self.crew.ask(_gain, (self.terms, up, down)).gain)


def _balanced(up: float, down: float) -> tuple[float, float]:
    """The factors of the two signs of beta that make their sum zero."""
    if up > down:
        return down / up, 1.0
    return 1.0, up / down if down > 0 else 1.0


def _both_sides(blocks: Sequence[Block], message: tuple[RowTerms, np.ndarray, float]) -> Sums:
    """The loss at (coef, intercept), and the duals pulled back, each sign of beta apart."""
    terms, coef, intercept = message

    def one(block: Block) -> Sums:
        rows = terms.of(block)
        design, y = rows.design(), rows.y
        scores = design.matvec(coef) if np.any(coef) else np.zeros(len(y))
        residual = 1.0 - y * (scores + intercept)
        a = rows.allowed_dual()
        beta = y * a
        sides = np.column_stack([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
        pulled = design.rmatvec(sides)
        errors = rounding_of_scores(np.abs(scores), intercept)
        slopes = rows.bounds.slopes(a, np.abs(residual) <= errors)
        gains = {}
        if isinstance(rows.bounds, Box):  # the gain of scaled sides follows from theirs
            gains = {"linear": y @ sides, "quadratic": rows.bounds.shift @ sides**2}
        return Sums(
            **gains,
            lost=rows.reported(),
            loss=rows.cost(residual),
            zero=rows.cost(np.ones(len(y))),
            rounding=float(slopes @ errors),
            up=float(sides[:, 0].sum()),
            down=-float(sides[:, 1].sum()),
            pulled_up=pulled[:, 0],
            pulled_down=pulled[:, 1],
        )

    return each_block(blocks, one, Sums(lost=0))


def _gain(blocks: Sequence[Block], message: tuple[RowTerms, float, float]) -> Sums:
    """The loss's part of the dual objective, the signs of beta scaled."""
    terms, up, down = message

    def one(block: Block) -> Sums:
        rows = terms.of(block)
        a = rows.allowed_dual()
        a = np.where(rows.y * a > 0, up * a, down * a)
        return Sums(gain=rows.gain(a), lost=rows.reported())

    return each_block(blocks, one, Sums(lost=0, gain=0.0))
