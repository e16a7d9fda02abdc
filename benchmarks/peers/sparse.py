"""Peers for the 1-norm SVM.

    minimise_{w, b}   sum_i (1 - y_i (x_i'w + b))_+ + lambda ||w||_1

is a linear programme, which general solvers take in one of two forms: "primal", in w = w+ - w-, b
and the slacks, n rows; or "dual", in one a_i per example, with a row per feature.  A peer is called
with (X, y, lambda) or with a grid of lambdas, and returns its point, or points, as `Point`.

The squared hinge with the 1-norm and no bias is what scikit-learn's LinearSVC has.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.linear import csc_of_dense

INFINITY = float("inf")


class Point(NamedTuple):
    """Coefficients, bias, and duals in [0, 1] where the peer has them."""

    coef: np.ndarray
    intercept: float
    dual: np.ndarray | None = None


class Programme(NamedTuple):
    """minimise cost'x subject to row_lower <= A x <= row_upper, lower <= x <= upper."""

    cost: np.ndarray
    matrix: sp.csc_matrix
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def signed_rows(X: Any, y: np.ndarray) -> sp.csc_matrix:
    """diag(y) X; the zeros of dense data are searched for where there are many."""
    if sp.issparse(X):
        return sp.csc_matrix(sp.diags(y) @ X)
    signed = X * y[:, None]
    few = np.count_nonzero(X) < X.size / 2
    return sp.csc_matrix(signed) if few else csc_of_dense(signed)


def dual_form(X: Any, y: np.ndarray, penalty: float) -> Programme:
    """maximise sum(a), 0 <= a <= 1, y'a = 0, |X'(y a)| <= penalty."""
    n, p = X.shape
    limit = np.append(np.full(p, penalty), 0.0)
    matrix = sp.vstack([signed_rows(X, y).T, sp.csr_matrix(y)], format="csc")
    return Programme(-np.ones(n), matrix, -limit, limit, np.zeros(n), np.ones(n))


def primal_form(X: Any, y: np.ndarray, penalty: float) -> Programme:
    """The textbook form: w+, w-, b and the slacks."""
    n, p = X.shape
    signed = signed_rows(X, y)
    return Programme(
        np.concatenate([np.full(2 * p, penalty), [0.0], np.ones(n)]),
        sp.hstack([signed, -signed, sp.csc_matrix(y[:, None]), sp.identity(n)], format="csc"),
        np.ones(n),
        np.full(n, INFINITY),
        np.concatenate([np.zeros(2 * p), [-INFINITY], np.zeros(n)]),
        np.full(2 * p + 1 + n, INFINITY),
    )


def highs(X: np.ndarray, y: np.ndarray, penalty: float, *, form: str, solver: str) -> Point:
    """HiGHS with its default tolerances; the interior-point method ends with a crossover."""
    p = X.shape[1]
    if form == "dual":
        return _dual_point(_highs_run(_highs(dual_form(X, y, penalty), solver)), p)
    solution = _highs_run(_highs(primal_form(X, y, penalty), solver))
    x = np.asarray(solution.col_value)
    return Point(x[:p] - x[p : 2 * p], float(x[2 * p]), np.asarray(solution.row_dual))


def highs_grid(X: np.ndarray, y: np.ndarray, penalties: Sequence[float]) -> list[Point]:
    """One programme for a falling grid of lambdas, each solved from the last basis."""
    p = X.shape[1]
    model = _highs(dual_form(X, y, penalties[0]), "simplex")
    columns = np.arange(p, dtype=np.int32)
    points = []
    for penalty in penalties:
        model.changeRowsBounds(p, columns, np.full(p, -penalty), np.full(p, penalty))
        points.append(_dual_point(_highs_run(model), p))
    return points


def pdlp(X: np.ndarray, y: np.ndarray, penalty: float, tol: float) -> Point:
    """OR-tools' first-order method on the dual form; HiGHS's own where OR-tools is not there."""
    p = X.shape[1]
    programme = dual_form(X, y, penalty)
    try:
        from ortools.pdlp import solvers_pb2
        from ortools.pdlp.python import pdlp as solver
    except ImportError:
        return _dual_point(_highs_run(_highs(programme, "pdlp", tol)), p)
    model = solver.QuadraticProgram()
    model.resize_and_initialize(*programme.matrix.shape[::-1])
    model.objective_vector = programme.cost
    model.constraint_matrix = programme.matrix
    model.constraint_lower_bounds = programme.row_lower
    model.constraint_upper_bounds = programme.row_upper
    model.variable_lower_bounds, model.variable_upper_bounds = programme.lower, programme.upper
    settings = solvers_pb2.PrimalDualHybridGradientParams()
    settings.num_threads = 1
    criteria = settings.termination_criteria.simple_optimality_criteria
    criteria.eps_optimal_relative = criteria.eps_optimal_absolute = tol
    found = solver.primal_dual_hybrid_gradient(model, settings)
    weights = -np.asarray(found.dual_solution)
    return Point(weights[:p], float(weights[p]), np.asarray(found.primal_solution))


def pyprimal_path(X: np.ndarray, y: np.ndarray, penalties: Sequence[float]) -> list[Point]:
    """The whole path of PRIMAL's parametric simplex, read off at a grid of lambdas.

    Its path is over s, from the dense end; at each lambda the best of its points is taken.
    """
    import pyprimal

    path = pyprimal.sparse_svm_solver(X, y, max_it=5000, lambda_threshold=1e-9)
    coefs, biases = path.beta[:, : path.iterN], np.asarray(path.beta0)[: path.iterN]
    loss = np.maximum(0, 1 - y[:, None] * (X @ coefs + biases)).sum(axis=0)
    norm = np.abs(coefs).sum(axis=0)
    best = [int(np.argmin(loss + penalty * norm)) for penalty in penalties]
    return [Point(coefs[:, k], float(biases[k])) for k in best]


def scikit_learn(X: sp.csr_matrix, y: np.ndarray, C: float, tol: float) -> np.ndarray:
    """LinearSVC(penalty="l1"): coordinate descent of liblinear, no bias."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    model = LinearSVC(
        penalty="l1", dual=False, C=C, fit_intercept=False, tol=tol, max_iter=1_000_000,
        random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return np.ravel(model.coef_)


def scikit_learn_logistic(X: sp.csr_matrix, y: np.ndarray, C: float, tol: float) -> np.ndarray:
    """LogisticRegression(penalty="l1"): liblinear's newGLMNET, no bias."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        penalty="l1", solver="liblinear", C=C, fit_intercept=False, tol=tol, max_iter=1_000_000,
        random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions would have the penalty named otherwise
        model.fit(X, y)
    return np.ravel(model.coef_)


class Peer(NamedTuple):
    """A solver for one lambda, and the module to load before it is timed."""

    solve: Callable[[np.ndarray, np.ndarray, float], Point]
    module: str


def _with(form: str, solver: str) -> Peer:
    return Peer(lambda X, y, penalty: highs(X, y, penalty, form=form, solver=solver), "highspy")


PEERS = {
    "HiGHS simplex, primal form": _with("primal", "simplex"),
    "HiGHS simplex, dual form": _with("dual", "simplex"),
    "HiGHS IPM, dual form": _with("dual", "ipm"),
    "HiGHS IPM, primal form": _with("primal", "ipm"),
    "PDLP at 1e-3": Peer(lambda X, y, penalty: pdlp(X, y, penalty, 1e-3), "highspy"),
}
GRIDS = {"100 warm HiGHS LPs": highs_grid, "pyprimal": pyprimal_path}
SQUARED_HINGE_DIAL = tuple(float(f"{10 ** (-k / 2):.2g}") for k in range(4, 17))


def _highs(programme: Programme, solver: str, tol: float | None = None) -> Any:
    import highspy

    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = programme.matrix.shape
    model.col_cost_ = programme.cost
    model.col_lower_, model.col_upper_ = programme.lower, programme.upper
    model.row_lower_, model.row_upper_ = programme.row_lower, programme.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = programme.matrix.indptr
    model.a_matrix_.index_ = programme.matrix.indices
    model.a_matrix_.value_ = programme.matrix.data
    highs: Any = highspy.Highs()
    options: dict[str, Any] = {"output_flag": False, "threads": 1, "solver": solver}
    if tol is not None:
        options["pdlp_optimality_tolerance"] = tol
    for name, value in options.items():
        highs.setOptionValue(name, value)
    highs.passModel(model)
    return highs


def _highs_run(highs: Any) -> Any:
    import highspy

    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS ended with {highs.getModelStatus()}")
    return highs.getSolution()


def _dual_point(solution: Any, p: int) -> Point:
    weights = -np.asarray(solution.row_dual)
    return Point(weights[:p], float(weights[p]), np.asarray(solution.col_value))
