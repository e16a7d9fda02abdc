"""Failures of the main job on ordinary data, as users met them."""

import numpy as np
import pandas as pd

from anynorm.app.job import FitOptions, run_fit
from anynorm.app.job.reporting import content_of
from anynorm.app.job.schedule import Schedule
from anynorm.app.tables import Table


def table_of(X, y):
    ids = np.arange(len(y)).astype(str)
    return Table(pd.DataFrame(X).add_prefix("x"), y, ids, None, None, "data.csv")


def test_an_empty_model_is_not_praised():
    """A time limit gave a model of no features under a green "Certified optimal"."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = (X[:, 0] > 0).astype(int)
    options = FitOptions(cv=3, loss="squared_hinge", time_limit=1e-6)
    found = run_fit(table_of(X, y), options)
    assert not found.learned.model.coef_.any()
    assert found.no_better.startswith("The model uses no feature: it is always predicting ")
    page = content_of(found).packed()
    assert page["caution"] == found.no_better
    assert page["certificate"]["status"] == "optimal"  # of the problem, which is not the choice


def test_several_classes_share_their_price_by_default():
    """One s for classes of very different difficulty cost a tenth of the rows of five classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8))
    y = np.where(X[:, 0] > 0.8, 2, (X[:, 1] + 0.8 * rng.normal(size=120) > 0).astype(int))
    found = run_fit(table_of(X, y), FitOptions(cv=3))
    prices, bounds = found.learned.model.C_, found.learned.model.s_
    assert len(np.unique(bounds)) == 3
    assert prices.max() < 10 * prices.min()


def test_a_search_that_has_found_nothing_goes_on(monkeypatch):
    """A sixth of 60 s was too short for the first C of 5000 x 2000: six models without features."""
    monkeypatch.setattr(Schedule, "share_of_time", lambda self: 1e-6)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = (X[:, 0] > 0).astype(int)
    options = FitOptions(cv=3, loss="squared_hinge", time_limit=600.0)
    found = run_fit(table_of(X, y), options)
    assert found.learned.model.coef_.any()
    assert found.errors[0].value < 0.2


def test_the_number_of_features_is_known_to_end_the_search_too_soon():
    """Twenty words gave 30 % error, where 500 give 11 %, without a word about it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12))
    y = (X.sum(axis=1) > 0).astype(int)
    for loss in ("hinge", "squared_hinge"):
        found = run_fit(table_of(X, y), FitOptions(cv=3, loss=loss, max_features=3))
        assert any("--max-features" in problem for problem in found.problems)
        assert "--max-features 3" in content_of(found).packed()["caution"]
