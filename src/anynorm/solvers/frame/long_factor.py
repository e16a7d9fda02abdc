"""The Cholesky factor of a large matrix, with a look at the clock every fraction of a second.

        L_kk = chol(A_kk),   A_ik <- A_ik L_kk^-T,   A_ij <- A_ij - L_ik L_jk'   (j > k)

block column by block column; LAPACK's own factor of 4000 rows would not return for a second.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm

from anynorm.design.blocks import ranges
from anynorm.design.unlocked import lower_cholesky
from anynorm.design.watch import look

_AT_ONCE = 1500  # rows that LAPACK factors in 0.1 s
_WIDTH = 384  # of a block column


def lower_factor(A: np.ndarray) -> np.ndarray | None:
    """L with L L' = A, from A's lower half; what is above the diagonal of L means nothing.

    None where A is not positive definite, as far as rounding can tell.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.solvers.frame.long_factor import lower_factor
    >>> np.tril(lower_factor(np.array([[4.0, 2.0], [2.0, 2.0]])))
    array([[2., 0.],
           [1., 1.]])
    >>> lower_factor(-np.eye(2)) is None
    True
    """
    n = len(A)
    if n <= _AT_ONCE:
        return lower_cholesky(A)
    factor = np.array(A, order="F")
    for block in ranges(n, _WIDTH):
        corner = lower_cholesky(factor[block, block])
        if corner is None:
            return None
        factor[block, block] = corner
        below = dtrsm(1.0, corner, factor[block.stop :, block], side=1, lower=1, trans_a=1)
        factor[block.stop :, block] = below
        for part in ranges(n - block.stop, _WIDTH):
            place = slice(part.start + block.stop, part.stop + block.stop)
            factor[place.start :, place] -= below[part.start :] @ below[part].T
        look()
    return factor
