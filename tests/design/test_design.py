"""Every operation of a design, for every storage, against plain NumPy on the wide matrix."""

import pathlib
import re

import numpy as np
import pytest
import scipy.sparse as sp

import anynorm
from anynorm.design import Design, design_of
from anynorm.design.interface import Tile
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from anynorm.solvers.linear import solve_linear
from anynorm.solvers.one_norm import solve_one_norm

ROUNDING = 1e-9  # of Gram matrices and of what is centred


def _int64(X):
    return type(X)((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)


def _strided(X):
    wide = np.zeros((2 * X.shape[0], X.shape[1]), X.dtype)
    wide[::2] = X
    return wide[::2]


def _read_only(X):
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    return X


STORAGES = {
    "c": np.ascontiguousarray,
    "f": np.asfortranarray,
    "strided": _strided,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr int64": lambda X: _int64(sp.csr_array(X)),
    "csc int64": lambda X: _int64(sp.csc_array(X)),
    "csr read-only": lambda X: _read_only(sp.csr_array(X)),
}


class Chunks(Design):
    """What a new storage has to bring, and nothing else: chunks of rows in a list."""

    sparse = False

    def __init__(self, X, scale=None):
        super().__init__(X.shape, scale)
        self.stored = X
        self.chunks = [(s, X[s : s + 7]) for s in range(0, X.shape[0], 7)]

    def tiles(self, *, small=True):
        for start, chunk in self.chunks:
            half = self.p // 2
            rows = slice(start, start + len(chunk))
            yield Tile(rows, slice(0, half), chunk[:, :half].astype(float))
            yield Tile(rows, slice(half, self.p), chunk[:, half:].astype(float))

    def dense_rows(self, rows):
        block = np.array([self.chunks[i // 7][1][i % 7] for i in rows], float).reshape(
            len(rows), self.p
        )
        return block if self.scale is None else block * self.scale

    def dense_columns(self, columns):
        return self.dense_rows(np.arange(self.n))[:, columns]

    def take_rows(self, rows):
        return Chunks(self.stored[rows], self.scale)

    def take_columns(self, columns):
        return Chunks(self.stored[:, columns], None if self.scale is None else self.scale[columns])

    def scaled(self, scale):
        return Chunks(self.stored, scale)

    def entries_at(self, rows, columns):
        return self.stored[rows, columns].astype(float)

    def entries(self, rows=None):
        return float(self.n if rows is None else rows.size) * self.p

    def column_entries(self):
        return np.full(self.p, self.n)

    def gram_cost(self, rows):
        return float(rows.size) * self.p**2


@pytest.fixture(params=[(1, 4), (1200, 61), (30, 150)], ids=str)
def entries(request):
    X = np.random.default_rng(0).normal(size=request.param)
    X[np.abs(X) < 0.6] = 0.0
    X[len(X) // 2 : len(X) // 2 + len(X) // 7] = 0.0  # empty rows
    return X


KINDS = [(name, "float64") for name in [*STORAGES, "memory map", "chunks"]]
KINDS += [(name, "float32") for name in ("c", "f", "csr", "csc", "memory map")]


@pytest.fixture(params=KINDS, ids=" ".join)
def kind(request):
    return request.param


@pytest.fixture
def narrow(entries, kind):
    return entries.astype(kind[1])


@pytest.fixture
def stored(narrow, kind, tmp_path):
    if kind[0] == "chunks":
        return Chunks(narrow)
    if kind[0] == "memory map":
        np.save(tmp_path / "X.npy", narrow)
        return np.load(tmp_path / "X.npy", mmap_mode="r")
    return STORAGES[kind[0]](narrow)


@pytest.fixture(params=[False, True], ids=["plain", "scaled"])
def case(narrow, stored, request):
    """A design and the wide matrix that it stands for."""
    wide = narrow.astype(np.float64)
    if not request.param:
        return design_of(stored), wide
    scale = np.random.default_rng(1).uniform(0.5, 2.0, wide.shape[1])
    scale[0] = 0.0
    return design_of(stored, scale), wide * scale


def _vectors(wide):
    rng = np.random.default_rng(2)
    return rng.normal(size=wide.shape[1]), rng.normal(size=wide.shape[0])


def _places(length):
    """None, few, one of them, most and all of the places."""
    rng = np.random.default_rng(3)
    sizes = {0, 1, max(1, length // 20), -(-3 * length // 4), length}
    return [np.sort(rng.choice(length, size, replace=False)) for size in sorted(sizes)]


def _few(length):
    return _places(length)[1]


def _most(length):
    return np.arange(length)[: max(1, 3 * length // 4)]


def _agree(found, expected, rounding=1e-12):
    np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding)


def test_products(case):
    design, wide = case
    w, a = _vectors(wide)
    W, A = np.column_stack([w, -(w**2)]), np.column_stack([a, a**2, np.ones_like(a)])
    assert design.shape == (design.n, design.p) == wide.shape
    _agree(design.matvec(w), wide @ w)
    _agree(design.rmatvec(a), wide.T @ a)
    _agree(design.matvec(W), wide @ W)
    _agree(design.rmatvec(A), wide.T @ A)


def test_products_of_some_rows(case):
    design, wide = case
    w, a = _vectors(wide)
    for rows in _places(design.n):
        d = a[rows] ** 2
        t = d * (wide[rows] @ w)
        product, total = design.hessian_product(rows, d, w)
        _agree(design.matvec(w, rows=rows), wide[rows] @ w)
        _agree(design.rmatvec(a[rows], rows=rows), wide[rows].T @ a[rows])
        _agree(product, wide[rows].T @ t)
        np.testing.assert_allclose(total, t.sum(), rtol=1e-10, atol=1e-10)


def test_products_of_some_columns(case):
    design, wide = case
    w, a = _vectors(wide)
    W = np.column_stack([w, w**2])
    for columns in _places(design.p):
        part = wide[:, columns]
        _agree(design.matvec(w[columns], columns=columns), part @ w[columns])
        _agree(design.matvec(W[columns], columns=columns), part @ W[columns])
        _agree(design.rmatvec(a, columns=columns), part.T @ a)
        sizes = np.abs(part).T @ np.abs(a)
        _agree(design.rmatvec_sizes(a, columns), sizes)
    portions = np.array_split(_most(design.p)[::-1], 3)
    expected = np.column_stack([wide[:, K] @ w[K] for K in portions])
    _agree(design.matvec_by_portions(w, portions), expected)


def test_norms(case):
    design, wide = case
    _, a = _vectors(wide)
    _agree(design.row_norms_squared(), (wide**2).sum(1))
    _agree(design.column_norms_squared(), (wide**2).sum(0))
    _agree(design.column_norms_squared(a**2), a**2 @ wide**2)
    for rows in _places(design.n):
        d = a[rows] ** 2
        _agree(design.column_norms_squared(rows=rows), (wide[rows] ** 2).sum(0))
        _agree(design.column_norms_squared(d, rows=rows), d @ wide[rows] ** 2)
    squares = (wide**2).sum(0)
    usual = np.median(squares[squares > 0])
    assert set(design.large_columns) == set(np.flatnonzero(squares > 1e8 * usual))


def test_gram_matrices(case):
    design, wide = case
    _, a = _vectors(wide)
    for rows in _places(design.n):
        d, X = a[rows] ** 2, wide[rows]
        _agree(design.weighted_gram(rows, d), X.T @ (d[:, None] * X), ROUNDING)
        if d.sum() > 0:
            mean = d @ X / d.sum()
            expected = (X - mean).T @ (d[:, None] * (X - mean))
            _agree(design.weighted_gram(rows, d, mean), expected, ROUNDING)
    few = _few(design.n)
    _agree(design.rows_gram(few), wide[few] @ wide[few].T, ROUNDING)
    _agree(design.rows_gram(few, few[:1]), wide[few] @ wide[few[:1]].T, ROUNDING)
    for left in (None, *_places(design.p)):
        for right in (None, left, _few(design.p)):
            L, R = (wide if K is None else wide[:, K] for K in (left, right))
            _agree(design.columns_gram(left, right), L.T @ R, ROUNDING)
            found = design.columns_gram(left, right, a**2)
            _agree(found, L.T @ (a[:, None] ** 2 * R), ROUNDING)


def test_parts(case):
    design, wide = case
    for rows in _places(design.n):
        np.testing.assert_array_equal(design.dense_rows(rows), wide[rows])
        np.testing.assert_array_equal(design.take_rows(rows).dense(), wide[rows])
        for columns in _places(design.p)[1:]:
            part = wide[np.ix_(rows, columns)]
            np.testing.assert_array_equal(design.take(rows, columns).dense(), part)
    for columns in _places(design.p):
        np.testing.assert_array_equal(design.dense_columns(columns), wide[:, columns])
        np.testing.assert_array_equal(design.take_columns(columns).dense(), wide[:, columns])
    np.testing.assert_array_equal(design.dense(), wide)
    np.testing.assert_array_equal(design.row(design.n - 1), wide[-1])
    np.testing.assert_array_equal(design.column(design.p - 1), wide[:, -1])
    assert design.dense().dtype == design.dense_rows(np.arange(1)).dtype == np.float64


def test_parts_are_joined(narrow, stored):
    design, wide = design_of(stored), narrow.astype(np.float64)
    np.testing.assert_array_equal(design.with_rows(np.ones((2, design.p))).dense()[-2:], 1.0)
    np.testing.assert_array_equal(design.with_rows(wide).dense()[design.n :], wide)
    np.testing.assert_array_equal(design.beside(design).dense(), np.hstack([wide, wide]))
    np.testing.assert_allclose(design.divided(3.0).dense(), wide / 3.0, rtol=1e-15)
    transposed = design.dense_transposed()
    np.testing.assert_array_equal(transposed, wide.T)
    assert transposed.flags.c_contiguous


def test_descriptions(case):
    design = case[0]
    rows = _most(design.n)
    plain = design.scaled(None).dense()
    expected = (plain != 0) if design.sparse else np.ones(plain.shape)
    assert design.entries() == expected.sum()
    assert design.entries(rows) == expected[rows].sum()
    np.testing.assert_array_equal(design.column_entries(), expected.sum(0))
    assert design.largest_entry() == np.abs(plain).max()
    assert 0 <= design.gram_cost(rows) <= rows.size * design.p**2
    i, j = np.array([0, design.n - 1]), np.array([design.p - 1, 0])
    np.testing.assert_array_equal(design.entries_at(i, j), plain[i, j])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_column_block_of_no_rows_has_columns_without_entries(kind):
    design = design_of(kind(np.eye(3)))
    block = design.column_block(np.array([0, 2]), np.zeros(0, dtype=int), np.ones(3))
    assert block.dense_columns(np.array([1])).shape == (0, 1)
    assert block.stored().shape == (0, 2)
    assert not block.column_norms_squared().any()


def test_what_compiled_loops_walk_over(narrow, stored):
    design, wide = design_of(stored), narrow.astype(np.float64)
    w, a = _vectors(wide)
    rows, columns = _most(design.n), _most(design.p)
    for constant in (0.0, 2.5):
        bordered = np.column_stack([wide, np.full(design.n, constant)])
        view = design.with_constant(constant)
        chosen = np.append(columns, design.p) if constant else columns
        block = view.column_block(chosen, rows, a)
        expected = a[rows, None] * bordered[np.ix_(rows, chosen)]
        every, coef = np.arange(chosen.size), np.append(w, 0.3)[chosen]
        assert (block.n, block.p) == expected.shape
        _agree(block.dense_columns(every), expected)
        _agree(block.matvec(coef, columns=every), expected @ coef)
        _agree(block.rmatvec(a[rows], columns=every), expected.T @ a[rows])
        _agree(block.column_norms_squared(), (expected**2).sum(0))
        used = bordered[:, chosen]
        _agree(view.matvec(coef, columns=chosen), used @ coef)
        bordered = bordered if constant else wide
        _agree(view.rmatvec(a), bordered.T @ a)
        _agree(view.column_norms_squared(a**2), a**2 @ bordered**2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centre", [False, True])
def test_centred_and_weighted_columns(narrow, stored, centre, weighted):
    X = narrow.astype(np.float64)
    w, a = _vectors(X)
    d = np.random.default_rng(4).uniform(0.5, 2.0, len(X)) if weighted else np.ones(len(X))
    design = design_of(stored).centred(d if weighted else None, centre)
    means = d @ X / d.sum() if centre else np.zeros(X.shape[1])
    wide = np.sqrt(d)[:, None] * (X - means)
    target, mean = design.target(a)
    expected = d @ a / d.sum() if centre else 0.0
    assert mean == pytest.approx(expected)
    _agree(target, np.sqrt(d) * (a - expected), ROUNDING)
    squares = (d[:, None] * X**2).sum(0)
    _agree(design.column_norms_squared(before=True), squares, ROUNDING)
    _agree(design.dense(), wide, ROUNDING)
    for columns in _places(design.p):
        part, taken = wide[:, columns], design.take_columns(columns)
        _agree(design.matvec(w[columns], columns=columns), part @ w[columns], ROUNDING)
        _agree(design.dense_columns(columns), part, ROUNDING)
        again = taken.beside(design.take_columns(columns[:1]))
        both = np.hstack([part, part[:, :1]])
        pair = np.column_stack([a, a**2])
        places = np.arange(again.p)[::2]
        for found, true in ((taken, part), (again, both)):
            coef = np.arange(1.0, found.p + 1)
            _agree(found.matvec(coef), true @ coef, ROUNDING)
            _agree(found.rmatvec(pair), true.T @ pair, ROUNDING)
            _agree(found.column_norms_squared(), (true**2).sum(0), ROUNDING)
            _agree(found.columns_gram(), true.T @ true, ROUNDING)
        _agree(again.columns_gram(places, None), both[:, places].T @ both, ROUNDING)
        _agree(again.rmatvec(a, columns=places), both[:, places].T @ a, ROUNDING)
        _agree(again.take_columns(places).dense(), both[:, places], ROUNDING)


def test_float32_sums_are_accumulated_in_float64():
    X = np.full((1, 2**20), 0.1, dtype=np.float32)
    exact = 2**20 * np.float64(np.float32(0.1))
    for stored in (X, sp.csr_array(X), sp.csc_array(X)):
        assert design_of(stored).matvec(np.ones(2**20))[0] == pytest.approx(exact, rel=1e-13)
        assert design_of(stored.T).rmatvec(np.ones(2**20))[0] == pytest.approx(exact, rel=1e-13)


def test_what_is_given_is_used_in_place(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(4))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(design_of(mapped).stored, mapped)
    assert np.shares_memory(design_of(mapped).row_access(), mapped)
    assert np.shares_memory(design_of(mapped).dense(), mapped)
    assert (
        np.shares_memory(design_of(np.asfortranarray(mapped)).dense_transposed(), mapped) is False
    )
    columns = np.asfortranarray(np.eye(4))
    assert np.shares_memory(design_of(columns).dense_transposed(), columns)
    X = sp.csr_array(np.eye(4))
    assert design_of(X).stored is X
    for arrays in (design_of(X).row_arrays, design_of(X).row_access()):
        assert np.shares_memory(arrays[1], X.indices)
        assert np.shares_memory(arrays[2], X.data)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_matrix, sp.coo_array, sp.lil_matrix])
def test_other_sparse_containers(container):
    X = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    design = design_of(container(X))
    np.testing.assert_array_equal(design.matvec(np.ones(3)), X.sum(1))
    np.testing.assert_array_equal(design.rmatvec(np.ones(2)), X.sum(0))
    np.testing.assert_array_equal(design.rows_gram(np.arange(2)), X @ X.T)


def test_integers_are_widened():
    X = np.array([[120, 100], [100, 120]], dtype=np.int8)
    np.testing.assert_array_equal(design_of(X).matvec(np.ones(2)), [220.0, 220.0])
    np.testing.assert_array_equal(design_of(X).column_norms_squared(), [24400.0, 24400.0])


def test_a_design_of_a_design_is_itself_or_its_view():
    design = design_of(sp.csc_array(np.eye(3)))
    assert design_of(design) is design
    view = design_of(design, np.arange(3.0))
    np.testing.assert_array_equal(view.dense(), np.diag(np.arange(3.0)))
    assert view.row_arrays is design.row_arrays  # made once for all views


def test_changed_rows_update_the_last_gram_matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    design, d = design_of(X), rng.uniform(0.5, 2.0, 400)
    rows = np.arange(300)
    for step in range(30):
        found = design.weighted_gram(rows, d[rows])
        np.testing.assert_allclose(found, X[rows].T @ (d[rows, None] * X[rows]), rtol=1e-10)
        rows = np.sort(np.append(rows[1:], 300 + step))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("regulariser", ["l2", "l1"])
def test_a_new_storage_serves_the_solvers(regulariser, loss):
    """Chunks that no solver has heard of, and which are never joined."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 10))
    y = np.where(X @ rng.normal(size=10) + rng.normal(size=120) > 0, 1.0, -1.0)
    solve = solve_linear if regulariser == "l2" else solve_one_norm
    found = [
        solve(Problem(y=y, C=0.5, loss=get_loss(loss), X=stored, regulariser=regulariser), tol=1e-8)
        for stored in (X, Chunks(X))
    ]
    assert found[1].status is Status.OPTIMAL
    np.testing.assert_allclose(found[1].coef, found[0].coef, rtol=1e-3, atol=1e-4)
    assert found[1].certificate.primal == pytest.approx(found[0].certificate.primal, rel=1e-7)


def test_solvers_do_not_ask_how_X_is_stored():
    root = pathlib.Path(anynorm.__file__).parent
    files = [root / "screening.py", *root.glob("solvers/**/*.py"), *root.glob("problem/**/*.py")]
    asked = [str(file) for file in files if re.search(r"issparse|isspmatrix", file.read_text())]
    assert len(files) > 20
    assert asked == []


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_products_with_a_block_are_those_of_the_matrix(storage, monkeypatch):
    from anynorm.design import block_products

    monkeypatch.setattr(block_products, "PAIRS_PER_CALL", 20)  # several calls
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 7)) * (rng.random((12, 7)) < 0.6)
    columns, rows, root = np.array([5, 0, 3]), np.array([1, 4, 5, 9]), rng.normal(size=12)
    part = design_of(storage(X)).column_block(columns, rows, root)
    Z, d = (root[:, None] * X)[np.ix_(rows, columns)], rng.random(4)
    block = block_products.BlockProducts(part)
    np.testing.assert_allclose(block.matvec(np.arange(3.0)), Z @ np.arange(3.0))
    np.testing.assert_allclose(block.rmatvec(np.arange(4.0)), Z.T @ np.arange(4.0))
    np.testing.assert_allclose(np.tril(block.gram(d)), np.tril(Z.T @ (d[:, None] * Z)))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_of_a_block_are_read_where_X_has_rows(kind):
    from anynorm.design.block_products import BlockProducts
    from anynorm.design.column_block import RowReading

    rng = np.random.default_rng(0)
    X = (rng.normal(size=(30, 20)) * (rng.random((30, 20)) < 0.3)).astype(kind)
    columns, rows, root = np.array([7, 0, 3, 19]), np.array([2, 3, 11, 28]), rng.normal(size=30)
    block = design_of(sp.csr_array(X)).column_block(columns, rows, root)
    Z = (root[:, None] * X)[np.ix_(rows, columns)]
    assert block.source.read == np.count_nonzero(X[rows])
    starts, places, entries = block.source.rows()
    size = starts[-1]
    read = sp.csr_array((entries[:size], places[:size].astype(int), starts), shape=Z.shape)
    np.testing.assert_allclose(read.toarray(), Z, rtol=1e-6)

    asked, make = [], block.source.rows
    block.source = RowReading(block.source.read, lambda: asked.append(1) or make())
    products, weights, w = BlockProducts(block), rng.random(4), rng.normal(size=4)
    for _ in range(3):
        expected = Z.T @ (weights * (Z @ w))
        np.testing.assert_allclose(products.normal(weights, w), expected, atol=1e-6)
    assert asked == [1]

    assert design_of(sp.csc_array(X)).column_block(columns, rows, root).source is None
    bordered = design_of(sp.csr_array(X)).with_constant(1.0)
    assert bordered.column_block(np.array([0, 3, 20]), rows, root).source is None


@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_array])
def test_lengths_of_the_columns_of_a_block_are_those_of_its_rows_alone(storage):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 7)) * (rng.random((12, 7)) < 0.6)
    X[3] = 1e200  # a row that is not chosen
    columns, rows, root = np.array([5, 0, 3]), np.array([1, 4, 5, 9]), rng.normal(size=12)
    design = design_of(storage(X))
    expected = ((root[:, None] * X)[np.ix_(rows, columns)] ** 2).sum(axis=0)
    block = design.column_block(columns, rows, root)
    for _ in range(2):
        lengths = block.column_norms_squared()
        np.testing.assert_allclose(lengths, expected)
        lengths[:] = 0.0  # the block keeps its own
    last = rng.normal(size=4)
    bordered = design.column_block(columns, rows, root, last)
    np.testing.assert_allclose(bordered.column_norms_squared(), np.append(expected, last @ last))


def test_thin_matrices_are_stored_sparsely():
    X = np.eye(5)
    thin = design_of(X, scale=np.full(5, 2.0)).thin()
    assert thin.sparse
    np.testing.assert_array_equal(thin.matvec(np.ones(5)), np.full(5, 2.0))
    full = design_of(np.ones((2, 2)))
    assert full.thin() is full
