"""A matrix of numbers that knows the names of its columns, and gives its rows as a frame does."""

from __future__ import annotations

from typing import Any

import numpy as np


class NumberFrame:
    """Numbers alone, none missing; a data frame takes far longer to give and name its rows.

    Parameters
    ----------
    matrix : ndarray or CSR matrix of shape (n, p)
    columns : sequence of str, p names

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.app.tables.number_frame import NumberFrame
    >>> frame = NumberFrame(np.eye(3), ["a", "b", "c"])
    >>> frame.iloc[[1]].matrix.tolist(), len(frame), frame.has_names(["a", "b", "c"])
    ([[0.0, 1.0, 0.0]], 3, True)
    """

    def __init__(self, matrix: Any, columns: Any) -> None:
        self.matrix = matrix
        self.columns = np.asarray(columns, dtype=object)
        if self.columns.shape != (matrix.shape[1],):
            raise ValueError(f"{matrix.shape[1]} names are needed; got {self.columns.shape}.")

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.matrix.shape

    def __len__(self) -> int:
        return self.matrix.shape[0]

    @property
    def iloc(self) -> _Rows:
        """Rows by position, as in pandas."""
        return _Rows(self)

    def has_names(self, names: list[str]) -> bool:
        """Whether these are the names of the columns, in this order."""
        return self.columns.tolist() == names


class _Rows:
    def __init__(self, frame: NumberFrame) -> None:
        self._frame = frame

    def __getitem__(self, rows: Any) -> Any:
        frame = self._frame
        return type(frame)(frame.matrix[rows], frame.columns)
