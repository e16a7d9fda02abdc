"""Loops over the rows of a large dense X: the same as NumPy's, and the same bits on any threads."""

import numpy as np
import pytest

from anynorm import LinearSVC
from anynorm.design import dense, dense_loops, design_of
from anynorm.design.crew import Block
from anynorm.design.threads import Threads

RNG = np.random.default_rng(0)


@pytest.fixture
def even_here(monkeypatch):
    """Loops and parts for small data."""
    monkeypatch.setattr(dense, "_WORTH_COMPILED", 1)
    monkeypatch.setattr(dense, "ENTRIES_PER_TASK", 1)
    monkeypatch.setattr(dense_loops, "_ENTRIES", 50)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("shape", [(203, 7), (5, 101), (1, 1)])
def test_products_norms_and_parts(even_here, shape, scaled, dtype):
    X = RNG.normal(size=shape).astype(dtype)
    X.flags.writeable = False
    scale = RNG.random(shape[1]) if scaled else None
    whole = X.astype(np.float64) * (1.0 if scale is None else scale)
    w, a = RNG.normal(size=shape[1]), RNG.normal(size=shape[0])
    rows = RNG.permutation(shape[0])[: shape[0] // 2 + 1]
    sides = np.column_stack([np.maximum(a, 0.0), np.where(np.arange(shape[0]) % 5, 0.0, a)])

    def results():
        design = design_of(X, scale)
        part = design.take_rows(rows)
        return [
            design.matvec(w),
            design.rmatvec(a),
            design.row_norms_squared(),
            part.dense(),
            part.matvec(w),
            part.rmatvec(a[rows]),
            design.matvec(np.outer(w, [1.0, 2.0])),
            design.rmatvec(np.outer(a, [1.0, 2.0])),
            design.rows_and(rows, whole[:1]).dense(),
            design.matvec(w, rows=rows),
            design.rmatvec(a[rows], rows=rows),
            *design.hessian_product(rows, a[rows], w),
            design.column_norms_squared(),
            design.rmatvec(np.zeros(shape[0])),
            design.rmatvec(sides),
        ]

    found = results()
    some = whole[rows]
    expected = [whole @ w, a @ whole, (whole**2).sum(axis=1), some, some @ w, a[rows] @ some]
    expected += [np.outer(whole @ w, [1, 2]), np.outer(a @ whole, [1, 2])]
    expected += [np.vstack([some, whole[:1]]), some @ w, a[rows] @ some]
    bent = a[rows] * (some @ w)
    expected += [bent @ some, bent.sum(), (whole**2).sum(axis=0)]
    expected += [np.zeros(shape[1]), whole.T @ sides]
    for value, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-12, atol=1e-12)
    with Threads(3):
        for value, same in zip(found, results(), strict=True):
            assert np.array_equal(value, same)


def test_rows_without_a_factor_are_not_read(even_here):
    X, a = np.full((60, 4), np.nan), np.zeros(60)
    X[::3], a[::3] = RNG.normal(size=(20, 4)), 1.0
    np.testing.assert_allclose(design_of(X).rmatvec(a), X[::3].sum(axis=0), rtol=1e-12)


def test_one_of_many_blocks_is_sooner_worth_the_compiler(monkeypatch):
    monkeypatch.setattr(dense, "_WORTH_IN_BLOCKS", 40)
    X = RNG.normal(size=(10, 4))
    assert not design_of(X).compiled
    assert design_of(X).as_block().take_rows(np.arange(3)).compiled
    assert not design_of(X[:9]).as_block().compiled
    block = Block(X, np.ones(10), None, columns=4)
    assert block.design().compiled
    assert Block(lambda: X, np.ones(10), None, columns=4).design().compiled


def test_a_fit_is_the_same_on_any_number_of_threads(even_here):
    X = RNG.normal(size=(400, 6))
    y = X[:, 0] + 0.5 * RNG.normal(size=400) > 0
    one, three = (LinearSVC(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 3))
    assert np.array_equal(one.coef_, three.coef_)
    assert one.certificate_.gap <= 1e-4
