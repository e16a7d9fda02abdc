"""The benchmark of Dask's workers: what its rows compare, and at which size goals count."""

import pathlib

import pytest

from benchmarks import dask, harness
from benchmarks.dask_fits import GAP
from benchmarks.dask_rows import fewest

TIMES = {
    "one": {"wall": 3.0, "cpu": 2.0},
    "workers": {"wall": 1.5, "cpu": 3.2},
    "rounds": {"sums": 20, "step": 6},
    "numbers": 120_000.0,
    "difference": 1e-5,
}
OURS = {"wall": 1.0, "cpu": 2.0, "gap": 1e-5}
PEERS = {
    "lbfgs": {"wall": 4.0, "cpu": 7.0, "gap": 5e-4, "iterations": 7},
    "admm": {"wall": 9.0, "cpu": 42.0, "gap": 2e-3, "iterations": 50},
}


@pytest.fixture
def asked(monkeypatch):
    """What was measured, instead of clusters that answer."""
    asked = []

    def call(function, given, *, limit):
        asked.append(function)
        if "solver" in given:
            return {"ours": OURS, "peer": PEERS[given["solver"]]}
        return TIMES

    monkeypatch.setattr(harness, "call", call)
    monkeypatch.setattr(dask.importlib.util, "find_spec", lambda name: name == "dask_ml")
    return asked


def rows_of(sizes):
    return {title: job() for title, job in dask.Run(pathlib.Path(), sizes, 2, 60.0).jobs("")}


def test_rows_of_a_fit_are_from_one_measurement(asked):
    rows = rows_of(dask.FULL)
    assert sorted(asked) == [
        "benchmarks.dask_fits:compared",
        "benchmarks.dask_fits:compared",
        "benchmarks.dask_rows:beside_dask_ml",
        "benchmarks.dask_rows:beside_dask_ml",
        "benchmarks.dask_rows:strict_budget",
    ]
    found = {
        title: (row.ratio, row.met) for title, row in rows.items() if title.startswith("dense")
    }
    assert found == {
        "dense wall": (2.0, True),
        "dense processor": (1.6, False),
        "dense rounds": (26, True),
        "dense numbers": (3.0, True),
    }
    assert rows["sparse numbers"].ratio == pytest.approx(120_000 / 50_000)
    assert "memory" not in rows


def test_goals_of_more_rows_than_were_run_are_not_judged(asked):
    titles = ("budget wall", "budget processor", "dask-ml lbfgs", "dask-ml admm")
    fewer = rows_of(dask.FULL)
    assert [fewer[title].met for title in titles] == [None] * 4
    assert "5,000,000 rows" in fewer["budget wall"].note
    all_rows = dask.dataclasses.replace(
        dask.FULL, budget_rows=dask.BUDGET_ROWS, peer_rows=dask.PEER_ROWS
    )
    found = rows_of(all_rows)
    assert [found[title].met for title in titles] == [True, False, True, True]
    assert "lower bound" in found["dask-ml admm"].note
    assert "lower bound" not in found["dask-ml lbfgs"].note


@pytest.mark.parametrize("needed", [1, 3, 6, 7, 13, 90])
def test_a_peer_is_given_the_fewest_iterations_that_do(needed):
    def trial(steps):
        gap = GAP if steps >= needed else 2 * GAP
        return {"cpu": steps, "gap": gap, "iterations": steps}

    found = fewest(trial, most=1000.0)
    assert needed <= found["iterations"] <= needed + max(1, needed // 4)


def test_a_peer_that_takes_too_long_is_given_no_more():
    found = fewest(lambda steps: {"cpu": steps, "gap": 1.0, "iterations": steps}, most=15.0)
    assert found["iterations"] == 20


def test_workers_that_were_ended_are_a_row_and_other_failures_are_not(monkeypatch):
    def fails(message):
        def call(*given, **options):
            raise RuntimeError(message)

        monkeypatch.setattr(harness, "call", call)
        return dict(dask.Run(pathlib.Path(), dask.FULL, 2, 60.0).jobs("memory"))["memory"]()

    row = fails("failed in its process: distributed.scheduler.KilledWorker: ...")
    assert row.met is False
    assert "nannies" in row.note
    with pytest.raises(RuntimeError, match="no such file"):
        fails("no such file")
