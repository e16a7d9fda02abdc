"""The attack itself: it sees lies, computes what it says, and draws the same problems again."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from anynorm import SVC, LinearSVC
from anynorm.problem.solution import Status
from tests.adversarial import exact, known
from tests.adversarial.families import FAMILIES
from tests.adversarial.judge import Claim, complaints
from tests.adversarial.run import attempt, is_clear
from tests.references import norm_expression
from tests.regressions.data import overlapping
from tests.strategies import slacks_for


def honest():
    X, y = overlapping()
    model = LinearSVC().fit(X, y)
    problem = (X, 2.0 * y - 1, 1.0, "hinge", np.ones(len(y)))
    value = exact.linear_value(*problem, model.coef_[0], model.intercept_[0])
    return Claim(model.certificate_, value, lambda: known.linear(*problem))


LIES = {
    "a primal value that is another": {"primal": 0.9},
    "a dual value above the optimum": {"primal": 1.001, "dual": 1.001},
    "a gap above tol": {"dual": 0.9},
    "no number": {"primal": np.nan},
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_seen(lie):
    claim = honest()
    assert complaints(claim) == []
    told = {name: share * getattr(claim.certificate, name) for name, share in LIES[lie].items()}
    forged = replace(claim.certificate, **told)
    if "dual" in told and "primal" in told:  # as of a point that is no better
        claim = replace(claim, primal=exact.Exact(forged.primal))
    assert complaints(replace(claim, certificate=forged))


def test_what_is_not_claimed_is_no_lie():
    claim = honest()
    stopped = replace(claim.certificate, primal=0.0, status=Status.MAX_ITER)
    assert complaints(replace(claim, certificate=stopped)) == []
    assert complaints(replace(claim, definite=False))
    assert complaints(replace(claim, feasible=False))


@pytest.mark.parametrize("slack", [s for s in slacks_for(5) if s.__module__.startswith("anynorm")])
def test_norms_are_what_they_are_defined_as(slack):
    """The values in extended precision against the definitions as convex programmes."""
    rng = np.random.default_rng(0)
    weights = np.array([1.0, 0.0, 2.0, 0.3, 1.0])
    for w in (np.ones(5), weights) if "Mahalanobis" not in repr(slack) else (np.ones(5),):
        v = rng.normal(size=5)
        cost, rules = norm_expression(slack, w, cp.Constant(v))
        least = cp.Problem(cp.Minimize(cost), rules).solve(solver=cp.CLARABEL)
        assert float(exact.norm_value(slack, v, w)) == pytest.approx(least, rel=1e-6)


def test_bare_errors_are_not_clear_ones():
    def raised(function, *given, **more):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - any
            function(*given, **more)
        return is_clear(caught.value)

    X, y = overlapping()
    assert raised(LinearSVC(C=-1.0).fit, X, y)
    assert raised(SVC().fit, X, y[:3])
    assert not raised(np.linalg.inv, np.zeros((2, 2)))
    assert not raised(lambda: 1 // 0)
    assert not raised(np.ones(2).dot, np.ones(3))


@pytest.mark.parametrize("family", FAMILIES)
def test_some_problems_of_each_family(family):
    place = list(FAMILIES).index(family)
    for index in range(place, 6 * len(FAMILIES), len(FAMILIES)):
        outcome = attempt(0, index)
        assert outcome.family == family
        assert outcome.wrong == (), outcome.reproducer(0)
    assert replace(attempt(0, index), seconds=0.0) == replace(outcome, seconds=0.0)
