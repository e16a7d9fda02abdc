"""The other classifiers and functions that run on devices, against the same in memory."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from anynorm import (
    SVCCV,
    BudgetSVC,
    LeastNormSVC,
    LeastSquaresSVC,
    LinearSVC,
    load_model,
    min_norm_point,
    save_model,
)
from anynorm.problem.solution import Status
from anynorm.solvers.kernel import least_squares
from tests.devices.data import curved, host, three_classes

CLASSIFIERS = {
    "budget": lambda: BudgetSVC(15, C=2.0, tol=1e-5),
    "budget of lengths": lambda: BudgetSVC(15, C=2.0, slack="l2", tol=1e-5),
    "strict": lambda: BudgetSVC(10, C=2.0, strict=True, tol=1e-5),
    "least norm": lambda: LeastNormSVC(C=1.0, tol=1e-6),
    "least squares": lambda: LeastSquaresSVC(C=1.0, tol=1e-6),
    "least squares by steps": lambda: LeastSquaresSVC(C=1.0, solver="cg", tol=1e-8),
    "hinge": lambda: LinearSVC(tol=1e-6),
    "squared hinge": lambda: LinearSVC(loss="squared_hinge", tol=1e-6),
    "logistic": lambda: LinearSVC(loss="logistic", tol=1e-6),
    "squared": lambda: LinearSVC(loss="squared", tol=1e-6),
    "absolute": lambda: LinearSVC(loss="absolute", tol=1e-6),
    "regularised bias": lambda: LinearSVC(loss="hinge", intercept_scaling=1.0, tol=1e-6),
}


def bounds_agree(found, known):
    """Each primal value is an upper bound of the other's dual value, by weak duality."""
    return found.dual <= known.primal * (1 + 1e-9) and known.dual <= found.primal * (1 + 1e-9)


@pytest.mark.parametrize("data", [curved, three_classes])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_fits_have_the_optimum_of_memory(library, name, data):
    X, y = data(n=200)
    here = CLASSIFIERS[name]().fit(X, y)
    there = CLASSIFIERS[name]().fit(library.array(X), library.array(y))
    assert there.certificate_.status is Status.OPTIMAL
    if name == "strict":  # which rows is a matter of choice: those of memory are as good
        assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=0.05)
        assert host(there.support_).size <= 10
    else:
        assert bounds_agree(there.certificate_, here.certificate_)
    assert library.is_here(there.predict(library.array(X)))
    assert library.is_here(there.intercept_)
    assert host(there.decision_function(library.array(X))).shape == here.decision_function(X).shape


@pytest.mark.parametrize("cache_size", [500, 0.3, 1e-3])
def test_conjugate_gradients_with_the_matrix_kept_in_part_or_not_at_all(library, cache_size):
    X, y = curved(n=500)
    known = LeastSquaresSVC(C=1.0, tol=1e-10, solver="cholesky").fit(X, y)
    there = LeastSquaresSVC(C=1.0, tol=1e-8, solver="cg", cache_size=cache_size)
    there.fit(library.array(X), library.array(y))
    assert there.certificate_.gap <= 1e-8
    assert there.certificate_.primal == pytest.approx(known.certificate_.primal, rel=1e-7)
    assert there.n_iter_ > 1


def test_conjugate_gradients_hand_over_to_a_factor(library, monkeypatch):
    """Many rows for conjugate gradients, a C at which they take long, and room for a factor."""
    monkeypatch.setattr(least_squares, "_SMALL", 50)
    X, y = curved(n=300)
    model = LeastSquaresSVC(C=1e6, tol=1e-6).fit(library.array(X), library.array(y))
    known = LeastSquaresSVC(C=1e6, tol=1e-6).fit(X, y)
    assert model.certificate_.gap <= 1e-6
    assert bounds_agree(model.certificate_, known.certificate_)


def test_leave_one_out_scores_are_those_of_the_fits(library):
    X, y = curved(n=80)
    model = LeastSquaresSVC(C=1.0, gamma=0.3, leave_one_out=True, tol=1e-9)
    model.fit(library.array(X), library.array(y))
    without = np.arange(1, 80)
    other = LeastSquaresSVC(C=1.0, gamma=0.3, tol=1e-9).fit(X[without], y[without])
    assert library.is_here(model.loo_decision_function_)
    assert host(model.loo_decision_function_)[0] == pytest.approx(
        other.decision_function(X[:1])[0], abs=1e-6
    )


@pytest.mark.parametrize("data", [curved, three_classes])
def test_a_search_chooses_what_it_chooses_in_memory(library, data, tmp_path):
    X, y = data(n=240)
    search = {"Cs": 4, "gammas": 2, "cv": 3, "tol": 1e-5, "calibration": "sigmoid"}
    here = SVCCV(**search).fit(X, y)
    there = SVCCV(**search).fit(library.array(X), library.array(y))
    np.testing.assert_allclose(
        there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"], atol=0.02
    )
    assert np.nanmax(there.cv_results_["max_gap"]) <= 1e-5
    assert library.is_here(there.oof_decision_function_)
    if (there.C_, there.gamma_) == (here.C_, here.gamma_):
        assert bounds_agree(there.certificate_, here.certificate_)
    probabilities = there.predict_proba(library.array(X))
    assert library.is_here(probabilities)
    np.testing.assert_allclose(host(probabilities).sum(axis=1), 1.0)
    save_model(there, tmp_path / "search.anynorm")
    loaded = load_model(tmp_path / "search.anynorm")
    np.testing.assert_allclose(loaded.predict_proba(X), host(probabilities), atol=1e-6)


def test_groups_and_folds_of_more_than_500_rows(library):
    """So many rows that the problems of a fold share rows of one kernel."""
    X, y = curved(n=600)
    groups = np.arange(600) // 4
    search = SVCCV(Cs=[0.5, 5.0], gammas=[0.2], cv=3, tol=1e-4)
    there = search.fit(library.array(X), library.array(y), groups=library.array(groups))
    assert np.nanmax(there.cv_results_["max_gap"]) <= 1e-4
    known = SVCCV(Cs=[0.5, 5.0], gammas=[0.2], cv=3, tol=1e-4).fit(X, y, groups=groups)
    np.testing.assert_allclose(
        there.cv_results_["mean_test_score"], known.cv_results_["mean_test_score"], atol=0.01
    )


def test_a_preprocessor_belongs_in_memory(library):
    X, y = curved(n=60)
    search = SVCCV(preprocessor=StandardScaler())
    with pytest.raises(TypeError, match="a preprocessor prepares rows in memory"):
        search.fit(library.array(X), library.array(y))


def test_probabilities_of_the_logistic_loss(library):
    X, y = curved(n=100)
    model = LinearSVC(loss="logistic").fit(library.array(X), library.array(y))
    found = model.predict_proba(library.array(X))
    assert library.is_here(found)
    score = host(model.decision_function(library.array(X)))
    np.testing.assert_allclose(host(found)[:, 1], 1 / (1 + np.exp(-score)), rtol=1e-9)


@pytest.mark.parametrize("shape", [(3, 60), (40, 25)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_point_of_least_norm(library, shape, dtype):
    A = (np.random.default_rng(3).standard_normal(shape) + 0.5).astype(dtype)
    A[0] += 2.0
    here, there = min_norm_point(A), min_norm_point(library.array(A))
    assert there.certificate.gap <= 1e-9
    assert library.is_here(there.x)
    assert library.is_here(there.dual)
    assert there.certificate.primal == pytest.approx(here.certificate.primal, rel=1e-8)
    w = A.astype(np.float64) @ host(there.x)
    np.testing.assert_allclose(host(there.dual), w, atol=1e-10)
    assert (A.astype(np.float64).T @ w).min() >= w @ w * (1 - 1e-8)  # no point lies lower


def test_points_that_cannot_be_used(library):
    with pytest.raises(TypeError, match="takes points and no kernel matrix"):
        min_norm_point(library.array(np.eye(3)), kernel_matrix=True)
    with pytest.raises(ValueError, match="A has NaN"):
        min_norm_point(library.array(np.full((2, 2), np.nan)))
