"""The same bits for any number of threads, our own and those of the linear algebra library."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_limits

from anynorm import SVC, BudgetSVC, LeastNormSVC, LeastSquaresSVC

X, Y = make_blobs(1000, 20, centers=4, cluster_std=9.0, random_state=0)
KERNEL_MODELS = {
    "SVC": SVC(C=10.0),
    "SVC poly": SVC(C=0.1, kernel="poly", degree=2, coef0=1.0),
    "SVC of a function": SVC(C=10.0, kernel=lambda A, B: (A @ B.T / 1e3 + 1.0) ** 2),
    "BudgetSVC": BudgetSVC(100, C=10.0),
    "LeastNormSVC": LeastNormSVC(C=1.0),
    "LeastSquaresSVC": LeastSquaresSVC(C=1.0),
}


def bits(model, X_new=X[:100]):
    """What a fit has found, to the last bit."""
    found = (model.support_, model.dual_coef_, model.intercept_, model.decision_function(X_new))
    return [np.asarray(part).tobytes() for part in found] + [model.n_iter_]


@pytest.mark.parametrize("name", KERNEL_MODELS)
def test_classes_that_share_kernel_rows_do_not_disturb_each_other(name):
    """Rows were as exact as the block they were made in, which another class had begun."""
    model = KERNEL_MODELS[name]
    one = bits(model.set_params(n_jobs=None).fit(X, Y))
    for n_jobs in (2, 3):
        assert bits(model.set_params(n_jobs=n_jobs).fit(X, Y)) == one


@pytest.mark.parametrize("name", KERNEL_MODELS)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_the_threads_of_the_linear_algebra_do_not_show(name, kind):
    """SVC moved by 8e-4 between one BLAS thread and two, LeastSquaresSVC in its last digits."""
    model, rows, y = KERNEL_MODELS[name].set_params(n_jobs=None), X.astype(kind), Y < 2
    found = []
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads, "blas"):
            found.append(bits(model.fit(rows, y), rows[:100]))
    assert found[1:] == found[:1] * 2
