"""Kernel classifiers on devices: X, y and results there, and NumPy's certificate."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from anynorm import SVC
from anynorm.norms import K12, Mahalanobis, TopK, TopK2
from anynorm.problem.solution import Status
from tests.devices.data import curved, host, three_classes

SLACKS = {
    "l1": {},
    "squared": {"slack": "squared_l2"},
    "top 15": {"slack": TopK(15)},
    "top 15 of 2": {"slack": TopK2(15)},
    "largest": {"slack": "linf"},
    "length": {"slack": "l2"},
    "interpolated": {"slack": K12(15)},
    "absolute": {"constraints": "equality"},
    "least squares": {"slack": "squared_l2", "constraints": "equality"},
}


@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fit_reaches_the_optimum_of_memory_s_fit(library, slack, dtype):
    X, y = curved(dtype=dtype)
    here = SVC(C=2.0, tol=1e-5, **SLACKS[slack]).fit(X, y)
    there = SVC(C=2.0, tol=1e-5, **SLACKS[slack]).fit(library.array(X), library.array(y))
    found, known = there.certificate_, here.certificate_
    assert found.status is Status.OPTIMAL
    # Each bounds the other's optimum.
    assert found.dual <= known.primal * (1 + 1e-12)
    assert known.dual <= found.primal * (1 + 1e-12)
    scores = there.decision_function(library.array(X))
    for array in (
        there.dual_coef_,
        there.support_vectors_,
        there.support_,
        there.intercept_,
        there.classes_,
        scores,
        there.predict(library.array(X)),
    ):
        assert library.is_here(array)
    near = np.abs(host(scores)) > 0.05
    assert np.array_equal(host(there.predict(library.array(X)))[near], here.predict(X)[near])


def test_the_certificate_is_that_of_the_model_that_is_there(library):
    """P from the support vectors, D from the dual variables, by NumPy alone."""
    X, y = curved()
    model = SVC(C=2.0, gamma=0.4, tol=1e-5).fit(library.array(X), library.array(y))
    sign = 2.0 * y - 1.0
    beta = np.zeros(len(y))
    beta[host(model.support_)] = host(model.dual_coef_)[0]
    K = np.exp(-0.4 * cdist(X, X) ** 2)
    scores = K @ beta
    np.testing.assert_allclose(
        host(model.decision_function(library.array(X))), scores + host(model.intercept_), atol=1e-9
    )
    slacks = np.maximum(0.0, 1.0 - sign * (scores + host(model.intercept_)))
    square = beta @ scores
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(0.5 * square + 2.0 * slacks.sum(), rel=1e-9)
    a = sign * beta
    assert abs(beta.sum()) < 1e-9
    assert a.min() >= 0
    assert a.max() <= 2.0 * (1 + 1e-12)
    assert certificate.dual == pytest.approx(a.sum() - 0.5 * square, rel=1e-9)
    assert (certificate.primal - certificate.dual) / certificate.primal <= 1e-5


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_several_classes_keep_their_labels(library, kernel):
    X, y = three_classes()
    here = SVC(kernel=kernel, tol=1e-5).fit(X, y)
    there = SVC(kernel=kernel, tol=1e-5).fit(library.array(X), library.array(y))
    assert there.certificate_.gap <= 1e-5
    assert host(there.classes_).tolist() == [0, 10, 20]
    scores = host(there.decision_function(library.array(X)))
    assert scores.shape == (len(X), 3)
    np.testing.assert_allclose(scores, here.decision_function(X), atol=0.03)
    agree = host(there.predict(library.array(X))) == here.predict(X)
    assert agree.mean() > 0.98
    if kernel == "linear":
        assert library.is_here(there.coef_)


def test_weights_equal_repetition(library):
    X, y = curved(n=150)
    weights = np.random.default_rng(0).integers(0, 3, size=len(y))
    again = np.repeat(np.arange(len(y)), weights)
    once = SVC(gamma=0.3, tol=1e-7).fit(
        library.array(X), library.array(y), library.array(weights.astype(float))
    )
    often = SVC(gamma=0.3, tol=1e-7).fit(library.array(X[again]), library.array(y[again]))
    assert once.certificate_.primal == pytest.approx(often.certificate_.primal, rel=1e-6)


def test_few_rows_in_memory_do_for_a_fit(library):
    """The cache holds 64 of 600 rows, so that rows are made again and again."""
    X, y = curved(n=600)
    model = SVC(C=10.0, tol=1e-4, cache_size=1e-3).fit(library.array(X), library.array(y))
    assert model.certificate_.status is Status.OPTIMAL
    known = SVC(C=10.0, tol=1e-6).fit(X, y).certificate_
    assert known.dual * (1 - 1e-9) <= model.certificate_.primal <= known.primal * (1 + 2e-4)


def test_a_model_follows_the_rows_it_is_to_predict(library):
    """Fitted there, asked here, and the other way round; by float32 and by float64 rows."""
    X, y = curved()
    there = SVC(gamma=0.3).fit(library.array(X), library.array(y))
    here = SVC(gamma=0.3).fit(X, y)
    found = there.decision_function(X)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(
        found, host(there.decision_function(library.array(X))), rtol=1e-9, atol=1e-9
    )
    moved = here.decision_function(library.array(X))
    assert library.is_here(moved)
    np.testing.assert_allclose(host(moved), here.decision_function(X), rtol=1e-9, atol=1e-9)
    narrow = SVC(gamma=0.3).fit(library.array(X.astype(np.float32)), library.array(y))
    few, wide = X.astype(np.float32), narrow.decision_function(library.array(X))
    np.testing.assert_allclose(
        host(narrow.decision_function(library.array(few))), host(wide), atol=2e-3
    )


def test_rows_far_from_the_origin(library):
    X, y = curved()
    model = SVC(gamma=0.3, tol=1e-5).fit(library.array(X + 1e4), library.array(y))
    known = SVC(gamma=0.3, tol=1e-5).fit(X, y)
    assert model.certificate_.primal == pytest.approx(known.certificate_.primal, rel=2e-5)


def test_a_kernel_of_the_library_s_own_functions(library):
    X, y = curved(n=200)

    def kernel(A, B):
        return (A @ B.T + 1.0) ** 2

    model = SVC(kernel=kernel, tol=1e-5).fit(library.array(X), library.array(y))
    known = SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, tol=1e-5).fit(X, y)
    assert model.certificate_.primal == pytest.approx(known.certificate_.primal, rel=3e-5)


def test_whole_numbers_are_rows_too(library):
    X, y = curved(n=100)
    whole = np.round(3.0 * X).astype(np.int64)
    model = SVC(tol=1e-5).fit(library.array(whole), library.array(y))
    known = SVC(tol=1e-5).fit(whole, y)
    assert model.certificate_.primal == pytest.approx(known.certificate_.primal, rel=2e-5)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_classes_take_turns_and_have_the_same_bits(library, n_jobs):
    X, y = three_classes()
    models = [
        SVC(n_jobs=jobs, tol=1e-4).fit(library.array(X), library.array(y)) for jobs in (1, n_jobs)
    ]
    assert np.array_equal(host(models[0].dual_coef_), host(models[1].dual_coef_))


def test_a_norm_that_is_a_function_of_the_rows(library):
    X, y = curved(n=40)

    def near(rows):
        return np.eye(40) + 0.01 * host(rows) @ host(rows).T

    here = SVC(slack=Mahalanobis(near), tol=1e-5).fit(X, y)
    there = SVC(slack=Mahalanobis(near), tol=1e-5).fit(library.array(X), library.array(y))
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=2e-5)
