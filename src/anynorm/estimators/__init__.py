"""Estimators with scikit-learn's interface, one module per family.

Nothing numerical happens here: an estimator validates its input, hands a problem to a solver
and stores what comes back.
"""

from anynorm.estimators.linear_svc import LinearSVC

__all__ = ["LinearSVC"]
