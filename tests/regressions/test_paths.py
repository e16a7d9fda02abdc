"""Paths that broke down, or ended where they should have gone on."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from anynorm import sparse_svm_path
from anynorm.design.limits import VERIFIED
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.solvers.one_norm import exact_path
from tests.references import solve_linear_program


def flat_kernel(n, gamma):
    """Columns of a wide Gaussian kernel: all of them nearly constant, and nearly the same."""
    rng = np.random.default_rng(0)
    X = (rng.random((n, 40)) < rng.uniform(0.01, 0.5, 40)).astype(float)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-3)
    y = np.where(X[:, :5].sum(axis=1) + rng.normal(size=n) > 0.5, 1.0, -1.0)
    return rbf_kernel(X, gamma=gamma), y


@pytest.mark.parametrize(("n", "gamma"), [(200, 1e-4), (400, 1e-3)])
def test_nearly_constant_columns_have_an_exact_path(n, gamma):
    K, y = flat_kernel(n, gamma)
    path = sparse_svm_path(K, y, max_features=60)
    assert path.gaps.max() <= VERIFIED
    for s in path.s[[1, len(path.s) // 2, -1]]:
        assert path.certificate_at(s).gap <= VERIFIED


def correlated_noise(n, p, spread, seed=0):
    """Columns of unit spread whose directions differ in size by 10**spread; random labels."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.standard_normal((p, p)))[0]
    X = (rng.standard_normal((n, p)) * np.logspace(0, -spread, p)) @ turned
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(rng.random(n) < 0.5, 1.0, -1.0)


@pytest.fixture
def attempts(monkeypatch):
    """The attempts at paths that are made from now on."""
    made = []
    follow = exact_path._Attempt.follow

    def counted(attempt, *limits):
        made.append(attempt)
        return follow(attempt, *limits)

    monkeypatch.setattr(exact_path._Attempt, "follow", counted)
    return made


def test_path_whose_end_rounding_blurs_is_followed_once(attempts):
    # Madelon was followed three times, 39 s: its last eight joints of 17,206 had gaps of 5e-9.
    X, y = correlated_noise(200, 100, 2.0)
    record = exact_path.follow_path(
        Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X, regulariser="l1")
    )
    assert record.stopped == "end"
    assert VERIFIED < record.gaps.max() < 1e-6
    assert len(attempts) == 1
    for k in (len(record.s) // 2, len(record.s) - 20):
        penalty = record.penalties[k]
        problem = Problem(y=y, C=1.0 / penalty, loss=get_loss("hinge"), X=X, regulariser="l1")
        value = record.s[k] + record.losses[k] / penalty
        assert value == pytest.approx(solve_linear_program(problem), rel=1e-6)


def test_gaps_that_a_centred_attempt_mends_are_mended(attempts):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 30)), np.where(rng.random(200) < 0.5, 1.0, -1.0)
    path = sparse_svm_path(X + 1e3, y)
    assert len(attempts) == 2
    assert path.gaps.max() <= VERIFIED
