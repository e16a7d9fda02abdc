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
        ([{"cpu": 12.5}], 6.25, "at least"),
        ([{"cpu": 11.0, "score": 0.9}], 5.5, "no time was left"),
        ([{}, {"cpu": 8.0, "score": 0.9, "excess": [0.1, 0.7]}], 4.0, "1.0e-01 to 7.0e-01"),
    ],
)
def test_torchkm_is_stopped_in_time(answers, ratio, said, tmp_path, monkeypatch):
    run = search.Run(tmp_path, search.Sizes(DATA, (DATA,)), 0, 60.0)
    mine = {"cpu": 2.0, "wall": 20.0, "score": 0.9, "gap": 1e-4}  # on a busy machine
    monkeypatch.setattr(run, "_call", lambda name, data, **more: mine)
    patience = []
    monkeypatch.setattr(
        search.harness,
        "call_each",
        lambda name, given, limit: patience.append(given["patience"]) or answers,
    )
    row = run.against_torchkm(DATA)
    assert row.ratio == ratio
    assert said in row.note
    assert patience == [search.TORCH_PATIENCE * mine["cpu"]]


def test_torchkm_is_stopped_by_its_own_cpu_time(tmp_path, monkeypatch):
    """Time that others had on a busy machine was once counted as its own."""

    class Endless:
        def __init__(self, **given):
            pass

        def fit(self, X, y):
            while True:
                np.ones((100, 100)) @ np.ones(100)

    fake = types.SimpleNamespace(TorchKMSVC=Endless, set_num_threads=lambda count: None)
    modules = types.SimpleNamespace(import_module=lambda name: fake)
    monkeypatch.setattr(search, "importlib", modules)
    [found] = search.torch_peer(str(tmp_path), dataclasses.asdict(DATA), patience=0.2)
    assert set(found) == {"cpu"}
    assert 0.15 < found["cpu"] < 5.0
