"""Inputs on which other packages fail, and what LinearSVC does with them.

Each test tells the story in its first line.  The references are solutions by hand, a linear
programme (HiGHS) for problems so scaled that the penalty vanishes, or Clarabel.
"""

import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

import anynorm.solvers.linear
from anynorm import LinearSVC
from anynorm.losses import LOSSES, get_loss
from anynorm.problem import Problem
from anynorm.solution import Status
from tests.references import solve_primal

KINDS = [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array]


def overlapping(n=40, p=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, p)) + 0.8 * y[:, None], y


def reference_value(X, y, *, C=1.0, loss="hinge", intercept="free", weights=None):
    """The optimal value by an interior-point solver that is not ours."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    signs = np.where(np.asarray(y) == np.max(y), 1.0, -1.0)
    problem = Problem(
        y=signs, C=C, loss=get_loss(loss), X=X, sample_weight=weights, intercept=intercept
    )
    return solve_primal(problem).value


def least_hinge_loss(X, y):
    """min over (w, b) of the hinge loss alone, without a penalty, by HiGHS."""
    n, p = X.shape
    signs = np.where(y == 1, 1.0, -1.0)
    margins = -signs[:, None] * np.column_stack([X, np.ones(n)])
    cost = np.concatenate([np.zeros(p + 1), np.ones(n)])
    bounds = [(None, None)] * (p + 1) + [(0, None)] * n
    solved = linprog(cost, np.hstack([margins, -np.eye(n)]), -np.ones(n), bounds=bounds)
    assert solved.success
    return solved.fun


# Scale


@pytest.mark.parametrize("kind", KINDS)
def test_two_rows_with_a_huge_constant_feature(kind):
    """scikit-learn #4648, cuml #2857: [[1, 99999], [2, 99999]] came out wrong or never ended."""
    model = LinearSVC(tol=1e-9).fit(kind(np.array([[1.0, 99999.0], [2.0, 99999.0]])), [0, 1])
    assert model.certificate_.gap <= 1e-9
    assert model.certificate_.primal == pytest.approx(1.5, rel=1e-8)  # a = (1, 1), w = (1, 0)
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_features_far_from_zero(kind, loss):
    """scikit-learn #4648: unscaled columns with large means stopped short of the optimum."""
    X, y = overlapping()
    moved = X + np.array([0.0, 1e3, -1e4])
    model = LinearSVC(loss=loss, tol=1e-7).fit(kind(moved), y)
    assert model.certificate_.gap <= 1e-7
    # an unpenalised intercept takes up any shift of the columns
    assert model.certificate_.primal == pytest.approx(reference_value(X, y, loss=loss), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_one_feature_at_1e12_and_one_at_1e_minus_12(kind):
    """The large one costs no penalty and the small one cannot help: a programme in one variable."""
    X, y = overlapping(p=2, seed=1)
    model = LinearSVC(tol=1e-6).fit(kind(X * [1e12, 1e-12]), y)
    assert model.certificate_.gap <= 1e-6
    assert model.certificate_.primal == pytest.approx(least_hinge_loss(X[:, :1], y), rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_feature_at_1e12_and_one_at_1e_minus_12_for_every_loss(kind, loss):
    """The same with an ordinary feature between them, which decides."""
    X, y = overlapping(p=3, seed=2)
    X[:, 0] = np.round(X[:, 0])
    model = LinearSVC(loss=loss, tol=1e-6).fit(kind(X * [1e12, 1.0, 1e-12]), y)
    assert model.certificate_.gap <= 1e-6
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    # 1e4 is as free of penalty as 1e12 to within 1e-8, and kinder to the reference
    value = reference_value(X[:, :2] * [1e4, 1.0], y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=2e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e6, 1e10])
def test_all_features_at_a_large_scale(kind, loss, scale):
    """scikit-learn #4648: data in small units, float32 as they often are, never converged."""
    X, y = overlapping(p=2, seed=3)
    X = (X * scale).astype(np.float32)
    model = LinearSVC(loss=loss, tol=1e-6).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-6
    value = reference_value(1e4 * (X.astype(np.float64) / scale), y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=2e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e20, 1e38])
def test_float32_whose_squares_overflow(kind, loss, scale):
    """cuml #1352: squares of float32 values became inf, the model NaN, and the fit went on.

    At this scale a dual vector cannot balance the columns in float64, so the gap may stay open;
    the model is right all the same, and the fit says that it could not prove it.
    """
    X, y = overlapping(p=2, seed=3)
    X = (X / np.abs(X).max() * scale).astype(np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LinearSVC(loss=loss, tol=1e-5).fit(kind(X), y)
        scores = model.decision_function(kind(X))
    assert np.isfinite(scores).all()
    open_gap = model.certificate_.gap > 1e-5
    assert [warning.category for warning in caught] == [ConvergenceWarning] * open_gap
    value = reference_value(1e4 * (X.astype(np.float64) / scale), y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-4)
    assert model.certificate_.dual <= value * (1 + 1e-6)


def test_float64_whose_squares_overflow():
    """Beyond 1e100 the products leave float64: an error with the column, not a model of NaN."""
    X, y = overlapping()
    X[3, 1] = -1e160
    with pytest.raises(ValueError, match=r"X has a value beyond 1e\+100 in column 1 .*row 3"):
        LinearSVC().fit(X, y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_features_too_small_to_matter(kind, loss):
    """Squares that underflow to zero must not end in a division by zero."""
    X, y = overlapping(seed=4)
    y[:5] = 1
    model = LinearSVC(loss=loss, tol=1e-8).fit(kind(X * 1e-170), y)
    value = reference_value(np.zeros((len(y), 1)), y, loss=loss)
    assert model.certificate_.gap <= 1e-8
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_C_on_unscaled_data(kind):
    """scikit-learn #22283, #11020: liblinear stops far from the optimum, libsvm hardly ends."""
    X, y = overlapping(n=200, p=4, seed=5)
    X *= [1.0, 30.0, 0.03, 1000.0]
    model = LinearSVC(C=1e4, tol=1e-6, time_limit=60.0).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-6
    value = reference_value(X * [1.0, 1 / 30, 1.0, 1e-3], y, C=1e4)  # two columns free of penalty
    assert model.certificate_.primal == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-90, 1e-12, 1e12, 1e16])
def test_C_over_its_whole_range(C, loss, kind):
    """libsvm #225, scikit-learn #13075: no answer, or no end, for very small and very large C."""
    X, y = overlapping(seed=18)
    model = LinearSVC(C=C, loss=loss, tol=1e-5, time_limit=60.0).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-5
    if C < 1:  # the penalty is all: w = 0, in classes of equal size
        value = {"logistic": np.log(2)}.get(loss, 1.0) * len(y)
    else:  # the penalty is nothing, and as little at C = 1e6
        value = reference_value(X, y, C=1e6, loss=loss) / 1e6
    assert model.certificate_.primal / C == pytest.approx(value, rel=2e-5)


# Storage


def test_a_read_only_memory_map(tmp_path):
    """scikit-learn #10667 (segmentation fault), #5481: memory maps that may not be written."""
    X, y = overlapping()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = LinearSVC(tol=1e-8).fit(mapped, y)
    assert model.certificate_.gap <= 1e-8
    assert model.certificate_.primal == pytest.approx(reference_value(X, y), rel=1e-7)
    np.testing.assert_array_equal(mapped, X)


def test_a_read_only_sparse_memory_map(tmp_path):
    """scikit-learn #5481 for the three arrays of a sparse matrix, as joblib maps them."""
    X, y = overlapping()
    matrix = sp.csr_array(X)
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(matrix, name))
        parts.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    model = LinearSVC(tol=1e-8).fit(sp.csr_array(tuple(parts), shape=X.shape), y)
    assert model.certificate_.primal == pytest.approx(reference_value(X, y), rel=1e-7)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_int64_indices(kind):
    """scikit-learn #9545 (segmentation fault), #19660: indices of 64 bits, cut or refused."""
    X, y = overlapping()
    matrix = kind(X)
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indptr = matrix.indptr.astype(np.int64)
    model = LinearSVC(tol=1e-8).fit(matrix, y)
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int64
    assert model.certificate_.primal == pytest.approx(reference_value(X, y), rel=1e-7)
    np.testing.assert_array_equal(model.predict(matrix), model.predict(X))


# Weights


def test_a_class_emptied_by_zero_weights():
    """scikit-learn #9494, #8826: a class whose rows all weigh 0 broke the fit or the shapes."""
    X, y = overlapping(n=60)
    y = y + (np.arange(60) % 3 == 0) * 2
    weights = (y != 3).astype(float)
    model = LinearSVC(tol=1e-10).fit(X, y, sample_weight=weights)
    rest = LinearSVC(tol=1e-10).fit(X[y != 3], y[y != 3])
    assert model.classes_.tolist() == rest.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(model.coef_, rest.coef_, rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match=r"only one class \(0\)"):
        LinearSVC().fit(X, y, sample_weight=(y == 0).astype(float))


@pytest.mark.parametrize("loss", LOSSES)
def test_balanced_classes_with_sample_weight(loss):
    """scikit-learn #30056: "balanced" counted rows and not their weights."""
    X, y = overlapping(seed=6)
    weights = np.random.default_rng(0).integers(0, 5, size=len(y))
    model = LinearSVC(loss=loss, class_weight="balanced", tol=1e-10)
    weighted = model.fit(X, y, sample_weight=weights).coef_
    repeated = model.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).coef_
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6, atol=1e-8)
    totals = np.bincount(y, weights)
    effective = weights * (totals.sum() / (2 * totals))[y]
    value = reference_value(X, y, loss=loss, weights=effective)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_over_many_orders_of_magnitude(kind):
    """A weight of 1e-9 beside one of 1e6 must neither vanish nor rule alone."""
    X, y = overlapping(seed=7)
    weights = np.logspace(-9, 6, len(y))
    model = LinearSVC(tol=1e-8).fit(kind(X), y, sample_weight=weights)
    assert model.certificate_.gap <= 1e-8
    heavy = weights > 1e-3
    value = reference_value(X[heavy], y[heavy], C=1e-3, weights=1e3 * weights[heavy])
    assert model.certificate_.primal == pytest.approx(value, rel=1e-3)


# Degenerate data


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_zero_columns(kind, loss):
    """Lasso.jl #28, #51: a column of zeros divided by its norm."""
    X, y = overlapping(seed=8)
    padded = np.column_stack([np.zeros(len(y)), X, np.zeros(len(y))])
    model = LinearSVC(loss=loss, tol=1e-8).fit(kind(padded), y)
    assert model.certificate_.gap <= 1e-8
    assert model.coef_[0, 0] == model.coef_[0, -1] == 0.0
    assert model.certificate_.primal == pytest.approx(reference_value(X, y, loss=loss), rel=1e-6)


@pytest.mark.parametrize("intercept", ["free", None, 1.0])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_zeros(kind, loss, intercept):
    """Lasso.jl #51: no feature says anything; the intercept alone is fitted."""
    y = np.array([0, 1, 1, 1, 1])
    model = LinearSVC(
        loss=loss,
        fit_intercept=intercept is not None,
        intercept_scaling=None if intercept == "free" else intercept,
        tol=1e-8,
    ).fit(kind(np.zeros((5, 2))), y)
    assert model.certificate_.gap <= 1e-8
    assert not model.coef_.any()
    value = reference_value(np.zeros((5, 2)), y, loss=loss, intercept=intercept)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_constant_columns(kind, loss):
    """A constant column is a second, penalised intercept beside the free one: it gets nothing."""
    X, y = overlapping(seed=9)
    padded = np.column_stack([X, np.full(len(y), 7.0)])
    model = LinearSVC(loss=loss, tol=1e-9).fit(kind(padded), y)
    assert model.certificate_.gap <= 1e-9
    assert abs(model.coef_[0, -1]) <= 1e-5
    assert model.certificate_.primal == pytest.approx(reference_value(X, y, loss=loss), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_constant(kind):
    """All rows equal: the classes cannot be told apart, and the heavier one wins."""
    X, y = np.tile([3.0, -2.0], (9, 1)), np.array([0, 0, 0, 1, 1, 1, 1, 1, 1])
    for loss in LOSSES:
        model = LinearSVC(loss=loss, tol=1e-8).fit(kind(X), y)
        assert model.certificate_.gap <= 1e-8
        assert model.predict(X).tolist() == [1] * 9
        value = reference_value(np.zeros((9, 1)), y, loss=loss)
        assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_duplicated_rows(kind, loss):
    """libsvm #225: the same pair of equal rows was picked for ever."""
    X, y = overlapping(n=10, seed=10)
    many, labels = np.tile(X, (8, 1)), np.tile(y, 8)
    model = LinearSVC(loss=loss, tol=1e-8, time_limit=60.0).fit(kind(many), labels)
    assert model.certificate_.gap <= 1e-8
    value = reference_value(X, y, C=8.0, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_duplicated_rows_with_opposite_labels(kind, loss, C):
    """libsvm #225: each row once in either class; nothing separates them and every pair ties."""
    X, _ = overlapping(n=12, seed=11)
    both, labels = np.vstack([X, X]), np.repeat([0, 1], 12)
    model = LinearSVC(C=C, loss=loss, tol=1e-8, time_limit=60.0).fit(kind(both), labels)
    assert model.certificate_.gap <= 1e-8
    at_zero = {"logistic": 24 * np.log(2)}.get(loss, 24.0)  # w = 0 is optimal
    assert model.certificate_.primal == pytest.approx(C * at_zero, rel=1e-7)
    np.testing.assert_allclose(model.coef_, 0.0, atol=2e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_duplicated_columns_share_the_weight(kind, loss):
    """Equal columns make every normal matrix singular; the 2-norm shares the weight evenly."""
    X, y = overlapping(seed=12)
    doubled = np.column_stack([X, X[:, 0]])
    model = LinearSVC(loss=loss, tol=1e-9).fit(kind(doubled), y)
    assert model.certificate_.gap <= 1e-9
    assert model.coef_[0, 0] == pytest.approx(model.coef_[0, -1], rel=1e-9, abs=1e-12)
    value = reference_value(X * [np.sqrt(2), 1, 1], y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_example_per_class(kind, loss):
    """Two rows, four features: more unknowns than examples, solved by hand."""
    X = np.array([[1.0, 0.0, 2.0, 0.0], [-1.0, 0.0, 0.0, 3.0]])
    model = LinearSVC(C=10.0, loss=loss, tol=1e-10).fit(kind(X), [1, 0])
    assert model.certificate_.gap <= 1e-10
    difference = X[0] - X[1]
    np.testing.assert_allclose(
        model.coef_[0] / np.linalg.norm(model.coef_), difference / np.linalg.norm(difference)
    )
    scores = model.decision_function(kind(X))
    assert scores.sum() == pytest.approx(0.0, abs=1e-9)
    if loss in ("hinge", "absolute"):  # margins of exactly 1: w = 2 d / ||d||^2
        np.testing.assert_allclose(model.coef_[0], 2 * difference / (difference @ difference))
    value = reference_value(X, np.array([1, 0]), C=10.0, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


def test_one_example_in_each_of_many_classes():
    """As many classes as rows: every problem is one row against all others."""
    X = np.random.default_rng(13).normal(size=(8, 30))
    y = np.arange(8)
    model = LinearSVC(C=100.0, tol=1e-8).fit(X, y)
    assert model.coef_.shape == (8, 30)
    assert all(part.gap <= 1e-8 for part in model.certificate_.per_class)
    assert model.score(X, y) == 1.0
    for k, part in enumerate(model.certificate_.per_class):
        assert part.primal == pytest.approx(reference_value(X, y == k, C=100.0), rel=1e-6)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([[0.0], [3.0]], -0.45),  # w = 0.3; b in [-1, 0.1]
        ([[-1.0], [1.0]], 0.0),  # w = 0.2; b in [-0.8, 0.8]
        ([[0.0, 0.0], [1.0, 2.0]], -0.25),  # w = (0.1, 0.2); b in [-1, 0.5]
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_all_duals_at_a_bound(kind, X, expected):
    """Where every dual is at a bound any b of an interval is optimal: take its middle."""
    model = LinearSVC(C=0.1, tol=1e-12).fit(kind(np.array(X)), [0, 1])
    assert model.certificate_.gap <= 1e-12
    assert model.intercept_[0] == pytest.approx(expected, abs=1e-9)


# Determinism and honesty


def test_the_global_random_generator_is_neither_used_nor_changed():
    """scikit-learn #8410: liblinear shared one generator between threads and fits."""
    X, y = overlapping(n=60)
    y = y + (np.arange(60) % 3 == 0)
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    first = LinearSVC(n_jobs=2).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    np.random.seed(2)
    second = LinearSVC().fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.intercept_, second.intercept_)


def test_fits_in_many_threads_do_not_disturb_each_other():
    """scikit-learn #8410, libsvm #220: concurrent fits changed each other's results."""
    X, y = overlapping(n=100, p=10, seed=14)
    expected = {C: LinearSVC(C=C).fit(sp.csr_array(X), y).coef_ for C in (0.1, 1.0, 10.0, 100.0)}
    found = {}

    def fit(C):
        found[C] = LinearSVC(C=C).fit(sp.csr_array(X), y).coef_

    threads = [threading.Thread(target=fit, args=(C,)) for C in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for C, coef in expected.items():
        np.testing.assert_array_equal(found[C], coef)


def _fit(**parameters):
    X, y = overlapping(n=60, seed=15)
    y = y + (np.arange(60) % 5 == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearSVC(**parameters).fit(X, y)


@pytest.mark.parametrize(
    "change",
    [
        {"C": 0.1},
        {"loss": "squared"},
        {"fit_intercept": False},
        {"intercept_scaling": 0.5},
        {"class_weight": "balanced"},
        {"class_weight": {1: 3.0}},
    ],
    ids=str,
)
def test_a_parameter_of_the_problem_changes_the_model(change):
    """skglm's LinearSVC takes fit_intercept=True and passes False: accepted and ignored."""
    plain, changed = _fit(tol=1e-8), _fit(tol=1e-8, **change)
    assert changed.certificate_.gap <= 1e-8
    assert np.abs(plain.coef_ - changed.coef_).max() > 1e-3
    if change == {"fit_intercept": False}:
        assert not changed.intercept_.any()
        assert plain.intercept_.any()


def test_a_parameter_of_the_solver_reaches_it(monkeypatch, capsys):
    """skglm's LinearSVC takes fit_intercept=True and passes False: accepted and ignored."""
    seen = []
    solve = anynorm.solvers.linear.solve_linear

    def spy(problem, **options):
        seen.append(options | {"thread": threading.get_ident()})
        time.sleep(0.05)  # long enough for a second thread to take the next class
        return solve(problem, **options)

    monkeypatch.setattr(anynorm.solvers.linear, "solve_linear", spy)
    model = _fit(tol=1e-3, max_iter=77, time_limit=50.0, random_state=5, n_jobs=2, verbose=1)
    assert {(call["tol"], call["max_iter"], call["seed"]) for call in seen} == {(1e-3, 77, 5)}
    assert all(time.monotonic() < call["deadline"] < time.monotonic() + 50.0 for call in seen)
    assert len({call["thread"] for call in seen}) == 2
    assert model.certificate_.tol == 1e-3
    assert "gap" in capsys.readouterr().out
    X, y = overlapping()
    model = LinearSVC(warm_start=True).fit(X, y).fit(X, y)
    assert seen[-1]["start"] is not None


# A finite stop


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_input_makes_a_fit_hang(kind, loss):
    """scikit-learn #30353, #13075, libsvm #225: integer data, ties and a huge C never ended."""
    rng = np.random.default_rng(16)
    X = rng.integers(0, 3, size=(60, 5)) * np.array([1, 1, 1000, 0, 1])
    y = rng.integers(0, 2, size=60)
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(C=1e6, loss=loss, tol=1e-6, time_limit=60.0).fit(kind(X.astype(float)), y)
    assert time.monotonic() - start < 60.0
    assert model.certificate_.status is Status.OPTIMAL
    value = reference_value(X / [1, 1, 1000, 1, 1], y, C=1e6, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_separable_data_with_a_huge_C(kind, loss):
    """scikit-learn #11020: hard margins; the optimum is near zero beside the loss at w = 0."""
    X, y = overlapping(n=30, seed=17)
    X[:, 0] += 6 * y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(C=1e8, loss=loss, tol=1e-6, time_limit=60.0).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-6
    assert model.score(X, y) == 1.0
    if loss == "hinge":
        value = reference_value(X, y, C=1e3)  # the margin is as hard at 1e3
        assert model.certificate_.primal == pytest.approx(value, rel=1e-5)
