"""The folds of a table, which keep classes spread and groups together."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.model_selection import (
    LeaveOneGroupOut,
    LeaveOneOut,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from anynorm.app.job.options import FitOptions, OptionError
from anynorm.estimators._prepared_folds import Split


def make_splits(
    y: np.ndarray, groups: np.ndarray | None, options: FitOptions
) -> tuple[list[Split], list[str]]:
    """Return folds that keep classes y spread and groups together, and notes on them."""
    cv, seed = options.cv, options.seed
    notes: list[str] = []
    if cv == "loo":
        one_out = LeaveOneOut() if groups is None else LeaveOneGroupOut()
        splits = list(one_out.split(y, y, groups))
    else:
        count = _possible_folds(y, groups, int(cv), notes)
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(n_splits=count, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # classes with fewer rows than folds
            splits = list(splitter.split(y, y, groups))
    if any(len(np.unique(y[train])) < 2 for train, _ in splits):
        where = "of --group or of the smaller class" if groups is not None else "of the class"
        raise OptionError(
            f"--cv {cv} leaves a fold with one class to learn from: too few rows {where}. Use "
            "fewer folds, give more rows, or judge the model with --test FILE."
        )
    if options.scoring == "auc" and any(len(np.unique(y[test])) < 2 for _, test in splits):
        raise OptionError(
            f"--scoring auc with --cv {cv} leaves a fold that holds out one class alone, for which "
            "there is no ROC curve. Use fewer folds, or --scoring balanced."
        )
    return splits, notes


def fold_numbers(splits: list[Split], n: int) -> np.ndarray:
    """For each of n rows the number, from 1, of the fold that holds it out; each is in one."""
    numbers = np.zeros(n, dtype=np.intp)
    for number, (_, test) in enumerate(splits):
        numbers[test] = number + 1
    return numbers


def numbered_splits(numbers: np.ndarray) -> list[Split]:
    """The folds of which these are the numbers; far smaller to keep where one row is left out."""
    folds = range(1, int(numbers.max()) + 1)
    return [(np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)) for k in folds]


def _possible_folds(y: np.ndarray, groups: np.ndarray | None, cv: int, notes: list[str]) -> int:
    """The number of folds, no more than there are groups, or rows of the smaller of two classes."""
    counts = np.bincount(y)
    counts = counts[counts > 0]
    count = cv
    if len(counts) == 2 and counts.min() < count:
        count = int(counts.min())
        notes.append(f"{count} folds instead of {cv}: the smaller class has {count} rows.")
    elif len(counts) > 2 and counts.max() < count:
        count = int(counts.max())
        notes.append(f"{count} folds instead of {cv}: no class has more than {count} rows.")
    n_groups = len(y) if groups is None else len(np.unique(groups))
    if n_groups < count:
        count = n_groups
        notes.append(f"{count} folds instead of {cv}: there are {count} groups.")
    if count < 2:
        what = "rows of each class" if groups is None else "groups"
        raise OptionError(
            f"--cv {cv} needs at least two {what} among the rows to learn from; there is {count}. "
            "Give more rows, or judge the model with --test FILE."
        )
    return count
