"""What a fit of LinearSVC promises, beside what test_fits checks for SparseSVC too."""

import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

import anynorm.solvers.linear
from anynorm import LinearSVC
from anynorm.losses import LOSSES
from anynorm.problem.solution import Progress
from tests.estimators.plain import noisy_classes
from tests.spies import calls_of_solver


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


def test_the_same_seed_gives_the_same_bits():
    X, y = noisy_classes(n=80, p=6, n_classes=3)
    fits = [LinearSVC(random_state=seed).fit(X, y) for seed in (7, 7, np.random.RandomState(3))]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[2].certificate_.gap <= 1e-4
    again = LinearSVC(random_state=np.random.RandomState(3)).fit(X, y)
    np.testing.assert_array_equal(fits[2].coef_, again.coef_)


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


def test_duals_are_kept_for_warm_starts_only():
    X, y = noisy_classes(n=60, p=4)
    model = LinearSVC(warm_start=True).fit(X, y)
    kept = {name for name, value in vars(model).items() if name not in model.get_params()}
    model.set_params(warm_start=False).fit(X, y)
    public = {name for name, value in vars(model).items() if name not in model.get_params()}
    assert kept - public == {"_duals"}
    assert all(name.endswith("_") and not name.startswith("_") for name in public)


def test_the_deadline_is_shared_by_the_classes(monkeypatch):
    calls = calls_of_solver(monkeypatch, LinearSVC)
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    start = time.monotonic()
    LinearSVC(time_limit=100.0).fit(X, y)
    assert len({call["deadline"] for call in calls}) == 1
    assert start + 100.0 <= calls[0]["deadline"] <= time.monotonic() + 100.0
    calls.clear()
    LinearSVC().fit(X, y)
    assert {call["deadline"] for call in calls} == {None}


def test_more_progress(capsys):
    X, y = noisy_classes(n=60, p=4)
    model = LinearSVC(verbose=2).fit(X, y)
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == (
        "LinearSVC: 60 rows, 4 features (dense, float64), 2 classes, loss='hinge', C=1, tol=0.0001"
    )
    assert last == f"LinearSVC: {model.certificate_.per_class[0]}"


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
    running, stopped = threading.Event(), threading.Event()

    def endless(problem, *, progress, **options):
        if problem.y[0] > 0:  # one class is interrupted, the others run on
            running.wait(60.0)
            raise KeyboardInterrupt
        running.set()
        try:
            while True:
                progress(Progress(1, 1.0, 0.0, 1.0, 0.0))
                time.sleep(0.01)
        finally:
            stopped.set()

    monkeypatch.setattr(anynorm.solvers.linear, "solve_linear", endless)
    with pytest.raises(KeyboardInterrupt):
        LinearSVC(n_jobs=2).fit(X, y)
    assert stopped.wait(timeout=60.0)
