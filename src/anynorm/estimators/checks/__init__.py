"""Checks of what users give to estimators and to the functions beside them, before any work.

`parameters` has what each constructor argument may be, `matrices` the X of a fit and of a
prediction, `labels` everything that there is one of per row or column: labels, targets, weights.
Errors name the argument, what is wrong with it, where, and what to do.
"""
