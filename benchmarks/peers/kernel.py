"""Peers for the kernel SVMs, all with the kernel exp(-gamma ||x - z||^2) and a free bias.

* scikit-learn's SVC (libsvm): l1 slack, inequality constraints;
* the SVC of scikit-learn-intelex (oneDAL's threads and vectors): the same problem;
* its NuSVC, rescaled: the budget problem where the budget binds.  With nu = B/n the duals of
  nu-SVC sum to nu n and lie in [0, 1] before libsvm divides them by the margin; C times those are
  the duals of the budget problem, whose sum is B C;
* its SVR with epsilon = 0 on the labels: l1 slack, equality constraints;
* LS-SVM by one Cholesky factor of K + I/(2C), as one writes it with scipy.

The first four are called as ``peer(X, y, task, tol, cache_size)`` and return a `Point`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Task(NamedTuple):
    """The parameters of a fit."""

    C: float
    gamma: float
    budget: int | None = None


class Point(NamedTuple):
    """The dual variables a, the bias, and a function that labels new rows with +1 and -1."""

    dual: np.ndarray
    intercept: float
    decide: Callable[[Any], np.ndarray]


def svc(X: np.ndarray, y: np.ndarray, task: Task, tol: float, cache_size: float) -> Point:
    """scikit-learn's SVC."""
    from sklearn.svm import SVC

    model = SVC(C=task.C, gamma=task.gamma, tol=tol, cache_size=cache_size).fit(X, y)
    return _point(model, y)


def intel_svc(X: np.ndarray, y: np.ndarray, task: Task, tol: float, cache_size: float) -> Point:
    """The SVC of scikit-learn-intelex."""
    from sklearnex.svm import SVC

    model = SVC(C=task.C, gamma=task.gamma, tol=tol, cache_size=cache_size).fit(X, y)
    return _point(model, y)


def rescaled_nu_svc(
    X: np.ndarray, y: np.ndarray, task: Task, tol: float, cache_size: float
) -> Point:
    """scikit-learn's NuSVC, brought to the scale of the budget problem."""
    from sklearn.svm import NuSVC

    assert task.budget is not None
    nu = task.budget / len(y)
    model = NuSVC(nu=nu, gamma=task.gamma, tol=tol, cache_size=cache_size).fit(X, y)
    found = _point(model, y)
    scale = task.budget * task.C / float(np.abs(found.dual).sum())
    return found._replace(dual=scale * found.dual, intercept=scale * found.intercept)


def svr(X: np.ndarray, y: np.ndarray, task: Task, tol: float, cache_size: float) -> Point:
    """scikit-learn's SVR with epsilon = 0 on the labels."""
    from sklearn.svm import SVR

    model = SVR(C=task.C, epsilon=0.0, gamma=task.gamma, tol=tol, cache_size=cache_size).fit(X, y)
    found = _point(model, y)
    return found._replace(decide=lambda rows: np.where(model.predict(rows) > 0, 1.0, -1.0))


def _point(model: Any, y: np.ndarray) -> Point:
    dual = np.zeros(len(y))
    dual[model.support_] = np.ravel(model.dual_coef_)
    return Point(y * dual, float(np.ravel(model.intercept_)[0]), model.predict)


PEERS = {
    "SVC": svc,
    "sklearnex SVC": intel_svc,
    "rescaled NuSVC": rescaled_nu_svc,
    "SVR(epsilon=0)": svr,
}


def least_squares(X: np.ndarray, y: np.ndarray, task: Task) -> tuple[np.ndarray, float]:
    """LS-SVM: (K + I/(2C)) beta + b = y and sum(beta) = 0.  Returns y * beta and b."""
    from scipy.linalg import cho_factor, cho_solve

    lengths = np.einsum("ij,ij->i", X, X)
    K = X @ X.T
    K *= -2
    K += lengths[:, None]
    K += lengths[None]
    K *= -task.gamma
    np.exp(K, out=K)
    K[np.diag_indices(len(y))] += 0.5 / task.C
    factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, np.column_stack([y, np.ones(len(y))]), check_finite=False)
    intercept = float(solved[:, 0].sum() / solved[:, 1].sum())
    return y * (solved[:, 0] - intercept * solved[:, 1]), intercept
