"""Certificates that claimed too much, and solutions that a last step made worse."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from anynorm import (
    SVC,
    BudgetSVC,
    LeastNormSVC,
    LeastSquaresSVC,
    LinearSVC,
    ReweightedSVC,
    SparseSVC,
    Status,
    kernel_lasso,
    min_norm_point,
    sparse_svm_path,
)
from anynorm.kernels.definite import has_factor, is_semidefinite, seems_semidefinite
from anynorm.kernels.gram import Gram
from anynorm.losses import LOSSES
from anynorm.norms import K12, Lp, TopK, TopK2

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def two_classes(n=40, p=3, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1, -1)


def squared_distances(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


INDEFINITE = {
    "sigmoid": lambda X: np.tanh(0.5 * X @ X.T + 0.1),
    "rbf less a part of the identity": lambda X: (
        np.exp(-squared_distances(X)) - 0.05 * np.eye(len(X))
    ),
    "cubed distances": lambda X: np.exp(-(squared_distances(X) ** 1.5)),
}


@pytest.mark.parametrize("kernel", INDEFINITE)
@pytest.mark.parametrize(
    "Model",
    [
        SVC(kernel="precomputed"),
        SVC(kernel="precomputed", slack="squared_l2"),
        SVC(kernel="precomputed", slack="l2"),
        LeastNormSVC(kernel="precomputed"),
        LeastSquaresSVC(kernel="precomputed"),
    ],
    ids=str,
)
def test_an_indefinite_kernel_is_never_called_optimal(Model, kernel):
    """A sigmoid kernel was: dual 25.1, where other coefficients have the value -9412."""
    for seed in range(10):
        X, y = two_classes(seed=seed)
        K = INDEFINITE[kernel](X)
        spectrum = np.linalg.eigvalsh(K)
        if spectrum[0] > -1e-6 * spectrum[-1]:
            continue
        model = Model.fit(K, y)
        assert model.certificate_.status is Status.UNCERTIFIED
        assert np.isnan(model.certificate_.gap)
        assert np.isfinite(model.decision_function(K)).all()


def test_the_sigmoid_kernel_of_the_report():
    X, y = two_classes()
    K = np.tanh(0.5 * X @ X.T + 0.1)
    model = SVC(kernel="precomputed").fit(K, y)
    v = 100 * np.linalg.eigh(K)[1][:, 0]
    value = 0.5 * v @ K @ v + np.maximum(0, 1 - y * (K @ v + model.intercept_[0])).sum()
    assert value < -1000  # far below any "optimum"
    assert model.certificate_.status is Status.UNCERTIFIED


def test_products_that_no_points_have():
    """64 of 2000 random matrices were called optimal."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        K = rng.normal(size=(4, 4))
        K = K + K.T + 4 * np.eye(4)
        if K.diagonal().min() < 0:  # refused by name
            continue
        status = min_norm_point(K, kernel_matrix=True).certificate.status
        if np.linalg.eigvalsh(K)[0] < -1e-9:
            assert status is Status.UNCERTIFIED
        else:
            assert status is Status.OPTIMAL


@pytest.mark.parametrize("narrow", [False, True])
def test_semidefinite_kernels_of_low_rank_stay_certified(narrow):
    X, y = two_classes(n=120, p=2)
    for K in (X @ X.T, (1 + X @ X.T) ** 2, np.ones((120, 120)), np.exp(-squared_distances(X))):
        K = K.astype(np.float32) if narrow else K
        assert is_semidefinite(K)
        assert SVC(kernel="precomputed").fit(K, y).certificate_.status is Status.OPTIMAL
    found = kernel_lasso(X.T[:, :40], X[50], kernel="poly").certificate
    assert found.status in (Status.OPTIMAL, Status.NEGLIGIBLE)  # the optimum is 0


def test_large_matrices_are_judged_by_their_smallest_eigenvalue():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    K = np.exp(-squared_distances(X))
    assert seems_semidefinite(lambda v: K @ v, 400)
    assert not seems_semidefinite(lambda v: K @ v - 0.01 * v, 400)


@pytest.mark.parametrize("narrow", [False, True])
def test_a_factor_of_half_the_matrix_judges_as_that_of_the_whole(narrow):
    X = np.random.default_rng(0).normal(size=(700, 2))
    for K in (X @ X.T, np.exp(-squared_distances(X))):
        K = K.astype(np.float32) if narrow else K
        assert has_factor(Gram.precomputed(K), float(np.trace(K)))
        less = K - 1e-2 * np.eye(700, dtype=K.dtype)
        assert not has_factor(Gram.precomputed(less), float(np.trace(less)))


def test_the_evidence_is_gathered_once(monkeypatch):
    X, _ = two_classes()
    gram = Gram.precomputed(X @ X.T)
    assert gram.semidefinite
    monkeypatch.setattr("anynorm.kernels.gram.is_semidefinite", lambda K: False)
    assert gram.semidefinite


# What follows a certified point


@pytest.mark.parametrize("first", [0, 30, 60])
def test_wine_with_a_polynomial_kernel(first):
    """Polished to a gap of 1.0, from 2.5e-6."""
    X, y = load_wine(return_X_y=True)
    rows = slice(first, first + 100)
    model = SVC(1e-4, kernel="poly", gamma=1.0, degree=2, coef0=1.0).fit(X[rows], y[rows])
    assert model.certificate_.gap <= 1e-4


def test_far_from_the_origin():
    """A gap of 0.97, and 0.70 right where LinearSVC has 0.87."""
    X, y = two_classes(n=60, p=4, seed=0)
    model = LeastNormSVC(kernel="linear").fit(X + 2000, y)
    other = LinearSVC(loss="absolute").fit(X + 2000, y)
    assert model.certificate_.gap <= 1e-4
    assert model.score(X + 2000, y) == pytest.approx(other.score(X + 2000, y), abs=0.05)


def test_an_exact_rescaling_is_certified_like_the_original():
    """A gap of 0.12 at C = 2^-40 and X * 2^20."""
    X, y = two_classes(n=60, p=4, seed=0)
    small, large = SVC(kernel="linear"), SVC(2.0**-40, kernel="linear")
    small.fit(X, y)
    large.fit(X * 2.0**20, y)
    assert large.certificate_.gap <= 1e-4
    scores = large.decision_function(X * 2.0**20)
    np.testing.assert_allclose(scores, small.decision_function(X), atol=1e-3)


def test_large_C_and_few_features():
    """Stopped at 2.4e-2 with "float64 allows no smaller gap here"."""
    X, y = two_classes(n=40, p=5, seed=0)
    for Model in (LeastNormSVC, SVC):
        assert Model(C=1e6, kernel="linear").fit(X, y).certificate_.gap <= 1e-4


# Gaps that only the size of the objective at zero made small


def separable(n=60, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.where(X @ rng.normal(size=p) + 0.3 > 0, 1, -1)


HARD_MARGINS = [
    LinearSVC(),
    LinearSVC(loss="squared_hinge"),
    SVC(kernel="linear"),
    SVC(kernel="linear", slack="squared_l2"),
    SVC(kernel="linear", slack="l2"),
    BudgetSVC(kernel="linear", budget=5),
    SparseSVC(),
    SparseSVC(loss="squared_hinge"),
    ReweightedSVC(),
]


@pytest.mark.parametrize("scale", [1e4, 1e7, 1e8, 1e15, 1e30])
@pytest.mark.parametrize("model", HARD_MARGINS, ids=str)
def test_separable_data_of_any_scale_have_a_true_gap(model, scale):
    """X * 1e7 was called optimal at primal 6.34e-14, dual 0; X * 1e8 at 72 times the optimum."""
    X, y = separable()
    found = model.fit(scale * X, y).certificate_
    assert found.status is Status.OPTIMAL
    assert found.primal - found.dual <= 1e-4 * found.primal
    if not isinstance(model, ReweightedSVC):  # its first round depends on the scale
        power = 1 if isinstance(model, SparseSVC) else 2
        unit = clone(model).set_params(C=min(scale**power, 1e9)).fit(X, y).certificate_
        assert found.dual * scale**power <= unit.primal * (1 + 1e-4)
        assert found.primal * scale**power >= unit.dual * (1 - 1e-4)


@pytest.mark.parametrize("C", [1e8, 1e12, 1e16, 1e20])
@pytest.mark.parametrize("model", HARD_MARGINS, ids=str)
def test_a_C_without_effect_has_a_true_gap(model, C):
    """SparseSVC(1e12, loss="squared_hinge"): primal 4.28, dual 3.21, "gap 5e-05"."""
    X, y = separable()
    found = clone(model).set_params(C=C).fit(X, y).certificate_
    assert found.status is Status.OPTIMAL
    assert found.primal - found.dual <= 1e-4 * found.primal


def test_what_only_the_scale_hides_warns():
    X, y = separable()
    with pytest.warns(ConvergenceWarning, match="relative gap of 1"):
        model = SparseSVC(1e20, loss="logistic").fit(X, y)
    assert model.certificate_.status is Status.NEGLIGIBLE
    assert model.certificate_.gap > 0.5


def test_points_whose_squares_are_no_numbers():
    """min_norm_point(full((2, 3), 1e200)) said "optimal: primal inf, dual inf"."""
    with pytest.raises(ValueError, match=r"A has entries up to 1e\+200"):
        min_norm_point(np.full((2, 3), 1e200))


# Exact rescalings


@pytest.mark.parametrize("power", [-40, -18, 20, 34])  # even: C may be under a root
@pytest.mark.parametrize(
    ("model", "degree"),
    [
        *((LinearSVC(loss=loss), 2) for loss in LOSSES),
        *((SparseSVC(loss=loss), 1) for loss in LOSSES),
        (SVC(kernel="linear"), 2),
        (SVC(kernel="linear", slack="squared_l2"), 2),
        (SVC(kernel="linear", slack="l2"), 2),
        (SVC(kernel="linear", slack="linf"), 2),
        (SVC(kernel="linear", slack="l2", constraints="equality"), 2),
        (BudgetSVC(kernel="linear", budget=7), 2),
        (LeastNormSVC(kernel="linear"), 2),
        (LeastSquaresSVC(kernel="linear"), 2),
    ],
    ids=str,
)
def test_powers_of_two_change_no_digit(model, degree, power):
    """SVC's last digits depended on the scale of the kernel."""
    scale = 2.0**power
    for X, y in (separable(), two_classes(n=60, p=4, seed=0)):
        unit = clone(model).fit(X, y)
        scaled = clone(model).set_params(C=scale**-degree).fit(X * scale, y)
        np.testing.assert_array_equal(scaled.coef_ * scale, unit.coef_)
        np.testing.assert_array_equal(scaled.intercept_, unit.intercept_)
        assert scaled.certificate_.gap == unit.certificate_.gap


@pytest.mark.parametrize("power", [-17, 33])
@pytest.mark.parametrize("loss", ["squared_hinge", "squared", "logistic"])
def test_odd_powers_of_two_change_the_last_digits_only(loss, power):
    X, y = two_classes(n=60, p=4, seed=0)
    unit = SparseSVC(loss=loss, tol=1e-12).fit(X, y)
    scaled = SparseSVC(2.0**-power, loss=loss, tol=1e-12).fit(X * 2.0**power, y)
    np.testing.assert_allclose(scaled.coef_ * 2.0**power, unit.coef_, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("power", [-40, 33])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_powers_of_two_change_no_digit_of_a_kernel(kernel, power):
    X, y = two_classes(n=60, p=4, seed=0)
    scale = 2.0**power
    for Model in (SVC, LeastNormSVC, LeastSquaresSVC):
        unit = Model(kernel=kernel, gamma=0.25).fit(X, y)
        scaled = Model(kernel=kernel, gamma=0.25 * scale**-2).fit(X * scale, y)
        scores = scaled.decision_function(X * scale)
        np.testing.assert_array_equal(scores, unit.decision_function(X))


# Columns far from zero


SHIFTED = [
    *(LinearSVC(loss=loss) for loss in LOSSES),
    *(SparseSVC(loss=loss) for loss in LOSSES),
    *(SVC(kernel="linear", slack=slack) for slack in ("l1", "l2", "linf", "squared_l2")),
    *(SVC(kernel="linear", slack=slack) for slack in (Lp(1.5), K12(5), TopK2(5), TopK(5))),
    SVC(gamma=0.2),
    BudgetSVC(kernel="linear", budget=10),
    LeastNormSVC(kernel="linear"),
    LeastSquaresSVC(kernel="linear"),
    LeastSquaresSVC(gamma=0.2),
]


@pytest.mark.parametrize("shift", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("model", SHIFTED, ids=str)
def test_a_shift_changes_the_bias_alone(model, shift):
    """X + 1e8 left SVC's duals without a digit, after up to 90 s for some norms."""
    X, y = two_classes(n=60, p=4, seed=0)
    X = np.round(X * 64) / 64  # so that the shifted numbers are the same ones
    near, far = clone(model).fit(X, y), clone(model).fit(X + shift, y)
    assert far.certificate_.gap <= 1e-4
    assert far.certificate_.primal == pytest.approx(near.certificate_.primal, rel=2e-4)
    assert far.certificate_.dual <= near.certificate_.primal * (1 + 1e-7)
    assert near.certificate_.dual <= far.certificate_.primal * (1 + 1e-7)
    scores = far.decision_function(X + shift)
    np.testing.assert_allclose(scores, near.decision_function(X), atol=0.05)


def test_the_path_of_shifted_data():
    X, y = two_classes(n=60, p=4, seed=0)
    X = np.round(X * 64) / 64
    near, far = sparse_svm_path(X, y), sparse_svm_path(X + 1e6, y)
    assert far.gaps.max() <= 1e-9
    for C in (0.1, 1.0, 10.0):
        np.testing.assert_allclose(far.coef_at(C=C)[0], near.coef_at(C=C)[0], atol=1e-7)


# Paths that stop before their end


def truncated(**limit):
    X, y = two_classes(n=80, p=10, seed=3)
    return sparse_svm_path(X, y, **limit), sparse_svm_path(X, y), X


@pytest.mark.parametrize("limit", [{"max_joints": 4}, {"s_max": 0.3}, {"max_features": 2}], ids=str)
def test_a_path_that_stopped_early_says_how_far_it_knows(limit):
    """coef_at(C=10) gave 599 where the path has 9.99, and certificate_at(5.0) called it optimal."""
    path, whole, X = truncated(**limit)
    end = float(path.s[-1])
    for ask in (
        lambda: path.coef_at(s=2 * end),
        lambda: path.coef_at(C=1e6),
        lambda: path.certificate_at(2 * end),
        lambda: path.certificate_at(C=1e6),
        lambda: path.solution_at(2 * end),
        lambda: path.decision_function(X, s=[0.0, 2 * end]),
    ):
        with pytest.raises(ValueError, match=r"is beyond .*up to which this path was followed"):
            ask()
    for s in (0.0, 0.5 * end, end):
        coef, intercept = path.coef_at(s=s)
        known, bias = whole.coef_at(s=s)
        np.testing.assert_allclose(coef, known, atol=1e-9)
        assert intercept == pytest.approx(bias, abs=1e-9)
        assert path.certificate_at(s).gap <= 1e-9


def test_beyond_the_true_end_the_solution_is_that_of_the_end():
    _, whole, X = truncated()
    assert np.array_equal(whole.coef_at(s=1e6)[0], whole.coef_at(C=1e9)[0])
    assert whole.certificate_at(1e6).gap <= 1e-9
    assert whole.decision_function(X, s=1e6).shape == (80,)


def test_certificates_by_price_and_by_number_of_features():
    _, whole, _ = truncated()
    for place in ({"C": 0.2}, {"n_features": 3}, {"s": 0.4}):
        certificate = whole.certificate_at(**place)
        assert certificate.gap <= 1e-9
    price = whole.certificate_at(C=0.2)
    coef, intercept = whole.coef_at(C=0.2)
    slack = np.maximum(0, 1 - np.where(whole.training_rows()[1], 1, -1)
                       * (whole.training_rows()[0] @ coef + intercept))  # fmt: skip
    segment = price.primal - np.abs(coef).sum()
    assert segment / slack.sum() == pytest.approx(0.2, rel=0.5)
