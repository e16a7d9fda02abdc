"""How a fit of SparseSVC goes: threads, warm starts, limits, progress, interruptions."""

import _thread
import re
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import anynorm.solvers.one_norm
from anynorm import SparseSVC
from anynorm.estimators.sparse_svc import SPARSE_LOSSES as LOSSES
from anynorm.solution import Status
from tests.estimators.plain import noisy_classes, one_norm_objective_of


@pytest.fixture
def calls(monkeypatch):
    """The options of every call of the solver."""
    options_seen = []
    solve = anynorm.solvers.one_norm.solve_one_norm

    def spy(problem, **options):
        options_seen.append(options | {"problem": problem})
        return solve(problem, **options)

    monkeypatch.setattr(anynorm.solvers.one_norm, "solve_one_norm", spy)
    return options_seen


def hard_problem(n=600, p=400):
    """Features of very different scale, and classes that almost can be separated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = X @ rng.normal(size=p) + 0.1 * rng.normal(size=n) > 0
    return X * np.logspace(-2, 2, p), y


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_any_number_of_threads_gives_the_same_bits(loss, kind):
    X, y = noisy_classes(n=80, p=6, n_classes=5)
    one = SparseSVC(loss=loss, tol=1e-6).fit(kind(X), y)
    for n_jobs in (2, -1):
        other = SparseSVC(loss=loss, tol=1e-6, n_jobs=n_jobs).fit(kind(X), y)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.intercept_, other.intercept_)
        assert one.certificate_ == other.certificate_
        assert one.n_iter_ == other.n_iter_


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificate_holds_for_the_coefficients_stored(loss, n_classes, kind):
    X, y = noisy_classes(n=60, p=6, n_classes=n_classes, seed=1)
    model = SparseSVC(loss=loss, C=2.0, tol=1e-3).fit(kind(X), y)
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(one_norm_objective_of(model, X, y), rel=1e-12)
    assert certificate.dual == pytest.approx(sum(c.dual for c in certificate.per_class))
    assert certificate.status is Status.OPTIMAL
    assert certificate.gap <= 1e-3
    exact = SparseSVC(loss=loss, C=2.0, tol=1e-10).fit(X, y).certificate_.primal
    assert certificate.dual <= exact * (1 + 1e-9)
    assert exact <= certificate.primal * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_warm_starts_reach_the_same_optimum_for_a_changed_C(loss, kind, calls):
    X, y = noisy_classes(n=60, p=6, n_classes=3, seed=2)
    warm = SparseSVC(loss=loss, tol=1e-9, warm_start=True)
    for C in (0.1, 1.0, 30.0, 0.01):
        warm.set_params(C=C).fit(kind(X), y)
        cold = SparseSVC(loss=loss, C=C, tol=1e-9).fit(kind(X), y)
        assert warm.certificate_.gap <= 1e-9
        assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-8)
    assert [call["start"] for call in calls[:3]] == [None] * 3
    assert all(call["start"].shape == (60,) for call in calls[6:9])


@pytest.mark.parametrize("change", [{"loss": "absolute"}, {"loss": "logistic"}, {"C": 1e-3}])
def test_duals_of_another_problem_do_no_harm(change):
    X, y = noisy_classes(n=60, p=6, seed=3)
    weights = np.random.default_rng(0).integers(0, 3, size=60)
    model = SparseSVC(warm_start=True, tol=1e-9).fit(X, y)
    model.set_params(**change).fit(X, y, sample_weight=weights)
    cold = SparseSVC(tol=1e-9).set_params(**change).fit(X, y, sample_weight=weights)
    assert model.certificate_.gap <= 1e-9
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-8)


# Limits


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_time_limit_ends_a_fit_with_a_certified_model(loss, kind):
    X, y = hard_problem()
    X = kind(X)
    model = SparseSVC(C=1e3, loss=loss, tol=1e-13, time_limit=0.01)
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert time.monotonic() - start < 30.0  # compilation included
    with pytest.warns(ConvergenceWarning, match=r"relative gap of .* raise time_limit"):
        model.fit(X, y)
    assert model.certificate_.status is Status.TIME_LIMIT
    assert 1e-13 < model.certificate_.gap < np.inf
    assert np.isfinite(model.coef_).all()
    objective = one_norm_objective_of(model, X, y)
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_too_few_iterations_end_with_a_warning_and_a_true_certificate(loss, kind):
    X, y = hard_problem(200, 40)
    model = SparseSVC(C=10.0, loss=loss, tol=1e-12, max_iter=1)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(kind(X), y)
    text = str(caught[0].message)
    assert re.match(r"stopped at a relative gap of \d.\de[-+]\d+ after 1 iterations \(tol", text)
    assert text.endswith("raise max_iter.")
    assert caught[0].filename == __file__
    assert model.n_iter_ == 1
    assert model.certificate_.status is Status.MAX_ITER
    exact = SparseSVC(C=10.0, loss=loss, tol=1e-8).fit(X, y).certificate_
    assert model.certificate_.dual <= exact.primal
    assert exact.dual <= model.certificate_.primal


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_gap_beyond_float64_is_not_chased_for_ever(loss, kind):
    X, y = noisy_classes(n=60, p=6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SparseSVC(loss=loss, tol=1e-300, time_limit=30.0).fit(kind(X), y)
    assert model.certificate_.gap < 1e-11
    assert model.certificate_.status in (Status.OPTIMAL, Status.MAX_ITER)
    assert len(caught) == (model.certificate_.status is not Status.OPTIMAL)


# Progress


LINE = re.compile(
    r"SparseSVC(?:, class (?P<label>\S+) against the rest)?: iteration (?P<iteration>\d+), "
    r"primal (?P<primal>\S+), dual (?P<dual>\S+), gap (?P<gap>\S+), (?P<seconds>\S+) s"
)


@pytest.mark.parametrize("loss", LOSSES)
def test_progress_is_a_line_per_report(loss, capsys):
    X, y = noisy_classes(n=60, p=6, n_classes=3)
    SparseSVC(loss=loss).fit(X, y)
    assert capsys.readouterr() == ("", "")
    SparseSVC(loss=loss, verbose=1, tol=1e-8, n_jobs=2).fit(X, np.array(["a", "b", "c"])[y])
    matches = [LINE.fullmatch(line) for line in capsys.readouterr().out.splitlines()]
    assert matches
    assert all(matches)
    assert {match["label"] for match in matches} == {"'a'", "'b'", "'c'"}
    assert all(float(match["gap"]) >= 0 for match in matches)


# Interruptions


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_fit_leaves_the_model_as_it_was(monkeypatch, n_jobs):
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    model = SparseSVC(n_jobs=n_jobs, warm_start=True).fit(X, y)
    before = dict(vars(model))
    solve = anynorm.solvers.one_norm.solve_one_norm
    started = []

    def interrupt(problem, **options):
        started.append(problem)
        if len(started) == 2:
            raise KeyboardInterrupt
        return solve(problem, **options)

    monkeypatch.setattr(anynorm.solvers.one_norm, "solve_one_norm", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_bad_penalty_weights_leave_the_model_as_it_was():
    X, y = noisy_classes(n=60, p=4)
    model = SparseSVC().fit(X, y)
    before = dict(vars(model))
    model.set_params(penalty_weights=[1.0])
    with pytest.raises(ValueError, match="penalty_weights"):
        model.fit(X, y)
    assert vars(model) == before | {"penalty_weights": [1.0]}


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
@pytest.mark.parametrize("loss", LOSSES)
def test_an_interrupt_is_obeyed_within_half_a_second(loss, kind):
    X, y = hard_problem(4000, 1500)
    X = kind(X)
    model = SparseSVC(C=1e2, loss=loss, tol=1e-13, max_iter=10**9, time_limit=0.05)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)  # compiled now
    before = dict(vars(model))
    model.set_params(time_limit=None)
    # the best of three, for machines that have other things to do
    assert any(seconds_to_obey(model, X, y) < 0.5 for _ in range(3))
    assert vars(model) == before | {"time_limit": None}


@pytest.mark.parametrize(("n", "p"), [(60, 600), (700, 30)])
@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_a_linear_programme_starts_from_the_vertex_of_the_last_fit(loss, n, p):
    X, y = noisy_classes(n=n, p=p, n_classes=2, seed=3)
    warm = SparseSVC(loss=loss, C=0.1, tol=1e-9, max_iter=1000, warm_start=True).fit(X, y)
    assert warm.n_iter_ > 1
    warm.fit(X, y)
    assert warm.n_iter_ == 1  # at most a hundred pivots, cold or not
    warm.set_params(C=0.11).fit(X, y)
    cold = SparseSVC(loss=loss, C=0.11, tol=1e-9).fit(X, y)
    assert warm.n_iter_ < cold.n_iter_
    assert warm.certificate_.status is Status.OPTIMAL
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-9)
