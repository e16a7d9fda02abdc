"""What all reports have: a title, facts, notes, a certificate, and held-out decision values.

Decision values of rows by folds that held them out stand apart from those of the rows a model was
fitted to: with more features than rows the latter are perfect, and say nothing.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anynorm.estimators._cross_validation import standard_error
from anynorm.problem.certificate import Certificate

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Decision values of rows by models that never saw them.

    Parameters
    ----------
    class_names : sequence of str
        The classes; a positive decision value of two speaks for the second.
    codes : array-like of int of shape (n,)
        The places of the rows' labels among them.
    scores : array-like of shape (n,) or (n, K)
        Out-of-fold decision values: one for two classes, one per class otherwise; NaN where a row
        was never held out.
    training_scores : array-like of the same shape or None, default=None
        The decision values of the final model, which was fitted to these rows.
    sample_names : sequence of str or None, default=None
        The rows' names; None numbers them.
    judged_by : str, default="out of fold"
        Where the values come from, in words, e.g. "nested cross-validation".
    """

    class_names: Sequence[str]
    codes: ArrayLike
    scores: ArrayLike
    training_scores: ArrayLike | None = None
    sample_names: Sequence[str] | None = None
    judged_by: str = "out of fold"

    def __post_init__(self) -> None:
        n, K = len(numbers(self.codes)), len(self.class_names)
        shape = (n,) if np.ndim(self.scores) == 1 else (n, K)
        if K < 2 or (len(shape) == 1 and K != 2):
            raise ValueError(
                f"scores of shape {np.shape(self.scores)} do not go with {K} class_names: one "
                "column for two classes, one per class otherwise."
            )
        require_shape(self, "scores", shape)
        require_shape(self, "training_scores", shape)
        require_names(self, "sample_names", n)

    def packed(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        training = self.training_scores
        return {
            "classes": texts(self.class_names),
            "codes": array(self.codes, "i4"),
            "scores": array(np.asarray(self.scores, dtype=np.float64).T, "f4"),
            "training": None if training is None else array(np.asarray(training).T, "f4"),
            "samples": texts(self.sample_names),
            "judgedBy": str(self.judged_by),
        }


@dataclass(frozen=True, eq=False)
class GridView:
    """The cross-validated errors of a grid of settings.

    Parameters
    ----------
    columns, rows : (str, array-like)
        What changes from column to column and from row to row: a name and its values.
    error, error_se : array-like of shape (rows, columns)
        The mean error over the folds and its standard error; NaN where a setting was not tried.
    chosen : (int, int)
        The row and the column of the choice.
    """

    columns: tuple[str, ArrayLike]
    rows: tuple[str, ArrayLike]
    error: ArrayLike
    error_se: ArrayLike
    chosen: tuple[int, int]

    def __post_init__(self) -> None:
        shape = (len(numbers(self.rows[1])), len(numbers(self.columns[1])))
        require_shape(self, "error", shape)
        require_shape(self, "error_se", shape)
        if any(not 0 <= k < n for k, n in zip(self.chosen, shape, strict=True)):
            raise ValueError(f"chosen of GridView must be a place in {shape}; got {self.chosen}.")

    @classmethod
    def of(
        cls,
        candidates: Sequence[Mapping[str, Any]],
        scores: NDArray[np.float64],
        chosen: int,
        names: Mapping[str, str] | None = None,
    ) -> GridView:
        """Return the grid of settings that have C and perhaps one thing more.

        Parameters
        ----------
        candidates : sequence of mapping
            The settings: C, and what else changes.
        scores : ndarray of shape (candidates, folds)
            The folds' scores; NaN where a setting was left out.
        chosen : int
            The place of the choice.
        names : mapping or None, default=None
            What the other thing is called on the page, by its name in the settings.

        Returns
        -------
        GridView
            The grid, C across.

        Examples
        --------
        >>> import numpy as np
        >>> from anynorm.app.report import GridView
        >>> tried = [{"C": 1.0, "gamma": 0.5}, {"C": 10.0, "gamma": 0.5}]
        >>> grid = GridView.of(tried, np.array([[0.8, 0.9], [0.7, 0.7]]), chosen=0)
        >>> grid.columns, grid.rows, grid.error.round(2).tolist()
        (('C', [1.0, 10.0]), ('gamma', [0.5]), [[0.15, 0.3]])
        """
        row = next((name for name in candidates[0] if name != "C"), None)
        Cs = sorted({each["C"] for each in candidates})
        widths = sorted({each[row] for each in candidates}) if row else [1.0]
        error = np.full((len(widths), len(Cs)), np.nan)
        spread, where = error.copy(), (0, 0)
        for k, each in enumerate(candidates):
            place = (widths.index(each[row]) if row else 0, Cs.index(each["C"]))
            error[place] = 1.0 - scores[k].mean()
            spread[place] = standard_error(scores[k])
            where = place if k == chosen else where
        name = (names or {}).get(row, row) if row else ""
        return cls(("C", Cs), (name, widths), error, spread, where)

    def packed(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return {
            "columns": [str(self.columns[0]), array(self.columns[1], "f8")],
            "rows": [str(self.rows[0]), array(self.rows[1], "f8")],
            "error": array(self.error, "f8"),
            "se": array(self.error_se, "f8"),
            "chosen": [int(k) for k in self.chosen],
        }


@dataclass(frozen=True, eq=False)
class ReliabilityView:
    """How well probabilities agree with what came to pass.

    Parameters
    ----------
    class_names : sequence of str
        The classes that curves are shown of: the second of two, otherwise all.
    curves : sequence of (array-like, array-like, array-like)
        For each of them the probabilities that were said, the shares that came to pass and the
        numbers of rows, bin by bin.
    brier : float
        The mean squared error of the probabilities.
    """

    class_names: Sequence[str]
    curves: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]]
    brier: float

    def __post_init__(self) -> None:
        require_names(self, "class_names", len(self.curves))
        for curve in self.curves:
            if len({np.shape(part) for part in curve}) != 1 or np.ndim(curve[0]) != 1:
                raise ValueError("curves of ReliabilityView need three lists of one length each.")

    def packed(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return {
            "classes": texts(self.class_names),
            "curves": [[array(part, "f8") for part in curve] for curve in self.curves],
            "brier": number(self.brier),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """What all reports have.

    A kind of report is a subclass with its fields, what a page gets of them (`packed`), its `kind`
    and its `scripts` (in static/, or anywhere by their full paths), the last of which sets
    ``pages[kind]`` to what shows it.

    Parameters
    ----------
    title : str
        The page's heading.
    facts : mapping of str to str, default={}
        Short facts in order, e.g. the error with its standard error, the time, the versions.
    notes : sequence of str, default=()
        What was done to the data, in plain sentences.
    certificate : Certificate, str or None, default=None
        How far the model can be from the optimum.
    caution : str, default=""
        Why the model is not to be praised, however well it is solved: shown first, in amber.
    feature_names : sequence of str or None, default=None
        The names of the p features; None is x0, x1, ...
    scales : array-like of shape (p,) or None, default=None
        What the features were divided by before fitting: weights are then shown per original
        unit too.
    selection_frequency : array-like of shape (p,) or None, default=None
        The share of the folds that use the feature.
    measure : str, default="error"
        What the cross-validated error measures, e.g. "error", "balanced error", "1 - AUC".
    evaluation : Evaluation or None, default=None
        Results of rows that the model, and the search for it, had no part in.
    reliability : ReliabilityView or None, default=None
        How good the probabilities are, where the model has some.
    grid : GridView or None, default=None
        The settings that were compared, where they are a grid.
    versions : str, default=""
        Of the packages that made the model, for the foot of the page.
    """

    kind: ClassVar[str] = ""
    scripts: ClassVar[tuple[str, ...]] = ()

    title: str
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    certificate: Certificate | str | None = None
    caution: str = ""
    feature_names: Sequence[str] | None = None
    scales: ArrayLike | None = None
    selection_frequency: ArrayLike | None = None
    measure: str = "error"
    evaluation: Evaluation | None = None
    reliability: ReliabilityView | None = None
    grid: GridView | None = None
    versions: str = ""

    def _check_features(self, p: int) -> None:
        require_names(self, "feature_names", p)
        require_shape(self, "scales", (p,))
        require_shape(self, "selection_frequency", (p,))

    def packed(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        raise NotImplementedError

    def _shared(self, p: int) -> dict[str, Any]:
        """What the pages of all kinds have, for a model of p features."""
        return {
            "kind": self.kind,
            "title": str(self.title),
            "facts": [[str(name), str(value)] for name, value in self.facts.items()],
            "notes": [str(note) for note in self.notes],
            "certificate": _packed_certificate(self.certificate),
            "caution": str(self.caution),
            "p": p,
            "features": texts(self.feature_names),
            "scales": optional(self.scales, "f8"),
            "frequency": optional(self.selection_frequency, "f8"),
            "measure": str(self.measure),
            "evaluation": None if self.evaluation is None else self.evaluation.packed(),
            "reliability": None if self.reliability is None else self.reliability.packed(),
            "grid": None if self.grid is None else self.grid.packed(),
            "versions": str(self.versions),
        }


def _packed_certificate(certificate: Certificate | str | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    if isinstance(certificate, str):
        return {"text": certificate}
    return {
        "text": str(certificate),
        "status": str(certificate.status),
        "primal": number(certificate.primal),
        "dual": number(certificate.dual),
        "gap": number(certificate.gap),
        "tol": number(certificate.tol),
    }


def numbers(values: Any) -> Array:
    """Return an array of float64."""
    return np.asarray(values, dtype=np.float64)


def fold_scores(table: Mapping[str, Any]) -> Array:
    """Return the folds' scores of a table ``cv_results_``, of shape (settings, folds)."""
    names = [name for name in table if name.startswith("split") and name.endswith("_test_score")]
    return np.column_stack([numbers(table[name]) for name in names])


def require_both(content: Any, first: str, second: str) -> None:
    """Raise where one of two values is given without the other."""
    if (getattr(content, first) is None) != (getattr(content, second) is None):
        raise ValueError(f"{type(content).__name__} needs both {first} and {second}, or neither.")


def require_shape(content: Any, name: str, shape: tuple[int | None, ...]) -> None:
    """Raise where an array that is given has another shape; None in it stands for any length."""
    value = getattr(content, name)
    if value is None:
        return
    found = np.shape(value)
    fits = len(found) == len(shape) and all(
        wanted in (None, got) for wanted, got in zip(shape, found, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{name} of {type(content).__name__} has shape {found}, not ({wanted}).")


def require_increasing(content: Any, name: str, *, strictly: bool = False) -> None:
    """Raise where places are not finite, or fall (or stay, where they must not)."""
    places = numbers(getattr(content, name))
    falls = np.diff(places) <= 0 if strictly else np.diff(places) < 0
    if not len(places) or falls.any() or not np.isfinite(places).all():
        raise ValueError(
            f"{name} of {type(content).__name__} must be finite numbers that "
            f"{'increase' if strictly else 'do not decrease'}."
        )


def require_names(content: Any, name: str, n: int) -> None:
    """Raise where names that are given are not as many as they should be."""
    names = getattr(content, name)
    if names is not None and len(names) != n:
        raise ValueError(f"{name} of {type(content).__name__} has {len(names)} names for {n}.")


def array(values: Any, dtype: str) -> str:
    """Return the numbers in base64, as little-endian `dtype` ("f8", "f4", "i4", "u1")."""
    flat = np.ascontiguousarray(values, dtype="<" + dtype)
    return base64.b64encode(flat.tobytes()).decode("ascii")


def optional(values: Any, dtype: str) -> str | None:
    """Return the same of numbers that may be None."""
    return None if values is None else array(values, dtype)


def texts(names: Sequence[Any] | None) -> list[str] | None:
    """Return names as texts."""
    return None if names is None else [str(name) for name in names]


def number(value: float) -> float | None:
    """Return a number, None where it is not finite, which JSON has not."""
    return float(value) if math.isfinite(value) else None
