"""The linear kernel: solvers may take the features instead, as for a kernel that says so itself."""

import numpy as np

from anynorm import SVC
from anynorm.kernels import Linear
from anynorm.kernels.gram import Gram
from tests.kernels.cases import BETA, X_NEW, X


class Scaled(Linear):
    """The linear kernel under another name."""


def test_products_go_through_the_features():
    gram = Gram.linear(X)
    assert gram.kernel == Linear()
    np.testing.assert_allclose(gram.matvec(BETA), X @ (X.T @ BETA), rtol=1e-13)
    np.testing.assert_allclose(gram.diagonal(), (X**2).sum(axis=1), rtol=1e-14)
    np.testing.assert_array_equal(gram.cross(X_NEW), X_NEW @ X.T)


def test_what_a_kernel_says_of_itself_counts_and_not_its_name():
    """Solved over the features: 300 rows of 3 features in next to no steps of block SMO."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    y = np.where(rows[:, 0] + 0.3 * rng.normal(size=300) > 0, 1, -1)
    named, own = SVC(kernel="linear").fit(rows, y), SVC(kernel=Scaled()).fit(rows, y)
    assert own._sums.kernel.name == "Scaled"
    np.testing.assert_array_equal(own.dual_coef_, named.dual_coef_)
    assert own.n_iter_ == named.n_iter_
