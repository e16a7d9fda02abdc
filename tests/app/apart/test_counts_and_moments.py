"""Sums over rows that are nowhere together say the same as the rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anynorm import SparseSVC
from anynorm.app.apart.counts import blind_error_of, estimate_of, score_of
from anynorm.app.apart.models_apart import Contrast
from anynorm.app.apart.survey import Deal, Moments
from anynorm.app.job.measures import blind_error, estimate
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.solvers.one_norm import RisingPrice


@pytest.mark.parametrize("scoring", ["error", "balanced"])
@given(counts=st.lists(st.integers(0, 6), min_size=9, max_size=9))
def test_errors_from_counts_are_those_of_the_rows(scoring, counts):
    confusion = np.array(counts).reshape(3, 3)
    if confusion.sum() < 2:
        return
    truth, taken = np.repeat(np.indices((3, 3)).reshape(2, 9), counts, axis=1)
    scores = np.eye(3)[taken]
    rows = estimate(scoring, truth, scores, [np.arange(len(truth))])
    found = estimate_of(scoring, confusion)
    assert found.value == pytest.approx(rows.value, abs=1e-12)
    assert found.standard_error == pytest.approx(rows.standard_error, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((rows.low, rows.high), abs=1e-9)
    assert (found.measure, found.n_rows) == (rows.measure, rows.n_rows)
    assert score_of(scoring, confusion) == pytest.approx(1 - rows.value)
    assert blind_error_of(scoring, confusion.sum(axis=1)) == pytest.approx(
        blind_error(scoring, truth)
    )


def test_moments_add_up_and_know_what_is_missing():
    rng = np.random.default_rng(0)
    X = rng.normal(1e3, [1, 10, 100], size=(500, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    found = sum((Moments.of(X[a : a + 90]) for a in range(90, 500, 90)), start=Moments.of(X[:90]))
    assert found.rows == 500
    assert found.mean == pytest.approx(np.nanmean(X, axis=0), rel=1e-13)
    assert found.squares / found.count == pytest.approx(np.nanvar(X, axis=0), rel=1e-10)
    whole, fill = X.copy(), np.array([5.0, 900.0, 1000.0])
    np.copyto(whole, fill, where=np.isnan(X))
    filled = found.filled(fill)
    assert filled.mean == pytest.approx(whole.mean(axis=0), rel=1e-13)
    assert filled.squares / filled.rows == pytest.approx(whole.var(axis=0), rel=1e-10)


def test_rows_are_dealt_evenly_by_class_and_the_same_way_each_time():
    texts = np.array(["a"] * 97 + ["b"] * 33, dtype=object)
    parts = Deal(5, 3, judges=True).parts(texts, 8)
    assert np.array_equal(parts, Deal(5, 3, judges=False).parts(texts, 8))
    assert not np.array_equal(parts, Deal(5, 3, judges=True).parts(texts, 9))
    for label in "ab":
        counts = np.bincount(parts[texts == label], minlength=5)
        assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_the_first_feature_enters_where_the_contrast_says(loss):
    rng = np.random.default_rng(1)
    y = np.where(rng.random(200) < 0.3, 1.0, -1.0)
    X = rng.standard_normal((200, 7)) + np.outer(y, np.linspace(0, 0.5, 7))
    means = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    ups = int((y > 0).sum())
    first = Contrast(float(ups), float(200 - ups), float(np.abs(means).max())).first(loss)
    if loss == "squared_hinge":
        problem = Problem(y=y, C=1.0, loss=get_loss(loss), X=X, regulariser="l1")
        assert first == pytest.approx(RisingPrice(problem).first, rel=1e-9)
        return
    # the duals of the larger class need not be the same: no feature before, one soon after
    below, above = (SparseSVC(C=t * first, tol=1e-9).fit(X, y).coef_ for t in (0.999, 4.0))
    assert not below.any()
    assert above.any()
