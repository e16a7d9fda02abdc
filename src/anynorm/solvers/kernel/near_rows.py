"""Which rows' scores have a part in the primal and dual values, and so must be float64.

Where the constraints are inequalities, a margin above 1 costs nothing, however far above: scores
from float32 rows do where they are beyond 1 by more than their error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anynorm.kernels.rows import KernelRows
from anynorm.problem import Problem

Array = NDArray[np.float64]

_CLOSE = 0.02  # to 1: margins that the choice of the bias may still move
_SAFETY = 10.0  # times the error that is seen
_PROBES = 256  # rows whose error is looked at
_FEW = 4 * _PROBES  # rows whose scores take no longer than to find out which of them matter


def score_error(rows: KernelRows, beta: Array, scores: Array) -> Array:
    """How far scores may be from K beta: many times what they are on some rows.

    Errors are in proportion to the length of a row, the root of K_ii.
    """
    gram = rows.gram
    lengths = np.sqrt(np.maximum(gram.diagonal(), 0.0))
    probes = np.unique(np.linspace(0, gram.n - 1, min(_PROBES, gram.n)).astype(np.intp))
    seen = np.abs(scores[probes] - rows.exact_scores(beta, probes))
    longer = lengths[probes] > 0
    relative = float((seen[longer] / lengths[probes[longer]]).max(initial=0.0))
    return _SAFETY * relative * lengths


def rows_that_matter(
    problem: Problem, rows: KernelRows, beta: Array, scores: Array, intercept: float
) -> NDArray[np.bool_]:
    """Rows with a dual, and those not safely beyond margin 1 (all of few, or for equalities)."""
    if problem.loss.signed or problem.n_rows <= _FEW:
        return np.ones(problem.n_rows, dtype=bool)
    least = 1.0 + _CLOSE + score_error(rows, beta, scores)
    return np.asarray((problem.y * (scores + intercept) < least) | (beta != 0))
