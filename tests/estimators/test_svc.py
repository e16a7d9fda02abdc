"""SVC: against libsvm and CVXPY; classes, weights, kernels, norms, limits, interruptions."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score

from anynorm import SVC
from anynorm.kernels.gram import Gram
from anynorm.losses import Loss
from anynorm.norms import L1, LInf, SquaredL2, TopK
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from tests.estimators.plain import noisy_classes
from tests.references import solve_primal
from tests.spies import Stopwatch, calls_of_solver, seconds_to_obey

X, Y = noisy_classes(n=60, p=4)
X3, Y3 = noisy_classes(n=90, p=4, n_classes=3)
BOXES = [("l1", "inequality"), ("l1", "equality"), ("squared_l2", "inequality"),
         ("linf", "inequality"), (TopK(5), "inequality"), (TopK(5), "equality")]  # fmt: skip


# Against others


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(
    "kernel",
    [
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": "auto"},
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.3},
    ],
    ids=str,
)
def test_hinge_slacks_are_libsvms_C_SVC(kernel, C):
    ours = SVC(C=C, tol=1e-9, **kernel).fit(X, Y)
    theirs = svm.SVC(C=C, tol=1e-10, **kernel).fit(X, Y)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), rtol=1e-3, atol=1e-3
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    duals = np.zeros((2, 60))
    duals[0, ours.support_], duals[1, theirs.support_] = ours.dual_coef_, theirs.dual_coef_
    if kernel["kernel"] == "rbf":  # a definite kernel: the duals are unique
        np.testing.assert_allclose(duals[0], duals[1], atol=1e-4 * C)


@pytest.mark.parametrize(("slack", "constraints"), BOXES, ids=str)
def test_other_slacks_against_clarabel(slack, constraints):
    weights = np.random.default_rng(1).integers(0, 3, size=60).astype(float)
    model = SVC(2.0, slack=slack, constraints=constraints, gamma=0.3, tol=1e-8)
    model.fit(X, Y, sample_weight=weights)
    reference = solve_primal(
        Problem(
            y=2.0 * Y - 1.0,
            C=2.0,
            loss=Loss.from_slack(slack, constraints),
            gram=Gram.rbf(X, 0.3),
            sample_weight=weights,
        )
    )
    assert model.certificate_.status is Status.OPTIMAL
    assert model.certificate_.primal == pytest.approx(reference.value, rel=1e-6)
    scores = rbf_kernel(X, gamma=0.3) @ ((2.0 * Y - 1.0) * reference.coef)
    found = model.decision_function(X) - model.intercept_
    np.testing.assert_allclose(found, scores, atol=2e-3)


# Classes, weights


def test_classes_are_fitted_one_against_the_rest_and_share_rows(monkeypatch):
    calls = calls_of_solver(monkeypatch, SVC)
    model = SVC(gamma=0.3, tol=1e-9).fit(X3, Y3)
    assert len({id(call["rows"]) for call in calls}) == 1
    for k in range(3):
        alone = SVC(gamma=0.3, tol=1e-9).fit(X3, (k == Y3).astype(int))
        np.testing.assert_allclose(
            alone.decision_function(X3), model.decision_function(X3)[:, k], atol=1e-6
        )
    total = sum(part.primal for part in model.certificate_.per_class)
    assert model.certificate_.primal == pytest.approx(total)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_any_number_of_threads_gives_the_same_result(kind):
    one = SVC(gamma=0.3).fit(kind(X3), Y3)
    for n_jobs in (2, -1):
        other = SVC(gamma=0.3, n_jobs=n_jobs).fit(kind(X3), Y3)
        np.testing.assert_array_equal(one.support_, other.support_)
        np.testing.assert_allclose(one.dual_coef_, other.dual_coef_, atol=1e-9)
        assert other.certificate_.gap <= 1e-4


@pytest.mark.parametrize("gamma", ["scale", 0.3])
@pytest.mark.parametrize(("slack", "constraints"), BOXES, ids=str)
def test_weights_are_repetition(slack, constraints, gamma):
    weights = np.random.default_rng(2).integers(0, 3, size=60)
    rows = np.repeat(np.arange(60), weights)
    model = SVC(slack=slack, constraints=constraints, gamma=gamma, tol=1e-10)
    weighted = clone(model).fit(X, Y, sample_weight=weights)
    repeated = clone(model).fit(X[rows], Y[rows])
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-5
    )
    assert not np.isin(weighted.support_, np.flatnonzero(weights == 0)).any()


def test_class_weights_multiply_sample_weights():
    weights = np.linspace(0.5, 2.0, 60)
    ours = SVC(gamma=0.3, class_weight={0: 3.0}, tol=1e-9).fit(X, Y, weights)
    plain = SVC(gamma=0.3, tol=1e-9).fit(X, Y, weights * np.where(Y == 0, 3.0, 1.0))
    theirs = svm.SVC(gamma=0.3, class_weight={0: 3.0}, tol=1e-10).fit(X, Y, weights)
    np.testing.assert_allclose(ours.decision_function(X), plain.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


# Input


def test_every_way_to_give_X_gives_the_same_model(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    kinds = [np.asfortranarray(X), sp.csr_array(X), sp.csc_matrix(X), np.load(path, mmap_mode="r"),
             pd.DataFrame(X, columns=list("abcd")), X.tolist(), X.astype(np.float32)]  # fmt: skip
    scores = SVC(gamma=0.3, tol=1e-9).fit(X, Y).decision_function(X)
    for given in kinds:
        model = SVC(gamma=0.3, tol=1e-9).fit(given, Y)
        assert model.certificate_.gap <= 1e-9
        np.testing.assert_allclose(model.decision_function(given), scores, atol=1e-4)
        assert model.n_features_in_ == 4
    frame = kinds[4]
    assert SVC().fit(frame, Y).feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        SVC().fit(frame, Y).predict(frame[["b", "a", "c", "d"]])


def test_precomputed_kernels_are_sliced_by_cross_validation():
    K = rbf_kernel(X3, gamma=0.3)
    given = cross_val_score(SVC(kernel="precomputed", tol=1e-9), K, Y3, cv=4)
    named = cross_val_score(SVC(gamma=0.3, tol=1e-9), X3, Y3, cv=4)
    np.testing.assert_array_equal(given, named)
    model = SVC(kernel="precomputed", tol=1e-9).fit(K[:60, :60], Y3[:60])
    same = SVC(gamma=0.3, tol=1e-9).fit(X3[:60], Y3[:60])
    assert model.support_vectors_.shape == (0, 0)
    np.testing.assert_allclose(
        model.decision_function(K[60:, :60]), same.decision_function(X3[60:]), atol=1e-6
    )
    narrow = SVC(kernel="precomputed").fit(K.astype(np.float32), Y3)
    assert narrow.certificate_.status is Status.OPTIMAL


def test_functions_are_kernels():
    model = SVC(kernel=rbf_kernel, tol=1e-9).fit(X, Y)
    named = SVC(gamma="auto", tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), named.decision_function(X), atol=1e-6)
    assert clone(model).kernel is rbf_kernel


def test_an_indefinite_function_is_uncertified():
    def minus(A, B):
        return -rbf_kernel(A, B, gamma=1.0)

    with pytest.warns(ConvergenceWarning, match="not positive semidefinite") as caught:
        model = SVC(kernel=minus, max_iter=10_000).fit(X, Y)
    assert caught[0].filename == __file__
    assert model.certificate_.status is Status.UNCERTIFIED
    assert np.isnan(model.certificate_.gap)
    assert np.isfinite(model.decision_function(X)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        odd = SVC(kernel=lambda A, B: sigmoid_kernel(A, B, gamma=5.0), max_iter=10_000).fit(X, Y)
    assert odd.certificate_.status is not Status.TIME_LIMIT
    assert np.isfinite(odd.decision_function(X)).all()


# Norms as parameters


def test_norms_are_named_or_given():
    for name, norm in {"l1": L1(), "linf": LInf(), "squared_l2": SquaredL2()}.items():
        named = SVC(slack=name, tol=1e-9).fit(X, Y)
        given = SVC(slack=norm, tol=1e-9).fit(X, Y)
        assert named.certificate_.primal == given.certificate_.primal


def test_a_search_reaches_the_parameters_of_a_norm():
    search = GridSearchCV(SVC(slack=TopK(3)), {"slack__k": [3, 30], "C": [0.1, 1.0]}, cv=3)
    search.fit(X, Y)
    assert search.best_params_["slack__k"] == search.best_estimator_.slack.k
    model = SVC(slack=TopK(3))
    copied = clone(model).set_params(slack__k=8)
    assert (model.slack, copied.slack) == (TopK(3), TopK(8))
    assert repr(model) == "SVC(slack=TopK(k=3))"


# Hard data


def titanic(n=200, seed=0):
    """Few distinct rows, most of them with both labels."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, size=(n, 3)).astype(float)
    return rows, (rows[:, 0] + rng.normal(size=n) > 0.5).astype(int)


@pytest.mark.parametrize(("slack", "constraints"), BOXES, ids=str)
@pytest.mark.parametrize(
    "options",
    [{}, {"kernel": "linear"}, {"gamma": 0.0}, {"gamma": 1e8}, {"C": 1e3}, {"C": 1e-3}],
    ids=str,
)
def test_duplicates_with_both_labels_and_constant_kernels(slack, constraints, options):
    rows, labels = titanic()
    model = SVC(slack=slack, constraints=constraints, **options).fit(rows, labels)
    assert model.certificate_.status is Status.OPTIMAL
    assert model.certificate_.gap <= 1e-4


@pytest.mark.parametrize(("slack", "constraints"), BOXES, ids=str)
def test_two_rows(slack, constraints):
    model = SVC(100.0, slack=slack, constraints=constraints, kernel="linear", tol=1e-8)
    model.fit([[0.0], [4.0]], ["a", "b"])
    assert model.predict([[1.0], [3.0]]).tolist() == ["a", "b"]
    np.testing.assert_allclose(model.decision_function([[2.0]]), 0.0, atol=1e-6)
    same = SVC(slack=slack, constraints=constraints).fit([[1.0], [1.0]], [0, 1])
    assert same.certificate_.gap <= 1e-4


# Limits, warm starts, progress, interruptions


def overlapping(n=1500, p=6):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, p))
    return rows, (rows[:, 0] + rng.normal(size=n) > 0).astype(int)


def test_too_few_iterations_end_with_a_warning_and_a_true_certificate():
    rows, labels = overlapping(400)
    model = SVC(C=100.0, max_iter=5, tol=1e-6)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(rows, labels)
    text = str(caught[0].message)
    assert re.match(r"stopped at a relative gap of \d\.\de[-+]\d+ after \d+ iterations \(tol", text)
    assert text.endswith("raise max_iter.")
    assert caught[0].filename == __file__
    assert model.certificate_.status is Status.MAX_ITER
    exact = SVC(C=100.0, tol=1e-5).fit(rows, labels).certificate_
    assert model.certificate_.dual <= exact.primal
    assert exact.dual <= model.certificate_.primal


def test_a_time_limit_ends_a_fit_with_a_certified_model():
    rows, labels = overlapping()
    with pytest.warns(ConvergenceWarning, match=r"relative gap of .* raise time_limit"):
        model = SVC(C=1e4, tol=1e-9, time_limit=0.02).fit(rows, labels)
    assert model.certificate_.status is Status.TIME_LIMIT
    assert model.certificate_.dual <= model.certificate_.primal < np.inf


def test_a_small_cache_gives_the_same_model():
    rows, labels = overlapping(600)
    small = SVC(cache_size=0.3, tol=1e-6).fit(rows, labels)
    large = SVC(tol=1e-6).fit(rows, labels)
    np.testing.assert_allclose(
        small.decision_function(rows), large.decision_function(rows), atol=2e-2
    )
    assert small.certificate_.gap <= 1e-6


def test_warm_starts_hand_over_the_duals_and_save_steps(monkeypatch):
    calls = calls_of_solver(monkeypatch, SVC)
    rows, labels = overlapping(400)
    model = SVC(warm_start=True).fit(rows, labels)
    assert calls[-1]["start"] is None
    first = model.n_iter_
    model.set_params(C=1.1).fit(rows, labels)
    assert calls[-1]["start"].shape == (400,)
    assert model.n_iter_ < first
    assert model.certificate_.gap <= 1e-4
    model.fit(rows[:300], labels[:300])
    assert calls[-1]["start"] is None


def test_progress_is_a_line_per_report(capsys):
    SVC(verbose=2).fit(X3, Y3)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == (
        "SVC: 90 rows, 4 features (dense, float64), 3 classes, slack='l1', "
        "constraints='inequality', kernel='rbf', C=1, tol=0.0001"
    )
    assert sum("against the rest: iteration" in line for line in lines) >= 3
    assert sum("against the rest: optimal" in line for line in lines) == 3


def test_control_c_is_obeyed():
    rows, labels = overlapping(3000)
    SVC().fit(rows[:200], labels[:200])  # compiled before
    model = SVC(C=1e5, tol=1e-12)
    assert seconds_to_obey(lambda: model.fit(rows, labels)) < 5.0
    assert not hasattr(model, "support_")


def test_a_fit_leaves_nothing_of_the_one_before():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = SVC().fit(frame, Y)
    model.fit(X[:, :3], Y)
    assert not hasattr(model, "feature_names_in_")
    watch = Stopwatch()
    assert model.fit(X, Y).n_features_in_ == 4
    assert watch.seconds < 60
