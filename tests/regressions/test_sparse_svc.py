"""Inputs on which other packages fail, and what SparseSVC does with them.

Each test tells the story in its first line.  The references are solutions by hand, a linear
programme (HiGHS) for the hinge and absolute losses, Clarabel for the others.
"""

import threading
import time
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC as Liblinear

import anynorm.solvers.one_norm
from anynorm import SparseSVC
from anynorm.estimators.sparse_svc import SPARSE_LOSSES as LOSSES
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.solution import Status
from tests.references import least_one_norm, solve_primal

KINDS = [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array]


def overlapping(n=40, p=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, p)) + 0.8 * y[:, None], y


# The refusals


def test_the_1_norm_with_the_hinge_loss():
    """scikit-learn #18320, #7714, #13037: penalty="l1" with loss="hinge" is refused."""
    X, y = overlapping(p=20)
    with pytest.raises(ValueError, match="penalty='l1' and loss='hinge' is not supported"):
        Liblinear(penalty="l1", loss="hinge", dual=False).fit(X, y)
    model = SparseSVC(C=0.1, loss="hinge", tol=1e-9).fit(X, y)
    assert model.certificate_.primal == pytest.approx(least_one_norm(X, y, C=0.1), rel=1e-8)
    assert 0 < np.count_nonzero(model.coef_) < 20


@pytest.mark.parametrize("loss", LOSSES)
def test_an_intercept_that_is_not_penalised(loss):
    """scikit-learn #10626, #11715, #16911: the bias shrinks with C; here a shift costs nothing."""
    X, y = overlapping(p=5, seed=1)
    model = SparseSVC(C=0.2, loss=loss, tol=1e-9).fit(X, y)
    moved = SparseSVC(C=0.2, loss=loss, tol=1e-9).fit(X + 100.0, y)
    assert moved.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(moved.coef_, model.coef_, rtol=1e-4, atol=1e-5)


# Penalty weights


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [0.02, 0.5, 20.0])
def test_zero_and_infinite_feature_weights(C, kind, loss):
    """celer #188 (a wrong answer), #232: weights of 0 and infinity, which re-weighting makes."""
    X, y = overlapping(p=8, seed=2)
    u = np.array([0.0, np.inf, 1.0, 0.0, 1e-3, 1e3, np.inf, 2.0])
    model = SparseSVC(C=C, loss=loss, penalty_weights=u, tol=1e-8).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-8
    value = least_one_norm(X, y, C=C, loss=loss, penalties=u)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)
    assert not model.coef_[0, np.isinf(u)].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_feature_weights_made_from_zeros(loss):
    """The hybrid SVM: 1 / |w| of a pruned solution has infinities and numbers of any size."""
    X, y = overlapping(p=6, seed=3)
    with np.errstate(divide="ignore"):
        u = 1 / np.array([0.5, 0.0, 1e-30, 2.0, 0.0, 1e-12])
    model = SparseSVC(loss=loss, penalty_weights=u, tol=1e-7).fit(X, y)
    assert model.certificate_.gap <= 1e-7
    value = least_one_norm(X[:, [0, 3]], y, loss=loss, penalties=u[[0, 3]])
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_screening_does_not_remove_a_feature_that_is_needed(loss):
    """celer #174: screened features that belong to the model, after a start from elsewhere."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 120)) * rng.uniform(0.3, 3.0, size=120)
    y = np.where(X[:, :5].sum(axis=1) + rng.normal(size=50) > 0, 1, -1)
    warm = SparseSVC(loss=loss, tol=1e-10, warm_start=True)
    for C in (10.0, 0.01, 0.1, 0.03, 1.0):
        warm.set_params(C=C).fit(X, y)
        problem = Problem(y=y * 1.0, C=C, loss=get_loss(loss), X=X, regulariser="l1")
        reference = solve_primal(problem)
        assert warm.certificate_.primal == pytest.approx(reference.value, rel=1e-7)
        assert np.all(warm.coef_[0, np.abs(reference.coef) > 1e-3] != 0)


# Scale


@pytest.mark.parametrize("kind", KINDS)
def test_two_rows_with_a_huge_constant_feature(kind):
    """scikit-learn #4648, cuml #2857: [[1, 99999], [2, 99999]] came out wrong or never ended."""
    X = kind(np.array([[1.0, 99999.0], [2.0, 99999.0]]))
    model = SparseSVC(C=10.0, tol=1e-9).fit(X, [0, 1])
    assert model.certificate_.primal == pytest.approx(2.0, rel=1e-8)  # the margins differ by w = 2
    np.testing.assert_allclose(model.coef_, [[2.0, 0.0]], atol=1e-7)
    tied = SparseSVC(C=1.0, tol=1e-9).fit(X, [0, 1])  # any w in [0, 2] is optimal
    assert tied.certificate_.gap <= 1e-9
    assert tied.certificate_.primal == pytest.approx(2.0, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_features_far_from_zero(kind, loss):
    """scikit-learn #4648: unscaled columns with large means stopped short of the optimum."""
    X, y = overlapping()
    moved = X + np.array([0.0, 1e3, -1e4])
    model = SparseSVC(loss=loss, tol=1e-7).fit(kind(moved), y)
    assert model.certificate_.gap <= 1e-7
    assert model.certificate_.primal == pytest.approx(least_one_norm(X, y, loss=loss), rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_feature_at_1e6_and_one_at_1e_minus_6(kind, loss):
    """The large one costs hardly any penalty, the small one cannot help, the middle one decides."""
    X, y = overlapping(p=3, seed=2)
    model = SparseSVC(loss=loss, tol=1e-6).fit(kind(X * [1e6, 1.0, 1e-6]), y)
    assert model.certificate_.gap <= 1e-6
    value = least_one_norm(X[:, :2], y, loss=loss, penalties=np.array([1e-6, 1.0]))
    assert model.certificate_.primal == pytest.approx(value, rel=2e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_all_features_at_a_large_scale(kind, loss, scale):
    """scikit-learn #4648: data in small units, float32 as they often are, never converged."""
    X, y = overlapping(p=2, seed=3)
    X = (X * scale).astype(np.float32)
    model = SparseSVC(loss=loss, tol=1e-6).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-6
    rows = X.astype(np.float64) / scale
    value = least_one_norm(rows, y, loss=loss, penalties=np.full(2, 1 / scale))
    assert model.certificate_.primal == pytest.approx(value, rel=2e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e10, 1e20, 1e38])
def test_float32_whose_squares_overflow(kind, loss, scale):
    """cuml #1352: squares of float32 values became inf, the model NaN, and the fit went on.

    |X_j'(y a)| <= 1 is finer than the rounding of that sum at this scale, so that the gap may stay
    open; the model is right all the same up to 1e20, and the fit says that it could not prove it.
    """
    X, y = overlapping(p=2, seed=3)
    X = (X / np.abs(X).max() * scale).astype(np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SparseSVC(loss=loss, tol=1e-5, time_limit=60.0).fit(kind(X), y)
        scores = model.decision_function(kind(X))
    assert np.isfinite(scores).all()
    warned = any(warning.category is ConvergenceWarning for warning in caught)
    assert warned == (model.certificate_.gap > 1e-5)
    value = least_one_norm(X.astype(np.float64) / scale, y, loss=loss, penalties=np.zeros(2))
    if scale < 1e38:
        assert model.certificate_.primal == pytest.approx(value, rel=1e-4)
    assert model.certificate_.dual <= value * (1 + 1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_features_too_small_to_matter(kind, loss):
    """Squares that underflow to zero must not end in a division by zero."""
    X, y = overlapping(seed=4)
    y[:5] = 1
    model = SparseSVC(loss=loss, tol=1e-8).fit(kind(X * 1e-170), y)
    value = least_one_norm(np.zeros((len(y), 1)), y, loss=loss)
    assert model.certificate_.gap <= 1e-8
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)
    assert not model.coef_.any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_large_C_on_unscaled_data(kind, loss):
    """scikit-learn #22283, #11020: liblinear stops far from the optimum, or hardly ends."""
    X, y = overlapping(n=150, p=4, seed=5)
    scale = np.array([1.0, 30.0, 0.03, 1000.0])
    model = SparseSVC(C=1e4, loss=loss, tol=1e-6, time_limit=60.0).fit(kind(X * scale), y)
    assert model.certificate_.gap <= 1e-6
    value = least_one_norm(X, y, C=1e4, loss=loss, penalties=1 / scale)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-90, 1e-12, 1e8])
def test_C_over_its_whole_range(C, loss, kind):
    """libsvm #225, scikit-learn #13075: no answer, or no end, for very small and very large C."""
    X, y = overlapping(seed=18)
    model = SparseSVC(C=C, loss=loss, tol=1e-5, time_limit=60.0).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-5
    if C < 1:  # the penalty is all: w = 0, in classes of equal size
        value = {"logistic": np.log(2)}.get(loss, 1.0) * len(y)
        assert not model.coef_.any()
    else:  # the penalty is nothing
        value = least_one_norm(X, y, loss=loss, penalties=np.zeros(3))
    assert model.certificate_.primal / C == pytest.approx(value, rel=2e-5)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e12, 1e16])
def test_C_beyond_what_float64_can_certify(C, loss, kind):
    """The same where |X_j'(y a)| <= 1 is finer than the rounding of that sum, with a up to C."""
    X, y = overlapping(seed=18)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SparseSVC(C=C, loss=loss, tol=1e-5, time_limit=60.0).fit(kind(X), y)
    value = least_one_norm(X, y, loss=loss, penalties=np.zeros(3))
    assert model.certificate_.primal / C == pytest.approx(value, rel=2e-5)
    assert model.certificate_.dual / C <= value * (1 + 1e-6)


# Storage


def test_a_read_only_memory_map(tmp_path):
    """scikit-learn #10667 (segmentation fault), #5481: memory maps that may not be written."""
    X, y = overlapping()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for loss in LOSSES:
        model = SparseSVC(loss=loss, tol=1e-8).fit(mapped, y)
        value = least_one_norm(X, y, loss=loss)
        assert model.certificate_.primal == pytest.approx(value, rel=1e-7)
    np.testing.assert_array_equal(mapped, X)


def test_a_read_only_sparse_memory_map(tmp_path):
    """scikit-learn #5481 for the three arrays of a sparse matrix, as joblib maps them."""
    X, y = overlapping()
    matrix = sp.csr_array(X)
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(matrix, name))
        parts.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    for loss in LOSSES:
        model = SparseSVC(loss=loss, tol=1e-8).fit(sp.csr_array(tuple(parts), shape=X.shape), y)
        value = least_one_norm(X, y, loss=loss)
        assert model.certificate_.primal == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_int64_indices(kind, loss):
    """scikit-learn #9545 (segmentation fault), #19660: indices of 64 bits, cut or refused."""
    X, y = overlapping()
    matrix = kind(X)
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indptr = matrix.indptr.astype(np.int64)
    model = SparseSVC(loss=loss, tol=1e-8).fit(matrix, y)
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int64
    assert model.certificate_.primal == pytest.approx(least_one_norm(X, y, loss=loss), rel=1e-7)
    np.testing.assert_array_equal(model.predict(matrix), model.predict(X))


# Weights


def test_a_class_emptied_by_zero_weights():
    """scikit-learn #9494, #8826: a class whose rows all weigh 0 broke the fit or the shapes."""
    X, y = overlapping(n=60)
    y = y + (np.arange(60) % 3 == 0) * 2
    weights = (y != 3).astype(float)
    model = SparseSVC(tol=1e-10).fit(X, y, sample_weight=weights)
    rest = SparseSVC(tol=1e-10).fit(X[y != 3], y[y != 3])
    assert model.classes_.tolist() == rest.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(model.coef_, rest.coef_, rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match=r"only one class \(0\)"):
        SparseSVC().fit(X, y, sample_weight=(y == 0).astype(float))


@pytest.mark.parametrize("loss", LOSSES)
def test_balanced_classes_with_sample_weight(loss):
    """scikit-learn #30056: "balanced" counted rows and not their weights."""
    X, y = overlapping(seed=6)
    weights = np.random.default_rng(0).integers(0, 5, size=len(y))
    model = SparseSVC(loss=loss, class_weight="balanced", tol=1e-10)
    repeated = model.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).coef_
    weighted = model.fit(X, y, sample_weight=weights).coef_
    np.testing.assert_allclose(weighted, repeated, rtol=1e-5, atol=1e-6)
    totals = np.bincount(y, weights)
    effective = weights * (totals.sum() / (2 * totals))[y]
    value = least_one_norm(X, y, loss=loss, weights=effective)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_weights_over_many_orders_of_magnitude(kind, loss):
    """A weight of 1e-9 beside one of 1e6 must neither vanish nor rule alone."""
    X, y = overlapping(seed=7)
    weights = np.logspace(-9, 6, len(y))
    model = SparseSVC(loss=loss, tol=1e-7).fit(kind(X), y, sample_weight=weights)
    assert model.certificate_.gap <= 1e-7
    heavy = weights > 1e-4
    value = least_one_norm(X[heavy], y[heavy], loss=loss, weights=weights[heavy])
    assert model.certificate_.primal == pytest.approx(value, rel=1e-3)


# Degenerate data


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_zero_columns(kind, loss):
    """Lasso.jl #28, #51: a column of zeros divided by its norm."""
    X, y = overlapping(seed=8)
    padded = np.column_stack([np.zeros(len(y)), X, np.zeros(len(y))])
    model = SparseSVC(loss=loss, tol=1e-8).fit(kind(padded), y)
    assert model.certificate_.gap <= 1e-8
    assert model.coef_[0, 0] == model.coef_[0, -1] == 0.0
    assert model.certificate_.primal == pytest.approx(least_one_norm(X, y, loss=loss), rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_zero_column_of_weight_zero(loss):
    """Neither penalised nor of any use: its coefficient must be a number, and is 0."""
    X, y = overlapping(seed=8)
    padded = np.column_stack([np.zeros(len(y)), X])
    model = SparseSVC(loss=loss, penalty_weights=[0, 1, 1, 1], tol=1e-8).fit(padded, y)
    assert model.coef_[0, 0] == 0.0
    assert model.certificate_.primal == pytest.approx(least_one_norm(X, y, loss=loss), rel=1e-6)


@pytest.mark.parametrize("intercept", ["free", None, 1.0])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_zeros(kind, loss, intercept):
    """Lasso.jl #51: no feature says anything, lambda_max is 0; the intercept alone is fitted."""
    y = np.array([0, 1, 1, 1, 1])
    model = SparseSVC(
        loss=loss,
        fit_intercept=intercept is not None,
        intercept_scaling=None if intercept == "free" else intercept,
        tol=1e-8,
    ).fit(kind(np.zeros((5, 2))), y)
    assert model.certificate_.gap <= 1e-8
    assert not model.coef_.any()
    value = least_one_norm(np.zeros((5, 2)), y, loss=loss, intercept=intercept)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_constant_columns(kind, loss):
    """A constant column is a second, penalised intercept beside the free one: it gets nothing."""
    X, y = overlapping(seed=9)
    padded = np.column_stack([X, np.full(len(y), 7.0)])
    model = SparseSVC(loss=loss, tol=1e-9).fit(kind(padded), y)
    assert model.certificate_.gap <= 1e-9
    assert abs(model.coef_[0, -1]) <= 1e-7
    assert model.certificate_.primal == pytest.approx(least_one_norm(X, y, loss=loss), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_constant(kind):
    """All rows equal: the classes cannot be told apart, and the heavier one wins."""
    X, y = np.tile([3.0, -2.0], (9, 1)), np.array([0, 0, 0, 1, 1, 1, 1, 1, 1])
    for loss in LOSSES:
        model = SparseSVC(loss=loss, tol=1e-8).fit(kind(X), y)
        assert model.certificate_.gap <= 1e-8
        assert model.predict(X).tolist() == [1] * 9
        value = least_one_norm(np.zeros((9, 1)), y, loss=loss)
        assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_duplicated_rows(kind, loss):
    """libsvm #225, SvmPath: many events at once, pairs that repeat for ever."""
    X, y = overlapping(n=10, seed=10)
    many, labels = np.tile(X, (8, 1)), np.tile(y, 8)
    model = SparseSVC(loss=loss, tol=1e-8, time_limit=60.0).fit(kind(many), labels)
    assert model.certificate_.gap <= 1e-8
    value = least_one_norm(X, y, C=8.0, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_duplicated_rows_with_opposite_labels(kind, loss, C):
    """libsvm #225: each row once in either class; nothing separates them and every pair ties."""
    X, _ = overlapping(n=12, seed=11)
    both, labels = np.vstack([X, X]), np.repeat([0, 1], 12)
    model = SparseSVC(C=C, loss=loss, tol=1e-8, time_limit=60.0).fit(kind(both), labels)
    assert model.certificate_.gap <= 1e-8
    at_zero = {"logistic": 24 * np.log(2)}.get(loss, 24.0)  # w = 0 is optimal, and the only one
    assert model.certificate_.primal == pytest.approx(C * at_zero, rel=1e-7)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_equal_and_opposite_columns(kind, loss):
    """Ties that break one-event-at-a-time paths: any split of the weight is optimal."""
    X, y = overlapping(seed=12)
    doubled = np.column_stack([X, X[:, 0], -X[:, 1], X[:, 0]])
    model = SparseSVC(loss=loss, tol=1e-8).fit(kind(doubled), y)
    assert model.certificate_.gap <= 1e-8
    assert model.certificate_.primal == pytest.approx(least_one_norm(X, y, loss=loss), rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_example_per_class(kind, loss):
    """Two rows, four features: more unknowns than examples; the widest feature takes it all."""
    X = np.array([[1.0, 0.0, 2.0, 0.0], [-1.0, 0.0, 0.0, 3.0]])
    model = SparseSVC(C=10.0, loss=loss, tol=1e-10).fit(kind(X), [1, 0])
    assert model.certificate_.gap <= 1e-10
    assert np.flatnonzero(model.coef_[0]).tolist() == [3]
    if loss in ("hinge", "absolute"):  # margins of exactly 1
        np.testing.assert_allclose(model.coef_[0, 3], -2 / 3)
    value = least_one_norm(X, np.array([1, 0]), C=10.0, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


def test_one_example_in_each_of_many_classes():
    """As many classes as rows: every problem is one row against all others."""
    X = np.random.default_rng(13).normal(size=(8, 30))
    y = np.arange(8)
    model = SparseSVC(C=100.0, tol=1e-8).fit(X, y)
    assert model.coef_.shape == (8, 30)
    assert model.score(X, y) == 1.0
    for k, part in enumerate(model.certificate_.per_class):
        assert part.primal == pytest.approx(least_one_norm(X, y == k, C=100.0), rel=1e-6)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([[0.0], [3.0]], 0.0),  # w = 0 at C = 0.1, b anywhere in [-1, 1]
        ([[5.0, 0.0], [7.0, 1.0]], 0.0),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_all_duals_at_a_bound(kind, X, expected):
    """Where every dual is at a bound any b of an interval is optimal: take its middle."""
    model = SparseSVC(C=0.1, tol=1e-12).fit(kind(np.array(X)), [0, 1])
    assert model.certificate_.gap <= 1e-12
    assert not model.coef_.any()
    assert model.intercept_[0] == pytest.approx(expected, abs=1e-9)


# Determinism and honesty


def test_the_global_random_generator_is_neither_used_nor_changed():
    """scikit-learn #8410: liblinear shared one generator between threads and fits."""
    X, y = overlapping(n=60)
    y = y + (np.arange(60) % 3 == 0)
    for loss in LOSSES:
        np.random.seed(1)
        before = np.random.get_state()[1].copy()
        first = SparseSVC(loss=loss, n_jobs=2).fit(sp.csr_array(X), y)
        np.testing.assert_array_equal(np.random.get_state()[1], before)
        np.random.seed(2)
        second = SparseSVC(loss=loss).fit(sp.csr_array(X), y)
        np.testing.assert_array_equal(first.coef_, second.coef_)


@pytest.mark.parametrize("loss", LOSSES)
def test_fits_in_many_threads_do_not_disturb_each_other(loss):
    """scikit-learn #8410, libsvm #220: concurrent fits changed each other's results."""
    X, y = overlapping(n=100, p=10, seed=14)
    Cs = (0.1, 1.0, 10.0, 100.0)
    expected = {C: SparseSVC(C=C, loss=loss).fit(sp.csr_array(X), y).coef_ for C in Cs}
    found = {}

    def fit(C):
        found[C] = SparseSVC(C=C, loss=loss).fit(sp.csr_array(X), y).coef_

    threads = [threading.Thread(target=fit, args=(C,)) for C in Cs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for C, coef in expected.items():
        np.testing.assert_array_equal(found[C], coef)


def _fit(**parameters):
    X, y = overlapping(n=60, seed=15)
    y = y + (np.arange(60) % 5 == 0)
    return SparseSVC(**parameters).fit(X, y)


@pytest.mark.parametrize(
    "change",
    [
        {"C": 0.05},
        {"loss": "squared_hinge"},
        {"penalty_weights": [3.0, 1.0, 0.0]},
        {"fit_intercept": False},
        {"intercept_scaling": 0.5},
        {"class_weight": "balanced"},
        {"class_weight": {1: 3.0}},
    ],
    ids=str,
)
def test_a_parameter_of_the_problem_changes_the_model(change):
    """skglm's LinearSVC takes fit_intercept=True and passes False: accepted and ignored."""
    plain, changed = _fit(C=0.3, tol=1e-8), _fit(**{"C": 0.3, "tol": 1e-8} | change)
    assert changed.certificate_.gap <= 1e-8
    assert np.abs(plain.coef_ - changed.coef_).max() > 1e-3
    if change == {"fit_intercept": False}:
        assert not changed.intercept_.any()
        assert plain.intercept_.any()


def test_a_parameter_of_the_solver_reaches_it(monkeypatch, capsys):
    """skglm's LinearSVC takes fit_intercept=True and passes False: accepted and ignored."""
    seen = []
    solve = anynorm.solvers.one_norm.solve_one_norm

    def spy(problem, **options):
        seen.append(options | {"thread": threading.get_ident()})
        time.sleep(0.05)  # long enough for a second thread to take the next class
        return solve(problem, **options)

    monkeypatch.setattr(anynorm.solvers.one_norm, "solve_one_norm", spy)
    model = _fit(tol=1e-3, max_iter=7777, time_limit=50.0, random_state=5, n_jobs=2, verbose=1)
    assert {(call["tol"], call["max_iter"], call["seed"]) for call in seen} == {(1e-3, 7777, 5)}
    assert all(time.monotonic() < call["deadline"] < time.monotonic() + 50.0 for call in seen)
    assert len({call["thread"] for call in seen}) == 2
    assert model.certificate_.tol == 1e-3
    assert "gap" in capsys.readouterr().out


# A finite stop


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_input_makes_a_fit_hang(kind, loss):
    """scikit-learn #30353, #13075, libsvm #225: integer data, ties and a huge C never ended."""
    rng = np.random.default_rng(16)
    scale = np.array([1, 1, 1000, 1, 1])
    X = rng.integers(0, 3, size=(60, 5)) * np.array([1, 1, 1, 0, 1])
    y = rng.integers(0, 2, size=60)
    start = time.monotonic()
    model = SparseSVC(C=1e6, loss=loss, tol=1e-6, time_limit=60.0)
    model.fit(kind((X * scale).astype(float)), y)
    assert time.monotonic() - start < 60.0
    assert model.certificate_.status is Status.OPTIMAL
    value = least_one_norm(X, y, loss=loss, penalties=1e-6 / scale)  # kinder to the reference
    assert model.certificate_.primal == pytest.approx(1e6 * value, rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_separable_data_with_a_huge_C(kind, loss):
    """scikit-learn #11020: hard margins; the optimum is near zero beside the loss at w = 0."""
    X, y = overlapping(n=30, seed=17)
    X[:, 0] += 6 * y
    model = SparseSVC(C=1e6, loss=loss, tol=1e-6, time_limit=60.0).fit(kind(X), y)
    assert model.certificate_.gap <= 1e-6
    assert model.score(X, y) == 1.0
    if loss == "hinge":
        value = least_one_norm(X, y, C=1e3)  # the margin is as hard at 1e3
        assert model.certificate_.primal == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_memory_stays_near_that_of_the_data(loss):
    """scikit-learn #22922: the linear programme formed densely would have been 61.6 TiB."""
    rng = np.random.default_rng(19)
    X = rng.normal(size=(100, 20_000))
    y = X[:, :5].sum(axis=1) > 0
    SparseSVC(C=0.05, loss=loss).fit(X[:, :50], y)
    tracemalloc.start()
    model = SparseSVC(C=0.05, loss=loss).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.certificate_.gap <= 1e-4
    assert peak < 0.5 * X.nbytes
