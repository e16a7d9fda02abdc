"""Estimators with scikit-learn's interface, one module per family.

Nothing numerical happens here: an estimator validates its input, hands a problem to a solver
and stores what comes back.
"""

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

__all__ = [
    "SVC",
    "BudgetSVC",
    "ConstrainedLasso",
    "LeastNormSVC",
    "LeastSquaresSVC",
    "LinearSVC",
    "Reweighted",
    "ReweightedSVC",
    "ReweightedSVCCV",
    "SparseSVC",
    "SparseSVCCV",
    "sparse_svm_path",
]
