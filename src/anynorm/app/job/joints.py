"""The exact path of a table, and its joints with the features that come and go."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from anynorm.app.job.class_order import ordered_classes
from anynorm.app.job.options import OptionError
from anynorm.app.tables import Preparation, Table, TableError
from anynorm.estimators._ordered_labels import OrderedLabels
from anynorm.estimators.paths.solution_path import SolutionPath
from anynorm.estimators.sparse_path import sparse_svm_path

_TOL = 1e-4  # gap of every joint: the default tol of estimators


@dataclass(frozen=True)
class Followed:
    """A path, what its features are called, and what they were divided by."""

    path: SolutionPath
    names: np.ndarray
    scales: np.ndarray

    @property
    def converged(self) -> bool:
        """Whether neither time nor rounding cut the path short, and every joint is certified."""
        cut = self.path.stopped in ("time_limit", "stuck")
        return not cut and float(self.path.gaps.max()) <= _TOL

    def joints(self) -> pd.DataFrame:
        """A row per joint: s, C, the loss, the number of features, and which enter and leave."""
        path, coefs = self.path, self.path.coefs
        supports = [
            set(coefs.indices[coefs.indptr[k] : coefs.indptr[k + 1]].tolist())
            for k in range(path.n_joints)
        ]
        pairs = pairwise(supports)
        ahead = [*(one | other for one, other in pairs), supports[-1]]
        behind = [supports[0], *ahead[:-1]]
        with np.errstate(divide="ignore"):
            prices = np.where(path.penalties > 0, 1.0 / path.penalties, np.inf)
        return pd.DataFrame(
            {
                "joint": np.arange(path.n_joints),
                "s": path.s,
                "C": prices,
                "loss": path.losses,
                "features": path.n_nonzero,
                "gap": path.gaps,
                "enters": [self._listed(a - b) for a, b in zip(ahead, behind, strict=True)],
                "leaves": [self._listed(b - a) for a, b in zip(ahead, behind, strict=True)],
            }
        )

    def weights(self) -> pd.DataFrame:
        """A row per joint and feature in use there: its weight, and that in the file's units."""
        coefs = self.path.coefs.tocoo()
        order = np.lexsort([-np.abs(coefs.data), coefs.row])
        rows, columns, values = coefs.row[order], coefs.col[order], coefs.data[order]
        return pd.DataFrame(
            {
                "joint": rows,
                "s": self.path.s[rows],
                "feature": self.names[columns],
                "weight": values,
                "weight_original_units": values / self.scales[columns],
            }
        )

    def _listed(self, features: set[int]) -> str:
        return ", ".join(str(self.names[j]) for j in sorted(features))


def follow(table: Table, *, scale: str = "standard", **limits: Any) -> Followed:
    """Follow the path of all rows of a table of two classes.

    Parameters
    ----------
    table : Table
        The rows, with their labels.
    scale : {"standard", "none"}, default="standard"
        Whether features are brought to mean 0 and standard deviation 1.
    **limits
        As in `anynorm.sparse_svm_path`: `max_features`, `max_joints`, `s_max`, `time_limit`.

    Returns
    -------
    Followed
        The path; a positive weight speaks for the table's positive label.
    """
    if table.target is None:
        raise TableError("say which column has the classes: --target NAME.", source=table.source)
    classes = ordered_classes(table.target, table.positive)
    if len(classes) > 2:
        labels = ", ".join(repr(str(label)) for label in classes[:6])
        raise OptionError(
            f"a path is for two classes, and there are {len(classes)} ({labels}"
            f"{', ...' if len(classes) > 6 else ''}). Choose one against the rest with --positive."
        )
    preparation = Preparation(scale=scale)
    X = preparation.fit(table.features).transform(table.features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # `converged` says so
        path = sparse_svm_path(X, OrderedLabels(table.target, classes), **limits)
    return Followed(path, np.asarray(preparation.get_feature_names_out()), preparation.scales_)
