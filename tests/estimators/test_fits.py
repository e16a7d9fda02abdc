"""How LinearSVC and SparseSVC fit: threads, warm starts, limits, progress, interruptions."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from anynorm import SVC, LinearSVC, SparseSVC
from anynorm.losses import LOSSES
from anynorm.problem.solution import Status
from tests.estimators.plain import noisy_classes, objective_of
from tests.spies import Stopwatch, calls_of_solver, replace_solver, seconds_to_obey

every_model = pytest.mark.parametrize("Model", [LinearSVC, SparseSVC])
every_loss = pytest.mark.parametrize(
    ("Model", "loss"),
    [(LinearSVC, loss) for loss in LOSSES] + [(SparseSVC, loss) for loss in LOSSES],
)
dense_or_sparse = pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])


def hard_problem(n, p, decades):
    """Features of very different scale, and classes that almost can be separated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = X @ rng.normal(size=p) + 0.1 * rng.normal(size=n) > 0
    return X * np.logspace(-decades, decades, p), y


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
@every_loss
def test_any_number_of_threads_gives_the_same_bits(Model, loss, kind):
    X, y = noisy_classes(n=80, p=6, n_classes=5)
    one = Model(loss=loss, tol=1e-6).fit(kind(X), y)
    for n_jobs in (2, 3, -1):
        other = Model(loss=loss, tol=1e-6, n_jobs=n_jobs).fit(kind(X), y)
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.intercept_, other.intercept_)
        assert one.certificate_ == other.certificate_
        assert one.n_iter_ == other.n_iter_


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("n_classes", [2, 3])
@every_loss
def test_the_certificate_holds_for_the_coefficients_stored(Model, loss, n_classes, kind):
    X, y = noisy_classes(n=60, p=6, n_classes=n_classes, seed=1)
    model = Model(loss=loss, C=2.0, tol=1e-3).fit(kind(X), y)
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(objective_of(model, X, y), rel=1e-12)
    assert certificate.primal == pytest.approx(sum(c.primal for c in certificate.per_class))
    assert certificate.dual == pytest.approx(sum(c.dual for c in certificate.per_class))
    assert certificate.status is Status.OPTIMAL
    assert certificate.gap <= 1e-3
    exact = Model(loss=loss, C=2.0, tol=1e-11).fit(X, y).certificate_.primal
    assert certificate.dual <= exact * (1 + 1e-10)
    assert exact <= certificate.primal * (1 + 1e-10)


# Warm starts


@every_loss
@dense_or_sparse
def test_warm_starts_reach_the_same_optimum_for_a_changed_C(Model, loss, kind):
    X, y = noisy_classes(n=60, p=6, n_classes=3, seed=2)
    warm = Model(loss=loss, tol=1e-10, warm_start=True)
    for C in (0.1, 1.0, 30.0, 0.01):
        warm.set_params(C=C).fit(kind(X), y)
        cold = Model(loss=loss, C=C, tol=1e-10).fit(kind(X), y)
        assert warm.certificate_.gap <= 1e-10
        assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-9)
        if Model is LinearSVC:  # with the 1-norm there may be several optima
            np.testing.assert_allclose(warm.coef_, cold.coef_, rtol=1e-4, atol=1e-5)


@every_model
def test_a_warm_start_hands_over_the_previous_duals(monkeypatch, Model):
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    calls = calls_of_solver(monkeypatch, Model)
    model = Model(warm_start=True).fit(X, y)
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
@every_model
def test_duals_of_another_problem_do_no_harm(Model, change):
    X, y = noisy_classes(n=60, p=6, seed=3)
    weights = np.random.default_rng(0).integers(0, 3, size=60)
    model = Model(warm_start=True, tol=1e-9).fit(X, y)
    model.set_params(**change).fit(X, y, sample_weight=weights)
    cold = Model(tol=1e-9).set_params(**change).fit(X, y, sample_weight=weights)
    assert model.certificate_.gap <= 1e-9
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-8)


# Limits


@dense_or_sparse
@pytest.mark.parametrize(
    ("Model", "loss"), [(LinearSVC, "hinge"), *((SparseSVC, loss) for loss in LOSSES)]
)
def test_a_time_limit_ends_a_fit_with_a_certified_model(Model, loss, kind):
    X, y = hard_problem(4000, 150, 3) if Model is LinearSVC else hard_problem(600, 400, 2)
    X = kind(X)
    model = Model(C=1e3, loss=loss, tol=1e-13, time_limit=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)  # compiled now
    watch = Stopwatch()
    with pytest.warns(ConvergenceWarning, match=r"relative gap of .* raise time_limit"):
        model.fit(X, y)
    assert watch.seconds < 30.0
    assert model.certificate_.status is Status.TIME_LIMIT
    assert 1e-13 < model.certificate_.gap < np.inf
    assert np.isfinite(model.coef_).all()
    assert model.certificate_.primal == pytest.approx(objective_of(model, X, y), rel=1e-9)


@dense_or_sparse
@pytest.mark.parametrize(
    ("Model", "loss"),
    [
        *((LinearSVC, loss) for loss in ("hinge", "logistic", "absolute")),
        *((SparseSVC, loss) for loss in LOSSES),
    ],
)
def test_too_few_iterations_end_with_a_warning_and_a_true_certificate(Model, loss, kind):
    X, y = hard_problem(300, 40, 3) if Model is LinearSVC else hard_problem(200, 40, 2)
    model = Model(C=10.0, loss=loss, tol=1e-12, max_iter=1)
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
    exact = Model(C=10.0, loss=loss, tol=1e-8).fit(X, y).certificate_
    assert model.certificate_.dual <= exact.primal
    assert exact.dual <= model.certificate_.primal


@dense_or_sparse
@every_loss
def test_a_gap_beyond_float64_is_not_chased_for_ever(Model, loss, kind):
    X, y = noisy_classes(n=60, p=6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Model(loss=loss, tol=1e-300, time_limit=600.0).fit(kind(X), y)
    assert model.certificate_.gap < (1e-11 if Model is SparseSVC else 1e-12)
    assert model.certificate_.status in (Status.NEGLIGIBLE, Status.MAX_ITER)
    assert len(caught) == 1
    assert re.search("float64 cannot tell|no method came closer", str(caught[0].message))


# Progress


LINE = re.compile(
    r"(?:LinearSVC|SparseSVC)(?:, class (?P<label>\S+) against the rest)?: "
    r"iteration (?P<iteration>\d+), "
    r"primal (?P<primal>\S+), dual (?P<dual>\S+), gap (?P<gap>\S+), (?P<seconds>\S+) s"
)


@every_loss
def test_silence_is_the_default(Model, loss, capsys):
    X, y = noisy_classes(n=60, p=6, n_classes=3)
    Model(loss=loss).fit(X, y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("n_jobs", [1, 2])
@every_loss
def test_progress_is_a_line_per_report(Model, loss, capsys, n_jobs):
    X, y = noisy_classes(n=60, p=6, n_classes=3)
    names = np.array(["ash", "birch", "cedar"])[y]
    model = Model(loss=loss, verbose=1, tol=1e-8, n_jobs=n_jobs).fit(X, names)
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


# Interruptions


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("Model", [LinearSVC, SparseSVC, SVC])
def test_an_interrupted_fit_leaves_the_model_as_it_was(monkeypatch, Model, error, n_jobs):
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    model = Model(n_jobs=n_jobs, warm_start=True).fit(X, y)
    before, scores = dict(vars(model)), model.decision_function(X)
    started = []

    def interrupt(solve, problem, **options):
        started.append(problem)
        if len(started) == 2:
            raise error
        return solve(problem, **options)

    replace_solver(monkeypatch, Model, interrupt)
    with pytest.raises(error):
        model.fit(X[:, :2], y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.decision_function(X), scores)


@dense_or_sparse
@pytest.mark.parametrize(
    ("Model", "loss"), [(LinearSVC, "hinge"), *((SparseSVC, loss) for loss in LOSSES)]
)
def test_an_interrupt_is_obeyed_within_half_a_second(Model, loss, kind):
    C, size = (1e4, (20_000, 150, 3)) if Model is LinearSVC else (1e2, (4000, 1500, 2))
    X, y = hard_problem(*size)
    X = kind(X)
    model = Model(C=C, loss=loss, tol=1e-13, max_iter=10**9, time_limit=0.05)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)  # compiled now
    before = dict(vars(model))
    model.set_params(time_limit=None)
    # the best of three, for machines that have other things to do
    assert any(seconds_to_obey(lambda: model.fit(X, y)) < 0.5 for _ in range(3))
    assert vars(model) == before | {"time_limit": None}
