"""Products of rows whose bits depend on the two rows alone, as fast as those of a BLAS.

What a BLAS makes of x'z depends on how many rows are multiplied at once, on their places among
them and on its threads.  Rows of a kernel matrix that several problems share must not: each product
here is one sum over the features in their order, whatever is computed beside it.

    panels      points by 16, feature after feature: ``panels[b, k, j]`` is feature k of 16 b + j
    tile        6 rows times one panel, its 96 sums in the processor's registers

Sums begin anew every 256 features, for which a panel stays in the nearest cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from anynorm.design.compiled import ordered_loop

PANEL = 16  # points of a panel
TILE = 6  # rows of a tile: with two vectors each, 12 of the 16 registers that most processors have
_LANES = 8  # of a vector
_DEPTH = 256  # features of a sum


def panels_of(points: Any) -> Any:
    """Return dense points as panels, the last one filled up with zeros."""
    count = -(-len(points) // PANEL)
    out = np.zeros((count, points.shape[1], PANEL), points.dtype)
    whole = len(points) // PANEL
    out[:whole] = points[: whole * PANEL].reshape(whole, PANEL, points.shape[1]).transpose(0, 2, 1)
    if whole < count:
        out[whole, :, : len(points) - whole * PANEL] = points[whole * PANEL :].T
    return out


def _add_tile(typingctx, left, at, panels, panel_at, count, out, out_at, stride, out_stride):
    """Add the products of `TILE` rows with a panel, over `count` features, to a part of `out`.

    Rows of `left` are `stride` numbers apart and begin at number `at`, those of `out` likewise.
    """
    place = types.intp
    signature = types.void(left, place, panels, place, place, out, place, place, place)

    def generate(context, builder, signature, given):
        kind = context.get_data_type(signature.args[0].dtype)
        n_bytes = signature.args[0].dtype.bitwidth // 8
        vector = ir.VectorType(kind, _LANES)
        name = f"llvm.fmuladd.v{_LANES}f{8 * n_bytes}"
        multiply_add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector] * 3), name
        )

        def number(value):
            return ir.Constant(given[1].type, value)

        def pointer(argument, offset):
            array = make_array(signature.args[argument])(context, builder, given[argument])
            return builder.gep(array.data, [offset])

        def vectors(where):
            places = [builder.gep(where, [number(k)]) for k in range(0, PANEL, _LANES)]
            return [builder.bitcast(place, vector.as_pointer()) for place in places]

        def row(start, step, k):
            return builder.gep(start, [builder.mul(step, number(k))])

        def spread(value):
            empty = ir.Constant(vector, ir.Undefined)
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES)
            first = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(first, empty, lanes)

        start, panel, target = pointer(0, given[1]), pointer(2, given[3]), pointer(5, given[6])
        rows = [row(start, given[7], k) for k in range(TILE)]
        sums = [vectors(row(target, given[8], k)) for k in range(TILE)]
        before = builder.block
        body, after = builder.append_basic_block("features"), builder.append_basic_block("done")
        first = [[builder.load(place, align=n_bytes) for place in own] for own in sums]
        builder.branch(body)

        builder.position_at_end(body)
        feature = builder.phi(given[1].type)
        feature.add_incoming(number(0), before)
        held = [[builder.phi(vector) for _ in own] for own in first]
        here = builder.gep(panel, [builder.mul(feature, number(PANEL))])
        points = [builder.load(place, align=n_bytes) for place in vectors(here)]
        last = []
        for own, had, begun in zip(rows, held, first, strict=True):
            for sum_, value in zip(had, begun, strict=True):
                sum_.add_incoming(value, before)
            wide = spread(builder.load(builder.gep(own, [feature])))
            pairs = zip(points, had, strict=True)
            last.append([builder.call(multiply_add, [wide, z, sum_]) for z, sum_ in pairs])
        for had, new in zip(held, last, strict=True):
            for sum_, value in zip(had, new, strict=True):
                sum_.add_incoming(value, body)
        following = builder.add(feature, number(1))
        feature.add_incoming(following, body)
        builder.cbranch(builder.icmp_signed("<", following, given[4]), body, after)

        builder.position_at_end(after)
        for own, values in zip(sums, last, strict=True):
            for place, value in zip(own, values, strict=True):
                builder.store(value, place, align=n_bytes)
        return context.get_dummy_value()

    return signature, generate


_add_tile_of: Any = intrinsic(_add_tile)


@ordered_loop
def products(left, panels, first, out):
    """All products of rows, a multiple of `TILE` of them, with as many panels as `out` is wide.

    `first` is the panel of the first column of `out`.
    """
    q, p = left.shape
    width = out.shape[1]
    out[:] = 0
    for start in range(0, p, _DEPTH):
        count = min(_DEPTH, p - start)
        for b in range(width // PANEL):
            panel_at = ((first + b) * p + start) * PANEL
            for i in range(0, q, TILE):
                _add_tile_of(
                    left, i * p + start, panels, panel_at, count,
                    out, i * width + b * PANEL, p, width,
                )  # fmt: skip
