"""The public estimators, read off the list of names: a new one is tested with the rest."""

import inspect

from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import anynorm

_NEEDED = {"budget": 3, "estimator": LogisticRegression()}  # parameters without a default

ESTIMATORS = [
    member
    for member in (getattr(anynorm, name) for name in anynorm.__all__)
    if inspect.isclass(member) and issubclass(member, BaseEstimator)
]


def parameters(Estimator):
    """The names of the constructor's parameters."""
    return list(inspect.signature(Estimator).parameters)


def made(Estimator, **given):
    """An instance, with these parameters as far as it has them."""
    known = inspect.signature(Estimator).parameters
    needed = {k: v for k, v in _NEEDED.items() if k in known and known[k].default is known[k].empty}
    return Estimator(**needed | {k: v for k, v in given.items() if k in known})
