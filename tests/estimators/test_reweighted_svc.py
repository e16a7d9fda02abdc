"""What ReweightedSVC promises: rounds, stages, weights, classes, limits, an intact state."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

import anynorm.solvers.linear
from anynorm import LinearSVC, ReweightedSVC
from anynorm.datasets import make_relevant
from anynorm.losses import LOSSES
from anynorm.problem.solution import Status
from tests.estimators.plain import LOSS_OF_MARGIN, noisy_classes
from tests.spies import Stopwatch

X2, Y2 = make_relevant(n_samples=80, n_features=60, n_relevant=4, random_state=0)


def one_norm_objective(model, record, X, y, weights=None):
    """The 1-norm objective of a record, without the package."""
    weights = np.ones(len(y)) if weights is None else weights
    total = 0.0
    for k, (coef, intercept) in enumerate(zip(record.coef, record.intercept, strict=True)):
        positive = model.classes_[1 if len(model.classes_) == 2 else k]
        signs = np.where(np.asarray(y) == positive, 1.0, -1.0)
        losses = LOSS_OF_MARGIN[model.loss](signs * (X @ coef + intercept))
        total += np.abs(coef).sum() + model.C * weights @ losses
    return total


# Rounds


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_history_has_one_record_per_round(loss, n_classes):
    X, y = noisy_classes(n=60, p=12, n_classes=n_classes)
    model = ReweightedSVC(C=0.2, n_rounds=5, loss=loss).fit(X, y)
    K = 1 if n_classes == 2 else n_classes
    assert len(model.history_) == 5
    for record in model.history_:
        assert record.coef.shape == (K, 12)
        assert record.intercept.shape == (K,)
        assert record.objective == pytest.approx(one_norm_objective(model, record, X, y), rel=1e-10)
        assert record.n_nonzero == np.count_nonzero(record.coef.any(axis=0))
        assert record.certificate.status is Status.OPTIMAL
        assert record.certificate.gap <= 1e-4
        assert len(record.certificate.per_class) == len(record.l1_certificate.per_class) == K
        assert record.l1_certificate.primal == pytest.approx(record.objective)
        assert record.l1_certificate.dual <= model.history_[-1].objective
    objectives = [record.objective for record in model.history_]
    for before, after in pairwise(objectives):
        assert after <= before * (1 + 2e-4)
    np.testing.assert_array_equal(model.coef_, model.history_[-1].coef)
    np.testing.assert_array_equal(model.intercept_, model.history_[-1].intercept)
    assert model.certificate_ == model.history_[-1].certificate


@pytest.mark.parametrize("loss", LOSSES)
def test_one_round_is_LinearSVC(loss):
    X, y = noisy_classes(n=60, p=8, n_classes=3)
    walked = ReweightedSVC(n_rounds=1, loss=loss).fit(X, y)
    plain = LinearSVC(loss=loss).fit(X, y)
    np.testing.assert_array_equal(walked.coef_, plain.coef_)
    np.testing.assert_array_equal(walked.intercept_, plain.intercept_)
    assert walked.certificate_ == plain.certificate_
    assert walked.n_iter_ == plain.n_iter_


def test_stages_are_the_fits_with_fewer_rounds():
    model = ReweightedSVC(C=0.1, n_rounds=5).fit(X2, Y2)
    scores, labels = list(model.staged_decision_function(X2)), list(model.staged_predict(X2))
    assert len(scores) == len(labels) == 5
    for k in range(5):
        alone = ReweightedSVC(C=0.1, n_rounds=k + 1).fit(X2, Y2)
        np.testing.assert_array_equal(alone.decision_function(X2), scores[k])
        np.testing.assert_array_equal(alone.predict(X2), labels[k])
    np.testing.assert_array_equal(model.predict(X2), labels[-1])


def test_stages_of_several_classes():
    X, y = noisy_classes(n=60, p=8, n_classes=3)
    model = ReweightedSVC(n_rounds=2).fit(sp.csr_array(X), np.array(["a", "b", "c"])[y])
    for scores, labels in zip(
        model.staged_decision_function(X), model.staged_predict(X), strict=True
    ):
        assert scores.shape == (60, 3)
        np.testing.assert_array_equal(labels, np.array(["a", "b", "c"])[scores.argmax(axis=1)])


def test_pruned_coefficients_are_zeros():
    model = ReweightedSVC(C=0.1, n_rounds=10).fit(X2, Y2)
    whole = ReweightedSVC(C=0.1, n_rounds=10, prune=False).fit(X2, Y2)
    assert np.count_nonzero(model.coef_) == model.history_[-1].n_nonzero < 40
    assert np.count_nonzero(whole.coef_) == 60
    assert np.abs(whole.coef_[model.coef_ == 0]).max() < 0.05 * np.abs(whole.coef_).max()
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=0.05)
    assert np.mean(model.predict(X2) == whole.predict(X2)) > 0.97


def test_irrelevant_features_fade():
    X, y = make_relevant(n_relevant=2, random_state=0)
    test, truth = make_relevant(n_relevant=2, random_state=1)
    model = ReweightedSVC(C=0.1, n_rounds=6).fit(X, y)
    accuracy = [np.mean(labels == truth) for labels in model.staged_predict(test)]
    assert max(accuracy[1:]) > accuracy[0] + 0.05
    assert set(np.argsort(-np.abs(model.coef_[0]))[:2]) == {0, 1}


def test_the_penalised_intercept_is_a_feature():
    """A constant column, without an intercept, is the same model."""
    for scale in (1.0, 2.5):
        model = ReweightedSVC(C=0.5, intercept_scaling=scale, prune=False, tol=1e-10)
        model.fit(X2, Y2)
        by_hand = ReweightedSVC(C=0.5, fit_intercept=False, prune=False, tol=1e-10)
        by_hand.fit(np.column_stack([X2, np.full(len(Y2), scale)]), Y2)
        np.testing.assert_allclose(model.coef_, by_hand.coef_[:, :-1], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(
            model.intercept_, scale * by_hand.coef_[:, -1], rtol=1e-5, atol=1e-7
        )
        for one, other in zip(model.history_, by_hand.history_, strict=True):
            assert one.objective == pytest.approx(other.objective, rel=1e-8)


# Weights, storage, threads


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_equal_repetition(loss, prune):
    X, y = noisy_classes(n=40, p=8, n_classes=3, seed=4)
    times = np.random.default_rng(1).integers(0, 4, size=len(y))
    model = ReweightedSVC(C=0.3, loss=loss, prune=prune, tol=1e-8, class_weight="balanced")
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    weighted = clone(model).fit(X, y, sample_weight=times)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(weighted.coef_ == 0, repeated.coef_ == 0)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, np.asfortranarray, np.float32])
def test_storage_does_not_matter(kind):
    X = np.round(8 * X2) / 8
    model = ReweightedSVC(C=0.1, n_rounds=5).fit(X, Y2)
    other = ReweightedSVC(C=0.1, n_rounds=5).fit(kind(X), Y2)
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-5, atol=1e-8)
    np.testing.assert_array_equal(other.predict(kind(X)), model.predict(X))


def test_any_number_of_threads_gives_the_same_bits():
    X, y = noisy_classes(n=80, p=12, n_classes=4)
    one = ReweightedSVC().fit(X, y)
    two = ReweightedSVC(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.certificate_ == two.certificate_


def test_clone_pickle_and_grid_search():
    model = ReweightedSVC(n_rounds=2)
    search = GridSearchCV(model, {"C": [0.01, 0.1], "n_rounds": [1, 3]}, cv=3).fit(X2, Y2)
    assert set(search.best_params_) == {"C", "n_rounds"}
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(X2), search.predict(X2))
    assert again.history_[0].objective == search.best_estimator_.history_[0].objective


# Warm starts, limits, progress, state


def test_warm_starts_begin_with_the_duals_of_the_first_round(monkeypatch):
    starts = []
    walk = anynorm.solvers.linear.walk

    def spy(problem, *, start, **options):
        starts.append(start)
        return walk(problem, start=start, **options)

    monkeypatch.setattr(anynorm.solvers.linear, "walk", spy)
    model = ReweightedSVC(warm_start=True, C=0.1).fit(X2, Y2)
    first = model.coef_.copy()
    model.fit(X2, Y2)
    assert starts[0] is None
    assert starts[1].shape == (80,)
    np.testing.assert_allclose(model.coef_, first, rtol=1e-4, atol=1e-6)
    cold = ReweightedSVC(C=1.0).fit(X2, Y2)
    np.testing.assert_allclose(model.set_params(C=1.0).fit(X2, Y2).coef_, cold.coef_, atol=1e-4)


def test_a_time_limit_keeps_what_was_reached():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 150)) * np.logspace(-2, 2, 150)
    y = X @ rng.normal(size=150) > 0
    model = ReweightedSVC(C=1e3, tol=1e-12, n_rounds=50, time_limit=0.2)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)  # compiled now
    watch = Stopwatch()
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        model.fit(X, y)
    assert watch.seconds < 20.0
    assert len(model.history_) == 50
    assert model.certificate_.status is Status.TIME_LIMIT
    objectives = [record.objective for record in model.history_]
    assert np.all(np.diff(objectives) <= 1e-9 * objectives[0])


def test_progress_is_a_line_per_report(capsys):
    ReweightedSVC(verbose=2).fit(X2, Y2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ReweightedSVC: 80 rows, 60 features")
    assert all(line.startswith("ReweightedSVC: ") for line in lines)
    assert len(lines) > 4


def test_an_interrupted_fit_leaves_the_model_as_it_was(monkeypatch):
    model = ReweightedSVC().fit(X2, Y2)
    before = dict(vars(model))

    def interrupt(problem, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(anynorm.solvers.linear, "walk", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X2[:, :3], Y2)
    assert all(vars(model)[name] is value for name, value in before.items())


# Errors


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_rounds", value) for value in (0, -1, 2.5, "3", None, True)]
    + [("prune", value) for value in (1, "yes", None)],
)
def test_a_bad_parameter_is_named(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be "):
        ReweightedSVC().set_params(**{name: value}).fit(X2, Y2)


def test_stages_need_a_fit():
    with pytest.raises(NotFittedError):
        next(ReweightedSVC().staged_predict(X2))
    model = ReweightedSVC().fit(X2, Y2)
    with pytest.raises(ValueError, match="features"):
        next(model.staged_predict(X2[:, :3]))


def test_no_warning_where_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for C in (1e-6, 1.0, 1e4):
            model = ReweightedSVC(C=C, n_rounds=10).fit(X2, Y2)
            assert all(each.certificate.gap <= model.tol for each in model.history_)
