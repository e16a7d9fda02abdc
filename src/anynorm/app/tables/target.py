"""The target column as class labels: integers or text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anynorm.app.tables import cells
from anynorm.app.tables.errors import TableError, listed

_MANY = 20  # classes; more are refused where they have few rows each


def as_labels(values: cells.Texts) -> NDArray[Any]:
    """Return integers where every text is a whole number, otherwise the texts."""
    table, strays = cells.number_table(cells.distinct(values))
    numbers = cells.mapped(values, table)
    whole = not strays and np.isfinite(numbers).all() and (np.abs(numbers) < 2**53).all()
    if whole and len(numbers) and (numbers == np.round(numbers)).all():
        return numbers.astype(np.int64)
    return np.array(list(values), dtype=str)


def check_classes(labels: NDArray[Any], source: Any, column: str | None) -> None:
    """Refuse a target of one class, and one that is a measurement."""
    classes = np.unique(labels)
    if len(classes) < 2:
        raise TableError(
            f"every row has the label {str(classes[0])!r}; two classes are needed.",
            source=source,
            column=column,
        )
    numbers, strays = cells.number_table([str(each) for each in classes])
    fractions = not strays and any(number != round(number) for number in numbers.values())
    many = len(classes) > _MANY and len(classes) > len(labels) / 5
    if many or (fractions and len(classes) > _MANY // 2):
        what = "numbers" if not strays else "texts"
        raise TableError(
            f"{len(classes)} different {what} in {len(labels)} rows: a measurement or a name, not "
            "a class. Choose another target, or make classes of it first.",
            source=source,
            column=column,
        )


def alike_labels(labels: NDArray[Any]) -> list[str]:
    """Return a note on labels that differ in capitals, blanks or signs alone, as yes and Yes."""
    groups: dict[str, list[str]] = {}
    for label in np.unique(labels).tolist():
        plain = "".join(each for each in str(label).lower() if each.isalnum())
        groups.setdefault(plain or str(label), []).append(str(label))
    found = [listed(group) for group in groups.values() if len(group) > 1]
    if not found or labels.dtype.kind != "U":
        return []
    return [
        f"Labels that are spelled almost alike count as different classes: {'; '.join(found)}. If "
        "they are one, write them alike."
    ]


def positive_label(
    labels: NDArray[Any], positive: str | int, source: Any, column: str | None
) -> tuple[NDArray[Any], Any, list[str]]:
    """Return the labels, the positive one among them, and notes.

    Of more than two classes the others become one: 'not POSITIVE'.
    """
    classes = np.unique(labels)
    wanted = as_labels(np.array([str(positive).strip()], dtype=object))[0]
    same = [each for each in classes if str(each) == str(wanted) or str(each) == str(positive)]
    if not same:
        raise TableError(
            f"no row has the positive label {str(positive)!r}; the labels are {listed(classes)}.",
            source=source,
            column=column,
        )
    label = same[0].item()
    if len(classes) == 2:
        return labels, label, []
    rest = f"not {label}"
    others = [each for each in classes if each != label]
    joined = np.where(labels == label, str(label), rest)
    return joined, str(label), [f"{listed(others)} became one class, {rest!r}."]
