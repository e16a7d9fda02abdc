"""What the job does where the exact path would take too long, and how it says so."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from anynorm import SparseSVC, Status
from anynorm.app.job import FitOptions, OptionError, cost, judging, run_fit, searching
from anynorm.app.job.folds import numbered_splits
from anynorm.app.job.measures import blind_error
from anynorm.app.job.reporting import caution, content_of
from anynorm.app.job.results import summary
from anynorm.app.tables import SparseFrame, Table


def table_of(n=150, p=12, classes=2, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), np.linspace(-0.5, 0.5, classes - 1))
    names = [f"x{k}" for k in range(p)]
    if sparse:
        X[rng.random(X.shape) < 0.7] = 0.0
        y = (X[:, 0] + X[:, 1] > 0).astype(int)
    frame = SparseFrame(sp.csr_matrix(X), names) if sparse else pd.DataFrame(X, columns=names)
    labels = np.array(["low", "middle", "high"])[y] if classes == 3 else y
    return Table(frame, labels, np.arange(n).astype(str), None, None, "data.csv")


SQUARED = FitOptions(cv=3, loss="squared_hinge")


@pytest.fixture(scope="module")
def squared():
    return run_fit(table_of(), SQUARED)


def test_the_scores_are_those_of_fits_in_the_folds(squared):
    detail, X, y = squared.learned.detail, squared.table.features.to_numpy(), squared.oof.y
    for fold, (train, test) in enumerate(numbered_splits(squared.oof.folds)):
        scaler = StandardScaler().fit(X[train])
        for k in (1, len(detail.candidates) // 2, len(detail.candidates) - 1):
            model = SparseSVC(C=detail.candidates[k]["C"], loss="squared_hinge")
            model.fit(scaler.transform(X[train]), y[train])
            score = model.score(scaler.transform(X[test]), y[test])
            assert detail.scores[k, fold] == pytest.approx(score, abs=2.01 / len(test))
    assert detail.scores[0].mean() == pytest.approx(1 - blind_error("error", y), abs=0.02)


def test_the_model_is_certified_and_the_stop_is_told(squared):
    assert isinstance(squared.learned.model, SparseSVC)
    assert squared.converged
    assert squared.learned.choice["C"] == squared.learned.model.C
    assert squared.learned.stopped.startswith("cross-validation ended at C = ")
    assert any(note.startswith("Where the search stopped: ") for note in squared.notes)
    assert squared.errors[0].value < 0.3 < squared.baseline
    assert squared.no_better == caution(squared) == ""
    assert content_of(squared).packed()["caution"] == ""


@pytest.mark.parametrize("table", [table_of(classes=3, n=200), table_of(sparse=True, n=200)])
def test_several_classes_and_sparse_rows(table):
    found = run_fit(table, SQUARED)
    assert found.errors[0].value < found.baseline
    assert np.isfinite(found.oof.scores).all()
    content_of(found).packed()


def test_no_more_features_than_asked_for_and_a_word_where_that_costs():
    found = run_fit(table_of(p=20, seed=3), FitOptions(cv=3, loss="squared_hinge", max_features=1))
    assert np.count_nonzero(found.learned.model.coef_) <= 1


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_path_that_is_cut_where_the_error_still_fell_is_told(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    table = Table(
        pd.DataFrame(X).add_prefix("x"), (X.sum(axis=1) > 0).astype(int),
        np.arange(200).astype(str), None, None, "data.csv",
    )  # fmt: skip
    found = run_fit(table, FitOptions(cv=3, loss=loss, max_features=6))
    assert found.learned.still_rising
    assert caution(found) == "--max-features 6 ended the search where the error still fell."
    assert any("--max-features" in problem for problem in found.problems)
    assert found.converged


def test_the_shape_of_the_data_decides():
    for n, p, expected in ((60, 2000, "hinge"), (569, 30, "hinge"), (10_000, 20, "squared_hinge")):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, n)
        splits = [(np.arange(n), np.arange(0))] * 5
        task = cost.Task(None, None, y, None, np.arange(2), None, FitOptions(), splits, p, n * p)
        loss, notes = cost.method_for(task, 6)
        assert loss == expected
        assert bool(notes) == (expected != "hinge")
        if notes:
            assert "--loss hinge follows the path all the same" in notes[0]


def test_a_long_job_is_announced():
    splits = [(np.arange(10), np.arange(0))] * 5
    given = None, None, np.zeros(10**6, int), None, np.arange(2), None
    long = cost.Task(*given, FitOptions(loss="squared_hinge"), splits, 100, 10**8)
    assert cost.announcement(long, 6).startswith("This takes about ")
    short = cost.Task(*given, FitOptions(loss="squared_hinge"), splits, 1, 10**4)
    assert cost.announcement(short, 6) == ""


def test_too_many_folds_for_the_memory_are_an_error():
    with pytest.raises(OptionError, match=r"^--loss squared_hinge has all folds in memory"):
        run_fit(table_of(80), FitOptions(cv=25, loss="squared_hinge"))


@pytest.mark.parametrize("rule", ["steady", "best"])
def test_noise_is_called_no_better_than_the_most_frequent_class(rule):
    # with "steady" the error is the baseline, but for the last digit of a mean over the folds
    table = table_of(60, seed=5)
    noise = np.random.default_rng(7).permutation(table.target)
    table = Table(table.features, noise, table.ids, None, None, "data.csv")
    found = run_fit(table, FitOptions(cv=3, rule=rule))
    assert found.errors[0].value >= found.baseline - 1e-12
    assert found.no_better.startswith(("The model is no better than", "The model uses no feature"))
    assert f"{found.baseline:.1%}" in found.no_better
    assert caution(found) == found.no_better
    assert summary(found)["baseline"]["no_better"]


def rare(n=120, few=6):
    rng = np.random.default_rng(1)
    y = np.array(["many"] * (n - few) + ["few"] * few)
    X = rng.normal(size=(n, 5)) + 1.5 * (y == "few")[:, None]
    return Table(
        pd.DataFrame(X).add_prefix("x"), y, np.arange(n).astype(str), None, None, "data.csv"
    )


def test_a_rare_class_gets_a_hint():
    notes = " ".join(run_fit(rare(), FitOptions(cv=3)).notes)
    assert "(114 many, 6 few)" in notes
    assert "--scoring balanced" in notes
    assert "--class-weight balanced" in notes
    done = run_fit(rare(), FitOptions(cv=3, scoring="balanced", class_weight="balanced"))
    assert "very different size" not in " ".join(done.notes)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("weights", ["balanced", "few=19", {"few": 19.0, "many": 1.0}])
def test_class_weights_reach_the_fit(loss, weights):
    plain = run_fit(rare(), FitOptions(cv=3, loss=loss))
    found = run_fit(rare(), FitOptions(cv=3, loss=loss, class_weight=weights))
    expected = "balanced" if weights == "balanced" else {"few": 19.0, "many": 1.0}
    assert found.learned.model.class_weight == expected
    assert found.learned.model.intercept_ != plain.learned.model.intercept_
    assert found.converged


@pytest.mark.parametrize("model", ["reweighted", "linear", "kernel"])
def test_class_weights_reach_other_models(model):
    found = run_fit(rare(), FitOptions(cv=3, model=model, class_weight="balanced"))
    assert found.learned.model.class_weight == "balanced"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"class_weight": "heavy"}, "--class-weight must be balanced, or weights"),
        ({"class_weight": "few=-1"}, "--class-weight must be balanced, or weights"),
        ({"loss": "logistic"}, "--loss must be one of auto, hinge, squared_hinge"),
        ({"loss": "hinge", "model": "kernel"}, "--loss is for --model sparse"),
    ],
)
def test_options_that_cannot_be_used(given, message):
    with pytest.raises(OptionError, match=f"^{message}"):
        FitOptions(**given)


def test_a_class_that_is_not_there_is_named():
    with pytest.raises(OptionError, match=r"^--class-weight names 'none', which is no class"):
        run_fit(rare(), FitOptions(class_weight="none=2"))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_time_that_is_over_before_the_judging_is_told(loss):
    found = run_fit(table_of(), FitOptions(cv=3, loss=loss, time_limit=1e-6))
    assert found.cut
    assert not found.converged
    text = " ".join(found.problems)
    assert "--time-limit left no time for 3 of the 3 searches that judge the model" in text
    assert np.isfinite(found.oof.scores).all()
    assert "--time-limit" in caution(found) or "uses no feature" in caution(found)


def test_a_search_that_judges_and_was_ended_by_time_is_told(monkeypatch):
    """The model was certified, and all that was said was that it is not."""
    searches = []

    def learn(task, schedule, what):
        searches.append(what)
        return replace(searching.learn(task, schedule, what), cut=len(searches) == 2)

    monkeypatch.setattr(judging, "learn", learn)
    found = run_fit(table_of(), replace(SQUARED, time_limit=1000.0))
    assert found.learned.model.certificate_.status is Status.OPTIMAL
    assert found.cut
    assert not found.converged
    assert found.problems == [
        "--time-limit ended 1 of the 3 searches that judge the model before they were done: with "
        "more time the error may be smaller"
    ]
