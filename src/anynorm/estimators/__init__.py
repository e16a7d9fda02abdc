"""Estimators with scikit-learn's interface and the functions beside them, one module each.

Nothing numerical happens here: an estimator checks its input, hands a problem to a solver and
stores what comes back.  The public names are listed in ``anynorm/__init__.pyi``.
"""
