"""Peers for the 2-norm regularised linear SVM without a bias.

    minimise_w   1/2 ||w||^2 + C sum_i loss(y_i x_i'w)

Each is called as ``peer(X, y, C, loss, tol)`` and returns w; `tol` is the peer's own dial, whose
meaning differs between them (the benchmark looks for the loosest one that reaches the gap wanted).
"""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


def scikit_learn_dual(
    X: np.ndarray | sp.csr_matrix, y: np.ndarray, C: float, loss: str, tol: float
) -> np.ndarray:
    """liblinear's dual coordinate descent, as scikit-learn's LinearSVC calls it."""
    return _scikit_learn(X, y, C, loss, tol, dual=True)


def scikit_learn_primal(
    X: np.ndarray | sp.csr_matrix, y: np.ndarray, C: float, loss: str, tol: float
) -> np.ndarray:
    """liblinear's trust-region Newton method in the primal (squared hinge only)."""
    return _scikit_learn(X, y, C, loss, tol, dual=False)


def clarabel(X: np.ndarray, y: np.ndarray, C: float, loss: str, tol: float) -> np.ndarray:
    """Clarabel's interior-point method on the primal quadratic program in w and the slacks."""
    import clarabel

    n, p = X.shape
    identity = sp.identity(n, format="csc")
    margins = sp.hstack([csc_of_dense(-X * y[:, None]), -identity])
    positive = sp.hstack([sp.csc_matrix((n, p)), -identity])
    slack_curvature, slack_cost = (0.0, C) if loss == "hinge" else (2 * C, 0.0)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    solution = clarabel.DefaultSolver(
        sp.diags(np.r_[np.ones(p), np.full(n, slack_curvature)], format="csc"),
        np.r_[np.zeros(p), np.full(n, slack_cost)],
        sp.vstack([margins, positive], format="csc"),
        np.r_[-np.ones(n), np.zeros(n)],
        [clarabel.NonnegativeConeT(2 * n)],
        settings,
    ).solve()
    return np.array(solution.x)[:p]


class Peer(NamedTuple):
    """A solver, the module to load before it is timed, and its dial from loose to tight."""

    solve: Callable[..., np.ndarray]
    module: str
    tols: Sequence[float]


_HALF_DECADES = tuple(float(f"{10 ** (-k / 2):.2g}") for k in range(2, 15))

PEERS = {
    "scikit-learn": Peer(scikit_learn_dual, "sklearn.svm", _HALF_DECADES),
    "scikit-learn dual=False": Peer(scikit_learn_primal, "sklearn.svm", _HALF_DECADES),
    "clarabel": Peer(clarabel, "clarabel", (1e-5, 1e-6, 1e-8)),
}


def _scikit_learn(
    X: np.ndarray | sp.csr_matrix, y: np.ndarray, C: float, loss: str, tol: float, *, dual: bool
) -> np.ndarray:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    model = LinearSVC(
        loss=loss,
        C=C,
        dual=dual,
        fit_intercept=False,
        tol=tol,
        max_iter=1_000_000,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return model.coef_.ravel()


def csc_of_dense(matrix: np.ndarray) -> sp.csc_matrix:
    """A dense matrix in CSC form, without the search for its nonzeros."""
    rows, columns = matrix.shape
    indices = np.tile(np.arange(rows, dtype=np.int32), columns)
    starts = np.arange(0, rows * columns + 1, rows)
    return sp.csc_matrix((matrix.ravel(order="F"), indices, starts), shape=matrix.shape)
