"""The same bits for any number of threads, our own and those of the linear algebra library."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_limits

from anynorm import (
    SVC,
    BudgetSVC,
    LeastNormSVC,
    LeastSquaresSVC,
    LinearSVC,
    ReweightedSVC,
    ReweightedSVCCV,
    SparseSVC,
    SparseSVCCV,
)
from anynorm.design import dense, interface, threads
from anynorm.kernels import row_makers
from tests.spies import divided_work

X, Y = make_blobs(1000, 20, centers=4, cluster_std=9.0, random_state=0)
KERNEL_MODELS = {
    "SVC": SVC(C=10.0),
    "SVC poly": SVC(C=0.1, kernel="poly", degree=2, coef0=1.0),
    "SVC of a function": SVC(C=10.0, kernel=lambda A, B: (A @ B.T / 1e3 + 1.0) ** 2),
    "BudgetSVC": BudgetSVC(100, C=10.0),
    "LeastNormSVC": LeastNormSVC(C=1.0),
    "LeastSquaresSVC": LeastSquaresSVC(C=1.0),
}
LINEAR_MODELS = {
    "LinearSVC": LinearSVC(),
    "LinearSVC logistic": LinearSVC(loss="logistic"),
    "SparseSVC": SparseSVC(C=0.1),
    "SparseSVC squared_hinge": SparseSVC(C=0.1, loss="squared_hinge"),
    "ReweightedSVC": ReweightedSVC(),
    "ReweightedSVCCV": ReweightedSVCCV([0.1, 1.0], max_rounds=2, cv=2),
    "SparseSVCCV": SparseSVCCV(cv=2, max_features=4),
}
N_JOBS = (1, 2, 3)


def bits(model, X_new=X[:100]):
    """What a fit has found, to the last bit."""
    names = ("support_", "dual_coef_", "coef_", "intercept_")
    found = [getattr(model, name) for name in names if hasattr(model, name)]
    scores = model.decision_function(X_new)
    return [np.asarray(part).tobytes() for part in (*found, scores)] + [model.n_iter_]


@pytest.fixture
def small_blocks(monkeypatch):
    """Work that is divided among threads though the data are small."""
    monkeypatch.setattr(dense, "ENTRIES_PER_TASK", 1 << 11)
    monkeypatch.setattr(interface, "PRODUCTS_PER_TASK", 1 << 12)
    monkeypatch.setattr(threads, "_ROWS", 128)
    monkeypatch.setattr(row_makers, "_COLUMNS", 128)


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


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*KERNEL_MODELS, *LINEAR_MODELS])
def test_the_threads_of_a_fit_do_not_show(name, kind, monkeypatch):
    """A single binary fit is divided among threads as well, in blocks that are always the same."""
    model, y = (KERNEL_MODELS | LINEAR_MODELS)[name], Y < 2
    data, found, divided = X.astype(kind), [], divided_work(monkeypatch)
    for n_jobs in N_JOBS:
        divided.clear()
        found.append(bits(model.set_params(n_jobs=n_jobs).fit(data, y), data))
        assert bool(divided) == (n_jobs > 1)
    assert found[1:] == found[:1] * 2


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", LINEAR_MODELS)
def test_the_threads_of_several_classes_do_not_show(name):
    model = LINEAR_MODELS[name]
    found = [bits(model.set_params(n_jobs=n_jobs).fit(X[::3], Y[::3])) for n_jobs in N_JOBS]
    assert found[1:] == found[:1] * 2


@pytest.mark.parametrize("name", LINEAR_MODELS)
def test_linear_models_do_not_show_the_threads_of_the_linear_algebra(name):
    model, found = LINEAR_MODELS[name].set_params(n_jobs=None), []
    for n_threads in (1, 4):
        with threadpool_limits(n_threads, "blas"):
            found.append(bits(model.fit(X, Y < 2)))
    assert found[0] == found[1]
