"""The exponential of many non-positive numbers, without a branch, so that it vectorises.

    exp(x) = 2^k exp(r),    k = the integer nearest to x / log 2,    |r| <= log(2) / 2

with a polynomial for exp(r) (Taylor's: 13 terms reach the last bit of float64, 7 the last two of
float32).  Adding 1.5 * 2^52 (1.5 * 2^23) to x / log 2 leaves k in the low bits, from where a shift
takes it to the exponent.  What would be below the normal range comes out at its end, about 1e-308
(1e-38).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anynorm.design.compiled import inlined, intrinsic, ir, ordered_loop, overload, types

_PER_OCTAVE = 1.4426950408889634  # 1 / log 2
_OCTAVE_HIGH, _OCTAVE_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # k * high is exact
_LOWEST, _SHIFTER = -708.0, 6755399441055744.0  # of x, and 1.5 * 2^52
_T2, _T3, _T4, _T5, _T6 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720  # 1 / k!
_T7, _T8, _T9 = _T6 / 7, _T6 / 56, _T6 / 504  # 1 / k!
_T10, _T11, _T12 = _T9 / 10, _T9 / 110, _T9 / 1320  # 1 / k!

_PER_OCTAVE_32 = np.float32(_PER_OCTAVE)
_OCTAVE_HIGH_32, _OCTAVE_LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LOWEST_32, _SHIFTER_32 = np.float32(-87.0), np.float32(12582912.0)
_ZERO, _ONE, _S2, _S3, _S4, _S5, _S6 = (
    np.float32(value) for value in (0, 1, _T2, _T3, _T4, _T5, _T6)
)


def _bits_of_float(typingctx, x):
    """The bits of a float as an integer."""
    narrow = x == types.float32
    kind = ir.IntType(32 if narrow else 64)
    return (types.int32 if narrow else types.int64)(x), (
        lambda context, builder, signature, given: builder.bitcast(given[0], kind)
    )


def _float_of_bits(typingctx, bits):
    """The float that has these bits."""
    narrow = bits == types.int32
    kind = ir.FloatType() if narrow else ir.DoubleType()
    return (types.float32 if narrow else types.float64)(bits), (
        lambda context, builder, signature, given: builder.bitcast(given[0], kind)
    )


_bits: Any = intrinsic(_bits_of_float)
_float_of: Any = intrinsic(_float_of_bits)


@inlined
def _exp(x):
    x = max(x, _LOWEST)
    shifted = x * _PER_OCTAVE + _SHIFTER
    k = shifted - _SHIFTER
    r = (x - k * _OCTAVE_HIGH) - k * _OCTAVE_LOW
    e = (((_T12 * r + _T11) * r + _T10) * r + _T9) * r + _T8
    e = (((e * r + _T7) * r + _T6) * r + _T5) * r + _T4
    e = (((e * r + _T3) * r + _T2) * r + 1.0) * r + 1.0
    return _float_of(_bits(e) + (_bits(shifted) << np.int64(52)))


@inlined
def _exp_32(x):
    x = max(x, _LOWEST_32)
    shifted = x * _PER_OCTAVE_32 + _SHIFTER_32
    k = shifted - _SHIFTER_32
    r = (x - k * _OCTAVE_HIGH_32) - k * _OCTAVE_LOW_32
    e = (((_S6 * r + _S5) * r + _S4) * r + _S3) * r + _S2
    e = (e * r + _ONE) * r + _ONE
    return _float_of(np.int32(_bits(e) + (_bits(shifted) << np.int32(23))))


def exponential(x: Any) -> Any:
    """Return the exponential of one number, in its own precision; for compiled code alone."""
    raise NotImplementedError


@overload(exponential)
def _exponential(x):
    if x == types.float32:
        return lambda x: _exp_32(x)
    return lambda x: _exp(x)


@ordered_loop
def exp_of_products(values, rows, columns, gamma):
    """Products x'z to ``exp(-gamma ||x - z||^2)``, in place, given squared lengths."""
    zero = gamma - gamma  # of its precision, as all others are
    for i in range(values.shape[0]):
        value, length = values[i], rows[i]
        for j in range(value.size):
            square = max(length + columns[j] - (value[j] + value[j]), zero)
            value[j] = exponential(-gamma * square)


@ordered_loop
def exp_in_place_32(values):
    """The exponential of each entry of a float32 matrix, taken as 0 where it is above 0."""
    for i in range(values.shape[0]):
        value = values[i]
        for j in range(value.size):
            value[j] = _exp_32(min(value[j], _ZERO))
