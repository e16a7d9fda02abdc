"""What a fit promises: classes, threads, warm starts, limits, progress, an intact state."""

import _thread
import re
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import anynorm.solvers.linear
from anynorm import LinearSVC
from anynorm.losses import LOSSES
from anynorm.solution import Progress, Status
from tests.estimators.plain import noisy_classes, objective_of


@pytest.fixture
def calls(monkeypatch):
    """The options of every call of the solver."""
    options_seen = []
    solve = anynorm.solvers.linear.solve_linear

    def spy(problem, **options):
        options_seen.append(options | {"problem": problem, "thread": threading.get_ident()})
        return solve(problem, **options)

    monkeypatch.setattr(anynorm.solvers.linear, "solve_linear", spy)
    return options_seen


# Classes


@pytest.mark.parametrize("loss", LOSSES)
def test_classes_are_fitted_one_against_the_rest(loss):
    X, y = noisy_classes(n=60, p=4, n_classes=4)
    model = LinearSVC(loss=loss, tol=1e-9).fit(X, y)
    assert model.coef_.shape == (4, 4)
    assert model.intercept_.shape == (4,)
    for k, part in enumerate(model.certificate_.per_class):
        alone = LinearSVC(loss=loss, tol=1e-9).fit(X, y == k)
        np.testing.assert_array_equal(alone.coef_[0], model.coef_[k])
        np.testing.assert_array_equal(alone.intercept_[0], model.intercept_[k])
        assert alone.certificate_.primal == part.primal
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


def test_two_classes_are_one_problem():
    X, y = noisy_classes(n=60, p=4)
    model = LinearSVC(tol=1e-9).fit(X, y)
    assert model.coef_.shape == (1, 4)
    assert len(model.certificate_.per_class) == 1
    scores = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_any_number_of_threads_gives_the_same_bits(loss, kind):
    X, y = noisy_classes(n=80, p=6, n_classes=5)
    one = LinearSVC(loss=loss, tol=1e-6).fit(kind(X), y)
    for n_jobs in (2, 3, -1):
        other = LinearSVC(loss=loss, tol=1e-6, n_jobs=n_jobs).fit(kind(X), y)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.intercept_, other.intercept_)
        assert one.certificate_ == other.certificate_
        assert one.n_iter_ == other.n_iter_


def test_the_same_seed_gives_the_same_bits():
    X, y = noisy_classes(n=80, p=6, n_classes=3)
    fits = [LinearSVC(random_state=seed).fit(X, y) for seed in (7, 7, np.random.RandomState(3))]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[2].certificate_.gap <= 1e-4
    again = LinearSVC(random_state=np.random.RandomState(3)).fit(X, y)
    np.testing.assert_array_equal(fits[2].coef_, again.coef_)


# Certificate


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificate_holds_for_the_coefficients_stored(loss, n_classes, kind):
    X, y = noisy_classes(n=60, p=4, n_classes=n_classes, seed=1)
    model = LinearSVC(loss=loss, C=2.0, tol=1e-3).fit(kind(X), y)
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(objective_of(model, X, y), rel=1e-12)
    assert certificate.primal == pytest.approx(sum(c.primal for c in certificate.per_class))
    assert certificate.dual == pytest.approx(sum(c.dual for c in certificate.per_class))
    assert certificate.status is Status.OPTIMAL
    exact = LinearSVC(loss=loss, C=2.0, tol=1e-11).fit(X, y).certificate_.primal
    assert certificate.dual <= exact * (1 + 1e-10)
    assert exact <= certificate.primal * (1 + 1e-10)
    assert certificate.gap <= 1e-3


def test_sparsify_and_densify_change_the_storage_only():
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    model = LinearSVC().fit(X, y)
    coef, scores = model.coef_.copy(), model.decision_function(X)
    assert sp.issparse(model.sparsify().coef_)
    for given in (X, sp.csr_array(X), sp.csc_array(X), X.astype(np.float32)):
        np.testing.assert_allclose(model.decision_function(given), scores, rtol=1e-12)
    np.testing.assert_array_equal(model.densify().coef_, coef)
    np.testing.assert_array_equal(model.densify().coef_, coef)
    assert isinstance(model.sparsify().fit(X, y).coef_, np.ndarray)


# Warm starts


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_warm_starts_reach_the_same_optimum_for_a_changed_C(loss, kind):
    X, y = noisy_classes(n=60, p=4, n_classes=3, seed=2)
    warm = LinearSVC(loss=loss, tol=1e-10, warm_start=True)
    for C in (0.1, 1.0, 30.0, 0.01):
        warm.set_params(C=C).fit(kind(X), y)
        cold = LinearSVC(loss=loss, C=C, tol=1e-10).fit(kind(X), y)
        assert warm.certificate_.gap <= 1e-10
        np.testing.assert_allclose(warm.coef_, cold.coef_, rtol=1e-4, atol=1e-5)


def test_a_warm_start_hands_over_the_previous_duals(calls):
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    model = LinearSVC(warm_start=True).fit(X, y)
    assert [call["start"] for call in calls] == [None] * 3
    first = model.n_iter_
    calls.clear()
    model.fit(X, y)
    assert all(call["start"].shape == (60,) for call in calls)
    assert model.n_iter_ <= first
    calls.clear()
    model.fit(X[:50], y[:50])  # another number of rows
    assert [call["start"] for call in calls] == [None] * 3
    calls.clear()
    model.fit(X[:50], y[:50] > 0)  # another number of classes
    assert [call["start"] for call in calls] == [None]


@pytest.mark.parametrize("change", [{"loss": "absolute"}, {"loss": "logistic"}, {"C": 1e-3}])
def test_duals_of_another_problem_do_no_harm(change):
    X, y = noisy_classes(n=60, p=4, seed=3)
    weights = np.random.default_rng(0).integers(0, 3, size=60)
    model = LinearSVC(warm_start=True, tol=1e-9).fit(X, y)
    model.set_params(**change).fit(X, y, sample_weight=weights)
    cold = LinearSVC(tol=1e-9).set_params(**change).fit(X, y, sample_weight=weights)
    assert model.certificate_.gap <= 1e-9
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-8)


def test_duals_are_kept_for_warm_starts_only():
    X, y = noisy_classes(n=60, p=4)
    model = LinearSVC(warm_start=True).fit(X, y)
    kept = {name for name, value in vars(model).items() if name not in model.get_params()}
    model.set_params(warm_start=False).fit(X, y)
    public = {name for name, value in vars(model).items() if name not in model.get_params()}
    assert kept - public == {"_duals"}
    assert all(name.endswith("_") and not name.startswith("_") for name in public)


# Limits


def test_the_deadline_is_shared_by_the_classes(calls):
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    start = time.monotonic()
    LinearSVC(time_limit=100.0).fit(X, y)
    assert len({call["deadline"] for call in calls}) == 1
    assert start + 100.0 <= calls[0]["deadline"] <= time.monotonic() + 100.0
    calls.clear()
    LinearSVC().fit(X, y)
    assert {call["deadline"] for call in calls} == {None}


def hard_problem(n=4000, p=150):
    """Features of very different scale, and classes that almost can be separated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = X @ rng.normal(size=p) + 0.1 * rng.normal(size=n) > 0
    return X * np.logspace(-3, 3, p), y


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_time_limit_ends_a_fit_with_a_certified_model(kind):
    X, y = hard_problem()
    X = kind(X)
    model = LinearSVC(C=1e3, tol=1e-12, time_limit=0.01)
    start = time.monotonic()
    with pytest.warns(ConvergenceWarning, match=r"relative gap of .* raise time_limit"):
        model.fit(X, y)
    assert time.monotonic() - start < 20.0  # compilation included
    assert model.certificate_.status is Status.TIME_LIMIT
    assert 1e-12 < model.certificate_.gap < np.inf
    assert np.isfinite(model.coef_).all()
    primal = objective_of(model, X, y)
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "absolute"])
def test_too_few_iterations_end_with_a_warning_and_a_true_certificate(loss, kind):
    X, y = hard_problem(300, 40)
    model = LinearSVC(C=10.0, loss=loss, tol=1e-12, max_iter=1)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(kind(X), y)
    text = str(caught[0].message)
    assert re.match(r"stopped at a relative gap of \d.\de[-+]\d+ after 1 iterations \(tol", text)
    assert text.endswith(
        "The model is usable and its certificate says how far it is from optimal; raise max_iter."
    )
    assert caught[0].filename == __file__
    assert model.n_iter_ == 1
    assert model.certificate_.status is Status.MAX_ITER
    exact = LinearSVC(C=10.0, loss=loss, tol=1e-8).fit(X, y).certificate_
    assert model.certificate_.dual <= exact.primal
    assert exact.dual <= model.certificate_.primal


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_gap_beyond_float64_is_not_chased_for_ever(loss, kind):
    X, y = noisy_classes(n=60, p=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LinearSVC(loss=loss, tol=1e-300, time_limit=30.0).fit(kind(X), y)
    assert model.certificate_.gap < 1e-12
    assert model.certificate_.status in (Status.OPTIMAL, Status.MAX_ITER)
    assert len(caught) == (model.certificate_.status is not Status.OPTIMAL)
    assert all("float64 allows no smaller gap" in str(warning.message) for warning in caught)


# Progress


LINE = re.compile(
    r"LinearSVC(?:, class (?P<label>\S+) against the rest)?: iteration (?P<iteration>\d+), "
    r"primal (?P<primal>\S+), dual (?P<dual>\S+), gap (?P<gap>\S+), (?P<seconds>\S+) s"
)


def test_silence_is_the_default(capsys):
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    LinearSVC().fit(X, y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_is_a_line_per_report(capsys, n_jobs):
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    names = np.array(["ash", "birch", "cedar"])[y]
    model = LinearSVC(verbose=1, tol=1e-8, n_jobs=n_jobs).fit(X, names)
    matches = [LINE.fullmatch(line) for line in capsys.readouterr().out.splitlines()]
    assert all(matches)
    assert {match["label"] for match in matches} == {"'ash'", "'birch'", "'cedar'"}
    for match in matches:
        assert float(match["dual"]) <= float(match["primal"]) * (1 + 1e-7)
        assert float(match["gap"]) >= 0
        assert float(match["seconds"]) >= 0
    for label, part in zip(model.classes_.tolist(), model.certificate_.per_class, strict=True):
        last = [match for match in matches if match["label"] == repr(label)][-1]
        assert float(last["primal"]) == pytest.approx(part.primal, rel=1e-3)


def test_more_progress(capsys):
    X, y = noisy_classes(n=60, p=4)
    model = LinearSVC(verbose=2).fit(X, y)
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == (
        "LinearSVC: 60 rows, 4 features (dense, float64), 2 classes, loss='hinge', C=1, tol=0.0001"
    )
    assert last == f"LinearSVC: {model.certificate_.per_class[0]}"


# Interruptions


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_fit_leaves_the_model_as_it_was(monkeypatch, error, n_jobs):
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    model = LinearSVC(n_jobs=n_jobs, warm_start=True).fit(X, y)
    before, scores = dict(vars(model)), model.decision_function(X)
    solve = anynorm.solvers.linear.solve_linear
    started = []

    def interrupt(problem, **options):
        started.append(problem)
        if len(started) == 2:
            raise error
        return solve(problem, **options)

    monkeypatch.setattr(anynorm.solvers.linear, "solve_linear", interrupt)
    with pytest.raises(error):
        model.fit(X[:, :2], y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.decision_function(X), scores)


def test_a_failed_validation_leaves_the_model_as_it_was():
    X, y = noisy_classes(n=60, p=4)
    model = LinearSVC().fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X[:, :2], y, sample_weight=-np.ones(60))
    assert vars(model) == before
    assert model.n_features_in_ == 4


def test_threads_still_at_work_stop_at_their_next_report(monkeypatch):
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    stopped = threading.Event()

    def endless(problem, *, progress, **options):
        if problem.y[0] > 0:  # one class is interrupted, the others run on
            time.sleep(0.2)
            raise KeyboardInterrupt
        try:
            while True:
                progress(Progress(1, 1.0, 0.0, 1.0, 0.0))
                time.sleep(0.01)
        finally:
            stopped.set()

    monkeypatch.setattr(anynorm.solvers.linear, "solve_linear", endless)
    with pytest.raises(KeyboardInterrupt):
        LinearSVC(n_jobs=2).fit(X, y)
    assert stopped.wait(timeout=5.0)


def seconds_to_obey(model, X, y):
    """How long a fit goes on after Ctrl-C."""
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        _thread.interrupt_main()

    timer = threading.Timer(0.15, interrupt)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        return time.monotonic() - sent[0]
    finally:
        timer.cancel()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_an_interrupt_is_obeyed_within_half_a_second(kind):
    X, y = hard_problem(20_000, 150)
    X = kind(X)
    model = LinearSVC(C=1e4, tol=1e-13, max_iter=10**9, time_limit=0.05)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)  # compiled now
    before = dict(vars(model))
    model.set_params(time_limit=None)
    # the best of three, for machines that have other things to do
    assert any(seconds_to_obey(model, X, y) < 0.5 for _ in range(3))
    assert vars(model) == before | {"time_limit": None}
