"""Inputs on which other packages fail, and what LinearSVC and SparseSVC do with them.

Each test tells the story in its first line.  The references are solutions by hand, linear
programmes (HiGHS), or Clarabel.
"""

import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from anynorm import LinearSVC, ReweightedSVC, SparseSVC, sparse_svm_path
from anynorm.losses import LOSSES, get_loss
from anynorm.losses.bias import optimal_bias
from anynorm.problem.solution import Status
from tests.references import least_one_norm, least_two_norm
from tests.regressions.data import KINDS, overlapping
from tests.spies import Stopwatch, calls_of_solver

MODELS = [LinearSVC, SparseSVC]

WITH_LOSS = [(Model, loss) for Model in MODELS for loss in LOSSES]

every_model = pytest.mark.parametrize("Model", MODELS)
every_loss = pytest.mark.parametrize(("Model", "loss"), WITH_LOSS)
every_kind = pytest.mark.parametrize("kind", KINDS)


def least_value(Model, X, y, **parameters):
    """The optimal value by a solver that is not ours, of the problem that Model solves."""
    return (least_one_norm if Model is SparseSVC else least_two_norm)(X, y, **parameters)


def scaled(places):
    """The models with their losses, at the scales that float64 can certify for each of them."""
    return pytest.mark.parametrize(
        ("Model", "loss", "scale"),
        [(Model, loss, scale) for Model, loss in WITH_LOSS for scale in places[Model]],
    )


# Scale


@pytest.mark.parametrize(
    ("Model", "C", "value", "coef"),
    [
        (LinearSVC, 1.0, 1.5, 1.0),  # a = (1, 1)
        (SparseSVC, 10.0, 2.0, 2.0),  # the margins differ by w
        (SparseSVC, 1.0, 2.0, None),  # any w in [0, 2] is optimal
    ],
)
@every_kind
def test_two_rows_with_a_huge_constant_feature(kind, Model, C, value, coef):
    """scikit-learn #4648, cuml #2857: [[1, 99999], [2, 99999]] came out wrong or never ended."""
    X = kind(np.array([[1.0, 99999.0], [2.0, 99999.0]]))
    model = Model(C=C, tol=1e-9).fit(X, [0, 1])
    assert model.certificate_.gap <= 1e-9
    assert model.certificate_.primal == pytest.approx(value, rel=1e-8)
    if coef is not None:
        np.testing.assert_allclose(model.coef_, [[coef, 0.0]], atol=1e-7)


@every_loss
@every_kind
def test_features_far_from_zero(kind, Model, loss):
    """scikit-learn #4648: unscaled columns with large means stopped short of the optimum."""
    X, y = overlapping()
    moved = X + np.array([0.0, 1e3, -1e4])
    model = Model(loss=loss, tol=1e-7).fit(kind(moved), y)
    assert model.certificate_.gap <= 1e-7
    # an unpenalised intercept takes up any shift of the columns
    value = least_value(Model, X, y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@scaled({LinearSVC: [1e12], SparseSVC: [1e6]})
@every_kind
def test_a_huge_and_a_tiny_feature(kind, Model, loss, scale):
    """The one costs hardly any penalty, the other cannot help, the one in the middle decides."""
    X, y = overlapping(p=3, seed=2)
    X[:, 0] = np.round(X[:, 0])
    model = Model(loss=loss, tol=1e-6).fit(kind(X * [scale, 1.0, 1 / scale]), y)
    assert model.certificate_.gap <= 1e-6
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    # 1e4 is as free of penalty as 1e12 to within 1e-8, and kinder to the reference
    scales = np.array([min(scale, 1e4) if Model is LinearSVC else scale, 1.0])
    value = least_value(Model, X[:, :2], y, loss=loss, scale=scales)
    assert model.certificate_.primal == pytest.approx(value, rel=2e-6)


@scaled({LinearSVC: [1e6, 1e10], SparseSVC: [1e3, 1e6]})
@every_kind
def test_all_features_at_a_large_scale(kind, Model, loss, scale):
    """scikit-learn #4648: data in small units, float32 as they often are, never converged."""
    X, y = overlapping(p=2, seed=3)
    X = (X * scale).astype(np.float32)
    model = Model(loss=loss, tol=1e-6).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-6
    rows = X.astype(np.float64) / scale
    value = least_value(Model, rows, y, loss=loss, scale=np.full(2, scale))
    assert model.certificate_.primal == pytest.approx(value, rel=2e-6)


@scaled({LinearSVC: [1e20, 1e38], SparseSVC: [1e10, 1e20, 1e38]})
@every_kind
def test_float32_whose_squares_overflow(kind, Model, loss, scale):
    """cuml #1352: squares of float32 values became inf, the model NaN, and the fit went on.

    At this scale a dual vector cannot balance the columns in float64, so the gap may stay open;
    the model is right all the same (with the 1-norm up to 1e20), and the fit says that it could
    not prove it.
    """
    X, y = overlapping(p=2, seed=3)
    X = (X / np.abs(X).max() * scale).astype(np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Model(loss=loss, tol=1e-5, time_limit=600.0).fit(kind(X), y)
        scores = model.decision_function(kind(X))
    assert np.isfinite(scores).all()
    open_gap = model.certificate_.gap > 1e-5
    assert [warning.category for warning in caught] == [ConvergenceWarning] * open_gap
    rows = X.astype(np.float64) / scale
    value = least_value(Model, rows, y, loss=loss, scale=np.full(2, 1e10))
    if Model is LinearSVC or scale < 1e38:
        assert model.certificate_.primal == pytest.approx(value, rel=1e-4)
    assert model.certificate_.dual <= value * (1 + 1e-6)


@every_model
def test_float64_whose_squares_overflow(Model):
    """Beyond 1e75 the products leave float64: an error with the column, not a model of NaN."""
    X, y = overlapping()
    X[3, 1] = -1e160
    with pytest.raises(ValueError, match=r"X has a value beyond 1e\+75 in column 1 .*row 3"):
        Model().fit(X, y)


@every_loss
@every_kind
def test_features_too_small_to_matter(kind, Model, loss):
    """Squares that underflow to zero must not end in a division by zero."""
    X, y = overlapping(seed=4)
    y[:5] = 1
    model = Model(loss=loss, tol=1e-8).fit(kind(X * 1e-170), y)
    value = least_value(Model, np.zeros((len(y), 1)), y, loss=loss)
    assert model.certificate_.gap <= 1e-8
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)
    assert Model is LinearSVC or not model.coef_.any()


@every_loss
@every_kind
def test_a_large_C_on_unscaled_data(kind, Model, loss):
    """scikit-learn #22283, #11020: liblinear stops far from the optimum, libsvm hardly ends."""
    X, y = overlapping(n=200, p=4, seed=5)
    scale = np.array([1.0, 30.0, 0.03, 1000.0])
    model = Model(C=1e4, loss=loss, tol=1e-6, time_limit=600.0).fit(kind(X * scale), y)
    assert model.certificate_.gap <= 1e-6
    value = least_value(Model, X, y, C=1e4, loss=loss, scale=scale)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("Model", "loss", "C"),
    [
        (Model, loss, C)
        for Model, loss in WITH_LOSS
        for C in (1e-90, 1e-12, *((1e12, 1e16) if Model is LinearSVC else (1e8,)))
    ],
)
def test_C_over_its_whole_range(kind, Model, loss, C):
    """libsvm #225, scikit-learn #13075: no answer, or no end, for very small and very large C."""
    X, y = overlapping(seed=18)
    model = Model(C=C, loss=loss, tol=1e-5, time_limit=600.0).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-5
    if C < 1:  # the penalty is all: w = 0, in classes of equal size
        value = {"logistic": np.log(2)}.get(loss, 1.0) * len(y)
        assert Model is LinearSVC or not model.coef_.any()
    else:  # the penalty is nothing, and as little at C = 1e6
        value = least_value(Model, X, y, C=1e6, loss=loss) / 1e6
    assert model.certificate_.primal / C == pytest.approx(value, rel=2e-5)


# Storage


@every_loss
def test_a_read_only_memory_map(tmp_path, Model, loss):
    """scikit-learn #10667 (segmentation fault), #5481: memory maps that may not be written."""
    X, y = overlapping()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = Model(loss=loss, tol=1e-8).fit(mapped, y)
    assert model.certificate_.gap <= 1e-8
    value = least_value(Model, X, y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-7)
    np.testing.assert_array_equal(mapped, X)


@every_loss
def test_a_read_only_sparse_memory_map(tmp_path, Model, loss):
    """scikit-learn #5481 for the three arrays of a sparse matrix, as joblib maps them."""
    X, y = overlapping()
    matrix = sp.csr_array(X)
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(matrix, name))
        parts.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    model = Model(loss=loss, tol=1e-8).fit(sp.csr_array(tuple(parts), shape=X.shape), y)
    value = least_value(Model, X, y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-7)


@every_loss
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_int64_indices(kind, Model, loss):
    """scikit-learn #9545 (segmentation fault), #19660: indices of 64 bits, cut or refused."""
    X, y = overlapping()
    matrix = kind(X)
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indptr = matrix.indptr.astype(np.int64)
    model = Model(loss=loss, tol=1e-8).fit(matrix, y)
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int64
    value = least_value(Model, X, y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-7)
    np.testing.assert_array_equal(model.predict(matrix), model.predict(X))


# Weights


@every_model
def test_a_class_emptied_by_zero_weights(Model):
    """scikit-learn #9494, #8826: a class whose rows all weigh 0 broke the fit or the shapes."""
    X, y = overlapping(n=60)
    y = y + (np.arange(60) % 3 == 0) * 2
    weights = (y != 3).astype(float)
    model = Model(tol=1e-10).fit(X, y, sample_weight=weights)
    rest = Model(tol=1e-10).fit(X[y != 3], y[y != 3])
    assert model.classes_.tolist() == rest.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(model.coef_, rest.coef_, rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match=r"only one class \(0\)"):
        Model().fit(X, y, sample_weight=(y == 0).astype(float))


@every_loss
def test_balanced_classes_with_sample_weight(Model, loss):
    """scikit-learn #30056: "balanced" counted rows and not their weights."""
    X, y = overlapping(seed=6)
    weights = np.random.default_rng(0).integers(0, 5, size=len(y))
    model = Model(loss=loss, class_weight="balanced", tol=1e-10)
    repeated = model.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).coef_
    weighted = model.fit(X, y, sample_weight=weights).coef_
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6, atol=1e-8)
    totals = np.bincount(y, weights)
    effective = weights * (totals.sum() / (2 * totals))[y]
    value = least_value(Model, X, y, loss=loss, weights=effective)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@every_loss
@every_kind
def test_weights_over_many_orders_of_magnitude(kind, Model, loss):
    """A weight of 1e-9 beside one of 1e6 must neither vanish nor rule alone."""
    X, y = overlapping(seed=7)
    weights = np.logspace(-9, 6, len(y))
    model = Model(loss=loss, tol=1e-8).fit(kind(X), y, sample_weight=weights)
    assert model.certificate_.gap <= 1e-8
    heavy = weights > 1e-4
    value = least_value(Model, X[heavy], y[heavy], loss=loss, weights=weights[heavy])
    assert model.certificate_.primal == pytest.approx(value, rel=1e-3)


# Degenerate data


@every_loss
@every_kind
def test_zero_columns(kind, Model, loss):
    """Lasso.jl #28, #51: a column of zeros divided by its norm."""
    X, y = overlapping(seed=8)
    padded = np.column_stack([np.zeros(len(y)), X, np.zeros(len(y))])
    model = Model(loss=loss, tol=1e-8).fit(kind(padded), y)
    assert model.certificate_.gap <= 1e-8
    assert model.coef_[0, 0] == model.coef_[0, -1] == 0.0
    value = least_value(Model, X, y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("intercept", ["free", None, 1.0])
@every_loss
@every_kind
def test_nothing_but_zeros(kind, Model, loss, intercept):
    """Lasso.jl #51: no feature says anything; the intercept alone is fitted."""
    y = np.array([0, 1, 1, 1, 1])
    model = Model(
        loss=loss,
        fit_intercept=intercept is not None,
        intercept_scaling=None if intercept == "free" else intercept,
        tol=1e-8,
    ).fit(kind(np.zeros((5, 2))), y)
    assert model.certificate_.gap <= 1e-8
    assert not model.coef_.any()
    value = least_value(Model, np.zeros((5, 2)), y, loss=loss, intercept=intercept)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@every_loss
@every_kind
def test_constant_columns(kind, Model, loss):
    """A constant column is a second, penalised intercept beside the free one: it gets nothing."""
    X, y = overlapping(seed=9)
    padded = np.column_stack([X, np.full(len(y), 7.0)])
    model = Model(loss=loss, tol=1e-9).fit(kind(padded), y)
    assert model.certificate_.gap <= 1e-9
    assert abs(model.coef_[0, -1]) <= (1e-7 if Model is SparseSVC else 1e-5)
    value = least_value(Model, X, y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@every_loss
@every_kind
def test_every_column_constant(kind, Model, loss):
    """All rows equal: the classes cannot be told apart, and the heavier one wins."""
    X, y = np.tile([3.0, -2.0], (9, 1)), np.array([0, 0, 0, 1, 1, 1, 1, 1, 1])
    model = Model(loss=loss, tol=1e-8).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-8
    assert model.predict(X).tolist() == [1] * 9
    value = least_value(Model, np.zeros((9, 1)), y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@every_loss
@every_kind
def test_duplicated_rows(kind, Model, loss):
    """libsvm #225, SvmPath: many events at once, the same pair of rows picked for ever."""
    X, y = overlapping(n=10, seed=10)
    many, labels = np.tile(X, (8, 1)), np.tile(y, 8)
    model = Model(loss=loss, tol=1e-8, time_limit=600.0).fit(kind(many), labels)
    assert model.certificate_.gap <= 1e-8
    value = least_value(Model, X, y, C=8.0, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@every_loss
@every_kind
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_duplicated_rows_with_opposite_labels(kind, Model, loss, C):
    """libsvm #225: each row once in either class; nothing separates them and every pair ties."""
    X, _ = overlapping(n=12, seed=11)
    both, labels = np.vstack([X, X]), np.repeat([0, 1], 12)
    model = Model(C=C, loss=loss, tol=1e-8, time_limit=600.0).fit(kind(both), labels)
    assert model.certificate_.gap <= 1e-8
    at_zero = {"logistic": 24 * np.log(2)}.get(loss, 24.0)  # w = 0 is optimal
    assert model.certificate_.primal == pytest.approx(C * at_zero, rel=1e-7)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-3 if Model is SparseSVC else 2e-3)


@every_model
def test_one_example_in_each_of_many_classes(Model):
    """As many classes as rows: every problem is one row against all others."""
    X = np.random.default_rng(13).normal(size=(8, 30))
    y = np.arange(8)
    model = Model(C=100.0, tol=1e-8).fit(X, y)
    assert model.coef_.shape == (8, 30)
    assert all(part.gap <= 1e-8 for part in model.certificate_.per_class)
    assert model.score(X, y) == 1.0
    for k, part in enumerate(model.certificate_.per_class):
        assert part.primal == pytest.approx(least_value(Model, X, y == k, C=100.0), rel=1e-6)


@pytest.mark.parametrize(
    ("Model", "X", "expected"),
    [
        (LinearSVC, [[0.0], [3.0]], -0.45),  # w = 0.3; b in [-1, 0.1]
        (LinearSVC, [[-1.0], [1.0]], 0.0),  # w = 0.2; b in [-0.8, 0.8]
        (LinearSVC, [[0.0, 0.0], [1.0, 2.0]], -0.25),  # w = (0.1, 0.2); b in [-1, 0.5]
        (SparseSVC, [[0.0], [3.0]], 0.0),  # w = 0; b in [-1, 1]
        (SparseSVC, [[5.0, 0.0], [7.0, 1.0]], 0.0),
    ],
)
@every_kind
def test_all_duals_at_a_bound(kind, Model, X, expected):
    """Where every dual is at a bound any b of an interval is optimal: take its middle."""
    model = Model(C=0.1, tol=1e-12).fit(kind(np.array(X)), [0, 1])
    assert model.certificate_.gap <= 1e-12
    assert Model is LinearSVC or not model.coef_.any()
    assert model.intercept_[0] == pytest.approx(expected, abs=1e-9)


# Determinism and honesty


@every_loss
def test_the_global_random_generator_is_neither_used_nor_changed(Model, loss):
    """scikit-learn #8410: liblinear shared one generator between threads and fits."""
    X, y = overlapping(n=60)
    y = y + (np.arange(60) % 3 == 0)
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    first = Model(loss=loss, n_jobs=2).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    np.random.seed(2)
    second = Model(loss=loss).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.intercept_, second.intercept_)


@every_loss
def test_fits_in_many_threads_do_not_disturb_each_other(Model, loss):
    """scikit-learn #8410, libsvm #220: concurrent fits changed each other's results."""
    X, y = overlapping(n=100, p=10, seed=14)
    Cs = (0.1, 1.0, 10.0, 100.0)
    expected = {C: Model(C=C, loss=loss).fit(sp.csr_array(X), y).coef_ for C in Cs}
    found = {}

    def fit(C):
        found[C] = Model(C=C, loss=loss).fit(sp.csr_array(X), y).coef_

    threads = [threading.Thread(target=fit, args=(C,)) for C in Cs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for C, coef in expected.items():
        np.testing.assert_array_equal(found[C], coef)


def _fit(Model, **parameters):
    X, y = overlapping(n=60, seed=15)
    y = y + (np.arange(60) % 5 == 0)
    return Model(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("Model", "change"),
    [
        (LinearSVC, {"loss": "squared"}),
        (SparseSVC, {"loss": "squared_hinge"}),
        (SparseSVC, {"penalty_weights": [3.0, 1.0, 0.0]}),
        *(
            (Model, change)
            for Model in MODELS
            for change in (
                {"C": 0.05},
                {"fit_intercept": False},
                {"intercept_scaling": 0.5},
                {"class_weight": "balanced"},
                {"class_weight": {1: 3.0}},
            )
        ),
    ],
    ids=str,
)
def test_a_parameter_of_the_problem_changes_the_model(Model, change):
    """skglm's LinearSVC takes fit_intercept=True and passes False: accepted and ignored."""
    plain, changed = _fit(Model, C=0.3, tol=1e-8), _fit(Model, **{"C": 0.3, "tol": 1e-8} | change)
    assert changed.certificate_.gap <= 1e-8
    assert np.abs(plain.coef_ - changed.coef_).max() > 1e-3
    if change == {"fit_intercept": False}:
        assert not changed.intercept_.any()
        assert plain.intercept_.any()


@every_model
def test_a_parameter_of_the_solver_reaches_it(monkeypatch, capsys, Model):
    """skglm's LinearSVC takes fit_intercept=True and passes False: accepted and ignored."""
    seen = calls_of_solver(monkeypatch, Model, n_threads=2)
    options = {"tol": 1e-3, "max_iter": 7777, "time_limit": 50.0, "random_state": 5}
    model = _fit(Model, **options, n_jobs=2, verbose=1)
    assert {(call["tol"], call["max_iter"], call["seed"]) for call in seen} == {(1e-3, 7777, 5)}
    assert all(time.monotonic() < call["deadline"] < time.monotonic() + 50.0 for call in seen)
    assert len({call["thread"] for call in seen}) == 2
    assert model.certificate_.tol == 1e-3
    assert "gap" in capsys.readouterr().out
    X, y = overlapping()
    Model(warm_start=True).fit(X, y).fit(X, y)
    assert seen[-1]["start"] is not None


# A finite stop


@every_loss
@every_kind
def test_no_input_makes_a_fit_hang(kind, Model, loss):
    """scikit-learn #30353, #13075, libsvm #225: integer data, ties and a huge C never ended."""
    rng = np.random.default_rng(16)
    scale = np.array([1, 1, 1000, 1, 1])
    X = rng.integers(0, 3, size=(60, 5)) * np.array([1, 1, 1, 0, 1])
    y = rng.integers(0, 2, size=60)
    watch = Stopwatch()
    model = Model(C=1e6, loss=loss, tol=1e-6, time_limit=600.0)
    model.fit(kind((X * scale).astype(float)), y)
    assert watch.seconds < 60.0
    assert model.certificate_.status is Status.OPTIMAL
    larger = 1e6 if Model is SparseSVC else 1e3  # instead of C, which is kinder to the reference
    value = 1e6 * least_value(Model, X, y, loss=loss, scale=larger * scale)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-5)


@every_loss
@every_kind
def test_separable_data_with_a_huge_C(kind, Model, loss):
    """scikit-learn #11020: hard margins; the optimum is near zero beside the loss at w = 0."""
    X, y = overlapping(n=30, seed=17)
    X[:, 0] += 6 * y
    C = 1e8 if Model is LinearSVC else 1e6
    model = Model(C=C, loss=loss, tol=1e-6, time_limit=600.0).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-6
    assert model.score(X, y) == 1.0
    if loss == "hinge":
        value = least_value(Model, X, y, C=1e3)  # the margin is as hard at 1e3
        assert model.certificate_.primal == pytest.approx(value, rel=1e-5)


# Numbers that float64 cannot tell apart


def test_a_pivot_of_zero_ends_the_path():
    """Columns of 1e5 that differ by 1e-3 came to a pivot of zero: a bare ZeroDivisionError."""
    rng = np.random.default_rng(8)
    X = 1e-3 * ((rng.random((36, 9)) < 0.3) + 1e8)
    X[:, 1] = X[:, 0]
    y = rng.integers(2, size=36)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = sparse_svm_path(X, y, fit_intercept=False)
    assert path.certificate_at(path.s[-1]).status is not Status.UNCERTIFIED


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared", "absolute"])
def test_scores_that_are_no_numbers_have_no_best_bias(loss):
    """Entries of 1e20 with C = 1e8 gave NaN scores in the walk, and a bare IndexError."""
    assert np.isnan(optimal_bias(get_loss(loss), np.full(2, np.nan), np.array([1.0, -1.0]), C=1.0))
    X = 1e12 * (np.random.default_rng(0).integers(-2, 3, (4, 27)) + 1e8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ReweightedSVC(1e8, loss=loss, n_rounds=2).fit(X, np.arange(4) % 2)
    assert np.isfinite(model.coef_).all()
