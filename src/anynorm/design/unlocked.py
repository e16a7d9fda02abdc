"""Long calls of BLAS and LAPACK during which other threads run.

SciPy's own keep the interpreter's lock until they return, and NumPy's make another matrix.  These
are the same routines of the same library as SciPy's, so results are the same bits.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf

_LONG = 128  # rows: SciPy's own calls with fewer take some ten microseconds, and less to begin


def add_square(out: np.ndarray, block: np.ndarray) -> None:
    """Add the lower half of block block' to `out`; both are in Fortran's order.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.unlocked import add_square
    >>> out = np.zeros((2, 2), order="F")
    >>> add_square(out, np.array([[1.0, 2.0], [3.0, 4.0]], order="F"))
    >>> out
    array([[ 5.,  0.],
           [11., 25.]])
    """
    n, k = block.shape
    for A in (out, block):
        if not (A.flags.f_contiguous and A.dtype == np.float64):
            raise ValueError("add_square takes float64 numbers in Fortran's order")
    if n < _LONG:
        dsyrk(1.0, block, beta=1.0, c=out, lower=1, overwrite_c=1)
    elif k:
        _routine("blas", "dsyrk")(b"L", b"N", n, k, 1.0, block, n, 1.0, out, n)


def lower_cholesky(A: np.ndarray) -> np.ndarray | None:
    """L with L L' = A, from A's lower half; what is above the diagonal of L means nothing.

    None where A is not positive definite, as far as rounding can tell.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.unlocked import lower_cholesky
    >>> np.tril(lower_cholesky(np.array([[4.0, 2.0], [2.0, 2.0]])))
    array([[2., 0.],
           [1., 1.]])
    """
    n = len(A)
    if n < _LONG:
        factor, failed = dpotrf(A, lower=1, clean=0)
        return None if failed else factor
    factor, info = np.array(A, dtype=np.float64, order="F"), np.zeros(1, np.intc)
    _routine("lapack", "dpotrf")(b"L", n, factor, n, info)
    return None if info[0] else factor


def factor_rows(A: np.ndarray) -> bool:
    """Put L with L L' = A in the place of A's lower half; False where A is not positive definite.

    The rows of A, float32 or float64, may be parts of longer ones.  What is above the diagonal
    means nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.unlocked import factor_rows
    >>> A = np.array([[4.0, 2.0], [2.0, 2.0]])
    >>> factor_rows(A), np.tril(A)
    (True, array([[2., 0.],
           [1., 1.]]))
    """
    # To Fortran, which reads along columns, rows in memory are an upper half.
    info = np.zeros(1, np.intc)
    _routine("lapack", f"{_letter(A)}potrf")(b"U", len(A), A, _stride(A), info)
    return not info[0]


def solve_rows(factor: np.ndarray, right: np.ndarray) -> None:
    """Put ``L^-1 right`` in the place of `right`, for a factor as `factor_rows` leaves it.

    `right` is of the factor's type and in Fortran's order, its columns perhaps parts of longer
    ones.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.unlocked import solve_rows
    >>> right = np.array([[2.0], [3.0]], order="F")
    >>> solve_rows(np.array([[2.0, 0.0], [1.0, 1.0]]), right)
    >>> right
    array([[1.],
           [2.]])
    """
    n, k = right.shape
    if factor.dtype != right.dtype or len(factor) != n:
        raise ValueError("solve_rows takes a factor and right sides of its type and length")
    one, step = np.ones(1, factor.dtype), _stride(right.T)
    _routine("blas", f"{_letter(factor)}trsm")(
        b"L", b"U", b"T", b"N", n, k, one, factor, _stride(factor), right, step
    )


def _letter(A: np.ndarray) -> str:
    """What the names of Fortran's routines for this type begin with."""
    return {"float32": "s", "float64": "d"}[A.dtype.name]


def _stride(A: np.ndarray) -> int:
    """How many numbers it is from one row to the next."""
    if A.strides[1] != A.itemsize and A.shape[1] > 1:
        raise ValueError("the numbers of a row must be neighbours in memory")
    return max(A.strides[0] // A.itemsize, A.shape[1])


@functools.cache
def _routine(library: str, name: str) -> Callable[..., None]:
    """A routine of Fortran, which takes the addresses of what it is given."""
    exported = importlib.import_module(f"scipy.linalg.cython_{library}").__pyx_capi__[name]
    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype = ctypes.c_void_p
    address_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = address_of(exported, name_of(exported))
    routine = ctypes.CFUNCTYPE(None)(address)  # which lets go of the lock

    def call(*given: Any) -> None:
        routine(*(_place(value) for value in given))

    return call


def _place(value: Any) -> Any:
    """What Fortran finds an argument by."""
    if isinstance(value, bytes):
        return ctypes.c_char_p(value)
    if isinstance(value, int):
        return ctypes.byref(ctypes.c_int(value))
    if isinstance(value, float):
        return ctypes.byref(ctypes.c_double(value))
    return ctypes.c_void_p(value.ctypes.data)
