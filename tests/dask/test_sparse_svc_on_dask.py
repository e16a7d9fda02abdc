"""SparseSVC on Dask collections: the 1-norm solution of one machine, with its certificate."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from anynorm import SparseSVC
from tests.dask.data import LOSSES, in_blocks, rows, same_optimum, sparse_rows
from tests.references.least_value import least_one_norm

TOL = 1e-5


def few_of_many(n=2000, p=30, n_classes=2, seed=0):
    """Rows of which a tenth of the columns decide."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 1.0
    w = np.where(np.arange(p)[:, None] < p // 10, rng.standard_normal((p, n_classes)), 0.0)
    scores = (X - 1.0) @ w + 0.5 * rng.standard_normal((n, n_classes))
    return X, np.array(["low", "mid", "top"])[scores.argmax(axis=1)]


def fitted(X, y, of, weights=None, whole_weights=None, **options):
    """The same estimator on a collection and on what it is made of."""
    options = {"C": 0.05, "tol": TOL} | options
    apart = SparseSVC(**options).fit(*of, sample_weight=weights)
    whole = SparseSVC(**options).fit(X, y, sample_weight=whole_weights)
    same_optimum(apart, whole, options["tol"])
    return apart, whole


@pytest.mark.parametrize("bias", [{}, {"fit_intercept": False}, {"intercept_scaling": 2.0}])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_has_the_solution_of_one_machine(client, loss, bias):
    X, y = few_of_many()
    chunks = da.from_array(X, chunks=(700, 16)), da.from_array(y, chunks=900)
    apart, whole = fitted(X, y, chunks, loss=loss, **bias)
    assert np.abs(apart.coef_ - whole.coef_).max() < 0.02
    assert 0 < np.count_nonzero(apart.coef_) < X.shape[1]
    assert (apart.predict(X) == whole.predict(X)).mean() > 0.99


def test_the_hinge_has_the_objective_of_a_linear_programme(client):
    X, y = few_of_many(n=500, p=12)
    chunks = da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)
    model = SparseSVC(C=0.2, tol=TOL).fit(*chunks)
    reference = least_one_norm(X, np.where(y == model.classes_[1], 1.0, -1.0), C=0.2)
    assert model.certificate_.dual <= reference * (1 + 1e-9)
    assert reference <= model.certificate_.primal * (1 + 1e-9)
    assert model.certificate_.primal <= reference * (1 + 2 * TOL)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_three_classes_with_weights_are_those_of_one_machine(client, loss):
    X, y = few_of_many(n_classes=3)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    options = {"class_weight": "balanced", "loss": loss}
    chunks = da.from_array(X, chunks=(800, -1)), da.from_array(y, chunks=800)
    apart, _ = fitted(X, y, chunks, da.from_array(weights, chunks=2000), weights, **options)
    assert len(apart.certificate_.per_class) == 3


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_sparse_blocks_of_many_columns_bring_the_matrix_of_few(client, loss):
    X, y = sparse_rows(n=4000, p=5000)
    options = {"C": 0.1, "loss": loss, "tol": 1e-3}
    apart = SparseSVC(**options).fit(in_blocks(X, [1700, 1300, 1000]), da.from_array(y, chunks=500))
    whole = SparseSVC(**options | {"tol": 1e-6}).fit(X, y)
    assert apart.certificate_.status == "optimal"
    assert whole.certificate_.dual <= apart.certificate_.primal
    assert apart.certificate_.primal <= 1.001 * whole.certificate_.primal
    assert np.count_nonzero(apart.coef_) <= 1.2 * np.count_nonzero(whole.coef_) + 2


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_uneven_empty_and_one_class_blocks_are_blocks_like_others(client, kind):
    X, y = rows()
    order = np.argsort(y, kind="stable")  # all blocks but one have a single class
    X, y, sizes = X[order], y[order], [1, 0, 899, 0, 17, 283]
    stored = sp.csr_matrix(X) if kind == "sparse" else X
    fitted(X, y, (in_blocks(stored, sizes), da.from_array(y, chunks=1200)), loss="squared_hinge")


def test_float32_and_a_frame_are_used_as_they_are(client):
    X, y = few_of_many()
    narrow = X.astype(np.float32)
    fitted(narrow, y, (da.from_array(narrow, chunks=(500, -1)), y), loss="squared_hinge")
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])]).assign(label=y)
    parts = dd.from_pandas(frame, npartitions=3)
    apart, _ = fitted(X, y, (parts.drop(columns="label"), parts["label"]), loss="logistic")
    assert apart.feature_names_in_.tolist() == list(frame.columns[:-1])


def test_weights_of_penalties_are_kept_and_columns_left_out(client):
    X, y = few_of_many()
    weights = np.linspace(0.5, 2.0, X.shape[1])
    weights[0] = np.inf
    chunks = da.from_array(X, chunks=(700, -1)), da.from_array(y, chunks=700)
    apart, _ = fitted(X, y, chunks, loss="squared_hinge", penalty_weights=weights)
    assert apart.coef_[0, 0] == 0
    with pytest.raises(ValueError, match="penalty_weights of 0 need all rows in one place"):
        SparseSVC(penalty_weights=np.zeros(X.shape[1])).fit(*chunks)


def test_a_tiny_C_has_no_coefficients_and_a_warm_start_is_faster(client):
    X, y = few_of_many()
    chunks = da.from_array(X, chunks=(700, -1)), da.from_array(y, chunks=700)
    assert not SparseSVC(C=1e-5).fit(*chunks).coef_.any()
    model = SparseSVC(C=0.05, loss="logistic", tol=1e-6, warm_start=True).fit(*chunks)
    first = model.n_iter_
    assert model.fit(*chunks).n_iter_ < first


def test_without_a_cluster_blocks_are_read_one_after_the_other():
    X, y = few_of_many(n=600, p=10)
    fitted(X, y, (da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200)))
