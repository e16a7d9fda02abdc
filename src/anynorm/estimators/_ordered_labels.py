"""Labels whose classes stand in an order that is not the alphabet's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


class OrderedLabels(np.ndarray):
    """Class labels with an order of their classes, which a fit keeps: of two the later is positive.

    A part of them, such as ``labels[rows]``, has the same order; classes that have no rows there
    are skipped.

    Examples
    --------
    >>> from anynorm import LinearSVC
    >>> from anynorm.estimators._ordered_labels import OrderedLabels
    >>> labels = OrderedLabels(["ill", "well", "ill"], order=["well", "ill"])
    >>> LinearSVC().fit([[2.0], [1.0], [3.0]], labels).classes_.tolist()
    ['well', 'ill']
    """

    order: np.ndarray

    def __new__(cls, labels: ArrayLike, order: ArrayLike) -> OrderedLabels:
        """Return the labels, seen with their order."""
        found = np.asarray(labels).view(cls)
        found.order = np.asarray(order)
        return found

    def __array_finalize__(self, whole: Any) -> None:
        """Take over the order of what this is a part of."""
        self.order = getattr(whole, "order", np.empty(0))

    def reordered(self, classes: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sorted classes in this order, and the rows' places among them instead of `codes`."""
        places = np.argsort(places_of(classes, self.order))
        return classes[places], np.argsort(places)[codes]


def places_of(labels: ArrayLike, classes: np.ndarray) -> np.ndarray:
    """The places of labels among classes in any order; each label is one of them."""
    sorter = np.argsort(classes)
    return sorter[np.searchsorted(classes, np.asarray(labels), sorter=sorter)]
