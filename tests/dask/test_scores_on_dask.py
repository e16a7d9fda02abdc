"""`score` of Dask collections: counted where the rows lie, whatever is known of their number."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from anynorm import SVC, LinearSVC, ReweightedSVCCV, SparseSVC
from tests.dask.data import in_blocks, rows, sparse_rows


@pytest.fixture(scope="module")
def table():
    X, y = rows(n=300, n_classes=3)
    weights = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
    return frame, y, weights


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "model", [LinearSVC(), SparseSVC(C=0.1), SVC(), ReweightedSVCCV(Cs=2, cv=2, max_rounds=2)]
)
def test_frames_and_arrays_have_the_score_of_the_rows(client, table, model, weighted):
    frame, y, weights = table
    model.fit(frame, y)
    given = {"sample_weight": weights} if weighted else {}
    expected = model.score(frame, y, **given)
    parts = dd.from_pandas(frame.assign(label=y, weight=weights), npartitions=4)
    given = {"sample_weight": parts["weight"]} if weighted else {}
    found = model.score(parts[list(frame.columns)], parts["label"], **given)
    assert found == pytest.approx(expected, rel=1e-12)
    model.fit(frame.to_numpy(), y)
    X = in_blocks(frame.to_numpy(), [120, 0, 150, 30])
    given = {"sample_weight": da.from_array(weights, chunks=70)} if weighted else {}
    labels = da.from_array(y, chunks=100)
    assert model.score(X, labels, **given) == pytest.approx(expected, rel=1e-12)
    given = {"sample_weight": weights} if weighted else {}
    assert model.score(X, y, **given) == pytest.approx(expected, rel=1e-12)


def test_sparse_blocks_are_counted(client):
    X, y = sparse_rows()
    model = LinearSVC(C=0.1).fit(X, y)
    blocks = in_blocks(sp.csr_matrix(X), [600, 900])
    assert model.score(blocks, da.from_array(y, chunks=500)) == model.score(X, y)


def test_what_does_not_belong_together_is_named(client, table):
    frame, y, _ = table
    model = LinearSVC().fit(frame.to_numpy(), y)
    X = in_blocks(frame.to_numpy(), [150, 150])
    with pytest.raises(ValueError, match="y has 299 entries but X has 300 rows"):
        model.score(X, y[1:])
    with pytest.raises(ValueError, match="y"):
        model.score(X, None)
    with pytest.raises(ValueError, match="no rows of positive weight"):
        model.score(X, y, sample_weight=np.zeros(300))
    with pytest.raises(ValueError, match="chunks of unknown size"):
        model.score(X[X[:, 0] > 0], y)
