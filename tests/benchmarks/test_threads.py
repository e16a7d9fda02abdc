"""The benchmark of default threads measures our side of every row, by turns in one process."""

import importlib
import itertools
import pathlib

import pytest

from benchmarks import harness, report, threads


def test_runs_take_turns_with_many_threads_and_with_one():
    """And the answer of the function is the same as without."""
    pairs, counts = harness.make_calls(
        "tests.processes:threads_ours",
        {"share": 0.05},
        60.0,
        {harness.BOTH_WAYS: "0.5"},
        one_thread=False,
    )
    assert counts[:5] == [2, 1, 2, 2, 1]
    assert 1 <= len(pairs["pairs"]) == len(counts) // 2 <= 10  # the first run does not count


def test_long_work_is_run_once_each_after_a_first_run():
    runs = itertools.count(1)
    found, result = harness._both_ways(lambda: next(runs), share=0.0)
    assert (len(found), result, next(runs)) == (1, 3, 4)


def test_rows_are_ours_and_the_worst_is_first():
    rows = threads.main(["bridge", "--quick", "--only", "200 points", "--seconds", "0.2"])
    rows += threads.main(["sparse", "--quick", "--only", "path, ", "--seconds", "0.2"])
    assert [row.work for row in rows[:1]] == ["bridge: hull, 200 points in R^50"]
    works = {"sparse: path, microarray 20 x 150", "sparse: path, dense 40 x 15"}
    assert {row.work for row in rows[1:]} == works
    assert all(row.ratio > 0 and row.bound is None for row in rows)
    assert rows[1].ratio <= rows[2].ratio


def test_what_is_not_ours_or_is_about_compiling_is_left_out():
    turns = threads.Turns(0.1, 60.0)
    with harness.calls_made_by(turns):
        for function, environment in (("m:path_peer", None), ("m:path_ours", {"CACHE": "empty"})):
            with pytest.raises(threads._NotOurs):
                harness.call(function, {}, environment=environment)
    assert turns.rows == []


def test_work_that_does_not_end_misses_the_goal():
    turns = threads.Turns(0.1, 0.5)
    with pytest.raises(threads._NotOurs):
        turns("tests.processes:threads_ours", {"share": 60.0}, 60.0, None)
    [row] = turns.rows
    assert row.met is False
    assert "took over 0.5 s" in row.note


def test_every_benchmark_that_times_us_is_there():
    names = {
        path.stem
        for path in pathlib.Path(threads.__file__).parent.glob("*.py")
        if path.stem != "threads" and "ours(" in path.read_text()
    }
    timed = {
        name
        for name in names
        if any(key.endswith("ours") for key in vars(importlib.import_module(f"benchmarks.{name}")))
    }
    assert timed - {"start"} == set(threads.BENCHMARKS)  # first fits are compiled and imported


def test_the_order_of_two_runs_does_not_count():
    """Of one fit each second run took a fifth longer, with one thread or with two."""
    pairs = [[1.9, 1.5], [1.5, 1.9], [1.9, 1.5], [1.5, 1.9], [1.9, 1.5]]
    assert harness.turns_row("", pairs, 0.95).ratio == pytest.approx(1.0)
    assert harness.turns_row("", [[2.0, 1.0]], 0.95).ratio == 0.5


def test_the_page_shows_the_worst_and_how_many_are_good(tmp_path):
    rows = {
        f"row {k}": harness.turns_row(f"row {k}", [[1.0, ratio]], 0.95)
        for k, ratio in enumerate((1.1, 0.9, *[1.0] * report._WORST))
    }
    harness.save(rows, tmp_path / "threads.json", {"cores": 2})
    page = report.worst(tmp_path / "threads.json")
    assert "11 of 12 rows meet the goal; the middle one has 1 x." in page
    assert page.index("row 1 ") < page.index("row 2 ")
    assert "row 0 " not in page
    assert "Measured with: cores 2." in page
