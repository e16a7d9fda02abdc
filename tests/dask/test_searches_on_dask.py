"""Searches spread over a cluster by joblib's Dask backend: the same choices, one thread each."""

import os
import warnings

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from anynorm import SVCCV, LinearSVC, ReweightedSVCCV, SparseSVCCV
from anynorm.design.threads import allowed, entry_point
from anynorm.estimators import _stages_apart
from anynorm.estimators._spread import spread
from tests.dask.data import rows


class Asking:
    """Says how many threads work may use that was given all of them."""

    n_jobs = -1

    @entry_point
    def count(self):
        return allowed()


@pytest.fixture(scope="module")
def few():
    return rows(n=120, p=4)


def test_a_grid_search_chooses_on_the_cluster_what_it_chooses_here(client, few):
    search = GridSearchCV(LinearSVC(n_jobs=-1), {"C": [0.01, 0.1, 1.0]}, cv=2)
    here = search.fit(*few).cv_results_["mean_test_score"]
    with joblib.parallel_config(backend="dask"):
        there = search.fit(*few).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize(
    "model",
    [
        SVCCV(Cs=[0.1, 1.0], cv=2, n_jobs=-1),
        SparseSVCCV(cv=2, n_jobs=-1),
        ReweightedSVCCV(Cs=[0.1, 1.0], cv=2, n_jobs=-1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_our_searches_are_judged_on_the_cluster_as_here(client, few, model):
    here = cross_val_score(model, *few, cv=2)
    with joblib.parallel_config(backend="dask"):
        there = cross_val_score(model, *few, cv=2)
    np.testing.assert_array_equal(here, there)


def test_a_fit_in_a_task_of_the_cluster_has_one_thread(client):
    with joblib.parallel_config(backend="dask"):
        found = joblib.Parallel()(joblib.delayed(Asking().count)() for _ in range(4))
    assert found == [1] * 4


def test_the_workers_of_a_cluster_are_no_threads_of_this_process(client, monkeypatch):
    """Two workers let a search here have two threads, however few cores this machine has."""
    monkeypatch.setattr(joblib, "cpu_count", lambda *_, **__: 1)
    with joblib.parallel_config(backend="dask"):
        assert Asking().count() == 1


def fitted(model):
    """What a fit leaves that says what was found."""
    found = {name: value for name, value in vars(model).items() if name.endswith("_")}
    table = {name: column for name, column in model.cv_results_.items() if "time" not in name}
    return {**found, **table}


def assert_same(one, other, but=()):
    assert one.keys() == other.keys()
    for name in one.keys() - {
        *but,
        "preprocessor_",
        "certificate_",
        "cv_results_",
        "path_",
        "paths_",
    }:
        if isinstance(one[name], np.ndarray) and one[name].dtype != object:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.fixture(scope="module")
def several():
    X, y = rows(n=150, p=5)
    return X, np.where(X[:, 1] > 0.8, "third", np.where(y, "yes", "no"))


@pytest.mark.parametrize("classes", ["few", "several"])
@pytest.mark.parametrize(
    "model",
    [
        SVCCV(Cs=[0.1, 1.0], gammas=[0.1, 1.0], cv=3, stop_early=False),
        SVCCV(Cs=2, gammas=1, cv=3, preprocessor=StandardScaler(), scoring="balanced_accuracy"),
        SparseSVCCV(cv=3),
        SparseSVCCV(cv=3, stop_early=False, calibration="sigmoid"),
        SparseSVCCV(cv=3, preprocessor=StandardScaler(), scoring="f1_macro", time_limit=1000),
        SparseSVCCV(cv=22),  # more folds than are kept together
        ReweightedSVCCV(Cs=[0.1, 1.0], cv=3),
        ReweightedSVCCV(Cs=3, cv=3, preprocessor=StandardScaler(), scoring="balanced_accuracy"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_folds_on_the_cluster_give_what_they_give_here(client, request, model, classes):
    X, y = request.getfixturevalue(classes)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    here = fitted(model.fit(X, y, sample_weight=weights))
    with joblib.parallel_config(backend="dask"):
        there = fitted(model.fit(X, y, sample_weight=weights))
    assert_same(here, there)
    assert not any(client.run(lambda: dict(_stages_apart._kept)).values())


def test_hopeless_settings_do_not_change_the_choice(client, few):
    """The workers know less of them, so that more are fitted."""
    model = SVCCV(Cs=[1e-3, 1.0, 1e3], gammas=[1e-3, 0.1, 10.0], cv=5)
    here = fitted(model.fit(*few))
    with joblib.parallel_config(backend="dask"):
        there = fitted(model.fit(*few))
    assert there["best_params_"] == here["best_params_"]
    np.testing.assert_array_equal(there["dual_coef_"], here["dual_coef_"])
    left_out = np.isnan(there["mean_test_score"])
    np.testing.assert_array_equal(left_out & np.isnan(here["mean_test_score"]), left_out)


@pytest.mark.parametrize("n_jobs", [None, -1, 1])
@pytest.mark.parametrize("kind", [SVCCV, SparseSVCCV, ReweightedSVCCV])
def test_the_folds_are_where_they_were_asked_for(client, few, kind, n_jobs, tmp_path):
    def note(X):
        (tmp_path / str(os.getpid())).touch()
        return X

    with joblib.parallel_config(backend="dask"):
        kind(cv=2, preprocessor=FunctionTransformer(note), n_jobs=n_jobs).fit(*few)
    asked = {int(file.name) for file in tmp_path.iterdir()}
    workers = set(client.run(os.getpid).values())
    assert bool(asked & workers) == (n_jobs != 1)


def test_a_fold_that_comes_to_another_worker_is_followed_anew(client, few, monkeypatch):
    """Nothing is kept here: every stage begins from s = 0."""
    model = SparseSVCCV(cv=3)
    here = fitted(model.fit(*few))

    def forgetful(function, shared, given):
        found = [function(shared, each) for each in given]
        _stages_apart._forget(shared.name)
        return found

    monkeypatch.setattr(_stages_apart, "spread", forgetful)
    with joblib.parallel_config(backend="dask"):
        assert_same(here, fitted(model.fit(*few)))


def test_warnings_of_the_workers_are_given_here(client):
    def warns(shared, given):
        warnings.warn(f"{shared} {given}", ConvergenceWarning, stacklevel=1)
        return given

    with joblib.parallel_config(backend="dask"), pytest.warns(ConvergenceWarning) as said:
        assert spread(warns, "of part", [1, 2]) == [1, 2]
    assert [str(each.message) for each in said] == ["of part 1", "of part 2"]


def test_time_that_is_over_ends_the_folds_on_the_cluster(client):
    X, y = rows(n=600, p=60)
    with joblib.parallel_config(backend="dask"):
        for model in (SparseSVCCV(cv=3), ReweightedSVCCV(cv=3), SVCCV(cv=3)):
            with pytest.warns(ConvergenceWarning, match="time_limit"):
                model.set_params(time_limit=1e-3).fit(X, y)
