"""What a fit is asked to do, checked when it is said; the messages name the command's options."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from anynorm.design.device import DevicePlace

RULES = {
    "sparse": ("steady", "best", "one_se", "fewest"),
    "reweighted": ("best", "one_se", "fewest", "paper"),
    "budget": ("best", "one_se", "fewest"),
    "least-norm": ("best", "one_se"),
    "least-squares": ("best", "one_se"),
    "linear": ("best", "one_se"),
    "kernel": ("best", "one_se", "fewest"),
}
"""The models, and the rules that can choose among the candidates of each; the first by default."""

SCORINGS = ("error", "balanced", "auc")
SCALES = ("standard", "none")
_ALL_LOSSES = ("auto", "hinge", "squared_hinge", "logistic", "squared", "absolute")
LOSSES = {
    "sparse": ("auto", "hinge", "squared_hinge"),
    "linear": _ALL_LOSSES,
    "reweighted": _ALL_LOSSES,
}
"""The losses of the models that have a choice; "auto" is the hinge, or what suits the size."""

ON_DEVICES = ("kernel", "budget", "least-norm", "least-squares", "linear")
"""The models that can be fitted on a device."""


class OptionError(ValueError):
    """An option that cannot be used; the message names it and says what to do."""


@dataclass(frozen=True)
class FitOptions:
    """What to fit and how to choose, in one spelling; an `OptionError` where one cannot be used.

    Attributes
    ----------
    model : str
        One of `RULES`: "sparse" (the 1-norm SVM along its exact path), "reweighted" (the walk to
        the 1-norm), "budget" (a kernel SVM with at most `budget` support vectors), "least-norm" and
        "least-squares" (equality constraints), "linear", "kernel".
    scale : {"standard", "none"}
        Whether features are brought to mean 0 and standard deviation 1, inside every fold.
    max_features : int or None
        The most features (per class against the rest); for the sparse model.
    loss : str
        One of `LOSSES`.  For the sparse model: the hinge loss along its exact path, or the squared
        hinge loss over a range of C, which is much faster on large data; "auto" takes the path
        where it is short.
    C : tuple of float or None
        The values of C to choose from, for all models but the sparse one, whose path has all of
        them.  On the shell separated by commas.
    keep : tuple of str
        Columns, or patterns of them, that the sparse model uses in any case: they are not
        penalised.
    class_weight : "balanced", dict of str to float, or None
        What the rows of each class weigh in the fit: "balanced" gives all classes the same total.
        On the shell ``LABEL=WEIGHT``, several with commas.
    scoring : {"error", "balanced", "auc"}
        What chooses: the error, the mean of the classes' errors, or the area under the ROC curve.
    cv : int or "loo"
        The number of folds, or leave one out (one group, where there are groups).
    repeats : int
        How often the model is judged by nested cross-validation, each time with other folds.
    rule : str
        How to choose from the scores, see `RULES`; "auto" is the first of them.
    budget : int, float or None
        The most support vectors, or a share of the rows; for the budget model.
    seed : int
        Seeds the folds.
    jobs : int
        The number of threads.
    time_limit : float or None
        The most seconds for everything.
    device : str or None
        Where models are fitted, such as "cuda", by PyTorch or CuPy; None is memory.
    """

    model: str = "sparse"
    scale: str = "standard"
    max_features: int | None = None
    loss: str = "auto"
    C: Any = None
    keep: tuple[str, ...] = ()
    class_weight: Any = None
    scoring: str = "error"
    cv: int | str = 5
    repeats: int = 1
    rule: str = "auto"
    budget: float | None = None
    seed: int = 0
    jobs: int = 1
    time_limit: float | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        """Check everything."""
        model = self.model.replace("_", "-")
        _one_of("--model", model, tuple(RULES))
        rule = RULES[model][0] if self.rule == "auto" else self.rule.replace("-", "_")
        _one_of("--rule", rule, RULES[model], f" for --model {model}")
        _one_of("--scale", self.scale, SCALES)
        _one_of("--scoring", self.scoring, SCORINGS)
        loss = self.loss.replace("-", "_")
        _require(
            model in LOSSES or loss == "auto",
            "--loss",
            f"is for --model {', '.join(LOSSES)}, not {model}; leave it out",
        )
        _one_of("--loss", loss, LOSSES.get(model, ("auto",)), f" for --model {model}")
        _require(
            model == "sparse" or not self.keep,
            "--keep",
            f"is for --model sparse, not {model}; leave it out, or choose the sparse model",
        )
        _require(
            not self.keep or loss != "squared_hinge",
            "--keep",
            "goes with --loss hinge, the exact path",
        )
        if self.max_features is not None:
            _require(
                model == "sparse",
                "--max-features",
                f"is for --model sparse, not {model}; leave it out, or choose the sparse model",
            )
            _require(self.max_features >= 1, "--max-features", "must be at least 1")
        if self.time_limit is not None:
            usable = math.isfinite(self.time_limit) and self.time_limit > 0
            _require(usable, "--time-limit", "must be a number of seconds above 0")
        _require(self.repeats >= 1, "--repeats", f"must be at least 1; got {self.repeats}")
        _require(self.jobs != 0, "--jobs", "must be a number of threads; -1 takes all cores")
        _require(0 <= self.seed < 2**32, "--seed", "must be from 0 to 4294967295")
        if self.device is not None:
            _check_device(self.device, model)
        cv, budget = _folds(self.cv), _budget(self.budget, model)
        _require(
            self.repeats == 1 or cv != "loo",
            "--repeats",
            "needs folds that can be drawn again, which --cv loo has not; give a number of folds",
        )
        weights, Cs = _class_weight(self.class_weight), _prices(self.C, model)
        # frozen for others: this is the one spelling of what was given
        vars(self).update(
            model=model, rule=rule, cv=cv, budget=budget, loss=loss, class_weight=weights, C=Cs
        )


def _check_device(device: str, model: str) -> None:
    _require(
        model in ON_DEVICES,
        "--device",
        f"is for --model {', '.join(ON_DEVICES)}, not {model}; leave it out",
    )
    try:
        DevicePlace.named(device)
    except (ValueError, ImportError) as error:
        raise OptionError(f"--device {device} cannot be used: {error}.") from error


def _folds(cv: Any) -> int | str:
    text = str(cv).strip().lower()
    if text == "loo":
        return text
    message = "must be a number of folds, at least 2, or loo to leave one out"
    _require(text.isdigit() and int(text) >= 2, "--cv", f"{message}; got {cv}")
    return int(text)


def _prices(given: Any, model: str) -> tuple[float, ...] | None:
    if given is None:
        return None
    _require(
        model != "sparse",
        "--C",
        "is for models with a grid of C; the sparse model's path has all of them, see --rule and "
        "--max-features",
    )
    parts = given.split(",") if isinstance(given, str) else np.atleast_1d(given).tolist()
    try:
        values = sorted({float(part) for part in parts})
    except ValueError:
        values = []
    _require(
        bool(values) and all(math.isfinite(value) and value > 0 for value in values),
        "--C",
        f"must be positive numbers, separated by commas; got {given}",
    )
    return tuple(values)


def _class_weight(given: Any) -> Any:
    if given is None or isinstance(given, dict) or str(given).strip() == "balanced":
        return "balanced" if isinstance(given, str) else given
    message = "must be balanced, or weights such as yes=5 or yes=5,no=1"
    found: dict[str, float] = {}
    for part in str(given).split(","):
        label, equals, weight = part.rpartition("=")
        try:
            value = float(weight)
        except ValueError:
            value = math.nan
        _require(
            bool(equals) and math.isfinite(value) and value >= 0,
            "--class-weight",
            f"{message}, each at least 0; got {given}",
        )
        found[label.strip()] = value
    return found


def _budget(budget: float | None, model: str) -> float | None:
    if budget is None:
        return None
    _require(
        model == "budget",
        "--budget",
        "is for --model budget: the most support vectors it may have",
    )
    whole = budget >= 2 and float(budget).is_integer()
    _require(
        whole or 0 < budget < 1,
        "--budget",
        f"must be a number of support vectors, at least 2, or a share below 1; got {budget}",
    )
    return int(budget) if whole else float(budget)


def _one_of(option: str, value: str, allowed: tuple[str, ...], where: str = "") -> None:
    _require(value in allowed, option, f"must be one of {', '.join(allowed)}{where}; got {value}")


def _require(condition: bool, option: str, message: str) -> None:
    if not condition:
        raise OptionError(f"{option} {message}.")
