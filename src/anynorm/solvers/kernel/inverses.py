"""Ways to apply the inverse of A = I + S K S, exactly or nearly, with S = diag(d)^(-1/2).

    FactorInverse    Cholesky's factor of K + diag(d)
    SpectralInverse  eigenvectors of S K S: kernels that are singular to rounding, or indefinite
    DenseInverse     the matrix itself, for indefinite kernels of many rows
    LowRankInverse   I + L L' with S K S ~ L L' (randomly pivoted Cholesky: Chen, Epperly, Tropp,
                     Webber 2023), to precondition conjugate gradients

With H = K + diag(d) = S^-1 A S^-1 the exact ones also know the diagonal of H^-1.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from anynorm.kernels.device_gram import DeviceMatrix
from anynorm.kernels.half_matrix import Factor, HalfMatrix

Array = NDArray[np.float64]

_EPS = float(np.finfo(float).eps)
_NEGATIVE = 1e-9  # of the largest eigenvalue: below minus this it is not rounding
_BATCH = 64  # columns drawn at once, so that they are made by products of matrices
_LOST = 1e-6  # of the diagonal: residuals below are taken for rounding


class Inverse(Protocol):
    """What the iterations need of an (approximate) inverse of A."""

    indefinite: bool

    def apply(self, R: Array) -> Array:
        """Return the inverse times the columns of R."""


class ExactInverse(Inverse, Protocol):
    """An inverse that differs from that of A by rounding alone."""

    def diagonal(self) -> Array:
        """Return the diagonal of ``(K + diag(d))^-1``."""


class FactorInverse:
    """By the factor of ``K + diag(d)``, perhaps with a little more on its diagonal."""

    indefinite = False

    def __init__(self, factor: Factor, scale: Array) -> None:
        self._factor, self._scale = factor, scale[:, None]

    def apply(self, R: Array) -> Array:
        """Return ``A^-1 R``."""
        return self._factor.solve(R / self._scale) / self._scale

    def diagonal(self) -> Array:
        """Return the diagonal of ``(K + diag(d))^-1``."""
        return self._factor.inverse_diagonal()


class SpectralInverse:
    """By the eigenvectors of S K S; eigenvalues within rounding of 0 are 0."""

    def __init__(self, half: HalfMatrix, scale: Array, psd: bool | None) -> None:
        K = half.columns(np.arange(half.n))
        values, self._vectors = scipy.linalg.eigh(scale[:, None] * K * scale, overwrite_a=True)
        largest = float(np.abs(values).max(initial=0.0))
        self.indefinite = psd is not True and bool(values[0] < -_NEGATIVE * largest)
        values[np.abs(values) <= half.n * _EPS * largest] = 0.0
        if not self.indefinite:
            values = np.maximum(values, 0.0)
        shifted = 1.0 + values
        lost = np.abs(shifted) <= half.n * _EPS * (1.0 + largest)
        self._inverse = np.where(lost, 0.0, 1.0 / np.where(lost, 1.0, shifted))
        self._scale = scale

    def apply(self, R: Array) -> Array:
        """Return ``A^-1 R``."""
        return np.asarray(self._vectors @ (self._inverse[:, None] * (self._vectors.T @ R)))

    def diagonal(self) -> Array:
        """Return the diagonal of ``(K + diag(d))^-1``."""
        squares = self._vectors**2
        return np.asarray(self._scale**2 * (squares @ self._inverse))


class DenseInverse:
    """By the matrix ``(K + diag(d))^-1`` of an indefinite kernel."""

    indefinite = True

    def __init__(self, half: HalfMatrix, scale: Array) -> None:
        H = half.columns(np.arange(half.n))
        H[np.diag_indices(half.n)] += 1.0 / scale**2
        self._inverse = scipy.linalg.inv(H, overwrite_a=True, check_finite=False)
        self._scale = scale[:, None]

    def apply(self, R: Array) -> Array:
        """Return ``A^-1 R``."""
        return np.asarray(self._inverse @ (R / self._scale)) / self._scale

    def diagonal(self) -> Array:
        """Return the diagonal of ``(K + diag(d))^-1``."""
        return np.diagonal(self._inverse).copy()


class LowRankInverse:
    """``(I + L L')^-1`` by the left singular vectors U of L: ``I - U diag(s/(1+s)) U'``.

    Attributes
    ----------
    tail : float
        The mean of the diagonal of ``S K S - L L'``.
    n_bytes : int
        The memory of U.
    """

    indefinite = False

    def __init__(
        self, half: HalfMatrix | DeviceMatrix, scale: Array, diagonal: Array, rank: int
    ) -> None:
        self._place: Any = half.place
        L, self.tail = _partial_factor(half, scale, scale**2 * diagonal, rank)
        values, vectors = np.linalg.eigh(self._place.host(L.T @ L))
        used = values > 1e-12 * values.max(initial=0.0)
        values, vectors = values[used], vectors[:, used]
        self._basis = L @ self._place.put(vectors / np.sqrt(values))
        self.n_bytes = 8 * half.n * len(values)
        self._removed = self._place.put((values / (1.0 + values))[:, None])

    def steps(self, tol: float) -> float:
        """About how many steps of conjugate gradients bring the gap to tol.

        The bound of Chebyshev polynomials for eigenvalues from 1 to 1 + 2 tail: those of the rest
        lie around their mean, the tail.
        """
        return 0.5 * math.log(4.0 / min(tol, 1.0)) * math.sqrt(1.0 + 2.0 * self.tail)

    def apply(self, R: Array) -> Array:
        """Return ``(I + L L')^-1 R``."""
        inner = self._removed * (self._basis.T @ self._place.put(R))
        return R - self._place.host(self._basis @ inner)


def _partial_factor(
    half: HalfMatrix | DeviceMatrix, scale: Array, diagonal: Array, rank: int
) -> tuple[Any, float]:
    """L with S K S ~ L L', by blocks of columns drawn by what is left of the diagonal.

    Returns the mean of that with it.  L is where the kernel is made.
    """
    generator, place = np.random.default_rng(0), half.place
    L, s = place.zeros((half.n, rank)), place.put(scale[:, None])
    left, count = np.maximum(diagonal, 0.0), 0
    smallest = _LOST * left
    while count < rank and left.any():
        chances = left / left.sum()
        drawn = min(_BATCH, rank - count, int(np.count_nonzero(left)))
        index = np.sort(generator.choice(half.n, drawn, replace=False, p=chances))
        block = s * half.columns(index) * place.put(scale[index])
        block -= L[:, :count] @ place.rows(L[:, :count], index).T
        square = place.host(place.rows(block, index))
        values, vectors = np.linalg.eigh((square + square.T) / 2)
        used = values > _LOST * max(float(values[-1]), 0.0)
        if not used.any():
            break
        new = block @ place.put(vectors[:, used] / np.sqrt(values[used]))
        L[:, count : count + new.shape[1]] = new
        count += new.shape[1]
        left = left - place.host(place.xp.sum(new * new, axis=1))
        left[index] = 0.0
        left[left <= smallest] = 0.0
    return L[:, :count], float(left.mean())
