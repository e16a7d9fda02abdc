"""Searches spread over a cluster by joblib's Dask backend: the same choices, one thread each."""

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from anynorm import SVCCV, LinearSVC, ReweightedSVCCV, SparseSVCCV
from anynorm.design.threads import allowed, entry_point
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
