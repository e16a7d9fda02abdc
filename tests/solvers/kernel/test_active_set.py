"""Small kernel problems come out exact, whatever gap was asked for."""

import numpy as np
import pytest

from anynorm.kernels.gram import Gram
from anynorm.losses import Loss
from anynorm.norms import L1, LInf, SquaredL2, TopK
from anynorm.problem import Problem
from anynorm.solvers.kernel import solve_kernel
from tests.estimators.plain import noisy_classes

SLACKS = [
    (L1(), "inequality"),
    (L1(), "equality"),
    (SquaredL2(), "inequality"),
    (LInf(), "inequality"),
    (LInf(), "equality"),
    (TopK(6), "inequality"),
    (TopK(6.5), "equality"),
    (TopK(100), "inequality"),
]


def problem_of(slack, constraints, seed, C=2.0, weights=None):
    X, y = noisy_classes(n=40, p=3, seed=seed)
    return Problem(
        y=2.0 * y - 1.0,
        C=C,
        loss=Loss.from_slack(slack, constraints),
        gram=Gram.rbf(X, 0.3),
        sample_weight=weights,
    )


@pytest.mark.parametrize("C", [0.05, 2.0, 100.0])
@pytest.mark.parametrize(("slack", "constraints"), SLACKS, ids=str)
def test_a_loose_tolerance_gives_the_same_digits_as_a_tight_one(slack, constraints, C):
    for seed in range(3):
        problem = problem_of(slack, constraints, seed, C)
        loose, tight = solve_kernel(problem, tol=1e-2), solve_kernel(problem, tol=1e-10)
        assert loose.certificate.gap <= 1e-10
        size = max(1.0, np.abs(problem.scores(tight.dual)).max())
        np.testing.assert_allclose(
            problem.scores(loose.dual), problem.scores(tight.dual), atol=1e-6 * size
        )


@pytest.mark.parametrize(("slack", "constraints"), SLACKS, ids=str)
def test_the_optimality_conditions_hold_to_the_last_digits(slack, constraints):
    problem = problem_of(slack, constraints, seed=5, weights=np.arange(40.0) % 3)
    solution = solve_kernel(problem, tol=1e-3)
    assert solution.certificate.gap <= 1e-11
    assert abs(problem.y @ solution.dual) <= 1e-12 * np.abs(solution.dual).sum()
    norm = problem.loss.slack.weighted(problem.sample_weight)
    if not isinstance(slack, SquaredL2):
        assert norm.dual_value(solution.dual) <= problem.C * (1 + 1e-12)
    assert not solution.dual[problem.sample_weight == 0].any()
