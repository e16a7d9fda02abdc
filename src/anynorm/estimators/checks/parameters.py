"""What each constructor parameter may be, in one table, and the error where it is not.

scikit-learn's convention: constructors store their arguments untouched and `fit` checks them,
so that `set_params` and `clone` never fail.
"""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np

from anynorm.design.checks import is_positive, is_real
from anynorm.kernels import KERNELS, is_kernel
from anynorm.losses import LOSSES, Loss
from anynorm.norms import NAMED_NORMS, Norm, SquaredL2

CALIBRATIONS = ("sigmoid", "isotonic")
"""What makes probabilities of scores."""

_SEED_LIMIT = 2**32  # seeds of numpy.random.RandomState are below it


def _is_positive_or_none(value: Any) -> bool:
    return value is None or is_positive(value)


def _is_not_negative(value: Any) -> bool:
    return is_positive(value) or (is_real(value) and value == 0)


def is_integer(value: Any) -> bool:
    """Whether a value is an integer, and not True or False."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_count(value: Any) -> bool:
    """Whether a value is an integer of at least 1."""
    return is_integer(value) and value >= 1


def is_grid(value: Any, usable: Callable[[Any], bool] = is_positive) -> bool:
    """Whether a value is a number of settings, or a sequence of settings that can be used."""
    if is_integer(value):
        return bool(value >= 1)
    try:
        values = list(value)
    except TypeError:
        return False
    return not isinstance(value, str) and bool(values) and all(map(usable, values))


def _is_gamma(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("scale", "auto")
    return _is_finite(value) and value >= 0


def _is_finite(value: Any) -> bool:
    return is_real(value) and abs(value) <= sys.float_info.max


def is_count_or_share(value: Any) -> bool:
    """Whether a value is an integer of at least 1 or a float in (0, 1]."""
    return is_count(value) or (isinstance(value, float | np.floating) and 0 < float(value) <= 1)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_seed(value: Any) -> bool:
    if is_integer(value):
        return 0 <= int(value) < _SEED_LIMIT
    return value is None or value is np.random or isinstance(value, np.random.RandomState)


def _is_transformer_or_none(value: Any) -> bool:
    able = hasattr(value, "fit") and hasattr(value, "transform")
    return value is None or (able and not isinstance(value, type))


def _is_class_weight(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(is_real(v) and 0.0 <= float(v) < math.inf for v in value.values())
    return value is None or (isinstance(value, str) and value == "balanced")


Rule: TypeAlias = tuple[Callable[[Any], bool], str]
"""Whether a value can be used, and what it must be, in words."""


def one_of(names: Iterable[str]) -> Rule:
    """The rule for a parameter that is one of some names."""
    known = tuple(names)
    return (
        lambda value: isinstance(value, str) and value in known,
        f"one of {', '.join(map(repr, known))}",
    )


_RULES: dict[str, Rule] = {
    "C": (
        is_positive,
        "a positive, finite number (the larger, the closer the fit to the training data)",
    ),
    "eps": (
        lambda value: is_real(value) and 0 < value < 1,
        "a number between 0 and 1, both excluded (the accuracy, relative to scale)",
    ),
    "scale": (
        is_positive,
        "a positive, finite number (an upper bound of the points' lengths)",
    ),
    "radius": (
        _is_positive_or_none,
        "a positive, finite number (the largest 1-norm of the coefficients) or None (of the size "
        "that the data suggest)",
    ),
    "loss": (
        lambda value: value in LOSSES if isinstance(value, str) else isinstance(value, Loss),
        f"one of {', '.join(map(repr, LOSSES))} or a loss of your own (anynorm.losses.Loss). Norms "
        "of the slacks, as 'l2', are the slack of SVC",
    ),
    "slack": (
        lambda value: (
            value in NAMED_NORMS if isinstance(value, str) else isinstance(value, Norm | SquaredL2)
        ),
        f"one of {', '.join(map(repr, NAMED_NORMS))} or a norm of anynorm.norms, e.g. TopK(10). "
        "'l2' is the length of the slacks, 'squared_l2' the sum of their squares; as losses are "
        "called elsewhere: hinge and absolute are 'l1', squared_hinge and squared 'squared_l2', "
        "with constraints='inequality' and 'equality'",
    ),
    "constraints": one_of(("inequality", "equality")),
    "kernel": (
        is_kernel,
        f"one of {', '.join(map(repr, KERNELS))}, a kernel of anynorm.kernels or a function of two "
        "sets of rows",
    ),
    "budget": (
        is_count_or_share,
        "at least 1 (an integer, a count) or in (0, 1] (a float, a share of the weight: 1.0 is all "
        "of it, 1 a single row)",
    ),
    **dict.fromkeys(
        (
            "strict",
            "shared",
            "leave_one_out",
            "prune",
            "fit_intercept",
            "warm_start",
            "stop_early",
        ),
        (_is_bool, "True or False"),
    ),
    "cache_size": (is_positive, "a positive, finite number of megabytes"),
    "estimator": (
        lambda value: hasattr(value, "fit") and not isinstance(value, type),
        "an estimator, e.g. sklearn.linear_model.LogisticRegression()",
    ),
    "preprocessor": (
        _is_transformer_or_none,
        "None or a transformer, e.g. sklearn.preprocessing.StandardScaler()",
    ),
    "Cs": (
        is_grid,
        "an integer of at least 1 (that many values from 1e-4 to 1e4) or a 1-D array of positive, "
        "finite numbers",
    ),
    "scoring": (
        lambda value: value is None or isinstance(value, str) or callable(value),
        "None (accuracy), the name of a scorer or a callable (estimator, X, y)",
    ),
    **dict.fromkeys(("max_rounds", "max_iter"), (is_count, "an integer of at least 1")),
    "n_rounds": (
        is_count,
        "an integer of at least 1 (1 is the plain 2-norm solution)",
    ),
    "n_components": (
        lambda value: value is None or is_count_or_share(value),
        "None (all rows), an integer of at least 1 or a share, a float in (0, 1]",
    ),
    "gamma": (
        _is_gamma,
        "'scale', 'auto' or a finite number of at least 0",
    ),
    "gammas": (
        lambda value: is_grid(value, _is_gamma),
        "an integer of at least 1 (that many values around 'scale') or a 1-D array of 'scale', "
        "'auto' or finite numbers of at least 0",
    ),
    "calibration": (
        lambda value: value is None or (isinstance(value, str) and value in CALIBRATIONS),
        f"None (no probabilities) or one of {', '.join(map(repr, CALIBRATIONS))}",
    ),
    "degree": (
        lambda value: _is_finite(value) and value >= 0,
        "a finite number of at least 0",
    ),
    "coef0": (_is_finite, "a finite number"),
    **dict.fromkeys(
        ("max_features", "max_joints"),
        (
            lambda value: value is None or is_count(value),
            "None (no limit) or an integer of at least 1",
        ),
    ),
    "radius_max": (
        _is_positive_or_none,
        "None (no limit) or a positive, finite number",
    ),
    "s_max": (
        lambda value: value is None or _is_not_negative(value),
        "None (no limit) or a finite number of at least 0",
    ),
    "multiclass": one_of(("one_C", "one_s", "each")),
    "score_tolerance": (
        lambda value: value is None or _is_not_negative(value),
        "None (one standard error, or 0.01) or a finite number of at least 0 (how far below the "
        "best score)",
    ),
    "intercept_scaling": (
        _is_positive_or_none,
        "None (the intercept is not penalised) or a positive, finite number "
        "(the constant feature whose weight is penalised)",
    ),
    "class_weight": (
        _is_class_weight,
        "None, 'balanced' or a dict that gives class labels finite weights of at least 0",
    ),
    "tol": (is_positive, "a positive, finite number (the relative duality gap to reach)"),
    "time_limit": (
        _is_positive_or_none,
        "None (no limit) or a positive, finite number of seconds",
    ),
    "n_jobs": (
        lambda value: value is None or (is_integer(value) and value != 0),
        "None, a positive integer or a negative one (-1 uses all cores)",
    ),
    "random_state": (
        _is_seed,
        f"None, an integer from 0 to {_SEED_LIMIT - 1} or a numpy.random.RandomState",
    ),
    "verbose": (
        lambda value: _is_bool(value) or (is_integer(value) and value >= 0),
        "an integer of at least 0 (0 silent, 1 a line per progress report, 2 more)",
    ),
}


def check_parameters(estimator: Any, **special: Rule) -> None:
    """Raise a ValueError that names the first parameter of `estimator` that cannot be used.

    `special` has the rules of parameters that allow other values than in other estimators.  What
    has no rule here is checked where it is used, as the parameters that a subclass adds.
    """
    check_values(estimator.get_params(deep=False), **special)


def check_values(values: Mapping[str, Any], **special: Rule) -> None:
    """Raise a ValueError that names the first of some named values that cannot be used."""
    rules = _RULES | special
    for name, value in values.items():
        if name in rules and not rules[name][0](value):
            raise ValueError(f"{name} must be {rules[name][1]}; got {reprlib.repr(value)}.")


def seed(random_state: Any) -> int:
    """One integer from `random_state`; None is 0, so that a plain fit is repeatable."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(random_state.randint(np.iinfo(np.int32).max))


def intercept_kind(
    fit_intercept: bool, intercept_scaling: float | None
) -> Literal["free"] | float | None:
    """The problem's `intercept`: "free", None, or the value of the penalised constant feature."""
    if not fit_intercept:
        return None
    return "free" if intercept_scaling is None else float(intercept_scaling)
