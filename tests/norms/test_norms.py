"""Norms: axioms, duality, weights, projections, and their life as scikit-learn parameters."""

import copy
import pickle

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV

from anynorm import norms
from anynorm.norms import K12, L1, L2, LInf, Lp, Mahalanobis, SquaredL2, TopK, TopK2
from tests.references import norm_expression
from tests.strategies import (
    WEIGHTED_NORMS,
    Chained,
    Stretched,
    mixing_matrix,
    norms_for,
    vectors,
    weighted_norms,
    weights_for,
)

quick = settings(max_examples=150, deadline=None)


@st.composite
def norm_and_vectors(draw, count):
    n = draw(st.integers(1, 6))
    return draw(weighted_norms(n)), [draw(vectors(n=n)) for _ in range(count)]


def present(norm, v):
    """v with 0 in the rows that the norm's weights leave out."""
    weights = getattr(norm, "weights", None)
    return v if weights is None else np.where(np.asarray(weights) > 0, v, 0.0)


@given(norm_and_vectors(2), st.floats(-5, 5))
@quick
def test_norm_axioms(case, factor):
    norm, (u, v) = case
    size = norm.value(u) + norm.value(v)
    assert norm.value(u) >= 0
    assert norm.value(np.zeros(len(u))) == 0
    assert norm.value(u) > 0 or not present(norm, u).any()
    assert norm.value(factor * u) == pytest.approx(abs(factor) * norm.value(u), rel=1e-9)
    assert norm.value(u + v) <= size * (1 + 1e-12)
    if norm.monotone:
        assert norm.value(u) <= norm.value(np.abs(u) + np.abs(v)) * (1 + 1e-12)


@given(norm_and_vectors(2))
@quick
def test_dual_value_bounds_every_product_and_is_attained(case):
    """N*(a) >= a'v / N(v) for every v, with equality at the maximiser."""
    norm, (a, v) = case
    a = present(norm, a)
    assert abs(a @ v) <= norm.dual_value(a) * norm.value(v) * (1 + 1e-11)
    best = norm.maximiser(a)
    assert norm.value(best) <= 1 + 1e-11
    assert a @ best == pytest.approx(norm.dual_value(a), rel=1e-10, abs=1e-300)


@given(norm_and_vectors(1))
@quick
def test_subgradient_is_a_dual_unit_vector_that_attains_the_value(case):
    norm, (v,) = case
    a = norm.subgradient(v)
    if a is None:
        assert isinstance(norm, Stretched | Chained)
    else:
        assert norm.dual_value(a) <= 1 + 1e-10
        assert a @ v == pytest.approx(norm.value(v), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("norm", [TopK(2), TopK(2.6), TopK2(2), TopK2(3.3), K12(2), K12(0.7)])
def test_interpolated_norms_are_the_least_split(norm):
    """Value against the K-functional's definition as a convex problem, with weights too."""
    rng = np.random.default_rng(0)
    for w in (np.ones(5), np.array([1.0, 0.0, 2.5, 0.5, 1.0])):
        for v in rng.normal(size=(4, 5)):
            size, rules = norm_expression(norm, w, cp.Constant(v))
            least = cp.Problem(cp.Minimize(size), rules).solve(solver=cp.CLARABEL)
            assert norm.weighted(w).value(v) == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("norm", norms_for(4), ids=repr)
def test_dual_value_against_numerical_maximisation(norm, weighted):
    """max a'v over N(v) <= 1, with the norm written as a convex expression."""
    w = np.array([1.0, 2.5, 0.5, 3.0]) if weighted else np.ones(4)
    if weighted and norm not in WEIGHTED_NORMS:
        return
    for a in np.random.default_rng(1).normal(size=(3, 4)):
        v = cp.Variable(4)
        size, rules = norm_expression(norm, w, v)
        best = cp.Problem(cp.Maximize(a @ v), [size <= 1, *rules]).solve(solver=cp.CLARABEL)
        ours = norm.weighted(w).dual_value(a) if weighted else norm.dual_value(a)
        assert ours == pytest.approx(best, rel=1e-6)


@given(vectors(scaled=False), st.integers(1, 7))
@quick
def test_theorem_1_of_the_budget_paper(v, budget):
    """The B largest entries' p-norm <= K(p, inf, B^(1/p)) <= the same + B^(1/p) |v_(B)|."""
    budget = min(budget, len(v))
    largest = np.sort(np.abs(v))[::-1][:budget]
    assert TopK(budget).value(v) == pytest.approx(largest.sum(), rel=1e-12)
    lower = np.linalg.norm(largest)
    value = TopK2(budget).value(v)
    assert lower * (1 - 1e-12) <= value <= lower + np.sqrt(budget) * largest[-1] + 1e-12


def test_top_k2_is_not_the_2_norm_of_the_largest():
    """On this case the two differ, as the paper's bounds allow."""
    v = np.array([3.0, 2.0, 1.0])
    assert np.linalg.norm(v[:2]) == pytest.approx(3.606, abs=1e-3)
    assert TopK2(2).value(v) == pytest.approx(3.645, abs=1e-3)


def test_interpolated_norms_meet_their_ends():
    """K(1,inf,1) = max, K(1,inf,n) = sum; K(2,inf) and K(1,2) likewise."""
    v = np.array([3.0, -1.0, 2.0, 2.0])
    assert TopK(1).value(v) == LInf().value(v) == 3.0
    assert TopK(4).value(v) == TopK(99).value(v) == L1().value(v)
    assert TopK2(1).value(v) == pytest.approx(3.0)
    assert TopK2(4).value(v) == pytest.approx(L2().value(v))
    assert K12(4).value(v) == pytest.approx(L1().value(v))
    assert K12(1).value(v) == pytest.approx(L2().value(v))
    assert Lp(1).value(v) == L1().value(v)
    assert Lp(2).value(v) == pytest.approx(L2().value(v))
    assert Lp(200).value(v) == pytest.approx(LInf().value(v), rel=0.01)


@st.composite
def repeated_rows(draw):
    n = draw(st.integers(1, 5))
    return draw(vectors(n=n)), draw(weights_for(n, whole=True))


@pytest.mark.parametrize("norm", [*WEIGHTED_NORMS, SquaredL2()], ids=repr)
@given(repeated_rows())
@settings(max_examples=40, deadline=None)
def test_weights_equal_repetition(norm, case):
    """The value with integer weights is that of the repeated rows; so is the dual's."""
    v, w = case
    rows = np.repeat(np.arange(len(v)), w.astype(int))
    weighted = norm.weighted(w)
    assert weighted.value(v) == pytest.approx(norm.value(v[rows]), rel=1e-11)
    if isinstance(norm, SquaredL2):
        return
    split = (v / np.where(w > 0, w, 1.0))[rows]  # a multiplier shared by the copies of a row
    a = np.where(w > 0, v, 0.0)
    assert weighted.dual_value(a) == pytest.approx(norm.dual_value(split), rel=1e-11)


@pytest.mark.parametrize("norm", WEIGHTED_NORMS, ids=repr)
def test_zero_weight_is_no_row(norm):
    weighted = norm.weighted([1.0, 0.0, 2.0])
    assert weighted.value([1.0, 1e9, 3.0]) == weighted.value([1.0, 0.0, 3.0])
    assert np.isfinite(weighted.dual_value([1.0, 0.0, 3.0]))
    assert weighted.dual_value([1.0, 1e-9, 3.0]) == np.inf
    assert weighted.maximiser([1.0, 5.0, 3.0])[1] == 0
    assert weighted.subgradient([1.0, 5.0, 3.0])[1] == 0


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1.0, -1.0], "negative"), ([0.0, 0.0], "all zero"), ([1.0, np.nan], "finite")],
)
def test_bad_weights_are_named(weights, message):
    with pytest.raises(ValueError, match=message):
        L1().weighted(weights)


@pytest.mark.parametrize("norm", [Mahalanobis(np.eye(2)), Stretched(), Chained()], ids=repr)
def test_a_norm_without_weights_says_so(norm):
    with pytest.raises(ValueError, match=f"{type(norm).__name__}: it has no weighted form"):
        norm.weighted([1.0, 2.0])


@st.composite
def projection_case(draw):
    n = draw(st.integers(1, 6))
    norm = draw(weighted_norms(n))
    return norm, draw(vectors(n=n, scaled=False)), draw(st.sampled_from([0.1, 1.0, 3.0]))


@given(projection_case())
@settings(max_examples=150, deadline=None)
def test_project_dual_is_the_nearest_point(case):
    """Feasible, and no maximiser of the residual does better: (a - x)'z <= (a - x)'x on the ball.

    The support function of the ball N* <= radius in a direction d is radius * N(d).
    """
    norm, a, radius = case
    x = norm.project_dual(a, radius)
    if x is None:
        assert isinstance(norm, Lp | Stretched | Chained)
        return
    size = 1 + np.abs(a).max()
    assert norm.dual_value(x) <= radius * (1 + 1e-9)
    left = present(norm, a - x)
    assert radius * norm.value(left) - left @ x <= 1e-7 * size**2
    if norm.dual_value(a) <= radius:
        assert np.allclose(x, a, atol=1e-12 * size)


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e12, 1e200])
@pytest.mark.parametrize("norm", norms_for(4), ids=repr)
def test_extreme_scales_neither_overflow_nor_vanish(norm, scale):
    v = np.array([1.0, -2.0, 0.5, 2.0])
    if isinstance(norm, Stretched):  # squares without care, as a user may
        scale = scale**0.5
    assert norm.value(scale * v) == pytest.approx(scale * norm.value(v), rel=1e-9)
    assert norm.dual_value(scale * v) == pytest.approx(scale * norm.dual_value(v), rel=1e-9)


def test_mahalanobis_rejects_what_is_no_norm():
    for M, message in (
        (np.ones((2, 3)), "M must be a square"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "M must be symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "M must be positive definite"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "M must be a square matrix of finite"),
    ):
        with pytest.raises(ValueError, match=message):
            Mahalanobis(M)
    with pytest.raises(ValueError, match="3 rows"):
        Mahalanobis(np.eye(3)).value([1.0, 2.0])


def row_kernel(X):
    return np.eye(len(X)) + 0.1 * X @ X.T


def test_mahalanobis_of_the_data_is_resolved_for_the_rows_at_hand():
    X = np.arange(6.0).reshape(3, 2)
    norm = Mahalanobis(row_kernel)
    assert norm.resolve(X) == Mahalanobis(row_kernel(X))
    assert norm.resolve(X[:2]).value([1.0, 1.0]) == pytest.approx(
        np.sqrt(row_kernel(X[:2]).sum()), rel=1e-12
    )
    assert pickle.loads(pickle.dumps(norm)) == norm
    with pytest.raises(ValueError, match="resolve"):
        norm.value([1.0, 1.0, 1.0])


def test_diagonal_mahalanobis_is_monotone():
    assert Mahalanobis(np.diag([1.0, 3.0])).monotone
    assert not Mahalanobis(mixing_matrix(3)).monotone


@pytest.mark.parametrize("norm", [Mahalanobis(mixing_matrix(5)), Chained()], ids=repr)
def test_cheapest_slacks_above_agree_with_a_convex_solver(norm):
    """For norms that are not monotone: min N(xi), xi >= r_+, and min N*(e), e >= a."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        r = rng.normal(size=5)
        xi, e = cp.Variable(5), cp.Variable(5)
        if isinstance(norm, Mahalanobis):
            factor = np.linalg.cholesky(norm.M)
            value = cp.norm(factor.T @ xi, 2)
            dual = cp.norm(np.linalg.inv(factor) @ e, 2)
        else:
            value = norm.expression(xi)
            dual = cp.norm(np.linalg.inv(norm._matrix(5)).T @ e, "inf")
        least = cp.Problem(cp.Minimize(value), [xi >= np.maximum(r, 0)]).solve(solver=cp.CLARABEL)
        least_dual = cp.Problem(cp.Minimize(dual), [e >= np.abs(r)]).solve(solver=cp.CLARABEL)
        ours, ours_dual = norm.cheapest_above(r), norm.cheapest_dual_above(np.abs(r))
        assert np.all(ours >= np.maximum(r, 0))
        assert np.all(ours_dual >= np.abs(r))
        assert norm.value(ours) == pytest.approx(least, rel=1e-6)
        assert norm.dual_value(ours_dual) == pytest.approx(least_dual, rel=1e-6)
        assert norm.value(ours) <= norm.value(np.maximum(r, 0)) * (1 + 1e-12)


ALL = [*norms_for(3), SquaredL2(), TopK(2).weighted(np.array([1.0, 0.5, 1 / 3])), TopK(np.int64(2))]


@pytest.mark.parametrize("norm", ALL, ids=lambda norm: type(norm).__name__)
def test_identity_repr_pickle_and_clone(norm):
    names = {**vars(np), **vars(norms), "Stretched": Stretched, "Chained": Chained}
    for twin in (
        eval(repr(norm), names),
        pickle.loads(pickle.dumps(norm)),
        copy.deepcopy(norm),
        clone(norm),
    ):
        assert twin is not norm
        assert twin == norm
        assert hash(twin) == hash(norm)
        assert repr(twin) == repr(norm)
    assert len({norm, clone(norm)}) == 1
    assert norm != object()


def test_parameters_tell_norms_apart():
    assert TopK(2) != TopK(3)
    assert TopK(2) != TopK2(2)
    assert TopK(2) == TopK(2.0)
    assert TopK(2).weighted([1.0, 2.0]) != TopK(2)
    assert Mahalanobis(np.eye(2)) != Mahalanobis(2 * np.eye(2))


def test_norms_are_immutable_but_for_set_params():
    norm = TopK(2)
    with pytest.raises(AttributeError, match="immutable"):
        norm.k = 3
    with pytest.raises(AttributeError, match="immutable"):
        norm.extra = 1
    with pytest.raises(AttributeError, match="immutable"):
        del norm.k
    assert norm.set_params(k=3) is norm
    assert norm == TopK(3)
    assert norm.value([1.0, 1.0, 1.0, 1.0]) == 3.0
    with pytest.raises(ValueError, match="no parameter 'p'"):
        norm.set_params(p=1)
    with pytest.raises(ValueError, match="k must be"):
        norm.set_params(k=-1)
    assert norm == TopK(3)
    with pytest.raises(AttributeError, match="immutable"):
        norm.k = 3


@pytest.mark.parametrize("bad", [0, -1, np.nan, np.inf, "2", None, [1]])
def test_bad_parameters_are_named(bad):
    for make, name in ((TopK, "k"), (TopK2, "k"), (K12, "r"), (Lp, "p")):
        with pytest.raises(ValueError, match=f"{name} must be"):
            make(bad)


def test_names_of_parameter_free_norms():
    assert [norms.get_norm(name) for name in ("l1", "l2", "linf", "squared_l2")] == [
        L1(),
        L2(),
        LInf(),
        SquaredL2(),
    ]
    assert norms.get_norm(TopK(3)) == TopK(3)
    with pytest.raises(ValueError, match=r"slack must be one of \['l1'"):
        norms.get_norm("l3")


class Threshold(ClassifierMixin, BaseEstimator):
    """An estimator whose score depends on its norm's parameter alone."""

    def __init__(self, slack=None):
        self.slack = slack

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y, sample_weight=None):
        return -abs(self.slack.value(np.ones(5)) - 3.0)


def test_grid_search_over_a_norms_parameter():
    X, y = np.zeros((8, 1)), np.array([0, 1] * 4)
    given_norm = TopK(1)
    search = GridSearchCV(Threshold(given_norm), {"slack__k": [1, 2, 3, 4]}, cv=2).fit(X, y)
    assert search.best_params_ == {"slack__k": 3}
    assert search.best_estimator_.slack == TopK(3)
    assert given_norm == TopK(1)
    own = GridSearchCV(Threshold(Stretched()), {"slack__rate": [1.0, 1.3]}, cv=2).fit(X, y)
    assert own.best_params_["slack__rate"] in (1.0, 1.3)
