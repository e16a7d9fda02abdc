"""Best biases of many rows: those found near a sample's guess are those that sorting all finds."""

import numpy as np
import pytest

from anynorm.norms.best_bias import order_statistics

N = 100_000


def cases():
    rng = np.random.default_rng(0)
    yield "normal", rng.standard_normal(N)
    yield "in order", np.sort(rng.standard_normal(N))
    yield "ties", rng.integers(0, 5, N).astype(float)
    yield "all alike", np.ones(N)
    # The sample takes every 24th row: here these are unlike the others.
    unlike = rng.standard_normal(N)
    unlike[:: N // 4096] += 100.0
    yield "an unlike sample", unlike


@pytest.mark.parametrize(("name", "t"), list(cases()))
@pytest.mark.parametrize("share", [1e-4, 0.3, 0.5, 0.9999])
def test_of_many_rows_that_all_count_once(name, t, share):
    count = int(share * N)
    y = np.where(np.arange(N) < count, 1.0, -1.0)
    ascending = np.sort(t)
    found = order_statistics(t, y, np.ones(N), True)
    assert found == (ascending[count - 1], ascending[count])


@pytest.mark.parametrize(("name", "t"), list(cases()))
@pytest.mark.parametrize("one_sided", [True, False])
def test_of_many_rows_with_weights(name, t, one_sided):
    rng = np.random.default_rng(1)
    w = rng.integers(1, 4, N).astype(float)
    w[-2:] = N / 3, N / 2  # means of many rows
    y = np.where(rng.random(N) < 0.4, 1.0, -1.0)
    target = w[y > 0].sum() if one_sided else w.sum() / 2
    order = np.argsort(t, kind="stable")
    below = np.cumsum(w[order])
    # All weights are whole numbers, so these are exact.
    first, beyond = np.searchsorted(below, target), np.searchsorted(below, target, side="right")
    found = order_statistics(t, y, w, one_sided)
    assert found == (t[order[first]], t[order[beyond]])
