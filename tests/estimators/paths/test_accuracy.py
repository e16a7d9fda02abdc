"""The accuracy along a path, against scoring it point by point."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anynorm import SolutionPath
from anynorm.estimators._fitting import labels_of
from anynorm.estimators.paths.accuracy import accuracy_changes, accuracy_table
from anynorm.losses import get_loss
from anynorm.problem import Problem

N_FEATURES = 3
SHARES = np.sqrt([0.0002, 0.3, 0.98])  # irrational: never a knot, where a score may touch 0


def crooked_path(rng, n_knots, coarse):
    """Any piecewise linear function of s; with coarse numbers, scores are often exactly 0."""
    s = np.append(0.0, np.cumsum(rng.integers(1, 4, n_knots - 1) / (1.0 if coarse else np.pi)))
    draw = (lambda size: rng.integers(-1, 2, size) * 1.0) if coarse else rng.standard_normal
    coefs = draw((n_knots, N_FEATURES))
    used = coefs != 0
    record = SimpleNamespace(
        s=s, penalties=np.arange(n_knots)[::-1] * 1.0, losses=np.zeros(n_knots),
        intercepts=draw((n_knots,)), joint=np.ones(n_knots, bool), gaps=np.zeros(n_knots),
        indptr=np.append(0, np.cumsum(used.sum(axis=1))), indices=np.nonzero(used)[1],
        data=coefs[used], stopped="end", n_pivots=0,
    )  # fmt: skip
    rows = np.zeros((2, N_FEATURES))
    problem = Problem(
        y=np.array([1.0, -1.0]), C=1.0, loss=get_loss("hinge"), X=rows, regulariser="l1"
    )
    return SolutionPath(problem, record)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_paths=st.sampled_from([1, 3, 4]),
    n_folds=st.integers(1, 3),
    coarse=st.booleans(),
    weighted=st.booleans(),
)
@example(seed=103204, n_paths=1, n_folds=3, coarse=True, weighted=True)  # 0 on a segment: 6e-17
@example(seed=711990, n_paths=1, n_folds=1, coarse=True, weighted=False)  # 0 at s = 5 alone
def test_the_table_is_the_accuracy_of_every_s(seed, n_paths, n_folds, coarse, weighted):
    rng = np.random.default_rng(seed)
    classes = np.arange(max(2, n_paths))
    folds = []
    for _ in range(n_folds):
        paths = [crooked_path(rng, rng.integers(1, 6), coarse) for _ in range(n_paths)]
        X = rng.integers(-2, 3, (5, N_FEATURES)) * (1.0 if coarse else rng.uniform(0.5, 2))
        codes = rng.integers(-1, len(classes), 5)
        weights = rng.integers(0, 3, 5) + 0.5 if weighted else np.ones(5)
        folds.append((paths, X, codes, weights))
    end = max(path.s[-1] for paths, *_ in folds for path in paths)
    places = np.array([end / 3])
    edges, scores = accuracy_table([accuracy_changes(*fold) for fold in folds], places, end)
    assert edges[0] == 0.0
    assert edges[-1] == end
    assert end == 0 or np.any(np.isclose(edges, end / 3))
    for low, high, found in zip(edges[:-1], edges[1:], scores, strict=True):
        assert low < high or end == 0
        for s in low + SHARES * (high - low):
            for (paths, X, codes, weights), score in zip(folds, found, strict=True):
                values = np.column_stack([path.knots.scores(X, np.array([s])) for path in paths])
                if n_paths > 1 and np.diff(np.sort(values)[:, -2:]).min() < 1e-9:
                    continue  # rounding decides between equal scores
                if n_paths == 1 and coarse:  # between whole numbers at the knots: 0 or far from it
                    values[np.abs(values) < 1e-9] = 0.0
                labels = labels_of(values[:, 0] if n_paths == 1 else values, classes)
                assert score == pytest.approx(np.average(labels == codes, weights=weights))


def test_many_rows_are_done_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    path = crooked_path(rng, 6, coarse=False)
    X, codes = rng.standard_normal((50, N_FEATURES)), rng.integers(0, 2, 50)
    whole = accuracy_changes([path], X, codes, np.ones(50))
    monkeypatch.setattr("anynorm.design.limits.VALUES_AT_ONCE", 60)
    parts = accuracy_changes([path], X, codes, np.ones(50))
    assert parts.start == whole.start
    for one, other in zip(
        accuracy_table([whole], np.empty(0), path.s[-1]),
        accuracy_table([parts], np.empty(0), path.s[-1]),
        strict=True,
    ):
        np.testing.assert_allclose(one, other)
