"""ReweightedSVCCV on Dask collections: the folds, the table and the choice of one machine."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from anynorm import ReweightedSVCCV
from anynorm.datasets import make_relevant
from tests.dask.data import in_blocks, rows

OPTIONS = {"Cs": [0.01, 0.1], "max_rounds": 3, "cv": 3, "tol": 1e-5, "prune": False}


def data():
    return make_relevant(n_relevant=4, n_samples=240, n_features=12, random_state=0)


def same_table(apart, whole, n):
    """A row near the boundary may be on either side of it by what the gaps leave open."""
    ours, theirs = apart.cv_results_, whole.cv_results_
    assert {*ours} == {*theirs}
    assert ours["params"] == theirs["params"]
    for fold in range(3):
        name = f"split{fold}_test_score"
        np.testing.assert_allclose(ours[name], theirs[name], atol=2.5 / (n / 3))
    np.testing.assert_allclose(ours["mean_n_features"], theirs["mean_n_features"], atol=0.5)
    assert ours["max_gap"].max() <= 10 * OPTIONS["tol"]


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_table_is_that_of_one_machine(client, loss):
    X, y = data()
    whole = ReweightedSVCCV(**OPTIONS, loss=loss, calibration="sigmoid").fit(X, y)
    apart = ReweightedSVCCV(**OPTIONS, loss=loss, calibration="sigmoid").fit(
        da.from_array(X, chunks=(70, 5)), da.from_array(y, chunks=100)
    )
    same_table(apart, whole, len(y))
    assert {*vars(apart)} == {*vars(whole)}
    assert (apart.C_, apart.n_rounds_) == (whole.C_, whole.n_rounds_)
    assert apart.certificate_.status == "optimal"
    # From the second round on a problem has the weights of the last one's solution.
    ours = [record.objective for record in apart.history_]
    assert ours == pytest.approx([record.objective for record in whole.history_], rel=1e-3)
    assert len(apart.history_) == apart.n_rounds_
    oof, other = apart.oof_decision_function_, whole.oof_decision_function_
    assert np.abs(oof - other).max() < 0.05 * np.abs(other).max()
    np.testing.assert_allclose(apart.predict_proba(X), whole.predict_proba(X), atol=0.02)


def test_three_classes_with_weights_and_sparse_blocks_are_those_of_one_machine(client):
    X, y = rows(n=300, n_classes=3)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    options = OPTIONS | {"class_weight": "balanced", "loss": "squared_hinge"}
    whole = ReweightedSVCCV(**options).fit(X, y, sample_weight=weights)
    chunks = in_blocks(sp.csr_matrix(X), [100, 0, 150, 50])
    apart = ReweightedSVCCV(**options).fit(chunks, y, sample_weight=weights)
    same_table(apart, whole, len(y))
    assert apart.oof_decision_function_.shape == (300, 3)
    assert (apart.C_, apart.n_rounds_) == (whole.C_, whole.n_rounds_)
    oof, other = apart.oof_decision_function_, whole.oof_decision_function_
    assert np.abs(oof - other).max() < 0.05 * np.abs(other).max()
    assert len(apart.certificate_.per_class) == 3


def test_uneven_empty_and_one_class_blocks_are_blocks_like_others(client):
    X, y = data()
    order = np.argsort(y, kind="stable")  # all blocks but one have a single class
    X, y = X[order], y[order]
    whole = ReweightedSVCCV(**OPTIONS).fit(X, y)
    chunks = in_blocks(X, [1, 0, 159, 0, 17, 63])
    apart = ReweightedSVCCV(**OPTIONS).fit(chunks, da.from_array(y, chunks=240))
    same_table(apart, whole, len(y))
    assert (apart.C_, apart.n_rounds_) == (whole.C_, whole.n_rounds_)


def test_groups_and_splitters_are_kept_to_without_a_cluster():
    X, y = data()
    groups = np.arange(len(y)) % 6
    options = OPTIONS | {"cv": GroupKFold(3), "loss": "squared_hinge"}
    whole = ReweightedSVCCV(**options).fit(X, y, groups=groups)
    chunks = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    apart = ReweightedSVCCV(**options).fit(*chunks, groups=da.from_array(groups, chunks=50))
    same_table(apart, whole, len(y))


def test_a_time_limit_leaves_the_rest_of_the_table_without_features():
    X, y = data()
    model = ReweightedSVCCV(**OPTIONS, time_limit=1e-6)
    with pytest.warns(UserWarning, match="time_limit"):
        model.fit(da.from_array(X, chunks=(100, -1)), y)
    assert not model.cv_results_["mean_n_features"].any()
    share = max(np.mean(y == label) for label in model.classes_)
    assert model.best_score_ == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"preprocessor": StandardScaler()}, "preprocessor needs all rows in one place"),
        ({"scoring": "roc_auc"}, "scoring must be None or 'accuracy'"),
    ],
)
def test_what_needs_all_rows_in_one_place_is_refused(options, match):
    X, y = data()
    with pytest.raises(ValueError, match=match):
        ReweightedSVCCV(**options).fit(da.from_array(X, chunks=(100, -1)), y)
