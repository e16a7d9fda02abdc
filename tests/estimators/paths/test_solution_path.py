"""SolutionPath on a path that can be worked out by hand."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from anynorm import PathInterrupted, SolutionPath
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from tests.references import solve_linear_program

X = np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [-2.0, 0.0]])
Y = np.array([1.0, 1.0, -1.0, -1.0])


def problem(C=1.0):
    return Problem(y=Y, C=C, loss=get_loss("hinge"), X=X, regulariser="l1")


def by_hand():
    """w = (s, 0), b = 0: the loss is 4 - 6 s up to s = 1/2, then 2 - 2 s, and 0 from s = 1.

    At s = 1/2 the rows 1 and 3 arrive at margin 1 and lambda falls from 6 to 2, while w goes on as
    before: a knot, but no joint.
    """
    record = SimpleNamespace(
        s=np.array([0.0, 0.5, 1.0]),
        penalties=np.array([6.0, 2.0, 0.0]),
        indptr=np.array([0, 0, 1, 2]),
        indices=np.array([0, 0]),
        data=np.array([0.5, 1.0]),
        intercepts=np.zeros(3),
        losses=np.array([4.0, 1.0, 0.0]),
        joint=np.array([True, False, True]),
        dual_indptr=np.array([0, 0, 2, 4]),
        dual_rows=np.array([1, 3, 0, 2]),
        dual_values=np.zeros(4),
        gaps=np.array([1e-16, 2e-16, 2e-16]),
        stopped="end",
        n_pivots=3,
    )
    return record


def path(**names):
    return SolutionPath(problem(), by_hand(), **names)


def test_the_arrays_are_those_of_the_joints():
    found = path()
    assert found.n_joints == 2
    np.testing.assert_array_equal(found.s, [0.0, 1.0])
    np.testing.assert_array_equal(found.penalties, [6.0, 0.0])
    np.testing.assert_array_equal(found.losses, [4.0, 0.0])
    np.testing.assert_array_equal(found.n_nonzero, [0, 1])
    np.testing.assert_array_equal(found.intercepts, [0.0, 0.0])
    assert sp.issparse(found.coefs)
    np.testing.assert_array_equal(found.coefs.toarray(), [[0.0, 0.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="read-only"):
        found.s[0] = 1.0


@pytest.mark.parametrize(
    ("s", "first"),
    [(0, 0.0), (0.25, 0.25), (0.5, 0.5), (0.8, 0.8), (1, 1.0), (7, 1.0), (np.inf, 1)],
)
def test_any_s(s, first):
    coef, intercept = path().coef_at(s=s)
    np.testing.assert_allclose(coef, [first, 0.0], rtol=1e-15)
    assert intercept == 0.0
    assert isinstance(intercept, float)


@pytest.mark.parametrize(
    ("penalty", "s"),
    [
        (1e9, 0.0),
        (6.1, 0.0),
        (6.0, 0.0),
        (5.9, 0.5),
        (2.1, 0.5),
        (2.0, 0.5),
        (1.9, 1.0),
        (1e-9, 1.0),
    ],
)
def test_any_C_and_at_a_jump_the_smaller_s(penalty, s):
    C = 1 / penalty
    coef, intercept = path().coef_at(C=C)
    assert coef[0] == s
    best = solve_linear_program(problem(C))
    assert problem(C).objective(coef, intercept) == pytest.approx(best, rel=1e-9)


def test_a_price_that_was_inverted_twice_is_still_at_its_jump():
    record = by_hand()
    for penalty in np.random.default_rng(0).uniform(0.1, 5.9, 200):
        record.penalties = np.array([6.0, penalty, 0.0])
        found = SolutionPath(problem(), record)
        assert found.coef_at(C=1.0 / penalty)[0][0] == 0.5


def test_a_number_of_features_gives_the_last_point_with_no_more():
    record = by_hand()
    record.s = np.arange(5.0)
    record.indptr = np.array([0, 1, 3, 4, 6, 8])
    record.indices = np.array([0, 0, 1, 1, 0, 1, 0, 1])
    record.data = np.ones(8)
    record.joint = np.ones(5, dtype=bool)
    for name in ("penalties", "intercepts", "losses", "gaps"):
        setattr(record, name, np.arange(5.0)[::-1])
    found = SolutionPath(problem(), record)
    assert found.coef_at(n_features=1)[1] == 2.0  # the third knot: after two features, one again
    assert found.coef_at(n_features=2)[1] == 0.0
    assert found.coef_at(n_features=np.int64(50))[1] == 0.0
    with pytest.raises(ValueError, match=r"^n_features must be at least 1, .*without a penalty"):
        found.coef_at(n_features=0)
    assert path().coef_at(n_features=0)[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "exactly one of s, C and n_features; got none"),
        ({"s": 1.0, "C": 1.0}, "exactly one of s, C and n_features; got s and C"),
        ({"s": -1.0}, "^s must be"),
        ({"s": np.nan}, "^s must be"),
        ({"s": "1"}, "^s must be"),
        ({"s": True}, "^s must be"),
        ({"s": [1.0]}, "^s must be"),
        ({"C": -1.0}, "^C must be"),
        ({"C": 0.0}, "^C must be a number above 0"),
        ({"C": np.nan}, "^C must be"),
        ({"n_features": -1}, "^n_features must be"),
        ({"n_features": 1.5}, "^n_features must be"),
        ({"n_features": True}, "^n_features must be"),
    ],
)
def test_a_bad_place_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        path().coef_at(**given)


def test_scores_at_one_place_and_at_many():
    found = path()
    np.testing.assert_allclose(found.decision_function(X, s=0.3), 0.3 * X[:, 0])
    places = [0.0, 0.1, 0.5, 0.9, 1.0, 3.0]
    expected = X[:, :1] * np.minimum(places, 1.0)
    np.testing.assert_allclose(found.decision_function(X, s=places), expected)
    np.testing.assert_allclose(found.decision_function(X), X[:, :1] * [0.0, 1.0])
    for kind in (sp.csr_array, sp.csc_array, np.float32, pd.DataFrame):
        scores = found.decision_function(kind(X), s=places)
        np.testing.assert_allclose(scores, expected)
        assert scores.dtype == np.float64
    for bad in (-1.0, [0.1, np.nan], [[0.1]]):
        with pytest.raises(ValueError, match=r"^s must be"):
            found.decision_function(X, s=bad)


def test_rows_are_checked_as_estimators_check_theirs():
    found = path(feature_names=np.array(["age", "size"], dtype=object))
    frame = pd.DataFrame(X, columns=["age", "size"])
    np.testing.assert_array_equal(found.decision_function(frame, s=1.0), X[:, 0])
    with pytest.raises(ValueError, match="feature names should match"):
        found.decision_function(frame[["size", "age"]], s=1.0)
    with pytest.raises(ValueError, match="X has 1 features, but SolutionPath is expecting 2"):
        path().decision_function(X[:, :1], s=1.0)
    with pytest.raises(ValueError, match="X has NaN in column 'size'"):
        found.decision_function(frame.assign(size=np.nan), s=1.0)


@pytest.mark.parametrize(
    ("s", "C"),
    [(0.0, 1 / 6), (0.2, 1 / 6), (0.5, 1 / 2), (0.75, 1 / 2), (1.0, 1 / 2), (9.0, 1 / 2)],
)
def test_certificates_are_of_the_segments_problem(s, C):
    certificate = path().certificate_at(s)
    best = solve_linear_program(problem(C))
    assert certificate.primal == pytest.approx(best)
    assert certificate.dual == pytest.approx(best)
    assert certificate.gap <= 1e-12
    assert certificate.status is Status.OPTIMAL
    assert path().solution_at(s).coef[0] == min(s, 1.0)
    with pytest.raises(ValueError, match=r"^s must be"):
        path().certificate_at(-s - 1.0)


def test_a_wrong_path_is_not_certified():
    record = by_hand()
    record.data = np.array([0.4, 1.0])
    certificate = SolutionPath(problem(), record).certificate_at(0.5)
    assert certificate.gap > 0.05
    assert certificate.status is not Status.OPTIMAL


def test_weights_are_in_the_duals():
    weights = np.array([2.0, 0.0, 1.0, 0.5])
    weighted = Problem(
        y=Y, C=1.0, loss=get_loss("hinge"), X=X, regulariser="l1", sample_weight=weights,
        intercept=None,
    )  # fmt: skip
    record = by_hand()
    record.penalties = np.array([4.0, 3.0, 0.0])
    record.losses = np.array([3.5, 1.5, 0.0])
    found = SolutionPath(weighted, record)
    for s in (0.0, 0.2, 0.5, 0.7, 1.0):
        assert found.certificate_at(s).gap <= 1e-12


def test_one_joint_only():
    record = by_hand()
    record.s, record.penalties, record.intercepts = np.zeros(1), np.zeros(1), np.array([1.0])
    record.indptr, record.indices, record.data = np.zeros(2, int), np.zeros(0, int), np.zeros(0)
    record.losses, record.gaps, record.joint = np.zeros(1), np.zeros(1), np.array([True])
    record.dual_indptr = np.array([0, 4])
    record.dual_rows, record.dual_values = np.arange(4), np.zeros(4)
    one = Problem(y=np.ones(4), C=1.0, loss=get_loss("hinge"), X=X, regulariser="l1")
    found = SolutionPath(one, record)
    assert found.n_joints == 1
    for place in ({"s": 0.0}, {"s": 3.0}, {"C": 1e6}, {"n_features": 0}):
        coef, intercept = found.coef_at(**place)
        assert (coef.tolist(), intercept) == ([0.0, 0.0], 1.0)
    np.testing.assert_array_equal(found.decision_function(X, s=[0.0, 1.0]), np.ones((4, 2)))
    assert found.certificate_at(0.0).gap == 0.0
    assert "n_joints=1" in repr(found)


def test_a_pickle_leaves_the_data_out():
    wide = np.zeros((4, 50_000))
    wide[:, :2] = X
    large = Problem(y=Y, C=1.0, loss=get_loss("hinge"), X=wide, regulariser="l1")
    found = SolutionPath(large, by_hand(), classes=[-1, 1])
    stored = pickle.dumps(found)
    assert len(stored) < 10_000
    for again in (pickle.loads(stored), found.detached()):
        assert repr(again) == repr(found)
        for s in (0.0, 0.3, 0.5, 0.9, 2.0):
            np.testing.assert_array_equal(again.coef_at(s=s)[0], found.coef_at(s=s)[0])
            ours, theirs = again.certificate_at(s), found.certificate_at(s)
            assert ours.primal == pytest.approx(theirs.primal, rel=1e-12)
            assert ours.gap <= 1e-15
            assert ours.status is Status.OPTIMAL
        with pytest.raises(ValueError, match="without its data"):
            again.solution_at(0.5)
    assert found.certificate_at(0.3).gap <= 1e-12  # the original still has its data


def test_repr_says_what_there_is():
    assert repr(path()) == (
        "SolutionPath(n_joints=2, s from 0 to 1, penalty from 6 to 0, up to 1 of 2 features, "
        "stopped='end')"
    )


def test_an_interruption_carries_the_path():
    interrupted = PathInterrupted(path())
    assert isinstance(interrupted, KeyboardInterrupt)
    assert interrupted.path.n_joints == 2
    assert str(interrupted) == "interrupted at s = 1 after 2 joints"
