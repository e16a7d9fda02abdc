"""svmlight files, and a sparse matrix that knows the names of its columns."""

from __future__ import annotations

import io
import pathlib
import re
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from anynorm.app.tables.errors import TableError
from anynorm.app.tables.files import read_bytes
from anynorm.app.tables.number_frame import NumberFrame

_LABEL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
_PAIR = re.compile(rb"\d+:[+-]?(\d+\.?\d*|\.\d+|inf|nan)([eE][+-]?\d+)?$", re.IGNORECASE)


class SparseFrame(NumberFrame):
    """A sparse matrix with named columns; rows are taken as from a data frame.

    Parameters
    ----------
    matrix : CSR matrix of shape (n, p)
    columns : sequence of str, p names

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from anynorm import tables
    >>> frame = tables.SparseFrame(sp.csr_matrix([[0.0, 2.0], [1.0, 0.0]]), ["5", "7"])
    >>> frame.iloc[[1]].shape, list(frame.columns)
    ((1, 2), ['5', '7'])
    """

    def __init__(self, matrix: Any, columns: Any) -> None:
        super().__init__(matrix.tocsr(), columns)

    def named(self, names: Any) -> SparseFrame:
        """Return the columns of these names; those that are not there are zero."""
        names = [str(name) for name in names]
        if self.has_names(names):
            return self
        place = {name: k for k, name in enumerate(names)}
        target = np.array([place.get(name, -1) for name in self.columns], dtype=np.int64)
        entries = self.matrix.tocoo()
        columns = target[entries.col]
        known = columns >= 0
        matrix = sp.csr_matrix(
            (entries.data[known], (entries.row[known], columns[known])),
            shape=(len(self), len(names)),
        )
        return SparseFrame(matrix, names)


def read_svmlight(
    path: pathlib.Path,
) -> tuple[SparseFrame, NDArray[np.float64], NDArray[np.int64] | None]:
    """Return the features, named by their numbers in the file, the labels and the query ids."""
    data = read_bytes(path)
    if not data.strip():
        raise TableError("the file is empty.")
    with_queries = b"qid:" in data
    try:
        parts = load_svmlight_file(io.BytesIO(data), zero_based=True, query_id=with_queries)
    except (ValueError, OverflowError) as error:
        line, what = _first_fault(data)
        raise TableError(
            f"{what or error}. Lines of svmlight files read: label number:value number:value ... "
            "with the numbers increasing.",
            line=line,
        ) from None
    X, y = parts[0], parts[1]
    if not len(y):
        raise TableError("the file has no rows.")
    wrong = np.flatnonzero(~np.isfinite(X.data))
    if len(wrong):
        row = int(np.searchsorted(X.indptr, wrong[0], side="right")) - 1
        raise TableError(
            f"the value of feature {X.indices[wrong[0]]} is {X.data[wrong[0]]}. Give finite "
            "numbers; leave out what is zero.",
            line=_lines(data)[row][0],
        )
    # Counted from 0 or from 1: whether feature 0 occurs decides, and names keep the numbers.
    first = 0 if X.shape[1] and X[:, [0]].nnz else 1
    names = [str(k) for k in range(first, X.shape[1])]
    return SparseFrame(X[:, first:], names), y, parts[2] if with_queries else None


def _lines(data: bytes) -> list[tuple[int, bytes]]:
    """Return the lines with content, and their numbers."""
    lines = ((k, line.split(b"#")[0]) for k, line in enumerate(data.split(b"\n"), start=1))
    return [(k, line) for k, line in lines if line.strip()]


def _first_fault(data: bytes) -> tuple[int | None, str]:
    """Return the first line that is not as it should be, and what is wrong with it."""
    for number, line in _lines(data):
        fields = line.split()
        if not _LABEL.match(fields[0]):
            return number, f"the label {_shown(fields[0])} is not a number"
        last = -1
        for pair in fields[1:]:
            if pair.startswith(b"qid:"):
                continue
            if not _PAIR.match(pair):
                return number, f"{_shown(pair)} is not number:value"
            index = int(pair.split(b":")[0])
            if index <= last:
                return number, f"feature {index} stands after feature {last}"
            last = index
    return None, ""


def _shown(field: bytes) -> str:
    return repr(field[:40].decode("utf-8", "replace"))
