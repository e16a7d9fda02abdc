"""The path of data: optimal everywhere, for every kind of input, and honest about its end."""

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import anynorm.solvers.one_norm
from anynorm import PathInterrupted, SolutionPath, sparse_svm_path
from anynorm.datasets import make_relevant
from anynorm.losses import get_loss
from anynorm.problem import Problem
from tests.estimators.plain import noisy_classes
from tests.references import solve_linear_program
from tests.spies import Stopwatch

X, Y = noisy_classes(n=24, p=5, seed=3)


def optimum(features, signs, C, **pieces):
    problem = Problem(
        y=signs, C=C, loss=get_loss("hinge"), X=np.asarray(features, dtype=np.float64),
        regulariser="l1", **pieces,
    )  # fmt: skip
    return problem, solve_linear_program(problem)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_place_is_optimal_for_its_C(fit_intercept):
    path = sparse_svm_path(X, Y, fit_intercept=fit_intercept)
    signs, intercept = np.where(Y == 1, 1.0, -1.0), "free" if fit_intercept else None
    assert path.s[0] == 0
    assert np.all(np.diff(path.s) > 0)
    assert np.all(np.diff(path.penalties) < 0)
    assert path.penalties[-1] == 0
    assert path.gaps.max() <= 1e-9
    middles = path.s[:-1] + np.diff(path.s) / 2
    for s in np.concatenate([path.s[::4], middles[::4], path.s[-1:]]):
        certificate = path.certificate_at(s)
        assert certificate.gap <= 1e-9
        coef, bias = path.coef_at(s=s)
        assert np.abs(coef).sum() == pytest.approx(s, abs=1e-12)
        if not fit_intercept:
            assert bias == 0.0
    for penalty in (path.penalties[:-1] + path.penalties[1:])[::4] / 2:
        problem, best = optimum(X, signs, 1 / penalty, intercept=intercept)
        coef, bias = path.coef_at(C=1 / penalty)
        assert problem.objective(coef, bias) <= best * (1 + 1e-9)


def test_weights_are_repetitions():
    counts = np.random.default_rng(0).integers(0, 4, len(Y))
    weighted = sparse_svm_path(X, Y, sample_weight=counts)
    repeated = sparse_svm_path(np.repeat(X, counts, axis=0), np.repeat(Y, counts))
    assert weighted.s[-1] == pytest.approx(repeated.s[-1], rel=1e-6)
    assert weighted.penalties[0] == pytest.approx(repeated.penalties[0])
    for s in np.linspace(0, weighted.s[-1], 7):
        one, two = weighted.certificate_at(s), repeated.certificate_at(s)
        assert max(one.gap, two.gap) <= 1e-9
        loss = [(c.primal - s) / k.knots.price(k.knots.segment(s)) for c, k in
                ((one, weighted), (two, repeated))]  # fmt: skip
        assert loss[0] == pytest.approx(loss[1], abs=1e-9)


def test_penalty_weights():
    u = np.array([1.0, 0.0, 2.0, np.inf, 0.5])
    path = sparse_svm_path(X, Y, penalty_weights=u)
    signs = np.where(Y == 1, 1.0, -1.0)
    assert path.coefs.toarray()[:, 3].max() == 0
    assert path.coefs.toarray()[0, 1] != 0  # in use from the beginning
    finite = np.where(np.isinf(u), 0.0, u)
    np.testing.assert_allclose(abs(path.coefs) @ finite, path.s, atol=1e-10)
    for penalty in (path.penalties[:-1] + path.penalties[1:])[::4] / 2:
        problem, best = optimum(X, signs, 1 / penalty, penalty_weights=u)
        coef, bias = path.coef_at(C=1 / penalty)
        assert problem.objective(coef, bias) <= best * (1 + 1e-8) + 1e-10
    with pytest.raises(ValueError, match=r"^n_features must be at least 1"):
        path.coef_at(n_features=0)


KINDS = {
    "Fortran": np.asfortranarray,
    "float32": np.float32,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr, float32": lambda a: sp.csr_array(a.astype(np.float32)),
    "int64 indices": lambda a: with_wide_indices(sp.csr_array(a)),
    "list": np.ndarray.tolist,
    "pandas": pd.DataFrame,
    "polars": lambda a: pl.DataFrame(a, schema=[f"f{k}" for k in range(a.shape[1])]),
    "integers": lambda a: (8 * a).astype(int),
}


def with_wide_indices(a):
    a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
    return a


@pytest.mark.parametrize("kind", KINDS)
def test_the_storage_does_not_matter(kind):
    scale = 8.0 if kind == "integers" else 1.0
    path, other = sparse_svm_path(scale * X, Y), sparse_svm_path(KINDS[kind](X), Y)
    assert other.n_joints == path.n_joints
    np.testing.assert_allclose(other.s, path.s, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.coefs.toarray(), path.coefs.toarray(), atol=1e-7)


def test_a_read_only_memory_map(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    path = sparse_svm_path(mapped, Y)
    np.testing.assert_array_equal(path.s, sparse_svm_path(X, Y).s)
    assert path.certificate_at(path.s[3]).gap <= 1e-9


def test_names_and_classes():
    frame = pd.DataFrame(X, columns=list("abcde"))
    path = sparse_svm_path(frame, np.where(Y == 1, "yes", "no"))
    assert path.feature_names_in_.tolist() == list("abcde")
    assert path.classes_.tolist() == ["no", "yes"]
    scores = path.decision_function(frame)
    np.testing.assert_allclose(scores, X @ path.coefs.toarray().T + path.intercepts)


def test_stops_say_so():
    whole = sparse_svm_path(X, Y)
    assert whole.stopped == "end"
    few = sparse_svm_path(X, Y, max_features=2)
    assert (few.stopped, few.n_nonzero.max()) == ("max_features", 2)
    short = sparse_svm_path(X, Y, max_joints=4)
    assert (short.stopped, short.n_joints) == ("max_joints", 4)
    np.testing.assert_allclose(short.s, whole.s[:4])
    bound = sparse_svm_path(X, Y, s_max=whole.s[-1] / 3)
    assert bound.stopped == "s_max"
    assert bound.s[-1] == pytest.approx(whole.s[-1] / 3)
    assert sparse_svm_path(X, Y, s_max=1e6).stopped == "end"
    for part in (few, short, bound):
        end = part.s[-1]
        assert part.certificate_at(end).gap <= 1e-9
        for s in (end / 2, end):
            np.testing.assert_allclose(part.coef_at(s=s)[0], whole.coef_at(s=s)[0], atol=1e-9)
        with pytest.raises(ValueError, match="up to which this path was followed"):
            part.coef_at(s=2 * end)


def test_a_time_limit_stops_a_long_path():
    rows, labels = make_relevant(n_samples=3000, n_features=600, n_relevant=50, random_state=0)
    sparse_svm_path(rows[:30], labels[:30])  # compiled before the clock starts
    watch = Stopwatch()
    path = sparse_svm_path(rows, labels, time_limit=0.5)
    assert watch.seconds < 5
    assert path.stopped == "time_limit"
    assert path.penalties[-1] > 0
    assert path.certificate_at(path.s[-1]).gap <= 1e-9


def test_progress(capsys):
    rows, labels = make_relevant(n_samples=300, n_features=100, n_relevant=5, random_state=0)
    sparse_svm_path(rows, labels)
    assert capsys.readouterr().out == ""
    sparse_svm_path(rows, labels, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("sparse_svm_path: pivot ") for line in lines)


def test_ctrl_c_gives_what_was_done(tmp_path):
    program = textwrap.dedent(
        """
        import sys, time
        from anynorm import PathInterrupted, sparse_svm_path
        from anynorm.datasets import make_relevant
        X, y = make_relevant(n_samples=4000, n_features=800, n_relevant=50, random_state=0)
        sparse_svm_path(X[:30], y[:30])
        try:
            sparse_svm_path(X, y, verbose=1)
        except PathInterrupted as stop:
            path = stop.path
            print(path.n_joints, path.stopped, path.certificate_at(path.s[-1]).gap <= 1e-9)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("sparse_svm_path: pivot")
    process.send_signal(signal.SIGINT)
    joints, stopped, certified = process.communicate(timeout=300)[0].splitlines()[-1].split()
    assert int(joints) >= 1
    assert (stopped, certified) == ("interrupted", "True")


def test_an_interruption_in_the_solver_carries_the_path(monkeypatch):
    record = {}
    follow = anynorm.solvers.one_norm.follow_path

    def interrupted(problem, **options):
        record["whole"] = follow(problem, **options)
        raise anynorm.solvers.one_norm.RecordInterrupted(record["whole"])

    monkeypatch.setattr(anynorm.solvers.one_norm, "follow_path", interrupted)
    with pytest.raises(PathInterrupted) as caught:
        sparse_svm_path(X, Y)
    assert isinstance(caught.value.path, SolutionPath)
    assert caught.value.path.n_joints == record["whole"].joint.sum()


def test_one_class_is_refused():
    """It gave a path of one joint without a word, where all estimators refuse."""
    with pytest.raises(ValueError, match="y has only one class"):
        sparse_svm_path(X, ["only"] * len(X))
    with pytest.raises(ValueError, match="only one class"):
        sparse_svm_path(X, Y, sample_weight=(Y == 1).astype(float))


@pytest.mark.parametrize("features", [np.zeros((24, 3)), np.ones((24, 2))])
def test_features_that_tell_nothing_are_one_joint(features):
    path = sparse_svm_path(features, Y)
    assert path.n_joints == 1
    assert path.penalties.tolist() == [0.0]
    assert path.certificate_at(0.0).gap <= 1e-9


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_features", 0), ("max_features", -1), ("max_features", 2.5), ("max_features", True),
        ("max_joints", 0), ("max_joints", "all"), ("s_max", -1.0), ("s_max", np.nan),
        ("s_max", np.inf), ("s_max", "1"), ("time_limit", 0), ("time_limit", -1.0),
        ("fit_intercept", 1), ("verbose", -1), ("penalty_weights", [1.0, 2.0]),
        ("penalty_weights", [-1.0, 1, 1, 1, 1]), ("penalty_weights", [np.nan, 1, 1, 1, 1]),
        ("sample_weight", [1.0]), ("sample_weight", -np.ones(24)), ("sample_weight", np.zeros(24)),
    ],
)  # fmt: skip
def test_a_bad_argument_is_named_before_any_work(name, value, monkeypatch):
    monkeypatch.setattr(anynorm.solvers.one_norm, "follow_path", None)
    with pytest.raises(ValueError, match=rf"^{name} "):
        sparse_svm_path(X, Y, **{name: value})


def test_bad_data_are_named():
    with pytest.raises(ValueError, match=r"y has 3 classes.*SparseSVC"):
        sparse_svm_path(X, np.arange(24) % 3)
    with pytest.raises(ValueError, match="sparse_svm_path requires y"):
        sparse_svm_path(X, None)
    with pytest.raises(ValueError, match="y has 23 entries but X has 24 rows"):
        sparse_svm_path(X, Y[1:])
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"X has NaN in column 1 \(first at row 3\)"):
        sparse_svm_path(broken, Y)


def test_rounding_in_a_dual_does_not_spoil_the_certificate():
    """A dual of 6e-17 on the only row of an unpenalised column: the repair gave up on it."""
    columns = ["1101111010", "0101100001", "0101010000", "1100001101", "0000110111", "0010111000"]
    features = np.array([[int(entry) for entry in column] for column in columns], dtype=float).T
    path = sparse_svm_path(
        features, [1, 1, 1, 0, 1, 1, 1, 1, 1, 1], penalty_weights=[1, 0.5, np.inf, 0, 2, 1]
    )
    for s in (0.0, path.s[-1] / 2, path.s[-1]):
        assert path.certificate_at(s).gap <= 1e-9
