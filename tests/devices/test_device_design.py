"""X on a device has the products, norms and parts of the same X in memory."""

import numpy as np
import pytest

from anynorm.design import design_of
from anynorm.design.device_design import DeviceDesign

rng = np.random.default_rng(0)
SCALE = np.array([1.0, 0.5, 0.0, 3.0])
ROWS, COLUMNS = np.array([7, 2, 11]), np.array([3, 0])
WEIGHTS = rng.random(20)

QUESTIONS = {
    "matvec": lambda d: d.matvec(np.arange(4.0)),
    "matvec of two": lambda d: d.matvec(np.arange(8.0).reshape(4, 2)),
    "matvec of rows": lambda d: d.matvec(np.arange(4.0), rows=ROWS),
    "matvec of columns": lambda d: d.matvec(np.ones(2), columns=COLUMNS),
    "rmatvec": lambda d: d.rmatvec(WEIGHTS),
    "rmatvec of rows": lambda d: d.rmatvec(np.ones(3), rows=ROWS, columns=COLUMNS),
    "hessian product": lambda d: d.hessian_product(ROWS, np.ones(3), np.arange(4.0))[0],
    "row norms": lambda d: d.row_norms_squared(),
    "column norms": lambda d: d.column_norms_squared(),
    "weighted column norms": lambda d: d.column_norms_squared(np.ones(3), rows=ROWS),
    "weighted gram": lambda d: d.weighted_gram(np.arange(20), WEIGHTS),
    "centred gram": lambda d: d.weighted_gram(ROWS, np.ones(3), d.dense_rows(ROWS).mean(axis=0)),
    "rows gram": lambda d: d.rows_gram(ROWS, np.arange(5)),
    "columns gram": lambda d: d.columns_gram(COLUMNS, np.array([1, 2]), WEIGHTS),
    "columns with all": lambda d: d.columns_gram(None, COLUMNS),
    "rows": lambda d: d.take_rows(ROWS).dense(),
    "columns": lambda d: d.take_columns(COLUMNS).dense(),
    "dense columns": lambda d: d.dense_columns(COLUMNS),
    "entries": lambda d: d.entries_at(ROWS, np.array([0, 3, 1])),
    "largest entry": lambda d: np.array(d.largest_entry()),
    "sizes": lambda d: d.rmatvec_sizes(WEIGHTS, COLUMNS),
    "constant": lambda d: d.with_constant(2.0).matvec(np.arange(5.0), columns=np.arange(5)),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [None, SCALE], ids=["plain", "scaled"])
def test_answers_are_those_of_the_same_matrix_in_memory(library, question, dtype, scale):
    X = np.random.default_rng(1).standard_normal((20, 4)).astype(dtype)
    here, there = design_of(X, scale), design_of(library.array(X), scale)
    assert isinstance(there, DeviceDesign)
    found = QUESTIONS[question](there)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, QUESTIONS[question](here), rtol=1e-12, atol=1e-13)


def test_blocks_make_no_difference(library, monkeypatch):
    X = np.random.default_rng(2).standard_normal((50, 3))
    design = DeviceDesign(library.array(X))
    monkeypatch.setattr("anynorm.design.device_design.VALUES_AT_A_LAUNCH", 21)
    assert [tile.entries.shape for tile in design.tiles()][:2] == [(7, 3), (7, 3)]
    np.testing.assert_allclose(design.matvec(np.ones(3)), X.sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(design.rmatvec(np.ones(50)), X.sum(axis=0), rtol=1e-13)
    np.testing.assert_allclose(design.columns_gram(), X.T @ X, rtol=1e-12)
    weights = np.arange(50.0)
    mean = np.average(X, weights=np.repeat(weights[:, None], 3, axis=1))
    spread = np.average((X - mean) ** 2, weights=np.repeat(weights[:, None], 3, axis=1))
    assert design.variance(weights) == pytest.approx(spread, rel=1e-12)
