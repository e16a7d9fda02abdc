"""Pulls and candidates: NumPy's for few variables are those of the compiled loops for many."""

import numpy as np
import pytest

from anynorm.solvers.kernel.candidates import (
    FEW,
    GROUP,
    GROUPS,
    BoxProgram,
    Candidates,
    ManyCandidates,
    candidates_of,
)


def program(m, budget, diagonal, rng):
    row = rng.permutation(m) if not diagonal else np.arange(m)
    sign = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    return BoxProgram(
        sign,
        row,
        np.zeros(m),
        rng.random(m),
        rng.random(m),
        rng.random(m) if diagonal else None,
        budget,
    )


@pytest.mark.parametrize("budget", [np.inf, 3.0])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("m", [1, 7, 300, GROUP * GROUPS + 5])
def test_numpy_and_compiled_loops_find_the_same(m, diagonal, budget):
    rng = np.random.default_rng(m)
    box = program(m, budget, diagonal, rng)
    value = np.clip(rng.random(m) - 0.3, box.lower, box.upper)
    scores, beta = rng.standard_normal(m), rng.standard_normal(m)
    few, many = Candidates(box), ManyCandidates(box)
    ends = np.array([one.look(scores, beta, value) for one in (few, many)])
    np.testing.assert_allclose(few.pull, many.pull, rtol=1e-14, atol=1e-15)
    assert np.array_equal(np.isfinite(few.keys), np.isfinite(many.keys))
    if np.isfinite(budget):
        np.testing.assert_allclose(*ends, rtol=1e-14, atol=1e-15)
    else:  # signs do not matter
        np.testing.assert_allclose(*(ends.reshape(2, 2, 2).max(axis=2)), rtol=1e-14, atol=1e-15)
    for among in (0.0, 1.0, -1.0):
        assert set(few.largest(5, among)) == set(many.largest(5, among))
    few.find_pulls(beta, scores)
    many.find_pulls(beta, scores)
    np.testing.assert_allclose(few.pull, many.pull, rtol=1e-14, atol=1e-15)


def test_the_number_of_variables_decides():
    for m, kind in ((FEW, Candidates), (FEW + 1, ManyCandidates)):
        box = program(m, np.inf, False, np.random.default_rng(0))
        assert type(candidates_of(box)) is kind
