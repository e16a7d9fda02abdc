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

Fit = Callable[[Any, np.ndarray], Any]
STORAGES: dict[str, Callable[[np.ndarray], Any]] = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sp.csr_matrix,
}


class FirstFit(NamedTuple):
    """A fit that compiles what fits like it need."""

    name: str
    run: Callable[[], Any]


def first_fits() -> Iterator[FirstFit]:
    """Every estimator and function, for every storage of X."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    X = X / X.max(axis=0)
    for storage, stored in STORAGES.items():
        for name, fit in fits().items():
            yield FirstFit(f"{name}, {storage}", functools.partial(fit, stored(X), y))


def fits() -> dict[str, Fit]:
    """A fit of each kind as a function of X and y; what it needs is imported when it is called."""
    found = {
        f"LinearSVC {loss}": _estimator("LinearSVC", loss=loss)
        for loss in ("hinge", "squared_hinge", "logistic", "squared", "absolute")
    }
    found |= {
        f"SparseSVC {loss}": _estimator("SparseSVC", loss=loss)
        for loss in ("hinge", "absolute", "squared_hinge", "logistic")
    }
    found |= {
        f"SVC {slack}": _estimator("SVC", slack=slack) for slack in ("l1", "squared_l2", "linf")
    }
    found |= {f"SVC {kernel}": _estimator("SVC", kernel=kernel) for kernel in ("linear", "poly")}
    return found | {
        "SVC, two threads": _estimator("SVC", n_jobs=2),
        "SVC, many predictions": _predictions,
        "sparse_svm_path": _path,
        "sparse_svm_path, free column": _path_of_free_columns,
        "SparseSVCCV": _estimator("SparseSVCCV", cv=2),
        "ReweightedSVC": _estimator("ReweightedSVC"),
        "ReweightedSVCCV": _estimator("ReweightedSVCCV", Cs=2, max_rounds=2, cv=2),
        "SVCCV": _estimator("SVCCV", Cs=2, gammas=2, cv=2),
        "BudgetSVC": _estimator("BudgetSVC", budget=100),
        "LeastNormSVC": _estimator("LeastNormSVC", C=1.0),
        "LeastSquaresSVC": _estimator("LeastSquaresSVC", C=1.0),
        "ConstrainedLasso": _estimator("ConstrainedLasso"),
        "ConstrainedLassoCV": _estimator("ConstrainedLassoCV"),
        "min_norm_point": _nearest,
    }


def _estimator(name: str, **parameters: Any) -> Fit:
    def fit(X: Any, y: np.ndarray) -> Any:
        import anynorm

        return getattr(anynorm, name)(**parameters).fit(X, y)

    return fit


def _predictions(X: Any, y: np.ndarray) -> Any:
    from anynorm import SVC
    from anynorm.kernels.sums import WORTH_COMPILED

    fitted = SVC(n_jobs=2).fit(X, y)
    copies = WORTH_COMPILED // (X.shape[0] * fitted.support_.size) + 1
    stack = sp.vstack if sp.issparse(X) else np.vstack
    return fitted.decision_function(stack([X] * copies))


def _path(X: Any, y: np.ndarray) -> Any:
    from anynorm import sparse_svm_path

    return sparse_svm_path(X, y)


def _path_of_free_columns(X: Any, y: np.ndarray) -> Any:
    """A column that is never penalised has a path of its own first."""
    from anynorm import sparse_svm_path

    return sparse_svm_path(X, y, penalty_weights=np.arange(X.shape[1]) > 0)


def _nearest(X: Any, y: np.ndarray) -> Any:
    """The difference between one class and the mean of the other; sparse rows as they are."""
    from anynorm import min_norm_point

    first = y == y[0]
    return min_norm_point(X[first] if sp.issparse(X) else X[first] - X[~first].mean(axis=0))
