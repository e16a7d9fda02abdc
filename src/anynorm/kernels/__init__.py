"""Mercer kernels, rows and blocks of their matrices, and sums of their values.

`KERNELS` is the table of those that have a name.
"""

from __future__ import annotations

from typing import Any

from anynorm.kernels.given import FunctionKernel, Precomputed
from anynorm.kernels.kernel import DistanceKernel, Kernel, ProductKernel
from anynorm.kernels.linear import Linear
from anynorm.kernels.poly import Poly
from anynorm.kernels.rbf import RBF

__all__ = [
    "KERNELS",
    "RBF",
    "DistanceKernel",
    "FunctionKernel",
    "Kernel",
    "Linear",
    "Poly",
    "Precomputed",
    "ProductKernel",
    "is_kernel",
    "kernel_of",
    "takes_matrix",
]

KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "rbf": RBF,
    "poly": Poly,
    "precomputed": Precomputed,
}
"""The kernels that have names: estimators, checks, model files and exports ask their classes."""


def kernel_of(kernel: Any, **parameters: Any) -> Kernel:
    """Return the kernel that is meant by a name, a function of two sets of rows, or a `Kernel`.

    A named kernel takes those of the `parameters` (gamma, degree, coef0) that it has; a `Kernel`
    has its own.

    Examples
    --------
    >>> from anynorm.kernels import kernel_of
    >>> kernel_of("rbf", gamma=2.0, degree=3)
    RBF(gamma=2.0)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if _is_function(kernel):
        return FunctionKernel(kernel)
    if not _is_name(kernel):
        raise ValueError(
            f"kernel must be {', '.join(map(repr, KERNELS))}, a Kernel or a function of two sets "
            f"of rows; got {kernel!r}"
        )
    named = KERNELS[kernel]
    known = named().get_params()
    return named(**{name: value for name, value in parameters.items() if name in known})


def is_kernel(kernel: Any) -> bool:
    """Whether `kernel_of` can make a kernel of what a user gave."""
    return isinstance(kernel, Kernel) or _is_function(kernel) or _is_name(kernel)


def _is_name(kernel: Any) -> bool:
    """Whether it is the name of a kernel."""
    return isinstance(kernel, str) and kernel in KERNELS


def _is_function(kernel: Any) -> bool:
    """Whether it can only be a function of two sets of rows; a class of kernels cannot be one."""
    return callable(kernel) and not (isinstance(kernel, type) and issubclass(kernel, Kernel))


def takes_matrix(kernel: Any) -> bool:
    """Whether rows are to be rows of kernel values; see `Kernel`."""
    named = KERNELS[kernel] if _is_name(kernel) else kernel
    return bool(getattr(named, "takes_matrix", False))
