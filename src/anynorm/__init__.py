"""Support vector machines with any slack norm, and a certificate on every fit.

Names are loaded when they are first used (PEP 562), so ``import anynorm`` is as cheap as an
empty module: neither scikit-learn nor Numba is imported before an estimator is asked for.

Examples
--------
>>> from anynorm import LinearSVC
>>> from anynorm.datasets import make_relevant
>>> X, y = make_relevant(n_relevant=4, random_state=0)
>>> model = LinearSVC(C=0.1).fit(X, y)
>>> model.certificate_.gap <= 1e-4
True
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anynorm import datasets, losses, norms, plotting, reductions, screening
    from anynorm.dictionaries import KernelDictionary, PolynomialDictionary
    from anynorm.estimators.budget_svc import BudgetSVC
    from anynorm.estimators.constrained_lasso import ConstrainedLasso
    from anynorm.estimators.least_norm_svc import LeastNormSVC
    from anynorm.estimators.least_squares_svc import LeastSquaresSVC
    from anynorm.estimators.linear_svc import LinearSVC
    from anynorm.estimators.reweighted_any import Reweighted
    from anynorm.estimators.reweighted_svc import ReweightedSVC
    from anynorm.estimators.reweighted_svc_cv import ReweightedSVCCV
    from anynorm.estimators.sparse_path import sparse_svm_path
    from anynorm.estimators.sparse_svc import SparseSVC
    from anynorm.estimators.sparse_svc_cv import SparseSVCCV
    from anynorm.estimators.svc import SVC
    from anynorm.export import to_onnx
    from anynorm.path import PathInterrupted, SolutionPath
    from anynorm.persistence import ModelFileError, load_metadata, load_model, save_model
    from anynorm.solvers.simplex.kernel_lasso import kernel_lasso
    from anynorm.solvers.simplex.min_norm import min_norm_point
    from anynorm.solvers.simplex.sublinear import sublinear_svm

__version__ = "0.1.0.dev0"

__all__ = [
    "SVC",
    "BudgetSVC",
    "ConstrainedLasso",
    "KernelDictionary",
    "LeastNormSVC",
    "LeastSquaresSVC",
    "LinearSVC",
    "ModelFileError",
    "PathInterrupted",
    "PolynomialDictionary",
    "Reweighted",
    "ReweightedSVC",
    "ReweightedSVCCV",
    "SolutionPath",
    "SparseSVC",
    "SparseSVCCV",
    "__version__",
    "datasets",
    "kernel_lasso",
    "load_metadata",
    "load_model",
    "losses",
    "min_norm_point",
    "norms",
    "plotting",
    "reductions",
    "save_model",
    "screening",
    "sparse_svm_path",
    "sublinear_svm",
    "to_onnx",
]

_SUBMODULES = frozenset({"datasets", "losses", "norms", "plotting", "reductions", "screening"})
_HOME = {
    "BudgetSVC": "anynorm.estimators.budget_svc",
    "ConstrainedLasso": "anynorm.estimators.constrained_lasso",
    "KernelDictionary": "anynorm.dictionaries",
    "LeastNormSVC": "anynorm.estimators.least_norm_svc",
    "LeastSquaresSVC": "anynorm.estimators.least_squares_svc",
    "LinearSVC": "anynorm.estimators.linear_svc",
    "ModelFileError": "anynorm.persistence",
    "PathInterrupted": "anynorm.path",
    "PolynomialDictionary": "anynorm.dictionaries",
    "Reweighted": "anynorm.estimators.reweighted_any",
    "ReweightedSVC": "anynorm.estimators.reweighted_svc",
    "ReweightedSVCCV": "anynorm.estimators.reweighted_svc_cv",
    "SVC": "anynorm.estimators.svc",
    "SolutionPath": "anynorm.path",
    "SparseSVC": "anynorm.estimators.sparse_svc",
    "SparseSVCCV": "anynorm.estimators.sparse_svc_cv",
    "kernel_lasso": "anynorm.solvers.simplex.kernel_lasso",
    "load_metadata": "anynorm.persistence",
    "load_model": "anynorm.persistence",
    "min_norm_point": "anynorm.solvers.simplex.min_norm",
    "save_model": "anynorm.persistence",
    "sparse_svm_path": "anynorm.estimators.sparse_path",
    "sublinear_svm": "anynorm.solvers.simplex.sublinear",
    "to_onnx": "anynorm.export",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use and keep it."""
    if name in _SUBMODULES:
        return importlib.import_module(f"anynorm.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'anynorm' has no attribute {name!r}; it has {__all__}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
