"""Where X lives: the one package that knows how a matrix of features is stored.

`design_of(X)` makes a `Design` of a dense array (any order, float32 or float64, perhaps a read-only
memory map), of a CSR or CSC container (int32 or int64 indices) or of an array on a device, without
copying it.  Solvers ask it for what they need and never how X is stored.  J and K are places of
rows and of columns:

    matvec, rmatvec                 X w and X'a, of ``rows=J`` or ``columns=K`` alone where given;
                                    w and a may be matrices
    matvec_by_portions              X w in portions of the columns
    hessian_product                 X_J' D X_J w, in one pass
    row_norms_squared               ||x_i||^2
    column_norms_squared            sum_i d_i x_ij^2; rmatvec_sizes: sum_i |x_ij a_i|
    weighted_gram, scatter          X_J' D X_J, and centred, to be added up
    rows_gram, columns_gram         X_J X_I' and X_K' D X_L
    take_rows, take_columns, take   parts as designs of the same kind; thin: stored sparsely
    with_rows, rows_and, beside     such parts joined
    dense_rows, dense_columns       parts as dense float64 arrays; row, column, dense
    sparse, entries, gram_cost      what it costs, so that methods can be chosen; column_entries
    scaled, centred                 views: X V and sqrt(d) (X - 1 m'), without a copy of X
    with_constant                   a view: [X, c 1]
    column_block, row_arrays        what compiled loops walk over; row_access

All sums are accumulated in float64, whatever the storage.

A new kind of storage derives from `Design` and brings what is abstract
there: `tiles`, the matrix in pieces that fit into memory; parts of it; and what it is (`sparse`,
`entries`, `gram_cost`).  Products, norms and Gram matrices are sums over tiles or over blocks of
rows by default and need never see X in one piece; what the storage can do faster it overrides.
Some methods alone ask for what compiled loops walk over: `row_arrays` coordinate descent, where
`sparse` promises it, `column_block` and `row_access` the solvers of the 1-norm problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from anynorm.design.device import library_of
from anynorm.design.interface import Design, Matrix

__all__ = ["Design", "Matrix", "design_of", "stacked"]


def design_of(X: Any, scale: np.ndarray | None = None) -> Design:
    """Return X as a design, its columns multiplied by `scale`; a design is scaled or returned.

    Parameters
    ----------
    X : dense array, CSR or CSC container, array on a device, or Design
        The matrix; other sparse containers are turned into CSR.
    scale : ndarray of shape (p,), optional
        A factor for each column, which is applied in the products.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design import design_of
    >>> X = design_of(np.array([[1.0, 2.0], [3.0, 4.0]]), scale=np.array([1.0, 0.5]))
    >>> X.matvec(np.ones(2)), X.rmatvec(np.ones(2))
    (array([2., 5.]), array([4., 3.]))
    """
    if isinstance(X, Design):
        return X if scale is None else X.scaled(scale)
    if library_of(X) is not None:
        from anynorm.design.device_design import DeviceDesign

        return DeviceDesign(X, scale)
    if sp.issparse(X):
        from anynorm.design.sparse import SparseDesign, SparseStorage

        given = X if X.format in ("csr", "csc") else X.tocsr()
        return SparseDesign(SparseStorage(given), scale)
    from anynorm.design.dense import DenseDesign

    return DenseDesign(np.asarray(X), scale)


def stacked(parts: Sequence[Matrix]) -> Matrix:
    """Return matrices of the same columns one below the other, sparse where they are.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design import stacked
    >>> stacked([np.eye(2), np.ones((1, 2))]).shape
    (3, 2)
    """
    if any(sp.issparse(part) for part in parts):
        return sp.csr_array(sp.vstack(parts))
    return np.vstack(parts)
