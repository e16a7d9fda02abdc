"""Kernels that users give ready-made: the matrix of its values, or a function of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anynorm.kernels.kernel import Kernel


class Precomputed(Kernel):
    """The kernel whose values are given: rows have the values with all training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels import Precomputed
    >>> Precomputed().pairs(np.array([[1.0, 0.5, 0.2]]), np.array([0, 2]))
    array([[1. , 0.2]])
    """

    name = "precomputed"
    symmetric = True  # `Gram` looks at the whole matrix
    takes_matrix = True

    def pairs(self, A: Any, B: Any) -> ArrayLike:
        """Return the values of rows A with the training rows whose places are B."""
        return A[:, B]

    def onnx(self, graph: Any, rows: str, points: Any) -> str:
        """Add a choice of columns; the points are places of training rows."""
        return graph.node("Gather", rows, graph.constant(points.astype(np.int64)), axis=1)


class FunctionKernel(Kernel):
    """A function of two sets of rows as a kernel.

    Parameters
    ----------
    function : callable
        Returns the matrix of all pairs.
    psd : bool or None, default=None
        Whether it is positive semidefinite, where that is known.

    Examples
    --------
    >>> from sklearn.metrics.pairwise import laplacian_kernel
    >>> from anynorm.kernels import FunctionKernel
    >>> FunctionKernel(laplacian_kernel).pairs([[0.0]], [[0.0]])
    array([[1.]])
    """

    name = "callable"

    def __init__(self, function: Callable[[Any, Any], ArrayLike], psd: bool | None = None) -> None:
        self.function = function
        self.psd = psd

    def pairs(self, A: Any, B: Any) -> ArrayLike:
        """Return what the function says."""
        return self.function(A, B)
