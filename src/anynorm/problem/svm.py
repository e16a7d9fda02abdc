"""The problem to be solved, and its primal and dual objectives.

    minimise over f, b    R(f) + g(1 - y (f + b))

with R the squared 2-norm of a linear or kernel function or the 1-norm of coefficients, and g
a loss of `anynorm.losses`.  With beta = y * a the dual is

    maximise over a       sum(a) - R*(beta) - g*(a),       sum(beta) = 0 where b is free,

    R           R*(beta)
    1/2 ||w||^2             1/2 ||X'beta||^2        (1/2 beta'K beta for a kernel)
    1/2 sum (w_j/v_j)^2     1/2 sum (v_j X_j'beta)^2
    sum u_j |w_j|           0 where |X_j'beta| <= u_j for all j, else infinite

A regularised bias is a constant feature of value s: its part of R is 1/2 (b/s)^2 or |b/s|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anynorm.design import Design, design_of
from anynorm.design.limits import ROUNDING
from anynorm.design.threads import by_rows
from anynorm.losses import Loss
from anynorm.losses.bias import optimal_bias
from anynorm.norms.dual_sets import DualSet
from anynorm.problem.certificate import Values
from anynorm.problem.repair import Array, repaired

if TYPE_CHECKING:
    from anynorm.kernels.gram import Gram


_LAST_DIGITS = 2 * float(np.finfo(np.float64).eps)
_INDEFINITE = 1e-9  # of the largest a'Qa that the diagonal allows: less is rounding


@dataclass(frozen=True, eq=False)
class Problem:
    """One binary problem of the grid; shapes are checked, values are trusted.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Labels, -1.0 or +1.0.
    C : float
        Weight of the loss.
    loss : Loss
        See `anynorm.losses`.
    X : dense array, CSR or CSC, or Design, optional
        Features; exactly one of X and gram is given.  Solvers see them as `design`.
    gram : Gram, optional
        Kernel; the coefficients are then the dual variables a, with f = K (y * a).
    regulariser : {"l2", "l1"}
        "l1" needs X.
    sample_weight : ndarray of shape (n,), optional
        A row of weight 2 counts as two rows, one of weight 0 as none.  Weights that the slack norm
        has of its own are multiplied in, once, and the loss is then that of unweighted rows.
    intercept : "free", None or float
        A bias that is not regularised, no bias, or the value s of a regularised constant feature.
    feature_scale : ndarray of shape (p,), optional
        v in R = 1/2 sum (w_j/v_j)^2 ("l2" on features only); v_j = 0 forces w_j = 0.
    penalty_weights : ndarray of shape (p,), optional
        u in R = sum u_j |w_j| ("l1" only); 0 is never penalised, inf is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X, intercept=None)
    >>> problem.objective(np.array([1.0])), problem.dual_objective(np.array([0.5, 0.5]))
    (0.5, 0.5)
    """

    y: Array
    C: float
    loss: Loss
    X: Any = None
    gram: Gram | None = None
    regulariser: Literal["l2", "l1"] = "l2"
    sample_weight: Array | None = None
    intercept: Literal["free"] | float | None = "free"
    feature_scale: Array | None = None
    penalty_weights: Array | None = None

    def __post_init__(self) -> None:
        if (self.X is None) == (self.gram is None):
            raise ValueError("a problem needs exactly one of X and gram")
        if self.regulariser not in ("l2", "l1"):
            raise ValueError(f"regulariser must be 'l2' or 'l1'; got {self.regulariser!r}")
        if self.regulariser == "l1" and self.X is None:
            raise ValueError("the 1-norm regulariser needs features X, not a kernel")
        if self.feature_scale is not None and (self.regulariser != "l2" or self.X is None):
            raise ValueError("feature_scale goes with the 2-norm regulariser on features only")
        if self.penalty_weights is not None and self.regulariser != "l1":
            raise ValueError("penalty_weights go with the 1-norm regulariser only")
        if isinstance(self.intercept, str) and self.intercept != "free":
            raise ValueError(f"intercept must be 'free', None or a number; got {self.intercept!r}")
        self._check_shapes()
        self._take_weights_of_norm()
        points = self.X if self.gram is None else self.gram.X
        object.__setattr__(self, "loss", self.loss.resolve(points))

    def _check_shapes(self) -> None:
        n = self.n_rows
        p = None if self.X is None else self.X.shape[1]
        for name, size in (
            ("y", n),
            ("sample_weight", n),
            ("feature_scale", p),
            ("penalty_weights", p),
        ):
            vector = getattr(self, name)
            if vector is not None and np.shape(vector) != (size,):
                raise ValueError(f"{name} must have shape ({size},); got {np.shape(vector)}")

    def _take_weights_of_norm(self) -> None:
        loss, own = self.loss.without_weights()
        if own is None:
            return
        if own.shape != (self.n_rows,):
            raise ValueError(
                f"the slack norm has {own.size} weights but there are {self.n_rows} rows; give it "
                "one for each row, or none"
            )
        given = self.sample_weight
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "sample_weight", own if given is None else own * given)

    def part(self, rows: NDArray[np.intp]) -> Problem:
        """Return the problem with these rows alone.

        Examples
        --------
        >>> import numpy as np
        >>> from anynorm.losses import get_loss
        >>> from anynorm.problem import Problem
        >>> X, y = np.array([[1.0], [-1.0], [2.0]]), np.array([1.0, -1.0, 1.0])
        >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X)
        >>> problem.part(np.array([1, 2])).X
        array([[-1.],
               [ 2.]])
        """
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        points = (
            {"X": self.design.take_rows(rows).stored}
            if self.gram is None
            else {"gram": self.gram.part(rows)}
        )
        return replace(self, y=self.y[rows], sample_weight=weights, **points)

    def on_columns(self, X: Any, feature_scale: Array | None, intercept: Any) -> Problem:
        """Return the problem of the same rows, loss and C with other columns, scales and bias.

        What follows from the former alone is not computed again.

        Examples
        --------
        >>> import numpy as np
        >>> from anynorm.losses import get_loss
        >>> from anynorm.problem import Problem
        >>> X, y = np.array([[1.0, 2.0], [-1.0, 0.0]]), np.array([1.0, -1.0])
        >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X)
        >>> problem.on_columns(X[:, 1:], np.array([0.5]), None).n_coefs
        1
        """
        other = replace(self, X=X, feature_scale=feature_scale, intercept=intercept)
        known = {"dual_set": self.dual_set, "_zero_primal": self._zero_primal}
        vars(other).update(known)
        return other

    @cached_property
    def design(self) -> Design:
        """X, however it is stored."""
        return design_of(self.X)

    @property
    def n_rows(self) -> int:
        """Number of examples."""
        rows = self.X.shape[0] if self.gram is None else self.gram.n
        return int(rows)

    @property
    def n_coefs(self) -> int:
        """Length of `coef`: features, or examples for a kernel."""
        return int(self.X.shape[1]) if self.gram is None else self.gram.n

    @property
    def free_bias(self) -> bool:
        """Whether the bias is not regularised."""
        return isinstance(self.intercept, str)

    @property
    def bias_feature(self) -> float:
        """The value of the constant feature of a regularised bias, 0 where there is none."""
        return 0.0 if self.free_bias or self.intercept is None else float(self.intercept)

    def row_weights(self) -> Array:
        """Return the weights of the rows, ones where there are none."""
        return np.ones(self.n_rows) if self.sample_weight is None else self.sample_weight

    def least_weight(self) -> float:
        """Return the smallest weight of a row that counts."""
        weights = self.row_weights()
        return float(weights[weights > 0].min())

    @cached_property
    def dual_set(self) -> DualSet:
        """Where the dual variables may be."""
        return self.loss.dual_set(self.C, self.row_weights())

    def best_bias(self, scores: Array) -> float:
        """Return the middle of the optimal biases for given scores; `loss_at` is least there."""
        return optimal_bias(self.loss, scores, self.y, self.C, self.sample_weight)

    def scores(self, coef: Array) -> Array:
        """Return f, without the bias: ``X @ coef``, or ``K @ (y * coef)`` for a kernel."""
        if not np.any(coef):
            return np.zeros(self.n_rows)
        if self.gram is not None:
            return self.gram.matvec(self.y * coef)
        return self.design.matvec(coef)

    def loss_at(self, scores: Array, intercept: float = 0.0) -> float:
        """Return g at given scores and bias; that of many rows is a sum that threads share."""

        def part(rows: slice) -> float:
            weights = None if self.sample_weight is None else self.sample_weight[rows]
            if weights is not None and not weights.any():  # which losses take for an error
                return 0.0
            residuals = 1.0 - self.y[rows] * (scores[rows] + intercept)
            return self.loss.value(residuals, self.C, weights)

        if self.loss.sum_over_rows:
            return sum(by_rows(part, self.n_rows))
        return part(slice(None))

    def regularisation(self, coef: Array, intercept: float = 0.0, *, scores: Array) -> float:
        """Return R; for a kernel it is taken from the scores of coef."""
        coef = np.asarray(coef, dtype=np.float64)
        bias = intercept / self.bias_feature if self.bias_feature else 0.0
        if self.regulariser == "l1":
            return _penalty(coef, self.penalty_weights) + abs(bias)
        if self.gram is not None:
            return 0.5 * float((self.y * coef) @ scores) + 0.5 * bias * bias
        if self.feature_scale is not None:
            if np.any(coef[self.feature_scale == 0] != 0):
                return math.inf
            coef = np.divide(
                coef, self.feature_scale, out=np.zeros(len(coef)), where=self.feature_scale != 0
            )
        return 0.5 * float(coef @ coef) + 0.5 * bias * bias

    def objective(
        self, coef: Array, intercept: float = 0.0, *, scores: Array | None = None
    ) -> float:
        """Return the primal objective P at (coef, intercept)."""
        if self.intercept is None and intercept != 0:
            return math.inf
        scores = self.scores(coef) if scores is None else scores
        return self.regularisation(coef, intercept, scores=scores) + self.loss_at(scores, intercept)

    def values(
        self, coef: Array, intercept: float, dual: ArrayLike, *, scores: Array | None = None
    ) -> Values:
        """Return primal and dual value at a point, the dual one after a repair; see `certify`.

        `scores` is ``self.scores(coef)`` where it is at hand, to save one product.
        """
        coef = np.asarray(coef, dtype=np.float64)
        scores = self.scores(coef) if scores is None else scores
        primal = self.objective(coef, intercept, scores=scores)
        feasible = repaired(self, dual, known=(coef, scores))
        certain = self.gram is None or self._weak_duality(
            (coef, float((self.y * coef) @ scores)), (feasible.a, feasible.curvature)
        )
        errors = self.score_errors(coef, intercept, scores)
        residuals = 1.0 - self.y * (scores + intercept)
        slopes = self.dual_set.slopes(feasible.a, np.abs(residuals) <= errors)
        rounding = float(slopes @ errors)
        return Values(primal, feasible.value, self.zero_primal(), certain, rounding)

    def score_errors(self, coef: Array, intercept: float, scores: Array) -> Array:
        """Return what rounding may have added to each score, with the bias, or taken from it."""
        sizes = np.abs(scores)
        if self.gram is not None:  # K beta adds up terms that may cancel
            sizes = self._lengths * float(np.abs(coef) @ self._lengths)
        return rounding_of_scores(sizes, intercept)

    def _weak_duality(self, *squares: tuple[Array, float]) -> bool:
        """Whether the kernel is shown to be positive semidefinite, and some ``a'Qa`` agree."""
        gram = self.gram
        assert gram is not None
        if not gram.semidefinite:
            return False
        return all(
            square >= -_INDEFINITE * float(np.abs(a) @ self._lengths) ** 2 for a, square in squares
        )

    @cached_property
    def _lengths(self) -> Array:
        """The lengths of the rows as the kernel sees them; every certificate asks for them."""
        assert self.gram is not None
        return np.sqrt(np.maximum(self.gram.diagonal(), 0.0))

    def zero_primal(self) -> float:
        """Return P at zero coefficients and zero bias, the scale of the problem."""
        return self._zero_primal

    @cached_property
    def _zero_primal(self) -> float:
        return self.loss_at(np.zeros(self.n_rows))

    def pull_back(self, a: Array) -> Array:
        """Return ``X'(y * a)``, scaled by feature_scale, or ``K (y * a)`` for a kernel."""
        if not np.any(a):
            return np.zeros(self.n_coefs)
        if self.gram is not None:
            return self.gram.matvec(self.y * a)
        pulled = self.design.rmatvec(self.y * a)
        return pulled if self.feature_scale is None else self.feature_scale * pulled

    def curvature(self, a: Array, pulled: Array) -> float:
        """Return ``2 R*(beta)`` of the 2-norm regulariser (0 for the 1-norm)."""
        if self.regulariser == "l1":
            return 0.0
        square = float((self.y * a) @ pulled) if self.gram is not None else float(pulled @ pulled)
        bias = self.bias_feature * float(self.y @ a)
        return square + bias * bias

    def pressure(self, a: Array, pulled: Array) -> float:
        """Return the largest ``|X_j'beta| / u_j``, at most 1 where a is allowed ("l1" only)."""
        if self.regulariser == "l2":
            return 0.0
        size = np.abs(pulled)
        if self.penalty_weights is not None:
            u = self.penalty_weights
            never = np.flatnonzero(u == 0)
            broken = np.zeros(len(u))
            broken[never[size[never] > ROUNDING * self.design.rmatvec_sizes(a, never)]] = math.inf
            size = np.divide(size, u, out=broken, where=u > 0)
        return max(float(size.max(initial=0.0)), abs(self.bias_feature * float(self.y @ a)))

    def dual_objective(self, a: Array) -> float:
        """Return the dual objective D at a, minus infinity where a is not allowed."""
        a = np.asarray(a, dtype=np.float64)
        if self.free_bias and abs(float(self.y @ a)) > ROUNDING * float(np.abs(a).sum()):
            return -math.inf
        pulled = self.pull_back(a)
        if self.pressure(a, pulled) > 1 + ROUNDING:
            return -math.inf
        gain = self.loss.dual_gain(a, self.C, self.sample_weight)
        return gain - 0.5 * self.curvature(a, pulled)


def rounding_of_scores(sizes: Array, intercept: float) -> Array:
    """Return what rounding may have done to scores whose terms are of these sizes, and a bias."""
    # A margin of 1 is exact where only the bias makes it.
    return np.where(sizes > 0, _LAST_DIGITS * (sizes + (1.0 + abs(intercept))), 0.0)


def _penalty(coef: Array, weights: Array | None) -> float:
    if weights is None:
        return float(np.abs(coef).sum())
    used = coef != 0
    return float(np.abs(coef[used]) @ weights[used])
