"""Everything compiled ahead of time: a small fit of each kind, for images and shared installs.

The loops are compiled for what they are given: how X is stored, and in which precision.  Every
estimator is fitted once for each of these, on data that come with scikit-learn.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

STORAGES: dict[str, Callable[[np.ndarray], Any]] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sp.csr_matrix,
}


class Task(NamedTuple):
    """A fit that compiles what fits like it need."""

    name: str
    run: Callable[[], Any]


def tasks() -> Iterator[Task]:
    """Every estimator and function, for every storage of X."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    X = X / X.max(axis=0)
    for storage, stored in STORAGES.items():
        for name, fit in fits().items():
            yield Task(f"{name}, {storage}", functools.partial(fit, stored(X), y))


def fits() -> dict[str, Callable[[Any, np.ndarray], Any]]:
    """A fit of each kind as a function of X and y."""
    import anynorm as an

    def path(X: Any, y: np.ndarray) -> Any:
        weights = np.ones(X.shape[1])
        weights[0] = 0.0  # a column that is never penalised has a path of its own first
        an.sparse_svm_path(X, y, penalty_weights=weights)
        return an.sparse_svm_path(X, y)

    found: dict[str, Callable[[Any, np.ndarray], Any]] = {
        f"LinearSVC {loss}": an.LinearSVC(loss=loss).fit
        for loss in ("hinge", "squared_hinge", "logistic", "squared", "absolute")
    }
    found |= {
        f"SparseSVC {loss}": an.SparseSVC(loss=loss).fit
        for loss in ("hinge", "absolute", "squared_hinge", "logistic")
    }
    found |= {f"SVC {slack}": an.SVC(slack=slack).fit for slack in ("l1", "squared_l2", "linf")}
    found |= {f"SVC {kernel}": an.SVC(kernel=kernel).fit for kernel in ("linear", "poly")}
    return found | {
        "sparse_svm_path": path,
        "SparseSVCCV": an.SparseSVCCV(cv=2).fit,
        "ReweightedSVC": an.ReweightedSVC().fit,
        "ReweightedSVCCV": an.ReweightedSVCCV(2, max_rounds=2, cv=2).fit,
        "BudgetSVC": an.BudgetSVC(20).fit,
        "LeastNormSVC": an.LeastNormSVC(1.0).fit,
        "LeastSquaresSVC": an.LeastSquaresSVC(1.0).fit,
        "ConstrainedLasso": lambda X, y: an.ConstrainedLasso().fit(X, y.astype(float)),
        "min_norm_point": lambda X, y: an.min_norm_point(_turned(X, y)),
    }


def _turned(X: Any, y: np.ndarray) -> Any:
    """The rows of the first class turned around: points on both sides of the origin."""
    sign = np.where(y == y[0], -1, 1).astype(X.dtype)
    return sp.csr_matrix(sp.diags(sign) @ X) if sp.issparse(X) else sign[:, None] * X
