"""BudgetSVC(strict=True) on Dask collections: rows chosen here, solved there, the same problem."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from anynorm import BudgetSVC, LinearSVC
from tests.dask.data import in_blocks, same_optimum

TOL = 1e-5


def rings(n=1500, n_classes=2, seed=0):
    """Classes by the distance from the origin, with noise, and a column of no use."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) + 0.5
    radius = ((X[:, :2] - 0.5) ** 2).sum(axis=1) + 0.4 * rng.standard_normal(n)
    return X, np.digitize(radius, np.array([1.4, 3.0])[: n_classes - 1])


def model(**options):
    return BudgetSVC(**{"budget": 10, "C": 0.5, "gamma": 0.5, "strict": True, "tol": TOL} | options)


def over_the_same_rows(X, y, fitted, weights=None):
    """The problem for the rows that a fit has chosen, solved on one machine."""
    J = X[fitted.support_]
    values, vectors = np.linalg.eigh(rbf_kernel(J, gamma=0.5))
    features = rbf_kernel(X, J, gamma=0.5) @ (vectors / np.sqrt(values))
    options = {"C": fitted.C, "tol": 1e-7, "class_weight": fitted.class_weight}
    return LinearSVC(**options).fit(features, y, sample_weight=weights)


def objective(X, y, fitted):
    """The objective of two classes, from what the model predicts."""
    K = rbf_kernel(fitted.support_vectors_, gamma=0.5)
    beta, signs = fitted.dual_coef_[0], np.where(y == fitted.classes_[1], 1.0, -1.0)
    slacks = np.maximum(0.0, 1.0 - signs * fitted.decision_function(X))
    return 0.5 * beta @ K @ beta + fitted.C * slacks.sum()


def test_few_rows_have_the_model_of_one_machine(client):
    X, y = rings()
    whole = model().fit(X, y)
    apart = model().fit(da.from_array(X, chunks=(400, 2)), da.from_array(y, chunks=700))
    assert apart.support_.tolist() == whole.support_.tolist()
    np.testing.assert_array_equal(apart.support_vectors_, X[apart.support_])
    assert apart.n_support_.tolist() == whole.n_support_.tolist()
    assert apart.n_support_full_.tolist() == whole.n_support_full_.tolist()
    same_optimum(apart, whole, TOL)
    assert apart.certificate_full_.dual == pytest.approx(whole.certificate_full_.dual, rel=1e-9)
    assert np.abs(apart.decision_function(X) - whole.decision_function(X)).max() < 0.02
    assert {*vars(apart)} == {*vars(whole)}


@pytest.mark.parametrize("cache_size", [500, 0.01], ids=["features kept", "made anew"])
def test_more_rows_are_solved_for_the_rows_that_a_sample_has_chosen(client, cache_size):
    X, y = rings(n=9000)
    chunks = da.from_array(X, chunks=(2000, -1)), da.from_array(y, chunks=2000)
    apart = model(cache_size=cache_size).fit(*chunks)
    assert len(apart.support_) == 10
    np.testing.assert_array_equal(apart.support_vectors_, X[apart.support_])
    same_optimum(apart, over_the_same_rows(X, y, apart), TOL)
    assert objective(X, y, apart) == pytest.approx(apart.certificate_.primal, rel=1e-8)
    full = apart.certificate_full_
    assert 0 < full.dual < apart.certificate_.dual
    assert full.primal == apart.certificate_.primal
    # A bound by the problem without a limit, which costs no more than with one.
    assert full.dual <= BudgetSVC(9000, C=0.5, gamma=0.5).fit(X, y).certificate_.primal
    whole = model().fit(X, y)
    assert apart.certificate_.primal <= 1.02 * whole.certificate_.primal
    lazy = apart.predict(chunks[0])
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), apart.predict(X))


@pytest.mark.parametrize("shared", [True, False])
def test_three_classes_with_weights_are_those_of_one_machine(client, shared):
    X, y = rings(n_classes=3)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    options = {"class_weight": "balanced", "shared": shared}
    whole = model(**options).fit(X, y, sample_weight=weights)
    chunks = da.from_array(X, chunks=(400, -1)), da.from_array(y, chunks=400)
    apart = model(**options).fit(*chunks, sample_weight=da.from_array(weights, chunks=1500))
    assert len(apart.certificate_.per_class) == 3
    assert not np.isin(apart.support_, np.flatnonzero(weights == 0)).any()
    if shared:
        assert apart.support_.tolist() == whole.support_.tolist()
        same_optimum(apart, over_the_same_rows(X, y, apart, weights), TOL)
        same_optimum(apart, whole, TOL)
    else:
        assert np.count_nonzero(apart.dual_coef_, axis=1).max() <= 10 < len(apart.support_)
        assert apart.certificate_.primal <= 1.02 * whole.certificate_.primal


def test_sparse_blocks_are_used_as_they_are(client):
    X, y = rings(n=5000)
    X = np.where(np.abs(X) > 0.4, X, 0.0)
    apart = model().fit(in_blocks(sp.csr_matrix(X), [2000, 0, 2500, 500]), y)
    assert sp.issparse(apart.support_vectors_)
    np.testing.assert_array_equal(apart.support_vectors_.toarray(), X[apart.support_])
    same_optimum(apart, over_the_same_rows(X, y, apart), TOL)
    csc = model().fit(in_blocks(sp.csc_matrix(X), [5000]), y)
    assert csc.support_.tolist() == apart.support_.tolist()


def test_uneven_empty_and_one_class_blocks_are_blocks_like_others(client):
    X, y = rings()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    apart = model().fit(in_blocks(X, [1, 0, 899, 17, 583]), y)  # of which one has no rows
    assert apart.support_.tolist() == model().fit(X, y).support_.tolist()


def test_a_frame_gives_names_and_gamma_is_that_of_all_rows(client):
    X, y = rings()
    weights = np.arange(len(y)) % 3.0
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=y, weight=weights)
    parts = dd.from_pandas(frame, npartitions=4)
    apart = model(gamma="scale").fit(
        parts[["a", "b", "c"]], parts["label"], sample_weight=parts["weight"]
    )
    whole = model(gamma="scale").fit(frame[["a", "b", "c"]], y, sample_weight=weights)
    assert apart.feature_names_in_.tolist() == ["a", "b", "c"]
    assert apart._sums.kernel.gamma == pytest.approx(whole._sums.kernel.gamma, rel=1e-12)
    assert apart.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=0.02)


def test_a_linear_kernel_and_the_squared_slack_have_the_objective_of_one_machine(client):
    X, y = rings()
    options = {"kernel": "linear", "slack": "squared_l2", "budget": 3}
    whole, apart = model(**options).fit(X, y), model(**options).fit(da.from_array(X, chunks=400), y)
    same_optimum(apart, whole, TOL)
    np.testing.assert_allclose(apart.coef_, whole.coef_, atol=0.01)


def test_a_budget_that_does_not_bind_has_the_solution_without_one(client):
    X, y = rings(n=300)
    apart = model(budget=1.0).fit(da.from_array(X, chunks=(100, -1)), y)
    whole = model(budget=1.0).fit(X, y)
    assert apart.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2 * TOL)
    assert apart.certificate_full_.gap <= 2 * TOL


def test_a_warm_start_compares_the_rows_of_the_last_fit(client):
    X, y = rings()
    chunks = da.from_array(X, chunks=(400, -1))
    warm = model(warm_start=True).fit(chunks, y)
    first = warm.certificate_.primal
    assert warm.fit(chunks, y).certificate_.primal <= first * (1 + 2 * TOL)


def test_without_a_cluster_blocks_are_read_one_after_the_other():
    X, y = rings()
    apart = model().fit(da.from_array(X, chunks=(400, -1)), da.from_array(y, chunks=400))
    same_optimum(apart, model().fit(X, y), TOL)


@pytest.mark.parametrize(
    ("options", "match", "error"),
    [
        ({"kernel": "precomputed"}, "precomputed kernel cannot be a Dask", ValueError),
        ({"slack": "linf"}, "is not a sum over the rows", ValueError),
        ({"strict": False}, r"call X.compute\(\)", TypeError),
    ],
)
def test_what_needs_all_rows_in_memory_is_refused(options, match, error):
    X, y = rings(n=200)
    with pytest.raises(error, match=match):
        model(**options).fit(da.from_array(X, chunks=(50, -1)), y)
