"""The walk on Dask collections goes where that of one machine goes."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from anynorm import ReweightedSVC
from anynorm.datasets import make_relevant
from tests.dask.data import in_blocks, sparse_rows


@pytest.mark.parametrize("bias", [{}, {"intercept_scaling": 1.0}])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_the_rounds_are_those_of_one_machine(client, loss, bias):
    X, y = make_relevant(n_relevant=4, n_samples=200, n_features=15, random_state=0)
    options = {"C": 0.1, "n_rounds": 4, "loss": loss, "tol": 1e-5, "prune": False, **bias}
    whole = ReweightedSVC(**options).fit(X, y)
    apart = ReweightedSVC(**options).fit(da.from_array(X, chunks=(80, -1)), y)
    assert len(apart.history_) == 4
    assert apart.certificate_.status == "optimal"
    ours = [record.objective for record in apart.history_]
    assert ours == pytest.approx([record.objective for record in whole.history_], rel=1e-3)
    assert ours == sorted(ours, reverse=True)
    for record in apart.history_:
        assert record.l1_certificate.dual <= ours[-1] * (1 + 1e-9)


def test_columns_that_do_not_matter_are_dropped_at_no_loss(client):
    X, y = make_relevant(n_relevant=4, n_samples=200, n_features=15, random_state=0)
    in_chunks, options = da.from_array(X, chunks=(80, -1)), {"C": 0.1, "n_rounds": 8, "tol": 1e-4}
    model = ReweightedSVC(**options).fit(in_chunks, y)
    other = ReweightedSVC(**options, prune=False).fit(in_chunks, y)
    assert model.history_[-1].n_nonzero < other.history_[-1].n_nonzero
    assert model.history_[-1].objective <= 1.001 * other.history_[-1].objective
    scores = model.decision_function(in_chunks).compute()
    np.testing.assert_array_equal(scores, model.decision_function(X))


@pytest.mark.parametrize("prune", [True, False])
def test_the_walk_goes_on_with_the_duals_of_coordinate_descent(client, prune):
    X, y = sparse_rows()
    options = {"C": 0.3, "n_rounds": 3, "tol": 1e-3, "prune": prune}
    in_chunks = in_blocks(X, [800, 700])
    apart, whole = ReweightedSVC(**options).fit(in_chunks, y), ReweightedSVC(**options).fit(X, y)
    assert apart.certificate_.status == "optimal"
    assert apart.history_[-1].objective == pytest.approx(whole.history_[-1].objective, rel=3e-3)
    assert apart.history_[-1].n_nonzero == pytest.approx(whole.history_[-1].n_nonzero, rel=0.05)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_uneven_empty_and_one_class_blocks_are_blocks_like_others(client, kind):
    X, y = make_relevant(n_relevant=4, n_samples=200, n_features=15, random_state=0)
    order = np.argsort(y, kind="stable")  # all blocks but one have a single class
    X, y, sizes = X[order], y[order], [1, 0, 139, 0, 17, 43]
    stored = sp.csr_matrix(X) if kind == "sparse" else X
    options = {"C": 0.1, "n_rounds": 3, "loss": "hinge", "tol": 1e-5, "prune": False}
    apart = ReweightedSVC(**options).fit(in_blocks(stored, sizes), da.from_array(y, chunks=200))
    whole = ReweightedSVC(**options).fit(X, y)
    assert apart.certificate_.status == "optimal"
    ours = [record.objective for record in apart.history_]
    assert ours == pytest.approx([record.objective for record in whole.history_], rel=1e-3)
