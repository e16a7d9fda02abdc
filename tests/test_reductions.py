"""Reductions between the Lasso and the SVM: the paper's theorems, and outside solvers at work."""

import importlib.util
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, lars_path
from sklearn.svm import SVC as LibSVC
from sklearn.svm import OneClassSVM

import anynorm
from anynorm import min_norm_point
from anynorm.reductions import lasso_to_svm, soft_margin, svm_to_lasso

cp = pytest.importorskip("cvxpy", reason="the reference solutions come from Clarabel")

STORAGES = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csc": sp.csc_array,
    "csr": sp.csr_array,
    "matrix": sp.csc_matrix,
    "float32": lambda A: np.asarray(A, dtype=np.float32),
}


def reference_lasso(A, b, radius):
    """The least value of ||Ax - b||^2 in the ball, by Clarabel."""
    x = cp.Variable(A.shape[1])
    cp.Problem(cp.Minimize(cp.sum_squares(A @ x - b)), [cp.norm1(x) <= radius]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    return x.value


def reference_simplex(A):
    """The point of the simplex with the least ||Ax||^2, by Clarabel."""
    x = cp.Variable(A.shape[1])
    cp.Problem(cp.Minimize(cp.sum_squares(A @ x)), [x >= 0, cp.sum(x) == 1]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    x = np.maximum(x.value, 0.0)
    return x / x.sum()


def squared(v):
    return float(np.sum(np.square(v)))


entries = st.one_of(st.integers(-3, 3).map(float), st.floats(-4, 4).map(lambda x: round(x, 3)))


@st.composite
def matrices(draw, max_rows=5, max_columns=6):
    """Matrices with ties, zero and repeated columns."""
    d, n = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    A = np.array(draw(st.lists(entries, min_size=d * n, max_size=d * n))).reshape(d, n)
    if n > 1 and draw(st.booleans()):
        A[:, -1] = draw(st.sampled_from([0.0, 1.0, -1.0])) * A[:, 0]
    return A


@st.composite
def lassos(draw):
    A = draw(matrices())
    b = np.array(draw(st.lists(entries, min_size=len(A), max_size=len(A))))
    return A, b, draw(st.sampled_from([0.1, 1.0, 2.5]))


@st.composite
def separable_points(draw):
    """Points on one side of a plane through the origin, and a vector that separates them."""
    A = draw(matrices(max_columns=5))
    w = np.array(draw(st.lists(entries, min_size=len(A), max_size=len(A))))
    assume(np.linalg.norm(w) > 0.1)
    w = w / np.linalg.norm(w)
    low = float((w @ A).min())
    margin = draw(st.sampled_from([0.05, 0.5, 2.0]))
    return A + np.outer(w, np.full(A.shape[1], max(0.0, margin - low))), w


def weights(n, draw_signs=True):
    """Vectors of n numbers with a 1-norm of at most 1."""
    return st.lists(st.floats(-1 if draw_signs else 0, 1), min_size=n, max_size=n).map(
        lambda v: np.array(v) / max(1.0, np.abs(v).sum())
    )


# ------------------------------------------------------------------------------- Lasso -> SVM


@given(lassos(), st.data())
def test_every_feasible_point_keeps_its_value(lasso, data):
    A, b, radius = lasso
    points = lasso_to_svm(A, b, radius)
    x = radius * data.draw(weights(A.shape[1]))
    z = points.to_simplex(x)
    assert z.min() >= 0
    assert z.sum() == pytest.approx(1, abs=1e-14)
    scale = 1 + squared(b) + radius**2 * (A**2).max()
    assert squared(points.combine(z)) == pytest.approx(squared(A @ x - b), abs=1e-12 * scale)
    assert points.to_lasso(z) == pytest.approx(x, abs=1e-14)
    z = np.abs(data.draw(weights(points.n)))
    assume(z.sum() > 0)
    z /= z.sum()
    x = points.to_lasso(z)
    assert np.abs(x).sum() <= radius * (1 + 1e-14)
    assert squared(points.combine(z)) == pytest.approx(squared(A @ x - b), abs=1e-12 * scale)


@settings(max_examples=25, deadline=None)
@given(lassos())
def test_the_optima_of_a_lasso_and_of_its_svm_coincide(lasso):
    A, b, radius = lasso
    points = lasso_to_svm(A, b, radius)
    best = squared(A @ reference_lasso(A, b, radius) - b)
    z = reference_simplex(points.columns(np.arange(points.n)))
    x = points.to_lasso(z)
    assert squared(A @ x - b) == pytest.approx(best, rel=1e-6, abs=1e-8 * (1 + squared(b)))


@pytest.mark.parametrize("storage", STORAGES)
def test_the_lazy_points_are_those_of_the_paper(storage):
    rng = np.random.default_rng(0)
    A, b, radius = rng.integers(-3, 4, size=(5, 4)).astype(float), rng.normal(size=5), 1.7
    points = lasso_to_svm(STORAGES[storage](A), b, radius)
    explicit = np.hstack([radius * A, -radius * A]) - b[:, None]
    index = np.array([6, 1, 0, 6])
    w, z = rng.normal(size=5), rng.normal(size=8)
    assert (points.d, points.n) == explicit.shape
    for found, expected in (
        (points.columns(range(8)), explicit),
        (points.column(5), explicit[:, 5]),
        (points.entry(np.arange(5)[:, None], np.arange(8)), explicit),
        (points.entry(2, 7), explicit[2, 7]),
        (points.dot(w), explicit.T @ w),
        (points.combine(z), explicit @ z),
        (points.norms_squared(), (explicit**2).sum(axis=0)),
        (points.products(index), explicit.T @ explicit[:, index]),
        (points.kernel(), explicit.T @ explicit),
        (points.kernel([7, 2], index), explicit[:, [7, 2]].T @ explicit[:, index]),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert isinstance(points.entry(0, 0), float)


def test_nothing_of_the_size_of_the_data_is_allocated_for_a_product():
    import tracemalloc

    def multiply():
        points.dot(np.ones(500))
        points.combine(np.full(points.n, 1 / points.n))
        points.columns([3, 3000])
        points.products([1])

    A = np.zeros((500, 2000))
    points = lasso_to_svm(A, np.ones(500), 1.0)
    multiply()  # compiled before memory is counted
    tracemalloc.start()
    multiply()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.05 * A.nbytes


def test_the_radius_multiplies_the_columns():
    """The paper's text divides by it, a slip: with r = 2 the solution x = 2 must be in reach."""
    points = lasso_to_svm([[1.0]], [2.0], radius=2.0)
    assert squared(points.column(0)) == 0
    assert points.to_lasso([1.0, 0.0]) == pytest.approx([2.0])


# ------------------------------------------------------------------------------- SVM -> Lasso


@given(separable_points(), st.data())
def test_points_of_the_simplex_keep_their_value(svm, data):
    A, w = svm
    lasso = svm_to_lasso(A, w)
    x = np.abs(data.draw(weights(A.shape[1])))
    assume(x.sum() > 0.01)
    x /= x.sum()
    size = squared(A @ x)
    assert lasso.objective(x) == pytest.approx(size, rel=1e-9, abs=1e-12)
    lost = 1e-15 * 10**lasso.digits_lost * lasso.D / lasso.sigma
    assert squared(lasso.A @ x - lasso.b) == pytest.approx(size, rel=100 * lost + 1e-12)


@given(separable_points(), st.data())
def test_flipping_and_scaling_up_improve(svm, data):
    """Propositions 4 and 5, and Theorem 3: the simplex point is better than any other."""
    A, w = svm
    lasso = svm_to_lasso(A, w)
    x = data.draw(weights(A.shape[1]))
    assume(np.abs(x).sum() > 1e-3)
    flipped = np.abs(x)
    if (x < -1e-3).any():
        assert lasso.objective(flipped) < lasso.objective(x)
    scaled = lasso.to_simplex(x)
    if flipped.sum() < 1 - 1e-3:
        assert lasso.objective(scaled) < lasso.objective(flipped)
    assert lasso.objective(scaled) <= lasso.objective(x) * (1 + 1e-12)
    np.testing.assert_array_equal(lasso.to_lasso(scaled), scaled)


@settings(max_examples=25, deadline=None)
@given(separable_points())
def test_the_optima_of_an_svm_and_of_its_lasso_coincide(svm):
    A, w = svm
    lasso = svm_to_lasso(A, w)
    assume(lasso.digits_lost < 4)
    best = squared(A @ reference_simplex(A))
    x = reference_lasso(lasso.A, lasso.b, 1.0)
    z = lasso.to_simplex(x / max(1.0, np.abs(x).sum()))
    assert squared(A @ z) == pytest.approx(best, rel=1e-4)


def test_sigma_and_D_are_those_of_the_paper():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(4, 12)) + 3
    w = np.ones(4)
    lasso = svm_to_lasso(A, w)
    assert lasso.sigma == pytest.approx((A.T @ w / 2).min())
    assert np.linalg.norm(A, axis=0).max() < lasso.D < 1.001 * np.linalg.norm(A, axis=0).max()
    np.testing.assert_allclose(lasso.b, -w / 2 * lasso.D**2 / lasso.sigma)
    np.testing.assert_allclose(lasso.A, A + lasso.b[:, None])
    assert lasso.translation == pytest.approx(np.linalg.norm(lasso.b))
    assert lasso.digits_lost == pytest.approx(2 * math.log10(lasso.D / lasso.sigma))
    assert lasso.radius == 1.0


@pytest.mark.parametrize("margin", [1.0, 1e-2, 1e-4])
def test_the_digits_lost_bound_the_error_of_the_plain_residual(margin):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 9))
    A[0] = margin * (1 + rng.random(9))
    lasso = svm_to_lasso(A, np.eye(6)[0])
    x = np.full(9, 1 / 9)
    error = np.linalg.norm(lasso.A @ x - lasso.b - A @ x) / lasso.sigma
    assert error <= 20 * 2.3e-16 * 10**lasso.digits_lost
    assert np.linalg.norm(lasso.residual(x) - A @ x) <= 1e-15 * lasso.translation


@settings(max_examples=50, deadline=None)
@given(separable_points())
def test_the_perceptron_separates_what_can_be_separated(svm):
    A, _ = svm
    best = np.linalg.norm(A @ reference_simplex(A))
    lasso = svm_to_lasso(A)
    assert lasso.sigma == pytest.approx((A.T @ (-lasso.b / lasso.translation)).min(), rel=1e-9)
    assert 0.49 * best <= lasso.sigma <= best * (1 + 1e-6)


@pytest.mark.parametrize("A", [[[1.0, -1.0]], [[1.0, -0.5, -0.5], [0.0, 1.0, -1.0]]])
def test_points_around_the_origin_are_not_separable(A):
    with pytest.raises(ValueError, match=r"no vector that separates .* soft_margin"):
        svm_to_lasso(A, max_updates=200)


# -------------------------------------------------------------------------------- soft margin


def two_classes(n=12, p=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, p)) + 0.7 * y[:, None], y


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("offset", [None, 2.0])
def test_the_points_of_the_soft_margin_are_those_of_lemma_2(storage, offset):
    X, y = two_classes()
    X = np.round(X * 4) / 4  # exact in float32
    C = 0.7
    points = soft_margin(STORAGES[storage](X), y, C, offset=offset)
    Z = y * X.T if offset is None else y * np.column_stack([X, np.full(12, offset)]).T
    explicit = np.vstack([Z, np.eye(12) / np.sqrt(2 * C)])
    rng = np.random.default_rng(1)
    w, x = rng.normal(size=len(explicit)), rng.normal(size=12)
    matrix = points.matrix()
    assert sp.issparse(matrix) == sp.issparse(points.X)
    for found, expected in (
        (matrix.toarray() if sp.issparse(matrix) else matrix, explicit),
        (points.columns([3, 0, 3]), explicit[:, [3, 0, 3]]),
        (points.dot(w), explicit.T @ w),
        (points.combine(x), explicit @ x),
        (points.norms_squared(), (explicit**2).sum(axis=0)),
        (points.products([5, 1]), explicit.T @ explicit[:, [5, 1]]),
        (points.kernel(), explicit.T @ explicit),
        (points.kernel([5, 1, 1], [1, 7]), explicit[:, [5, 1, 1]].T @ explicit[:, [1, 7]]),
        (points.kernel(cols=[2]), explicit.T @ explicit[:, [2]]),
        (points.dot(points.w), np.full(12, 1 / np.sqrt(2 * 12 * C))),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert points.sigma == pytest.approx(1 / np.sqrt(2 * 12 * C))
    assert np.linalg.norm(points.w) == pytest.approx(1)


@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("offset", [None, 1.0])
def test_the_nearest_point_is_the_squared_hinge_svm(C, offset):
    """Against LinearSVC, whose penalised bias is the constant feature."""
    X, y = two_classes(n=30)
    points = soft_margin(X, y, C, offset=offset)
    x = reference_simplex(points.matrix())
    w, b = points.classifier(x)
    model = anynorm.LinearSVC(
        C=C,
        loss="squared_hinge",
        fit_intercept=offset is not None,
        intercept_scaling=offset,
        tol=1e-10,
    ).fit(X, y)
    np.testing.assert_allclose(w, model.coef_[0], rtol=1e-4, atol=1e-5)
    assert b == pytest.approx(float(model.intercept_[0]), rel=1e-4, abs=1e-5)
    assert points.objective(x) == pytest.approx(model.certificate_.primal, rel=1e-7)
    a = points.dual(x)
    slack = np.maximum(0, 1 - y * (X @ w + b))
    np.testing.assert_allclose(slack, a / (2 * C), atol=1e-4)


def test_one_class_gives_scores_below_zero_to_what_lies_outside():
    X, _ = two_classes(n=40)
    X = X + 4
    C = 5.0
    points = soft_margin(X, C=C)
    x = reference_simplex(points.matrix())
    w, b = points.classifier(x)
    scores = X @ w + b
    np.testing.assert_allclose(np.maximum(0, -scores), points.dual(x) / (2 * C), atol=1e-5)
    v = cp.Variable(3)
    primal = cp.Minimize(0.5 * cp.sum_squares(v) + C * cp.sum_squares(cp.pos(1 - X @ v)))
    best = cp.Problem(primal).solve(solver=cp.CLARABEL)
    assert 0.5 * w @ w + C * np.square(np.maximum(0, -scores)).sum() == pytest.approx(best)
    assert points.objective(x) == pytest.approx(best)
    assert b == -1


@pytest.mark.parametrize("labels", [(0, 1), ("a", "b"), (-1, 1), (False, True)])
def test_any_two_labels_will_do(labels):
    X, y = two_classes()
    points = soft_margin(X, np.where(y > 0, labels[1], labels[0]))
    np.testing.assert_array_equal(points.y, y)


# ---------------------------------------------------------------- outside solvers, both ways


def svm_by_lars(points):
    """LARS until the coefficients have the 1-norm 1, then the point between its knots.

    The known w gives every column the same product with b, a tie of all columns, which LARS cannot
    take; a vector beside it has none.
    """
    lasso = svm_to_lasso(points, points.w * np.linspace(1, 1.2, points.d))
    _, _, path = lars_path(lasso.A, lasso.b, method="lasso", max_iter=1000)
    sizes = np.abs(path).sum(axis=0)
    k = int(np.argmax(sizes >= 1)) if (sizes >= 1).any() else len(sizes) - 1
    share = (1 - sizes[k - 1]) / (sizes[k] - sizes[k - 1])
    return path[:, k - 1] + share * (path[:, k] - path[:, k - 1])


def by_radius(solve, top):
    """Search for the penalty at which `solve(penalty)` has the 1-norm 1."""
    low, high = 0.0, top
    for _ in range(200):
        penalty = 0.5 * (low + high)
        x = solve(penalty)
        if np.abs(x).sum() > 1:
            low = penalty
        else:
            high = penalty
    return x


def svm_by_coordinate_descent(points):
    """scikit-learn's Lasso on the reduced problem, with a search for the penalty."""
    lasso = svm_to_lasso(points)
    A, b = np.asfortranarray(lasso.A), lasso.b
    model = Lasso(fit_intercept=False, tol=1e-16, max_iter=100_000, warm_start=True)

    def solve(penalty):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.set_params(alpha=penalty).fit(A, b).coef_.copy()

    return by_radius(solve, float(np.abs(A.T @ b).max()) / len(b))


@pytest.mark.parametrize("n", [4, 7, 10])
@pytest.mark.parametrize("solver", [svm_by_lars, svm_by_coordinate_descent])
def test_lasso_solvers_solve_an_svm(n, solver):
    X, y = two_classes(n=n, p=2, seed=n)
    points = soft_margin(X, y, C=0.5)
    A = points.matrix()
    x = svm_to_lasso(points).to_simplex(solver(points))
    best = reference_simplex(A)
    assert squared(A @ x) == pytest.approx(squared(A @ best), rel=1e-8)
    np.testing.assert_allclose(x, best, atol=1e-5)


@pytest.mark.skipif(importlib.util.find_spec("celer") is None, reason="celer is not installed")
def test_celer_solves_an_svm():
    from celer import Lasso as Celer

    X, y = two_classes(n=8, p=2)
    points = soft_margin(X, y, C=0.5)
    lasso = svm_to_lasso(points)
    A = np.asfortranarray(lasso.A)

    def solve(penalty):
        return Celer(alpha=penalty, fit_intercept=False, tol=1e-14).fit(A, lasso.b).coef_

    x = lasso.to_simplex(by_radius(solve, float(np.abs(A.T @ lasso.b).max()) / len(lasso.b)))
    explicit = points.matrix()
    best = squared(explicit @ reference_simplex(explicit))
    assert squared(explicit @ x) == pytest.approx(best, rel=1e-8)


def test_the_sparsity_of_the_lasso_is_the_number_of_support_vectors():
    for seed in range(5):
        X, y = two_classes(n=10, p=2, seed=seed)
        X = X + 2 * y[:, None]
        points = soft_margin(X, y, C=10.0)
        x = svm_by_lars(points)
        model = anynorm.LinearSVC(C=10.0, loss="squared_hinge", fit_intercept=False, tol=1e-12)
        scores = y * model.fit(X, y).decision_function(X)
        assert np.count_nonzero(x > 1e-7) == np.count_nonzero(scores < 1 - 1e-7) < 10


def lasso_problem(d=15, n=20, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, n))
    return A, A[:, :3] @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=d), 2.0


def lasso_by_one_class_svm(points, kernel):
    """libsvm with nu n = 1, whose dual variables are those of the simplex."""
    X = points.columns(range(points.n)).T if kernel == "linear" else points.kernel()
    model = OneClassSVM(kernel=kernel, nu=1 / points.n, tol=1e-10).fit(X)
    z = np.zeros(points.n)
    z[model.support_] = model.dual_coef_[0]
    return z / z.sum()


def lasso_by_classification(model, points):
    """A classifier that separates the points from the origin: w is the nearest point, scaled."""
    X = np.vstack([points.columns(range(points.n)).T, np.zeros((1, points.d))])
    y = np.append(np.ones(points.n), -1.0)
    model.fit(X, y)
    a = np.zeros(points.n + 1)
    a[model.support_] = model.dual_coef_[0]
    return np.maximum(a[:-1], 0) / np.maximum(a[:-1], 0).sum()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "solve",
    [
        lambda points: lasso_by_one_class_svm(points, "linear"),
        lambda points: lasso_by_one_class_svm(points, "precomputed"),
        lambda points: lasso_by_classification(LibSVC(kernel="linear", C=1e6, tol=1e-9), points),
        lambda points: lasso_by_classification(
            anynorm.SVC(C=1e9, slack="squared_l2", kernel="linear", tol=1e-9), points
        ),
        lambda points: lasso_by_classification(
            anynorm.SVC(C=1e6, slack="l1", kernel="linear", tol=1e-8), points
        ),
    ],
    ids=["OneClassSVM", "OneClassSVM, kernel", "libsvm SVC", "our squared slack", "our l1 slack"],
)
def test_svm_solvers_solve_a_lasso(solve, seed):
    A, b, radius = lasso_problem(seed=seed)
    points = lasso_to_svm(A, b, radius)
    x = points.to_lasso(solve(points))
    best = reference_lasso(A, b, radius)
    assert squared(A @ x - b) == pytest.approx(squared(A @ best - b), rel=1e-6)
    np.testing.assert_allclose(x, best, atol=1e-3)
    assert np.abs(x).sum() <= radius * (1 + 1e-9)


# ----------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("A", "b", "message"),
    [
        ([[1.0, np.nan]], [1.0], "A has NaN"),
        (sp.csc_array([[1.0, np.inf]]), [1.0], "A has NaN or infinite"),
        ([[1.0]], [np.inf], "b has NaN or infinite"),
        ([[1.0]], [1.0, 2.0], "b has shape"),
        ([1.0], [1.0], "A must be a matrix"),
        (np.empty((2, 0)), [1.0, 1.0], "A has no columns"),
        ([["a"]], [1.0], "A must hold numbers"),
        ([[1j]], [1.0], "A is complex"),
    ],
)
def test_a_lasso_that_cannot_be_used_is_named(A, b, message):
    with pytest.raises(ValueError, match=message):
        lasso_to_svm(A, b)


def test_points_that_cannot_be_used_are_named():
    with pytest.raises(ValueError, match="point 1 is zero"):
        svm_to_lasso([[1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match=r"w does not separate .* point 1"):
        svm_to_lasso([[1.0, -1.0]], w=[1.0])
    with pytest.raises(ValueError, match="w is zero"):
        svm_to_lasso([[1.0, 1.0]], w=[0.0])
    with pytest.raises(ValueError, match="w has shape"):
        svm_to_lasso([[1.0, 1.0]], w=[1.0, 2.0])
    with pytest.raises(ValueError, match="A has NaN"):
        svm_to_lasso([[np.nan]])


@pytest.mark.parametrize(("size", "size_of_b"), [(1e-170, 1e-170), (1e200, 1.0), (1.0, 1e-300)])
def test_the_scale_of_a_lasso_does_not_matter(size, size_of_b):
    """Squares that underflow made every point the best one, certified."""
    rng = np.random.default_rng(3)
    A, b = rng.normal(size=(25, 40)), rng.normal(size=25)
    expected = lasso_to_svm(A, b, 1.5)
    expected = expected.to_lasso(min_norm_point(expected).x)
    points = lasso_to_svm(A * size, b * size_of_b, 1.5 * size_of_b / size)
    solution = min_norm_point(points)
    assert solution.certificate.gap <= 1e-9
    found = points.to_lasso(solution.x) * size / size_of_b
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("radius", [0, -1.0, np.nan, np.inf, "1", None, True, 10**400, [1.0, 2.0]])
def test_a_radius_that_cannot_be_used_is_named(radius):
    with pytest.raises(ValueError, match="radius must be a positive, finite number; got"):
        lasso_to_svm(np.eye(2), [1.0, 0.0], radius)


def test_a_matrix_that_cannot_be_used_is_named():
    for A, message in (
        (np.empty((0, 2)), "A has no rows"),
        (np.empty((2, 0)), "A has no columns"),
        (sp.csc_array(np.eye(2) * 1j), "A must hold real numbers; got the type complex128"),
        (np.eye(2) * 1j, "A is complex"),
    ):
        with pytest.raises(ValueError, match=message):
            lasso_to_svm(A, np.ones(A.shape[0]), 1.0)
        with pytest.raises(ValueError, match=message):
            min_norm_point(A)


def test_a_broken_sparse_matrix_is_refused_rather_than_read():
    broken = sp.csc_array(np.eye(3))
    broken.indices[1] = 99
    with pytest.raises(ValueError, match=r"A is a broken sparse matrix.*outside 0\.\.2"):
        lasso_to_svm(broken, np.ones(3))


def test_a_soft_margin_that_cannot_be_used_is_named():
    X, y = two_classes()
    for C in (0, -1.0, np.nan):
        with pytest.raises(ValueError, match="C must be a positive"):
            soft_margin(X, y, C)
    with pytest.raises(ValueError, match="offset must be a positive"):
        soft_margin(X, y, offset=0.0)
    with pytest.raises(ValueError, match="y must have two labels; got 3"):
        soft_margin(X, np.arange(12) % 3)
    with pytest.raises(ValueError, match="y has shape"):
        soft_margin(X, y[1:])
    with pytest.raises(ValueError, match="X has no rows"):
        soft_margin(np.empty((0, 2)), [])


def test_maps_refuse_points_outside_the_feasible_sets():
    points = lasso_to_svm(np.eye(2), [1.0, 0.0])
    with pytest.raises(ValueError, match="more than the radius"):
        points.to_simplex([1.0, 1.0])
    for z in ([0.5, 0.5, 0.5, 0.0], [2.0, -1.0, 0.0, 0.0]):
        with pytest.raises(ValueError, match="must lie in the simplex"):
            points.to_lasso(z)
    lasso = svm_to_lasso(np.eye(2), w=[1.0, 1.0])
    with pytest.raises(ValueError, match="x is zero"):
        lasso.to_simplex([0.0, 0.0])
    with pytest.raises(ValueError, match="more than the radius"):
        lasso.to_simplex([1.0, 1.0])


def test_degenerate_columns_are_ordinary():
    """A zero column, two equal ones, a single one: the maps keep the values."""
    b = np.array([1.0, 2.0])
    for A in ([[0.0], [0.0]], [[1.0, 1.0], [2.0, 2.0]], [[1.0], [2.0]]):
        points = lasso_to_svm(A, b, 1.0)
        z = reference_simplex(points.columns(range(points.n)))
        best = reference_lasso(np.array(A), b, 1.0)
        x = points.to_lasso(z)
        assert squared(A @ x - b) == pytest.approx(squared(A @ best - b), abs=1e-6)
    one = svm_to_lasso([[1.0, 1.0], [2.0, 2.0]])
    assert one.sigma == pytest.approx(np.sqrt(5))
    assert squared(one.residual([0.5, 0.5])) == pytest.approx(5)


def test_entries_stored_twice_are_summed():
    A = sp.csc_array((np.array([1.0, 1.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    assert lasso_to_svm(A, [0.0]).norms_squared() == pytest.approx([4.0, 4.0])
