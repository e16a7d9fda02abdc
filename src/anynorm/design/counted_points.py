"""Points whose entries are counted, and checked, when they are read.

To check all of them beforehand would be to read them, which a sublinear solver must not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design import design_of

Array = NDArray[np.float64]

_TOO_LONG = 1e-6  # the share by which rounding may lengthen a point


class CountedPoints:
    """Points over `scale`, a bound of their lengths; `entries_read` counts what was asked for."""

    def __init__(self, A: Any, scale: float) -> None:
        self._lazy = hasattr(A, "entry") and hasattr(A, "column")
        if not self._lazy:
            A = A if sp.issparse(A) else np.asarray(A)
            if A.ndim != 2:
                raise ValueError(f"A must be a matrix; got an array of {A.ndim} dimensions.")
            if A.dtype.kind not in "fiub":
                raise ValueError(f"A must hold real numbers; got the type {A.dtype}.")
            A = design_of(A)
        self._A, self.scale = A, scale
        self.d, self.n = (A.d, A.n) if self._lazy else A.shape
        if self.d < 1 or self.n < 1:
            raise ValueError(f"A must have rows and columns; got the shape ({self.d}, {self.n}).")
        self.entries_read = 0
        self._stored: Array | None = None

    def column(self, j: int) -> Array:
        """Point j."""
        if self._stored is not None:
            return self._stored[:, j]
        self.entries_read += self.d
        point = self._checked(self._A.column(j), self.d, f"point {j}")
        self._check_length(point, j)
        return point

    def coordinate(self, i: int) -> Array:
        """Coordinate i of all points."""
        if self._stored is not None:
            return self._stored[i]
        self.entries_read += self.n
        values = self._A.entry(i, np.arange(self.n)) if self._lazy else self._A.row(i)
        return self._checked(values, self.n, f"coordinate {i}")

    def read_all(self) -> None:
        """Read every entry, once."""
        if self._lazy:
            self._stored = np.column_stack([self.column(j) for j in range(self.n)])
            return
        self.entries_read += self.n * self.d
        A = self._A.dense()
        if not np.isfinite(A).all():
            raise ValueError("A has NaN or infinite entries. Replace them by finite values.")
        self._stored = A / self.scale
        longest = int(np.argmax(np.einsum("ij,ij->j", self._stored, self._stored)))
        self._check_length(self._stored[:, longest], longest)

    def least_product(self, w: Array) -> float:
        """The least product of a point with w, by reading all of them."""
        self.entries_read += self.n * self.d
        if self._stored is not None:
            return float((w @ self._stored).min())
        if hasattr(self._A, "dot") and self._lazy:
            return float(self._A.dot(w).min()) / self.scale
        if not self._lazy:
            return float(self._A.rmatvec(w).min()) / self.scale
        products = [float(np.asarray(self._A.column(j)) @ w) for j in range(self.n)]
        return min(products) / self.scale

    def _checked(self, values: Any, size: int, name: str) -> Array:
        out = np.asarray(values, dtype=np.float64)
        if out.shape != (size,):
            raise ValueError(f"{name} of A must have {size} entries; got the shape {out.shape}.")
        if not np.isfinite(out).all():
            raise ValueError(
                f"{name} of A has NaN or infinite entries. Replace them by finite values."
            )
        return out / self.scale

    def _check_length(self, point: Array, j: int) -> None:
        length = float(np.linalg.norm(point))
        if length > 1 + _TOO_LONG:
            raise ValueError(
                f"point {j} has the length {length * self.scale:g}, more than scale = "
                f"{self.scale:g}. Give scale=, an upper bound of all lengths, or scale the points."
            )
