"""What other packages refuse or get wrong with the 1-norm, and what SparseSVC does.

Each test tells the story in its first line; test_hard_inputs has what LinearSVC shares.
"""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC as Liblinear

from anynorm import SparseSVC
from anynorm.losses import LOSSES, get_loss
from anynorm.problem import Problem
from tests.references import least_one_norm, solve_primal
from tests.regressions.data import KINDS, overlapping


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


@pytest.mark.parametrize("loss", LOSSES)
def test_a_zero_column_of_weight_zero(loss):
    """Neither penalised nor of any use: its coefficient must be a number, and is 0."""
    X, y = overlapping(seed=8)
    padded = np.column_stack([np.zeros(len(y)), X])
    model = SparseSVC(loss=loss, penalty_weights=[0, 1, 1, 1], tol=1e-8).fit(padded, y)
    assert model.coef_[0, 0] == 0.0
    assert model.certificate_.primal == pytest.approx(least_one_norm(X, y, loss=loss), rel=1e-6)


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


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e12, 1e16])
def test_C_beyond_what_float64_can_certify(C, loss, kind):
    """The same where |X_j'(y a)| <= 1 is finer than the rounding of that sum, with a up to C."""
    X, y = overlapping(seed=18)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SparseSVC(C=C, loss=loss, tol=1e-5, time_limit=600.0).fit(kind(X), y)
    value = least_one_norm(X, y, loss=loss, penalties=np.zeros(3))
    assert model.certificate_.primal / C == pytest.approx(value, rel=2e-5)
    assert model.certificate_.dual / C <= value * (1 + 1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared"])
@pytest.mark.parametrize("C", [100.0, 1e4])
def test_columns_that_nobody_has_standardised(C, loss):
    """Means of 100 times the spread stopped the squared hinge at a gap of 0.3."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(298, 283)) + 100.0 * rng.normal(size=283)
    y = (X - X.mean(axis=0))[:, :5].sum(axis=1) + 0.5 * rng.normal(size=298) > 0
    model = SparseSVC(C=C, loss=loss).fit(X, y)
    assert model.certificate_.gap <= 1e-4
    shifted = least_one_norm(X - X.mean(axis=0), y, C=C, loss=loss)
    assert model.certificate_.primal == pytest.approx(shifted, rel=2e-4)
    assert model.certificate_.dual <= shifted * (1 + 1e-6)


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


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_memory_stays_near_that_of_the_data(loss):
    """scikit-learn #22922: the linear programme formed densely would have been 61.6 TiB."""
    rng = np.random.default_rng(19)
    X = rng.normal(size=(100, 20_000))
    y = X[:, :5].sum(axis=1) > 0
    SparseSVC(C=0.05, loss=loss).fit(X, y)  # compiled before memory is counted
    tracemalloc.start()
    model = SparseSVC(C=0.05, loss=loss).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.certificate_.gap <= 1e-4
    assert peak < 0.5 * X.nbytes
