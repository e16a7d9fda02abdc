"""The exact path of the Lasso against scikit-learn's LARS, Clarabel and its own certificates."""

import pickle
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LinearRegression, lars_path

from anynorm import ConstrainedLasso
from anynorm.design import design_of
from anynorm.problem.solution import Status
from anynorm.reductions import soft_margin, svm_to_lasso
from anynorm.solvers.lasso.homotopy import follow_lasso
from tests.estimators.test_constrained_lasso import problems, reference, regression


def middles(path):
    """Places inside the segments."""
    return np.concatenate([path.radii[:-1] + t * np.diff(path.radii) for t in (0.2, 0.7)])


@pytest.mark.parametrize("shape", [(40, 8), (30, 80), (60, 60)])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_joints_are_those_of_lars(shape, intercept):
    X, y = regression(*shape, seed=sum(shape), noise=2.0)
    path = ConstrainedLasso(fit_intercept=intercept).path(X, y)
    Xc, yc = (X - X.mean(axis=0), y - y.mean()) if intercept else (X, y)
    alphas, _, coefs = lars_path(Xc, yc, method="lasso")
    assert path.stopped == "end"
    np.testing.assert_allclose(path.alphas, alphas, rtol=1e-7, atol=1e-9 * alphas[0])
    np.testing.assert_allclose(path.coefs.toarray(), coefs.T, atol=1e-7)
    np.testing.assert_allclose(path.radii, np.abs(coefs).sum(axis=0), atol=1e-7)
    expected = y.mean() - X.mean(axis=0) @ coefs if intercept else np.zeros(len(alphas))
    np.testing.assert_allclose(path.intercepts, expected, atol=1e-7)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_every_point_is_the_best_in_its_ball(problem):
    """Ties, zero, constant, repeated and badly scaled columns, weights of 0."""
    X, y, weights, _, intercept = problem
    path = ConstrainedLasso(fit_intercept=intercept).path(X, y, weights)
    assert path.stopped == "end"
    assert (np.diff(path.radii) > 0).all()
    assert (np.diff(path.alphas) < 0).all()
    np.testing.assert_allclose(abs(path.coefs).sum(axis=1), path.radii, rtol=1e-12)
    places = [0.0, *path.radii, *middles(path)]
    worst = max(path.certificate_at(radius).gap_at_scale for radius in places)
    assert worst <= 1e-5  # rounding, relative to 1e-10 of the sum of squares at 0
    assert all(path.certificates[k].primal <= path.certificates[0].primal for k in (0, -1))
    end = path.certificate_at(2 * path.radii[-1] + 1)
    size = float(np.sum(y**2))
    assert end.primal - end.dual <= 1e-7 * end.primal + 1e-12 * size


@settings(max_examples=30, deadline=None)
@given(problems(), st.floats(0.05, 1.2))
def test_points_between_joints_are_those_of_clarabel(problem, share):
    X, y, weights, _, intercept = problem
    path = ConstrainedLasso(fit_intercept=intercept).path(X, y, weights)
    radius = share * path.radii[-1] + 1e-3
    coef, bias = path.coef_at(radius=radius)
    assert np.abs(coef).sum() <= radius * (1 + 1e-12)
    residual = y - X @ coef - bias
    found = float(np.sum(residual**2 * (1 if weights is None else weights)))
    best = reference(X, y, radius, weights, intercept)
    assert found <= best * (1 + 1e-6) + 1e-7 * float(np.sum(y**2)) + 1e-12


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["signs", "bits", "few", "factors"]))
def test_no_degenerate_design_makes_it_cycle(seed, kind):
    """Entries of few values: many columns reach lambda, or zero, at once."""
    rng = np.random.default_rng(seed)
    n, p = rng.integers(2, 14), rng.integers(2, 25)
    X = {
        "signs": lambda: np.sign(rng.normal(size=(n, p))),
        "bits": lambda: rng.integers(0, 2, size=(n, p)),
        "few": lambda: rng.integers(-2, 3, size=(n, p)),
        "factors": lambda: rng.integers(-1, 2, (n, 3)) @ rng.integers(-1, 2, (3, p)),
    }[kind]().astype(float)
    X[:, rng.integers(p)] = X[:, rng.integers(p)]
    y = rng.integers(-3, 4, size=n).astype(float)
    X = sp.csc_array(X) if seed % 2 else X
    path = ConstrainedLasso(fit_intercept=bool(rng.integers(2))).path(X, y)
    assert path.stopped == "end"
    assert path.n_joints <= 40 * (n + p)
    assert (
        max(path.certificate_at(radius).gap for radius in middles(path)) <= 1e-6
        if (path.n_joints > 1)
        else path.certificates[0].gap <= 1e-9
    )


def test_all_columns_may_tie_at_the_start():
    """The Lasso of a soft margin, with the known direction: scikit-learn's LARS cannot start."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(30) < 0.5, -1, 1)
    lasso = svm_to_lasso(soft_margin(rng.normal(size=(30, 4)) + y[:, None], y, C=1.0))
    path = ConstrainedLasso(fit_intercept=False).path(lasso.A, lasso.b, radius_max=1.0)
    assert path.stopped == "radius_max"
    coef, _ = path.coef_at(radius=1.0)
    assert path.certificates[-1].gap <= 1e-6
    model = ConstrainedLasso(1.0, fit_intercept=False, tol=1e-10).fit(lasso.A, lasso.b)
    assert lasso.objective(coef) == pytest.approx(lasso.objective(model.coef_), rel=1e-6)


def test_the_ends_are_zero_and_least_squares():
    X, y = regression()
    path = ConstrainedLasso().path(X, y)
    assert path.coefs[[0]].nnz == 0
    assert path.intercepts[0] == pytest.approx(y.mean())
    assert path.alphas[-1] == 0
    least = LinearRegression().fit(X, y)
    for radius in (path.radii[-1], 10 * path.radii[-1]):
        coef, intercept = path.coef_at(radius=radius)
        np.testing.assert_allclose(coef, least.coef_, atol=1e-8)
        assert intercept == pytest.approx(least.intercept_)
        assert path.certificate_at(radius).status is Status.OPTIMAL


def test_a_place_is_given_by_radius_alpha_or_number_of_features():
    X, y = regression(noise=2.0)
    path = ConstrainedLasso().path(X, y)
    for share in (0.9, 0.3, 0.01):
        alpha = share * path.alphas[0]
        coef, intercept = path.coef_at(alpha=alpha)
        other = Lasso(alpha, tol=1e-14, max_iter=100_000).fit(X, y)
        np.testing.assert_allclose(coef, other.coef_, atol=1e-7)
        assert intercept == pytest.approx(other.intercept_, abs=1e-6)
    assert not path.coef_at(alpha=2 * path.alphas[0])[0].any()
    for count in range(16):
        coef, _ = path.coef_at(n_features=count)
        assert np.count_nonzero(coef) <= count
    with pytest.raises(ValueError, match="exactly one of radius, alpha and n_features; got none"):
        path.coef_at()
    with pytest.raises(ValueError, match="got radius and alpha"):
        path.coef_at(radius=1.0, alpha=1.0)
    with pytest.raises(ValueError, match="radius must be a number of at least 0"):
        path.coef_at(radius=-1.0)
    with pytest.raises(ValueError, match="n_features must be an integer"):
        path.coef_at(n_features=1.5)


def test_predictions_along_the_path():
    X, y = regression()
    path = ConstrainedLasso().path(pd.DataFrame(X, columns=[f"f{j}" for j in range(15)]), y)
    frame = pd.DataFrame(X, columns=path.feature_names_in_)
    scores = path.predict(frame)
    np.testing.assert_allclose(scores, X @ path.coefs.toarray().T + path.intercepts, atol=1e-12)
    coef, intercept = path.coef_at(radius=1.0)
    np.testing.assert_allclose(path.predict(frame, 1.0), X @ coef + intercept)
    with pytest.raises(ValueError, match="radius must be"):
        path.predict(frame, [-1.0])
    with pytest.raises(ValueError, match="3 features, but LassoPath is expecting 15"):
        path.predict(X[:, :3])


@pytest.mark.parametrize(
    ("limits", "stopped"),
    [
        ({"max_features": 2}, "max_features"),
        ({"max_joints": 3}, "max_joints"),
        ({"radius_max": 1.7}, "radius_max"),
        ({"max_features": 15, "max_joints": 10_000, "radius_max": 1e9}, "end"),
    ],
)
def test_a_path_can_be_stopped(limits, stopped):
    X, y = regression(noise=2.0)
    whole = ConstrainedLasso().path(X, y)
    path = ConstrainedLasso().path(X, y, **limits)
    assert path.stopped == stopped
    assert path.n_nonzero.max() <= limits.get("max_features", 15)
    assert path.n_joints <= limits.get("max_joints", np.inf)
    np.testing.assert_allclose(path.radii[:-1], whole.radii[: path.n_joints - 1])
    if "radius_max" in limits and stopped == "radius_max":
        assert path.radii[-1] == pytest.approx(1.7, rel=1e-12)
    coef, _ = whole.coef_at(radius=path.radii[-1])
    np.testing.assert_allclose(path.coefs[[-1]].toarray()[0], coef, atol=1e-10)


def test_time_is_limited():
    X, y = regression(200, 2000)
    path = ConstrainedLasso(time_limit=1e-9).path(X, y)
    assert path.stopped == "time_limit"
    assert path.n_joints == 1


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_features": -1}, "max_features must be"),
        ({"max_joints": 0}, "max_joints must be"),
        ({"radius_max": 0.0}, "radius_max must be"),
        ({"radius_max": np.nan}, "radius_max must be"),
    ],
)
def test_limits_that_cannot_be_used_are_named(limits, message):
    with pytest.raises(ValueError, match=message):
        ConstrainedLasso().path(*regression(), **limits)


def test_rounding_that_ends_a_path_is_told(monkeypatch):
    """A joint that the products of all columns refute, at every strength of ties."""
    from anynorm.solvers.lasso import homotopy

    monkeypatch.setattr(homotopy._Homotopy, "_allowed", lambda *_: -1.0)
    with pytest.warns(ConvergenceWarning, match="rounding ended 1 of 1 paths"):
        path = ConstrainedLasso().path(*regression())
    assert path.stopped == "stuck"
    assert path.n_joints == 1
    assert path.certificate_at(1.0).gap > 0.1
    assert path.certificate_at(1.0).status is Status.MAX_ITER


@pytest.mark.parametrize("target", [np.zeros(20), np.full(20, 0.1)])
def test_a_constant_target_has_a_path_of_one_joint(target):
    X = np.random.default_rng(0).normal(size=(20, 5))
    path = ConstrainedLasso().path(X, target)
    assert path.stopped == "end"
    assert path.n_joints == 1
    np.testing.assert_allclose(path.intercepts, target[0])
    assert path.certificate_at(3.0).gap == 0


def test_a_target_in_the_span_is_reached():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 50))
    y = X[:, 0] - X[:, 1]
    path = ConstrainedLasso(fit_intercept=False).path(X, y)
    assert path.stopped == "end"
    assert path.radii[-1] <= 2 * (1 + 1e-9)
    last = path.certificates[-1]
    assert last.primal <= 1e-20 * float(y @ y)
    # A residual may end at zero itself, which is the optimum.
    assert last.status is (Status.NEGLIGIBLE if last.primal > 0 else Status.OPTIMAL)


@pytest.mark.parametrize("convert", [sp.csr_array, np.asfortranarray, lambda X: X.astype("f4")])
@pytest.mark.parametrize("weighted", [False, True])
def test_storage_does_not_matter(convert, weighted):
    X, y = regression(50, 30, noise=2.0)
    X = X.astype(np.float32).astype(np.float64)
    X[np.abs(X) < 0.5] = 0
    weights = np.arange(len(y)) % 3 if weighted else None
    expected = ConstrainedLasso().path(X, y, weights)
    given = convert(X)
    found = ConstrainedLasso().path(given, y, weights)
    np.testing.assert_allclose(found.radii, expected.radii, atol=1e-8)
    np.testing.assert_allclose(found.coefs.toarray(), expected.coefs.toarray(), atol=1e-7)
    np.testing.assert_allclose(found.intercepts, expected.intercepts, atol=1e-7)


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_that_are_not_at_work_are_not_overlooked(sparse):
    """More columns than are looked at from joint to joint: each joint holds among all of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3000)) * (rng.random((80, 3000)) < (0.1 if sparse else 1.0))
    y = X[:, :20] @ rng.normal(size=20) + rng.normal(size=80)
    path = ConstrainedLasso(fit_intercept=False).path(sp.csc_array(X) if sparse else X, y)
    assert path.stopped == "end"
    _, _, coefs = lars_path(X, y, method="lasso")
    assert path.n_joints == coefs.shape[1]
    np.testing.assert_allclose(path.coefs.toarray(), coefs.T, atol=1e-6)
    pulls = np.abs(X.T @ (y[:, None] - X @ path.coefs.toarray().T)) / len(y)
    assert (pulls.max(axis=0) <= path.alphas + 1e-9 * path.alphas[0]).all()


def test_a_path_is_stored_without_its_data():
    X, y = regression()
    path = ConstrainedLasso().path(X, y)
    stored = pickle.loads(pickle.dumps(path))
    assert len(pickle.dumps(path)) < 20_000
    np.testing.assert_array_equal(stored.coef_at(radius=1.0)[0], path.coef_at(radius=1.0)[0])
    with pytest.raises(ValueError, match="stored without its data"):
        stored.certificate_at(1.0)


def test_verbose_prints_the_way(capsys):
    ConstrainedLasso(verbose=1).path(*regression())
    assert "joint 4, primal" in capsys.readouterr().out


def test_many_columns_take_little_time():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(300, 10_000)))
    b = X[:, :30] @ rng.normal(size=30) + 2 * rng.normal(size=300)
    design = design_of(X).centred(None, False)
    follow_lasso(design, b, max_joints=3)
    began = time.process_time()
    record = follow_lasso(design, b, max_joints=200)
    assert time.process_time() - began < 5
    assert max(certificate.gap for certificate in record.certificates) <= 1e-9
