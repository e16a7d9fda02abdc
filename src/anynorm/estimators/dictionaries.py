"""Dictionaries of basis functions: features in which a linear classifier is a non-linear one.

    KernelDictionary       k(x, x_i) for some or all training rows x_i
    PolynomialDictionary   sqrt(2) x_j,  sqrt(2) x_j x_k,  x_j^2

In a pipeline with `SparseSVC` the first gives the 1-norm kernel machine (the linear programming
SVM), which keeps few of the basis functions; the second gives the 1-norm SVM of Zhu, Rosset,
Hastie and Tibshirani (2003).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from anynorm.design import Matrix
from anynorm.design.blocks import row_ranges
from anynorm.design.threads import entry_point
from anynorm.estimators._fitting import keep
from anynorm.estimators.checks.matrices import known_matrix, training_matrix
from anynorm.estimators.checks.parameters import check_parameters
from anynorm.kernels import KERNELS, is_kernel, kernel_of, takes_matrix
from anynorm.kernels.gram import make_gram

_NAMES = ", ".join(repr(name) for name in KERNELS if not takes_matrix(name))
_KERNEL_RULE = (
    lambda value: is_kernel(value) and not takes_matrix(value),
    f"{_NAMES}, a kernel of anynorm.kernels or a function of two sets of rows (a precomputed "
    "kernel matrix needs no dictionary: its columns are features)",
)


class _Dictionary(TransformerMixin, BaseEstimator):
    """What dictionaries share: dense or sparse input, float32 or float64 out as in."""

    n_features_in_: int

    @entry_point
    def transform(self, X: Any) -> Matrix:
        """Evaluate the basis functions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows.

        Returns
        -------
        {ndarray, CSR} of shape (n, k)
            A column for each basis function, in the precision of X; those of a
            `PolynomialDictionary` are sparse where X is.

        Examples
        --------
        >>> from anynorm import KernelDictionary
        >>> dictionary = KernelDictionary(gamma=0.5).fit([[0.0], [2.0]])
        >>> dictionary.transform([[0.0]]).round(3)
        array([[1.   , 0.135]])
        """
        check_is_fitted(self)
        X = known_matrix(X, self)
        with np.errstate(over="ignore"):
            found = self._values(X)
        if not np.isfinite(found.data if sp.issparse(found) else found).all():
            raise ValueError(
                f"X is too large: its basis functions are beyond {X.dtype}. Rescale it, e.g. with "
                "sklearn.preprocessing.StandardScaler."
            )
        return found

    def _values(self, X: Matrix) -> Matrix:
        """The values of the basis functions at the rows of X."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class KernelDictionary(_Dictionary):
    """The functions ``k(x, x_i)`` of some or all training rows as features.

    A linear classifier on them is ``f(x) = sum_i w_i k(x, x_i) + b``.  With the 1-norm of w as its
    penalty it uses few of the rows, the kernel need not be positive semidefinite, and there are no
    support vectors but the rows it has chosen.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear"}, Kernel or callable, default="rbf"
        ``exp(-gamma ||x - z||**2)``, ``(gamma x'z + coef0)**degree``, ``x'z``, a
        `anynorm.kernels.Kernel`, which has its own parameters, or a function of two sets of rows
        that returns the matrix of all pairs, e.g. one of `sklearn.metrics.pairwise`.
    n_components : int, float or None, default=100
        How many training rows to use, drawn at random: a count (all rows where there are fewer),
        a share in (0, 1], or None for all of them.
    gamma : {"scale", "auto"} or float, default="scale"
        The width of "rbf" and the factor of "poly": ``1 / (p * X.var())``, ``1 / p`` or a number
        of at least 0.
    degree : float, default=3
        The degree of "poly".
    coef0 : float, default=0.0
        The constant of "poly".
    random_state : int, RandomState or None, default=None
        Seeds the choice of the rows.  None is the same as 0: a fit is repeatable.

    Attributes
    ----------
    component_indices_ : ndarray of shape (k,)
        The places of the chosen rows in the training data, ascending.
    components_ : {ndarray, CSR} of shape (k, p)
        The chosen rows.
    n_components_ : int
        Their number.
    gamma_ : float or None
        The gamma used; None where the kernel has none.
    n_features_in_ : int
        The number of features given.
    feature_names_in_ : ndarray of shape (p,)
        Their names, where X was a frame with string column names.

    See Also
    --------
    SparseSVC : Chooses few of the basis functions.
    PolynomialDictionary : All products of two features.

    Notes
    -----
    Values are computed in float64 and returned in the precision of X.  A kernel matrix that is
    already there needs no dictionary: its columns are the features.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from anynorm import KernelDictionary, SparseSVC
    >>> from anynorm.datasets import make_skin
    >>> X, y = make_skin(200, random_state=0)
    >>> model = make_pipeline(KernelDictionary(n_components=None), SparseSVC(C=1.0)).fit(X, y)
    >>> bool((model[-1].coef_ != 0).sum() < 40), model.score(X, y) > 0.9
    (True, True)
    >>> KernelDictionary(n_components=3).fit(X).get_feature_names_out().shape
    (3,)
    """

    _kernel_of_rows: ClassVar[str] = "_gram"  # what has the kernel of the components

    component_indices_: np.ndarray
    components_: Matrix
    n_components_: int
    gamma_: float | None

    def __init__(
        self,
        kernel: Any = "rbf",
        n_components: float | None = 100,
        *,
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.random_state = random_state

    @entry_point
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the rows at which the basis functions sit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The training rows.
        y : None
            Not used.

        Returns
        -------
        KernelDictionary
            The fitted transformer.

        Raises
        ------
        ValueError
            Where a parameter, the kernel or the data cannot be used; the message says which and
            what to do.

        Examples
        --------
        >>> from anynorm import KernelDictionary
        >>> X = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
        >>> KernelDictionary("linear", n_components=0.5).fit(X).n_components_
        2
        """
        check_parameters(self, kernel=_KERNEL_RULE)
        X, names = training_matrix(X, type(self).__name__)
        rows = self._chosen(X.shape[0])
        components = (X.tocsr() if sp.issparse(X) else X)[rows]
        given = {"gamma": self.gamma, "degree": self.degree, "coef0": float(self.coef0)}
        kernel = kernel_of(self.kernel, **given).resolved(X)
        fitted = {
            "component_indices_": rows,
            "components_": components,
            "n_components_": len(rows),
            "gamma_": kernel.get_params().get("gamma"),
            "_gram": make_gram(components, kernel),
            "n_features_in_": X.shape[1],
        }
        keep(self, fitted, names)
        return self

    def _chosen(self, n: int) -> np.ndarray:
        """The places of the rows to use."""
        if self.n_components is None:
            return np.arange(n)
        if isinstance(self.n_components, float | np.floating):
            count = max(1, round(float(self.n_components) * n))
        else:
            count = min(int(self.n_components), n)
        generator = check_random_state(0 if self.random_state is None else self.random_state)
        return np.sort(generator.permutation(n)[:count])

    def _values(self, X: Matrix) -> np.ndarray:
        """The kernel of every row with every chosen training row."""
        X = X.tocsr() if sp.issparse(X) else X
        out = np.empty((X.shape[0], self.n_components_), dtype=X.dtype)
        for rows in row_ranges(len(out), self.n_components_):
            out[rows] = self._gram.cross(X[rows])
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the basis functions by the kernel and the training row.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Checked against the names of the features that were given to `fit`; not used.

        Returns
        -------
        ndarray of str objects
            E.g. ``"rbf_row17"``, after ``component_indices_``.

        Examples
        --------
        >>> from anynorm import KernelDictionary
        >>> KernelDictionary().fit([[0.0], [2.0]]).get_feature_names_out().tolist()
        ['rbf_row0', 'rbf_row1']
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        kernel = self.kernel
        if not isinstance(kernel, str):
            kernel = getattr(kernel, "name", getattr(kernel, "__name__", "kernel"))
        return np.array([f"{kernel}_row{row}" for row in self.component_indices_], dtype=object)


class PolynomialDictionary(_Dictionary):
    r"""All features, their products in pairs and their squares, weighted as in ``(1 + x'z)**2``.

    The p features become the :math:`p + p (p - 1) / 2 + p` functions :math:`\sqrt2\, x_j`,
    :math:`\sqrt2\, x_j x_k` for j < k, and :math:`x_j^2`, whose inner products are
    ``(1 + x'z)**2 - 1``: the degree-2 polynomial kernel without its constant, which is the
    intercept's part.

    Attributes
    ----------
    n_features_in_ : int
        The number of features given.
    feature_names_in_ : ndarray of shape (p,)
        Their names, where X was a frame with string column names.

    See Also
    --------
    KernelDictionary : A kernel at training rows.
    sklearn.preprocessing.PolynomialFeatures : Other degrees, without the weights.

    References
    ----------
    J. Zhu, S. Rosset, T. Hastie, R. Tibshirani: 1-norm support vector machines, NIPS 2003.

    Examples
    --------
    >>> from anynorm import PolynomialDictionary
    >>> dictionary = PolynomialDictionary().fit([[1.0, 3.0]])
    >>> dictionary.get_feature_names_out().tolist()
    ['sqrt2*x0', 'sqrt2*x1', 'sqrt2*x0*x1', 'x0^2', 'x1^2']
    >>> dictionary.transform([[1.0, 3.0]]).round(2)
    array([[1.41, 4.24, 4.24, 1.  , 9.  ]])
    """

    @entry_point
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the features; there is nothing else to learn.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The training rows.
        y : None
            Not used.

        Returns
        -------
        PolynomialDictionary
            The fitted transformer.
        """
        X, names = training_matrix(X, type(self).__name__)
        keep(self, {"n_features_in_": X.shape[1]}, names)
        return self

    def _values(self, X: Matrix) -> Matrix:
        return _sparse_degree_two(X) if sp.issparse(X) else degree_two(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Write the basis functions in terms of the features.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            The names of the features; None takes ``feature_names_in_``, or ``x0``, ``x1``, ...

        Returns
        -------
        ndarray of str objects
            E.g. ``"sqrt2*age"``, ``"sqrt2*age*size"`` and ``"age^2"``.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        pairs = zip(*np.triu_indices(len(names), k=1), strict=True)
        return np.array(
            [f"sqrt2*{name}" for name in names]
            + [f"sqrt2*{names[j]}*{names[k]}" for j, k in pairs]
            + [f"{name}^2" for name in names],
            dtype=object,
        )


def degree_two(X: np.ndarray) -> np.ndarray:
    """``sqrt(2) x_j``, ``sqrt(2) x_j x_k`` for j < k, and ``x_j**2``, as columns."""
    n, p = X.shape
    out = np.empty((n, p * (p + 3) // 2), dtype=X.dtype)
    out[:, :p] = X
    end = p
    for j in range(p - 1):
        begin, end = end, end + p - 1 - j
        np.multiply(X[:, j : j + 1], X[:, j + 1 :], out=out[:, begin:end])
    out[:, :end] *= math.sqrt(2)
    np.multiply(X, X, out=out[:, end:])
    return out


def _sparse_degree_two(X: Matrix) -> Matrix:
    """The same as CSR, from scikit-learn's expansion of sparse rows."""
    found = sp.csr_array(PolynomialFeatures(2, include_bias=False).fit_transform(sp.csr_array(X)))
    p = X.shape[1]
    first, second = np.triu_indices(p)  # its order: x_j, then x_0^2, x_0 x_1, ..., x_1^2, ...
    square = first == second
    place = np.concatenate([np.arange(p), np.empty(len(square), dtype=np.intp)])
    place[p:][~square] = np.arange(p, len(square))
    place[p:][square] = np.arange(len(square), len(place))
    scale = np.where(np.append(np.zeros(p, dtype=bool), square), 1.0, math.sqrt(2))
    found.data *= scale[found.indices].astype(X.dtype)
    found.indices = place[found.indices].astype(found.indices.dtype)
    found.has_sorted_indices = False
    found.sort_indices()
    return found
