"""What a Mercer kernel says of itself, so that nobody needs to know it by its name.

    Kernel            any function of two sets of rows
    ProductKernel     one of x'z, ||x||^2 and ||z||^2: sums of its values by matrix products
    DistanceKernel    one of ||x - z||^2 alone: all of that from one function of a number

A kernel is a small immutable object.  Its parameters are those of its constructor; scikit-learn
can clone and set them (``kernel__gamma``).  The names that estimators take are in
`anynorm.kernels.KERNELS`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from anynorm.design import design_of
from anynorm.design.device import positive_part
from anynorm.design.limits import FLOAT32_ROUNDING
from anynorm.kernels.gamma import resolve_gamma
from anynorm.norms.parameterised import Parameterised

Array = NDArray[np.float64]
Block = NDArray[Any]

ACCURATE = 1e-4  # relative error of an entry that float32 products may have
EQUAL_ROWS = 1.0 - 8 * np.finfo(np.float64).eps  # of a squared length, which takes rounding off it


class Kernel(Parameterised):
    """A Mercer kernel; subclass it, or one of its two subclasses, to bring your own.

    A subclass needs `pairs`.  Where it has a parameter `gamma`, that can be "scale" or "auto" as
    in `anynorm.SVC`.  Only kernels of the library's table can be kept in model files.

    Attributes
    ----------
    name : str
        What it is called in messages; the name of the class by default.
    psd : bool or None
        True and False where it is known whether the kernel is positive semidefinite.
    symmetric : bool
        Whether k(x, z) = k(z, x) by construction; otherwise a few rows are checked.
    is_inner_product : bool
        Whether k(x, z) = x'z, so that sums and solvers may work over the features instead.
    translation_invariant : bool
        Whether k depends on x - z alone, so that rows may be taken around any origin.
    takes_matrix : bool
        Whether rows are not rows of features, but of kernel values with all training rows.
    float32_terms_are_exponents : bool
        Whether the values are exponentials of the float32 terms of a `ProductKernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm import SVC
    >>> from anynorm.kernels import Kernel
    >>> class Laplacian(Kernel):
    ...     psd = True
    ...     def __init__(self, gamma="scale"):
    ...         self.gamma = gamma
    ...     def pairs(self, A, B):
    ...         return np.exp(-self.gamma * np.abs(A[:, None] - B).sum(axis=2))
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 1, 0]
    >>> SVC(C=10.0, kernel=Laplacian(gamma=1.0)).fit(X, y).predict([[0.2], [1.4]])
    array([0, 1])
    """

    name: str
    psd: bool | None = None
    symmetric = False
    is_inner_product = False
    translation_invariant = False
    takes_matrix = False
    float32_terms_are_exponents = False

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "name" not in vars(cls):
            cls.name = cls.__name__

    @abstractmethod
    def pairs(self, A: Any, B: Any) -> ArrayLike:
        """Return the matrix of k(x, z) for all rows x of A and z of B, in float64."""

    def diagonal(self, X: Any) -> Array | None:
        """Return k(x, x) for the rows of X; None where `pairs` is to be asked."""
        return None

    def resolved(self, X: Any, weights: Array | None = None) -> Self:
        """Return the kernel with numbers for what it takes from the data, here gamma.

        A row counts as often as the weights say.  Numbers that are there already stay.
        """
        given = self.get_params()
        if "gamma" not in given:
            return self
        return type(self)(**given | {"gamma": resolve_gamma(given["gamma"], X, weights)})

    def float32_error(self, X: Any) -> float:
        """Return the relative error of values from float32 products; inf without such products.

        `ProductKernel` says what products are meant.
        """
        return np.inf

    def onnx(self, graph: Any, rows: str, points: Any) -> str:
        """Add nodes for the kernel of all rows with the points; returns the values' name.

        ``graph.node(operator, *inputs)`` adds a node, ``graph.constant(array)`` a constant.
        """
        raise ValueError(
            f"a {self.name} kernel has no translation to ONNX: use a named one, or give its class "
            "the method onnx."
        )

    def checked_pairs(self, A: Any, B: Any) -> Array:
        """Return `pairs` as float64, or say what is wrong with them; no pairs are not asked for."""
        shape = (np.shape(A)[0], np.shape(B)[0])
        if 0 in shape:  # which functions of users may refuse, as scikit-learn's do
            return np.empty(shape)
        try:
            given: Any = self.pairs(A, B)
            given = given.toarray() if sp.issparse(given) else given
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the {self.name} kernel could not be evaluated: {error}") from error
        if values.shape != shape:
            raise ValueError(
                f"the {self.name} kernel must return one number for each pair, a matrix of shape "
                f"{shape}; got shape {values.shape}"
            )
        return finite(values)


class ProductKernel(Kernel):
    """A kernel whose values follow from products of rows and their squared lengths.

    A subclass needs `of_products`.  Rows of the kernel matrix come from float32 products as well
    where it has `float32_error`, `float32_terms` and `of_float32_terms`.
    """

    symmetric = True

    @abstractmethod
    def of_products(self, values: Block, rows: Any, columns: Any) -> Block:
        """Turn products x'z into kernel values, given the squared lengths of x and of z.

        `values` may be changed in place, are float64 or float32, and are to remain so.  On a device
        they are arrays of its library.
        """

    def of_many_products(self, values: Block, rows: Any, columns: Any) -> Block:
        """As `of_products`, where so many values are asked for that Numba's start is paid back."""
        return self.of_products(values, rows, columns)

    def pairs(self, A: Any, B: Any) -> Array:
        """Return the matrix of all pairs, from products in float64."""
        return self.of_products(products(A, B), squared_lengths(A), squared_lengths(B))

    def float32_terms(self, points: Any) -> tuple[float, Array | None]:
        """Return c and e (None is 0) of the terms ``c^2 x'z + e(x) + e(z)``.

        Points can carry c and e with them, so that a product alone makes the terms.
        """
        return 1.0, None

    def of_float32_terms(self, terms: NDArray[np.float32]) -> NDArray[np.float32]:
        """Turn such terms into kernel values, perhaps in place."""
        raise NotImplementedError


class DistanceKernel(ProductKernel):
    """A kernel that is a function of the squared distance ``||x - z||^2``.

    A subclass needs `of_distances`.  With a `steepness`, rows of the kernel matrix come from
    float32 products where these are accurate.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm import SVC
    >>> from anynorm.kernels import DistanceKernel
    >>> class Cauchy(DistanceKernel):
    ...     psd = True
    ...     def __init__(self, gamma="scale"):
    ...         self.gamma = gamma
    ...     def of_distances(self, squares):
    ...         return 1 / (1 + self.gamma * squares)
    >>> SVC(kernel=Cauchy(gamma=0.5))
    SVC(kernel=Cauchy(gamma=0.5))
    >>> Cauchy(gamma=0.5).pairs(np.zeros((1, 2)), np.eye(2))
    array([[0.66666667, 0.66666667]])
    """

    translation_invariant = True
    steepness: float = np.inf
    """The largest ``|k'(t) / k(t)|`` over squared distances t, inf where it is not known."""

    @abstractmethod
    def of_distances(self, squares: Block) -> Block:
        """Turn squared distances into kernel values; `squares` may be changed in place."""

    def of_products(self, values: Block, rows: Any, columns: Any) -> Block:
        """Turn products into squared distances, and these into kernel values."""
        values *= -2.0
        values += rows[:, None]
        values += columns
        return self.of_distances(positive_part(values))

    def diagonal(self, X: Any) -> Array:
        """Return the value at the distance 0."""
        return np.full(X.shape[0], float(self.of_distances(np.zeros(1))[0]))

    def float32_error(self, X: Any) -> float:
        """Return what the rounding of distances makes of the values, at most."""
        reach = float(design_of(X).row_norms_squared().max(initial=0.0))
        return 4.0 * self.steepness * reach * product_rounding(X) + 4.0 * FLOAT32_ROUNDING

    def float32_terms(self, points: Any) -> tuple[float, Array | None]:
        """Return what makes the terms ``-||x - z||^2``."""
        return np.sqrt(2.0), -design_of(points).row_norms_squared()

    def of_float32_terms(self, terms: NDArray[np.float32]) -> NDArray[np.float32]:
        """Turn ``-||x - z||^2`` into kernel values."""
        terms *= -1.0
        return self.of_distances(positive_part(terms))

    @staticmethod
    def onnx_distances(graph: Any, rows: str, points: Any) -> str:
        """Add nodes for the squared distances, which `onnx` can go on from."""
        values = graph.node("MatMul", rows, graph.constant(-2.0 * points.T))
        fixed = graph.constant(squared_lengths(points))
        lengths = graph.node("ReduceSum", graph.node("Mul", rows, rows), graph.constant([1]))
        values = graph.node("Add", graph.node("Add", values, lengths), fixed)
        return graph.node("Max", values, graph.constant(0.0))


def products(A: Any, B: Any) -> Array:
    """Return x'z for all rows x of A and z of B, dense and in float64."""
    A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    product = A @ B.T
    return np.asarray(product.toarray() if sp.issparse(product) else product)


def squared_lengths(X: Any) -> Array:
    """Return ||x||^2 of the rows, less a rounding error, so that equal rows are at distance 0."""
    return design_of(X).row_norms_squared() * EQUAL_ROWS


def product_rounding(X: Any) -> float:
    """Return the relative rounding error of float32 products of rows."""
    return FLOAT32_ROUNDING * (4.0 + np.sqrt(X.shape[1]))


def within(value: float, dtype: np.dtype[Any]) -> float:
    """Return a factor that is at most the largest number of a dtype."""
    return min(value, float(np.finfo(dtype).max))


def finite(values: Array) -> Array:
    """Return values of a kernel, or say that they are not finite."""
    if not np.all(np.isfinite(values)):
        raise ValueError("the kernel has NaN or infinite values; check the data and the kernel")
    return values
