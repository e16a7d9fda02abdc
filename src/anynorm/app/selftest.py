"""Whether this installation works: versions, threads, the cache, and fits checked by others.

Every fit is compared with something that is not ours: scikit-learn's libsvm, HiGHS through SciPy, a
linear system by NumPy, or the optimality condition itself.  ``anynorm doctor`` prints it.
"""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_NEEDED = ("numpy", "scipy", "scikit-learn", "numba")
_OPTIONAL = {
    "pandas": "the command line",
    "pyarrow": "Parquet files",
    "typer": "the command line",
    "rich": "the command line",
    "matplotlib": "pictures",
    "onnx": "export to ONNX",
}
_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
    "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "ANYNORM_DISABLE_CACHE", "ANYNORM_DATA",
)  # fmt: skip
_TOL = 1e-6  # gap asked for, and reached


@dataclass(frozen=True)
class Check:
    """One fit of the self-test.

    Attributes
    ----------
    name : str
        What was fitted.
    ok : bool
        Whether the certificate is good enough and the reference agrees.
    gap : float
        The relative gap of the certificate.
    against : str
        What the result was compared with.
    difference : float
        The relative difference from it; NaN where nothing could be compared.
    seconds : float
        Time for the fit, with what had to be compiled.
    problem : str
        What went wrong, if anything did.
    """

    name: str
    ok: bool
    gap: float
    against: str
    difference: float
    seconds: float
    problem: str = ""


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of what it can use."""
    from anynorm import __version__

    found = {"anynorm": __version__, "python": platform.python_version()}
    for name in _NEEDED:
        found[name] = importlib.metadata.version(name)
    for name, purpose in _OPTIONAL.items():
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = f"not installed (for {purpose})"
    found["platform"] = f"{platform.system()} {platform.release()}, {platform.machine()}"
    return found


def threads() -> dict[str, str]:
    """Return how many cores there are, and how many threads would be used."""
    import numba
    from threadpoolctl import threadpool_info

    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = {"cores": f"{os.cpu_count()}, {allowed} for this process"}
    found["numba"] = f"{numba.get_num_threads()}"
    for pool in threadpool_info():
        name = pool.get("internal_api") or pool.get("user_api") or "threads"
        version = f" ({pool['version']})" if pool.get("version") else ""
        library = pathlib.Path(pool.get("filepath", "")).name.split("-")[0].split(".so")[0]
        found[f"{name} in {library}"] = f"{pool['num_threads']}{version}"
    for name in _VARIABLES:
        if name in os.environ:
            found[name] = os.environ[name]
    return found


def cache() -> dict[str, str]:
    """Return where compiled code is kept, and whether it can be."""
    from anynorm.design.code_cache import cache_folder

    if os.environ.get("ANYNORM_DISABLE_CACHE", "") not in ("", "0"):
        return {"folder": "none: ANYNORM_DISABLE_CACHE is set, so every process compiles anew"}
    folder = cache_folder()
    if folder is None:
        return {"folder": "none: no folder can be written to; set NUMBA_CACHE_DIR to one that can"}
    found = (file for kind in ("*.nb?", "*.o") for file in pathlib.Path(folder).rglob(kind))
    sizes = [file.stat().st_size for file in found if file.is_file()]
    return {"folder": folder, "files": f"{len(sizes):,}, {sum(sizes) / 2**20:.1f} MB"}


def run_checks() -> Iterator[Check]:
    """Yield the fits of the self-test, one after the other."""
    X, y = _data()
    for name, against, check in _CHECKS:
        start = time.perf_counter()
        try:
            gap, difference = check(X, y)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            seconds = time.perf_counter() - start
            yield Check(name, False, np.nan, against, np.nan, seconds, problem)
            continue
        seconds = time.perf_counter() - start
        problem = ""
        if not gap <= _TOL:
            problem = f"the gap {gap:.1e} is above {_TOL:.0e}"
        elif not difference <= 10 * _TOL:
            problem = f"differs from {against} by {difference:.1e}"
        yield Check(name, not problem, gap, against, difference, seconds, problem)


def _data() -> tuple[Array, Array]:
    """Two overlapping clouds of 60 points in 12 dimensions, 3 of which tell them apart."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2, 1.0, -1.0)
    X = rng.normal(size=(60, 12))
    X[:, :3] += 0.8 * y[:, None]
    return X, y


def _relative(value: float, reference: float) -> float:
    return abs(value - reference) / max(abs(reference), 1e-12)


def _hinge(X: Array, y: Array, coef: Array, intercept: float) -> float:
    return float(np.maximum(0, 1 - y * (X @ coef + intercept)).sum())


def _linear(X: Array, y: Array) -> tuple[float, float]:
    from sklearn.svm import SVC

    from anynorm.estimators.linear_svc import LinearSVC

    model = LinearSVC(C=0.5, tol=_TOL).fit(X, y)
    peer = SVC(C=0.5, kernel="linear", tol=1e-9).fit(X, y)
    coef = peer.coef_[0]
    value = 0.5 * coef @ coef + 0.5 * _hinge(X, y, coef, peer.intercept_[0])
    return model.certificate_.gap, _relative(model.certificate_.primal, value)


def _one_norm_optimum(X: Array, y: Array, C: float) -> float:
    """The least ||w||_1 + C sum(xi), as a linear program in (w+, w-, b, xi)."""
    from scipy.optimize import linprog

    n, p = X.shape
    Z = y[:, None] * X
    cost = np.concatenate([np.ones(2 * p), [0.0], np.full(n, C)])
    rows = np.hstack([-Z, Z, -y[:, None], -np.eye(n)])
    bounds = [(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * n
    return float(linprog(cost, A_ub=rows, b_ub=-np.ones(n), bounds=bounds, method="highs").fun)


def _sparse(X: Array, y: Array) -> tuple[float, float]:
    from anynorm.estimators.sparse_svc import SparseSVC

    model = SparseSVC(C=0.3, tol=_TOL).fit(X, y)
    return model.certificate_.gap, _relative(
        model.certificate_.primal, _one_norm_optimum(X, y, 0.3)
    )


def _path(X: Array, y: Array) -> tuple[float, float]:
    from anynorm.estimators.sparse_path import sparse_svm_path

    path = sparse_svm_path(X, y)
    differences = []
    for C in (0.1, 0.3, 1.0):
        coef, intercept = path.coef_at(C=C)
        value = np.abs(coef).sum() + C * _hinge(X, y, coef, intercept)
        differences.append(_relative(value, _one_norm_optimum(X, y, C)))
    return float(path.gaps.max()), max(differences)


def _walk(X: Array, y: Array) -> tuple[float, float]:
    """The objective of the 1-norm never rises on the walk, and cannot fall below the optimum."""
    from anynorm.estimators.reweighted_svc import ReweightedSVC

    model = ReweightedSVC(C=0.3, n_rounds=5, tol=_TOL).fit(X, y)
    values = [record.objective for record in model.history_]
    rise = max(np.diff(values).max() / values[0], 0.0)
    below = max(1 - values[-1] / _one_norm_optimum(X, y, 0.3), 0.0)
    return max(record.certificate.gap for record in model.history_), max(rise, below)


def _kernel_optimum(X: Array, y: Array) -> float:
    """The optimum of the kernel SVM with C = 2 and gamma = 0.1, from libsvm's dual variables."""
    from sklearn.svm import SVC

    peer = SVC(C=2.0, gamma=0.1, tol=1e-9).fit(X, y)
    beta, points = peer.dual_coef_[0], X[peer.support_]
    K = np.exp(-0.1 * ((points[:, None] - points) ** 2).sum(-1))
    return float(np.abs(beta).sum() - 0.5 * beta @ K @ beta)


def _kernel(X: Array, y: Array) -> tuple[float, float]:
    from anynorm.estimators.svc import SVC

    certificate = SVC(C=2.0, gamma=0.1, tol=_TOL).fit(X, y).certificate_
    return certificate.gap, _relative(certificate.dual, _kernel_optimum(X, y))


def _budget(X: Array, y: Array) -> tuple[float, float]:
    """A budget of all rows does not bind: the same optimum as the plain SVM's."""
    from anynorm.estimators.budget_svc import BudgetSVC

    loose = BudgetSVC(len(y), C=2.0, gamma=0.1, tol=_TOL).fit(X, y).certificate_
    tight = BudgetSVC(10, C=2.0, gamma=0.1, tol=_TOL).fit(X, y).certificate_
    return max(loose.gap, tight.gap), _relative(loose.dual, _kernel_optimum(X, y))


def _least_squares(X: Array, y: Array) -> tuple[float, float]:
    from anynorm.estimators.least_squares_svc import LeastSquaresSVC

    model = LeastSquaresSVC(C=1.5, kernel="rbf", gamma=0.1, tol=_TOL).fit(X, y)
    n = len(y)
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(-1))
    system = np.block([[K + np.eye(n) / 3.0, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    beta, intercept = np.split(np.linalg.solve(system, np.append(y, 0.0)), [n])
    scores = K @ beta + intercept
    difference = np.abs(model.decision_function(X) - scores).max() / np.abs(scores).max()
    return model.certificate_.gap, float(difference)


def _point(X: Array, y: Array) -> tuple[float, float]:
    """At the point z of least norm, no point a of the hull has a'z < z'z."""
    from anynorm.estimators.min_norm_point import min_norm_point

    A = (y[:, None] * np.column_stack([X, np.ones(len(y))])).T + 0.5
    found = min_norm_point(A, tol=_TOL)
    z = A @ np.asarray(found.x)
    return found.certificate.gap, max(1 - float((A.T @ z).min() / (z @ z)), 0.0)


def _model_file(X: Array, y: Array) -> tuple[float, float]:
    from anynorm.app.model_files import load_model, save_model
    from anynorm.estimators.linear_svc import LinearSVC

    model = LinearSVC(C=0.5, tol=_TOL).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.anynorm")
        save_model(model, path)
        again = load_model(path)
    difference = np.abs(again.decision_function(X) - model.decision_function(X)).max()
    return again.certificate_.gap, float(difference)


_CHECKS: tuple[tuple[str, str, Callable[[Any, Any], tuple[float, float]]], ...] = (
    ("LinearSVC", "scikit-learn's SVC", _linear),
    ("SparseSVC", "HiGHS", _sparse),
    ("sparse_svm_path", "HiGHS", _path),
    ("ReweightedSVC", "HiGHS", _walk),
    ("SVC", "scikit-learn's SVC", _kernel),
    ("BudgetSVC", "scikit-learn's SVC", _budget),
    ("LeastSquaresSVC", "a linear system", _least_squares),
    ("min_norm_point", "its optimality condition", _point),
    ("model file", "the model before", _model_file),
)
