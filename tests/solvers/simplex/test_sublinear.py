"""The sublinear SVM: margins by reading everything, beside what the solver has read."""

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm import min_norm_point, sublinear_svm
from anynorm.problem.solution import Status
from anynorm.reductions import lasso_to_svm


class Planted:
    """Unit points ``m u + sqrt(1 - m^2) z_j`` with signs for entries, and a record of the reads.

    The z_j are orthogonal to u.  With `few` all but so many of them are one and the same, and the
    few its opposite: then a mean of the points does not separate.
    """

    def __init__(self, size, seed, margin=0.5, few=0):
        rng = np.random.default_rng(seed)
        self.d = self.n = size
        self.half, self.m, self.reads = size // 2, margin, 0
        self.u = rng.choice([-1.0, 1.0], self.half) / np.sqrt(self.half)
        shape = (size - self.half, 1 if few else size)
        self.signs = np.broadcast_to(rng.choice(np.array([-1, 1], np.int8), shape), shape)
        self.turned = np.ones(size, np.int8)
        self.turned[rng.choice(size, few, replace=False)] = -1
        self.length = np.sqrt((1 - margin**2) / (size - self.half))

    def column(self, j):
        self.reads += self.d
        z = self.signs[:, j % self.signs.shape[1]] * self.turned[j]
        return np.concatenate([self.m * self.u, self.length * z])

    def entry(self, i, j):
        self.reads += np.size(j)
        if i < self.half:
            return np.full(self.n, self.m * self.u[i])
        return self.length * (self.signs[i - self.half] * self.turned).astype(float)

    def margin(self, w):
        z = w[self.half :] @ self.signs * self.turned
        return self.m * float(self.u @ w[: self.half]) + self.length * float(z.min())


@pytest.mark.parametrize("few", [0, 1, 40])
def test_the_margin_is_met_by_reading_a_part(few):
    met = 0
    for seed in range(20):
        points = Planted(3000, seed, few=few)
        found = sublinear_svm(points, eps=0.2, random_state=seed)
        met += points.margin(found.direction) >= 0.5 - 0.2
        assert found.entries_read == points.reads < 0.5 * points.n * points.d
        assert found.value >= points.margin(found.direction)
        assert found.margin <= found.value
        assert abs(found.margin - points.margin(found.direction)) < 0.25
    assert met >= 19


def test_the_share_read_falls_as_the_data_grow():
    shares = []
    for size in (1000, 2000, 4000, 6000):
        found = sublinear_svm(Planted(size, 0, few=1), eps=0.2)
        shares.append(found.entries_read / size**2)
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.3


def test_a_certificate_is_counted_apart():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 500)) + 0.4
    A /= np.linalg.norm(A, axis=0)
    plain = sublinear_svm(A, eps=0.3, max_iter=40)
    found = sublinear_svm(A, eps=0.3, max_iter=40, certify=True)
    assert plain.certificate is None
    assert plain.entries_certified == 0
    assert found.entries_read == plain.entries_read == 40 * 60 + 39 * 500
    assert found.entries_certified == A.size
    assert found.margin == pytest.approx(float((A.T @ found.direction).min()), abs=1e-12)
    assert found.value == pytest.approx(float(np.linalg.norm(A @ found.x)), rel=1e-9)
    assert found.certificate.primal == pytest.approx(found.value**2)
    best = np.sqrt(min_norm_point(A).certificate.primal)
    assert found.margin <= best <= found.value


@pytest.mark.parametrize("seed", range(5))
def test_small_data_are_read_once_and_no_more(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(5, 30)) + 1.0
    A /= np.linalg.norm(A, axis=0)
    found = sublinear_svm(A, eps=0.05, certify=True)
    best = np.sqrt(min_norm_point(A).certificate.primal)
    assert found.entries_read == A.size
    assert found.margin >= best - 0.05
    proved = found.value - found.margin <= 0.05
    assert (found.certificate.status is Status.OPTIMAL) == proved


def test_dense_sparse_and_lazy_points_are_the_same():
    A = sp.random(80, 300, density=0.3, random_state=0).toarray() + 0.05
    A /= np.linalg.norm(A, axis=0)
    answers = [
        sublinear_svm(kind, eps=0.3, max_iter=20, certify=True)
        for kind in (A, A.astype(np.float32), sp.csr_array(A), sp.csc_array(A), A.tolist())
    ]
    for other in answers[1:]:
        np.testing.assert_allclose(other.direction, answers[0].direction, atol=1e-5)
        assert other.entries_read == answers[0].entries_read
        assert other.margin == pytest.approx(answers[0].margin, abs=1e-5)


def test_the_seed_decides():
    points = Planted(1000, 0)
    one, two = (sublinear_svm(points, eps=0.5, random_state=seed) for seed in (1, 1))
    other = sublinear_svm(points, eps=0.5, random_state=2)
    assert np.array_equal(one.direction, two.direction)
    assert not np.array_equal(one.direction, other.direction)


def test_points_around_the_origin_have_no_margin():
    A = np.hstack([np.eye(3), -np.eye(3)])
    found = sublinear_svm(A, eps=0.1, certify=True)
    assert found.margin <= 1e-12
    assert found.value <= 0.1


def test_a_single_point():
    found = sublinear_svm([[0.6], [0.8]], eps=0.1, certify=True)
    np.testing.assert_allclose(found.direction, [0.6, 0.8])
    assert found.margin == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_lasso_in_sublinear_time(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3000, 1500)) / np.sqrt(3000)
    x = np.zeros(1500)
    x[:3] = 0.5, -0.3, 0.2
    b = A @ x + 0.5 * rng.normal(size=3000) / np.sqrt(3000)
    points = lasso_to_svm(A, b, radius=1.0)
    scale = 1.2 + float(np.linalg.norm(b))
    found = sublinear_svm(points, eps=0.2, scale=scale, random_state=seed)
    coef = points.to_lasso(found.x)
    least = float(np.linalg.norm(A @ x - b))  # of a feasible point
    reached = float(np.linalg.norm(A @ coef - b))
    assert np.abs(coef).sum() <= 1 + 1e-9
    assert reached == pytest.approx(found.value, rel=1e-9)
    assert reached <= least + 0.2 * scale
    assert found.entries_read < 0.6 * points.d * points.n


@pytest.mark.parametrize("eps", [0, 1, -0.1, 1.5, np.nan, "0.1", None, True])
def test_eps_outside_its_range(eps):
    with pytest.raises(ValueError, match="eps must be a number between 0 and 1"):
        sublinear_svm(np.eye(3), eps=eps)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.ones(3), "A must be a matrix"),
        (np.ones((0, 3)), "rows and columns"),
        (np.ones((3, 0)), "rows and columns"),
        (np.array([[np.nan, 0.1], [0.1, 0.1]]), "NaN or infinite"),
        (np.array([[np.inf, 0.1], [0.1, 0.1]]), "NaN or infinite"),
        (np.array([["a", "b"]]), "real numbers"),
        (2 * np.eye(3), "length 2, more than scale"),
    ],
)
def test_bad_points(A, message):
    with pytest.raises(ValueError, match=message):
        sublinear_svm(A, eps=0.5)


def test_bad_entries_are_found_when_they_are_read():
    A = np.full((400, 400), 0.01)
    A[:, :] = np.where(np.arange(400) % 2, np.nan, A)
    with pytest.raises(ValueError, match="NaN or infinite"):
        sublinear_svm(A, eps=0.5, max_iter=20)


def test_bad_options():
    with pytest.raises(ValueError, match="scale must be a positive"):
        sublinear_svm(np.eye(3), eps=0.5, scale=0)
    with pytest.raises(ValueError, match="max_iter must be at least 1"):
        sublinear_svm(np.eye(3), eps=0.5, max_iter=0)
