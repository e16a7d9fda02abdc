"""The proximal form of the box losses: compiled sums are those of the vectors."""

import numpy as np
import pytest

from anynorm.design.threads import Threads
from anynorm.solvers.frame.proximal_box import ProximalBox


def box_and_rows(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    upper = rng.uniform(0.0, 2.0, n)
    lower = np.where(rng.random(n) < 0.5, 0.0, -upper)
    center = rng.uniform(lower, upper)
    bounds = center, rng.uniform(0.1, 3.0, n), lower, upper
    y, scores = np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.normal(size=n)
    return bounds, y, scores, rng.normal(size=n)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_compiled_sums_are_those_of_the_vectors(n_jobs):
    bounds, y, scores, change = box_and_rows()
    plain, compiled = ProximalBox(*bounds), ProximalBox(*bounds, compiled=True)
    residual = 1.0 - y * scores
    dual = plain.dual(residual)
    with Threads(n_jobs):
        assert compiled.totals(y, scores, 0.3) == pytest.approx(plain.totals(y, scores, 0.3))
        found = compiled.slope(residual, change, 0.7)
        assert found == pytest.approx(plain.slope(residual, change, 0.7))
        found = compiled.cost_and_gap(residual, dual)
        assert found == pytest.approx(plain.cost_and_gap(residual, dual))
        for value, right in zip(
            compiled.terms(y, scores, 0.3), plain.terms(y, scores, 0.3), strict=True
        ):
            np.testing.assert_allclose(value, right, rtol=1e-12, atol=1e-15)
        for value, right in zip(compiled.curved(residual), plain.curved(residual), strict=True):
            np.testing.assert_array_equal(value, right)


def test_the_derivative_is_that_of_the_conjugate():
    """h(r) = max_a a r - 1/(2 sigma) (a - center)^2 over the bounds, on a fine grid of a."""
    box = ProximalBox(*(np.array([value]) for value in (0.2, 2.0, -0.5, 1.0)))
    a = np.linspace(-0.5, 1.0, 200_001)
    for r in (-1.0, 0.1, 3.0):
        best = a[np.argmax(a * r - (a - 0.2) ** 2 / 4.0)]
        assert box.dual(np.array([r]))[0] == pytest.approx(best, abs=1e-5)
