"""ConstrainedLasso against Clarabel, scikit-learn's Lasso and its own certificate."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from anynorm import ConstrainedLasso, min_norm_point
from anynorm.design import design_of
from anynorm.problem.solution import Status
from anynorm.reductions import lasso_by_svm, lasso_to_svm
from anynorm.solvers.lasso.ball import LassoBall

cp = pytest.importorskip("cvxpy", reason="the reference solutions come from Clarabel")


def reference(X, y, radius, weights=None, intercept=True):
    """The least weighted sum of squares, by Clarabel."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    root = np.sqrt(np.ones(len(y)) if weights is None else weights)
    residual = cp.multiply(root, X @ w + b - y)
    constraints = [cp.norm1(w) <= radius] + ([] if intercept else [b == 0])
    return cp.Problem(cp.Minimize(cp.sum_squares(residual)), constraints).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-11, tol_feas=1e-11
    )


def sum_of_squares(model, X, y, weights=None):
    residual = y - X @ model.coef_ - model.intercept_
    return float(np.sum(residual**2 * (1 if weights is None else weights)))


def regression(n=40, p=15, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    return X, X[:, :3] @ [2.0, -1.0, 0.5] + 3 + noise * rng.normal(size=n)


entries = st.one_of(st.integers(-3, 3).map(float), st.floats(-4, 4).map(lambda x: round(x, 2)))


@st.composite
def problems(draw):
    """Small regressions with ties, zero, constant, repeated and badly scaled columns."""
    n, p = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    X = np.array(draw(st.lists(entries, min_size=n * p, max_size=n * p))).reshape(n, p)
    if p > 1 and draw(st.booleans()):
        X[:, -1] = draw(st.sampled_from([0.0, 1.0, -1.0])) * X[:, 0]
    if draw(st.booleans()):
        X[:, 0] = draw(st.sampled_from([0.0, 1.0]))
    X[:, -1] *= draw(st.sampled_from([1.0, 1e3, 1e-3]))
    y = np.array(draw(st.lists(entries, min_size=n, max_size=n)))
    weights = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 0.5]), min_size=n, max_size=n))
    weights = None if draw(st.booleans()) or not any(weights) else np.array(weights)
    return X, y, weights, draw(st.sampled_from([0.1, 1.0, 10.0])), draw(st.booleans())


@settings(max_examples=150, deadline=None)
@given(problems())
def test_the_solution_is_the_best_in_the_ball(problem):
    X, y, weights, radius, intercept = problem
    model = ConstrainedLasso(radius, fit_intercept=intercept, tol=1e-8).fit(X, y, weights)
    assert np.abs(model.coef_).sum() <= radius * (1 + 1e-9)
    best = reference(X, y, radius, weights, intercept)
    size = float(np.sum(y**2))
    found = sum_of_squares(model, X, y, weights)
    assert found <= best * (1 + 1e-6) + 1e-7 * size + 1e-12
    assert model.certificate_.status in (Status.OPTIMAL, Status.NEGLIGIBLE)  # the optimum may be 0
    assert model.certificate_.primal == pytest.approx(found, rel=1e-6, abs=1e-9 * (1 + size))
    assert model.certificate_.dual <= best * (1 + 1e-5) + 1e-7 * size + 1e-12


@pytest.mark.parametrize("radius", [0.01, 0.5, 2.0, 3.3])
@pytest.mark.parametrize("intercept", [True, False])
def test_scikit_learns_lasso_with_alpha_has_the_same_coefficients(radius, intercept):
    X, y = regression()
    model = ConstrainedLasso(radius, fit_intercept=intercept, tol=1e-12).fit(X, y)
    other = Lasso(model.alpha_, fit_intercept=intercept, tol=1e-14, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(other.intercept_, abs=1e-6)
    assert np.abs(model.coef_).sum() == pytest.approx(radius)


def test_a_large_radius_is_least_squares():
    X, y = regression()
    model = ConstrainedLasso(1e6).fit(X, y)
    other = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-8)
    assert model.alpha_ == 0.0


def test_an_optimum_of_zero_is_certified():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 50))
    y = X[:, 0] - X[:, 1]
    model = ConstrainedLasso(5.0, fit_intercept=False).fit(X, y)
    assert model.certificate_.status is Status.OPTIMAL
    assert model.certificate_.primal <= 1e-15 * float(y @ y)
    assert model.alpha_ == 0
    constant = ConstrainedLasso().fit(X, np.full(20, 3.0))
    assert not constant.coef_.any()
    assert constant.intercept_ == pytest.approx(3.0)
    assert constant.certificate_.gap == 0


@pytest.mark.parametrize("shape", [(200, 1000), (300, 40)])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_larger_problems_reach_small_gaps(shape, share):
    X, y = regression(*shape, noise=2.0)
    limit = np.abs(ConstrainedLasso(1e3).fit(X, y).coef_).sum()
    model = ConstrainedLasso(share * limit, tol=1e-10).fit(X, y)
    assert model.certificate_.gap <= 1e-10
    Xc, yc = X - X.mean(axis=0), y - y.mean()
    residual = yc - Xc @ model.coef_
    pull = Xc.T @ residual
    used = model.coef_ != 0
    np.testing.assert_allclose(np.abs(pull[used]), np.abs(pull).max(), rtol=1e-4)
    assert (np.sign(pull[used]) == np.sign(model.coef_[used])).all()


def test_the_solution_is_the_min_norm_point_of_the_equivalent_svm():
    X, y = regression()
    points = lasso_to_svm(X, y, 2.0)
    found = min_norm_point(points)
    model = ConstrainedLasso(2.0, fit_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(points.to_lasso(found.x), model.coef_, atol=1e-6)
    assert found.certificate.primal == pytest.approx(model.certificate_.primal, rel=1e-8)


def test_wolfes_method_settles_what_exact_steps_do_not(monkeypatch):
    """With the exact steps refused, the equivalent SVM of the working columns is solved."""
    X, y = regression(60, 80)
    monkeypatch.setattr(LassoBall, "_exact_step", lambda self, pulled: False)
    design = design_of(X).centred(None, True)
    solution = LassoBall(design, design.target(y)[0], lasso_by_svm).solve(2.0, tol=1e-8)
    assert solution.certificate.gap <= 1e-8


@pytest.mark.parametrize(
    "convert",
    [sp.csr_array, sp.csc_array, np.asfortranarray, pd.DataFrame, sp.csc_matrix],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_storage_does_not_matter(convert, weighted):
    X, y = regression()
    X[np.abs(X) < 0.5] = 0
    weights = np.arange(len(y)) % 3 if weighted else None
    expected = ConstrainedLasso(2.0, tol=1e-10).fit(X, y, weights)
    found = ConstrainedLasso(2.0, tol=1e-10).fit(convert(X), y, weights)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)
    assert found.intercept_ == pytest.approx(expected.intercept_)
    np.testing.assert_allclose(found.predict(convert(X)), X @ found.coef_ + found.intercept_)


def test_float32_and_read_only_data_are_not_copied():
    X, y = regression(200, 400)
    X = X.astype(np.float32)
    X.flags.writeable = False
    model = ConstrainedLasso(2.0).fit(X, y)
    expected = ConstrainedLasso(2.0).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)


def test_weights_are_repetitions():
    X, y = regression()
    counts = np.arange(len(y)) % 4
    weighted = ConstrainedLasso(2.0, tol=1e-10).fit(X, y, counts)
    repeated = ConstrainedLasso(2.0, tol=1e-10).fit(np.repeat(X, counts, 0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal)
    assert weighted.alpha_ == pytest.approx(repeated.alpha_)


def test_it_works_in_a_grid_search():
    X, y = regression(noise=3.0)
    search = GridSearchCV(ConstrainedLasso(), {"radius": [0.1, 3.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"radius": 3.0}
    assert clone(search.best_estimator_).radius == 3.0


def test_not_reaching_tol_warns_with_the_gap():
    X, y = regression(100, 300)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = ConstrainedLasso(3.0, max_iter=1).fit(X, y)
    assert model.certificate_.status is Status.MAX_ITER
    assert np.abs(model.coef_).sum() <= 3.0 * (1 + 1e-12)
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        model = ConstrainedLasso(3.0, time_limit=1e-9).fit(X, y)
    assert model.certificate_.status is Status.TIME_LIMIT


def test_verbose_prints_the_way(capsys):
    X, y = regression()
    ConstrainedLasso(2.0, verbose=2).fit(X, y)
    out = capsys.readouterr().out
    assert "working set 1, primal" in out
    assert "optimal: primal" in out


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"radius": 0}, "radius must be a positive"),
        ({"radius": -1.0}, "radius must be a positive"),
        ({"radius": np.inf}, "radius must be a positive"),
        ({"tol": 0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"fit_intercept": 1}, "fit_intercept must be"),
    ],
)
def test_parameters_that_cannot_be_used_are_named(parameters, message):
    X, y = regression()
    with pytest.raises(ValueError, match=message):
        ConstrainedLasso(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, np.nan], "y has NaN"),
        ([1.0, np.inf], "y has infinity"),
        ([1.0, 1e200], "y has a value beyond"),
        ([1.0], "y has 1 entries"),
        (["a", "b"], "y must hold numbers"),
        (None, "requires y"),
        (np.array([1j, 2]), "y is complex"),
    ],
)
def test_targets_that_cannot_be_used_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        ConstrainedLasso().fit([[1.0], [2.0]], y)


def test_data_whose_squares_underflow_are_refused():
    """All coefficients were 0, with a gap of 0."""
    X, y = regression()
    with pytest.raises(ValueError, match=r"y has no value beyond 1e-100 .* Multiply y"):
        ConstrainedLasso().fit(X, y * 1e-200)
    with pytest.raises(ValueError, match=r"X has no value beyond 1e-100 .* Multiply X"):
        ConstrainedLasso().path(sp.csr_array(X * 1e-200), y)


@pytest.mark.parametrize(("size", "size_of_y"), [(1e-80, 1.0), (1e70, 1e70), (1e-90, 1e70)])
def test_the_scale_of_the_data_does_not_matter(size, size_of_y):
    X, y = regression()
    expected, whole = ConstrainedLasso(1.5, tol=1e-8).fit(X, y), ConstrainedLasso().path(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ConstrainedLasso(1.5 * size_of_y / size, tol=1e-8).fit(X * size, y * size_of_y)
        path = ConstrainedLasso().path(X * size, y * size_of_y)
    np.testing.assert_allclose(model.coef_ * size / size_of_y, expected.coef_, atol=1e-9)
    np.testing.assert_allclose(path.radii * size / size_of_y, whole.radii, rtol=1e-9)
    assert path.stopped == "end"


@parametrize_with_checks([ConstrainedLasso(1.0, fit_intercept=False)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_a_fit_of_many_columns_takes_few_passes():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(300, 5000)))
    y = X[:, :10] @ rng.normal(size=10) + rng.normal(size=300)
    ConstrainedLasso(8.0).fit(X[:, :500], y)  # compiled before the clock starts
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ConstrainedLasso(8.0).fit(X, y)
    assert model.n_iter_ <= 15
    assert time.process_time() - began < 10


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_nearly_dependent_columns_are_no_obstacle(share):
    """Columns of ten factors: coordinate descent creeps, exact steps would change many signs."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(80, 10))
    X = factors @ rng.normal(size=(10, 300)) + 0.05 * rng.normal(size=(80, 300))
    y = factors[:, 0] + 0.3 * rng.normal(size=80)
    limit = np.abs(ConstrainedLasso(1e3, tol=1e-4).fit(X, y).coef_).sum()
    model = ConstrainedLasso(share * limit).fit(X, y)
    assert model.certificate_.status is (Status.NEGLIGIBLE if share > 0.9 else Status.OPTIMAL)


def test_the_default_radius_scales_with_the_data():
    """radius=1 was the default, which is nothing for most targets and everything for some."""
    X, y = load_diabetes(return_X_y=True)
    model = ConstrainedLasso().fit(X, y)
    assert model.score(X, y) > 0.3
    for size_of_x, size_of_y in ((1e3, 1.0), (1.0, 1e-3), (1e-2, 1e4)):
        other = ConstrainedLasso().fit(X * size_of_x, y * size_of_y)
        assert other.radius_ == pytest.approx(model.radius_ * size_of_y / size_of_x)
        assert other.score(X * size_of_x, y * size_of_y) == pytest.approx(
            model.score(X, y), rel=1e-4
        )
    best = np.argmax(np.abs([np.corrcoef(column, y)[0, 1] for column in X.T]))
    alone = np.polyfit(X[:, best], y, 1)[0]
    assert model.radius_ == pytest.approx(abs(alone))


def test_a_useless_radius_warns():
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(
        UserWarning, match=r"radius=1 leaves next to nothing .* would have 949 alone"
    ):
        ConstrainedLasso(radius=1.0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ConstrainedLasso(radius=100.0).fit(X, y)
