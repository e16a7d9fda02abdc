"""The benchmark of searches compares the same settings in the same folds."""

import dataclasses
import types

import numpy as np
import pytest

from benchmarks import search
from benchmarks.generators import Data

DATA = Data("curved", 60, 6, 0)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(search, "N_CS", 2)
    monkeypatch.setattr(search, "N_GAMMAS", 2)
    monkeypatch.setattr(search, "N_FOLDS", 2)


def test_both_sides_have_the_same_table(small, tmp_path):
    given = {"folder": str(tmp_path), "data": dataclasses.asdict(DATA)}
    ours = search.search_ours(**given, repeats=0)
    folds = [search.search_peer(**given, fold=fold, tol=1e-6) for fold in range(2)]
    mean = np.mean([fold["scores"] for fold in folds], axis=0)
    assert len(mean) == 4
    assert ours["score"] == pytest.approx(mean.max(), abs=0.02)
    assert ours["gap"] <= search.GAP
    assert all(0 <= fold["gap"] < 1e-3 and fold["cpu"] > 0 for fold in folds)


def test_a_row_needs_the_same_choice(small, tmp_path, monkeypatch):
    run = search.Run(tmp_path, search.Sizes(DATA, (DATA,)), 0, 60.0)
    monkeypatch.setattr(run, "_call", lambda name, data, **more: found[name])
    X, _ = DATA.load(str(tmp_path))
    Cs, gammas = search.grid(X)
    choice = [float(Cs[0]), float(gammas[1])]
    ours = {"cpu": 2.0, "choice": choice, "score": 0.9, "gap": 1e-4, "left_out": 0}
    found = {
        "search_ours": ours,
        "search_peer": {"cpu": 10.0, "scores": [0.5, 0.9, 0.6, 0.7], "gap": 1e-3},
    }
    assert run.against_scikit_learn(3e-6).ratio == 10.0
    other = search.Run(tmp_path, search.Sizes(DATA, (DATA,)), 0, 60.0)
    found["search_peer"] = found["search_peer"] | {"scores": [0.9, 0.5, 0.6, 0.7]}
    monkeypatch.setattr(other, "_call", lambda name, data, **more: found[name])
    row = other.against_scikit_learn(3e-6)
    assert row.ratio is None
    assert "another choice" in row.note


@pytest.mark.parametrize(
    ("answers", "ratio", "said"),
    [
        ([{"time": 12.5}], 6.25, "at least"),
        (
            [{"time": 8.0, "score": 0.9}, {"excess": [1e-4, 0.7], "fold_excess": [0.1]}],
            4.0,
            "for all rows 1.0e-04 to 7.0e-01, 1 of 2 within 1e-03; in the folds 1.0e-01",
        ),
    ],
)
def test_torchkm_is_stopped_in_time(answers, ratio, said, tmp_path, monkeypatch):
    run = search.Run(tmp_path, search.Sizes(DATA, (DATA,)), 0, 60.0)
    mine = {"cpu": 2.0, "wall": 20.0, "score": 0.9, "gap": 1e-4}  # on a busy machine
    monkeypatch.setattr(run, "_call", lambda name, data, **more: mine)
    called = []
    left = iter(answers)
    monkeypatch.setattr(
        search.harness,
        "call",
        lambda name, given, **more: called.append((name, given)) or dict(next(left)),
    )
    row = run.against_torchkm(DATA, 1e-5)
    assert row.ratio == ratio
    assert said in row.note
    assert called[0][1]["patience"] == max(search.TORCH_LEAST, search.TORCH_PATIENCE * mine["cpu"])
    assert len(called) == len(answers)


def test_several_threads_are_timed_by_the_clock(tmp_path, monkeypatch):
    run = search.Run(tmp_path, search.Sizes(DATA, (DATA,)), 0, 60.0, threads=3, stop_after=50.0)
    mine = {"cpu": 5.0, "wall": 2.0, "score": 0.9, "gap": 1e-4}
    monkeypatch.setattr(run, "_call", lambda name, data, **more: mine)
    seen = {}
    monkeypatch.setattr(
        search.harness,
        "call",
        lambda name, given, **more: seen.update(given, **more) or {"time": 20.0},
    )
    row = run.against_torchkm(DATA, 1e-5)
    assert row.ratio == 10.0
    assert seen["threads"] == 3
    assert seen["patience"] == 50.0
    assert set(seen["environment"].values()) == {"3"}


def test_excess_of_a_peer_is_that_over_the_optimum(tmp_path, monkeypatch):
    """Our own solutions, given as the peer's, are within the gap, and twice one of them is not."""
    from anynorm import SVC

    monkeypatch.setattr(search, "TORCH_CS", 2)
    monkeypatch.setattr(search, "TORCH_FOLDS", 3)
    data = dataclasses.asdict(DATA)
    X, y, gamma = search.torch_task(str(tmp_path), data)
    Cs, betas, biases = search.torch_Cs(), np.zeros((len(y), 2)), np.zeros(2)

    def fitted(C, rows):
        model, beta = SVC(C=C, gamma=gamma, tol=1e-6).fit(X[rows], y[rows]), np.zeros(len(y))
        beta[rows[model.support_]] = model.dual_coef_[0]
        return beta, model.intercept_[0]

    for k, C in enumerate(Cs[::-1]):  # the peer's are from the largest to the least
        betas[:, k], biases[k] = fitted(C, np.arange(len(y)))
    train, test = search.splits(y, 3)[1]
    beta, _ = fitted(Cs[1], train)
    scores = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2)) @ beta
    np.savez(
        tmp_path / "torchkm.npz",
        betas=betas * [2.0, 1.0], biases=biases,
        left_out=[test.min()], lambdas=[1 / (2 * len(y) * Cs[1])],
        squares=[beta @ scores], scores=[scores],
    )  # fmt: skip
    found = search.torch_excess(str(tmp_path), data, threads=1)
    assert 0 <= found["excess"][0] <= 1.1e-4
    assert found["excess"][1] > 0.1
    assert -1e-6 <= found["fold_excess"][0] <= 1.1e-4


def test_torchkm_is_stopped_by_its_own_cpu_time(tmp_path, monkeypatch):
    """Time that others had on a busy machine was once counted as its own."""

    class Endless:
        def __init__(self, **given):
            pass

        def fit(self, X, y):
            while True:
                np.ones((100, 100)) @ np.ones(100)

    solver = types.SimpleNamespace(golden_section_search=None)
    fake = types.SimpleNamespace(
        TorchKMSVC=Endless, set_num_threads=lambda count: None, cvksvm=solver
    )
    modules = types.SimpleNamespace(import_module=lambda name: fake)
    monkeypatch.setattr(search, "importlib", modules)
    given = {"tol": 1e-5, "patience": 0.2, "threads": 1}
    found = search.torch_peer(str(tmp_path), dataclasses.asdict(DATA), **given)
    assert set(found) == {"time"}
    assert 0.15 < found["time"] < 5.0
