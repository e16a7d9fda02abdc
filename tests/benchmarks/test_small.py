"""The benchmark of small models compares like with like."""

import dataclasses
import types

import numpy as np
import pytest

from benchmarks import harness, small
from benchmarks.harness import Row


def test_all_ways_see_the_same_rows_and_budgets():
    found = small.accuracies("skewed", 0, n_train=40, n_test=60, counts=[3, 6])
    assert found["n_test"] == 60
    for way in small.WAYS:
        assert len(found[way]) == 2
        assert all(0 <= share <= 1 for share in found[way])


def test_each_way_has_the_C_that_is_better_on_the_quarter_all_choose_by():
    rng = np.random.default_rng(0)
    train, test = (rng.normal(size=(40, 2)), np.ones(40)), (rng.normal(size=(5, 2)), np.ones(5))
    part, held = small.quartered(train, 3)
    assert len(part[1]) == 30
    assert {*map(tuple, part[0]), *map(tuple, held[0])} == {*map(tuple, train[0])}
    seen = []

    def way(kernel, learnt, judged, count, seed):
        seen.append((kernel.C, len(learnt[1]), len(judged[1])))
        return kernel.C if count == 1 else -kernel.C

    larger = 2 * small.STEPS[1]
    found = small.of_better_C(way)(small.Kernel(2.0, 1.0), train, test, [1, 2], 3)
    assert found == [larger, -2.0]
    assert seen[:3] == [(2.0, 30, 10), (larger, 30, 10), (larger, 40, 5)]
    assert seen[3:] == [(2.0, 30, 10), (larger, 30, 10), (2.0, 40, 5)]


def test_fits_stand_for_a_path_that_breaks_down(monkeypatch):
    """A path over a wide kernel once went on after joints with a gap of 1, and was judged there."""
    import anynorm

    X, y = small.table("skewed", 160, 0)
    train, test, kernel = (X[:100], y[:100]), (X[100:], y[100:]), small.Kernel(1.0, 0.005)
    sound = small.path_shares(kernel, train, test, 8)
    monkeypatch.setattr(
        anynorm, "sparse_svm_path", lambda *args, **more: types.SimpleNamespace(gaps=np.ones(3))
    )
    fits = small.path_shares(kernel, train, test, 8)
    assert len(fits) == len(sound) == 9
    assert fits[0] == np.mean(test[1] == np.sign(train[1].sum()))
    assert fits[8] == pytest.approx(sound[8], abs=0.1)


def test_cholesky_takes_the_largest_rest_first():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    X[7] = X[3]  # a copy brings nothing: never both
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    pivots = small.cholesky_pivots(K, 29)
    assert len(set(pivots)) == 29
    assert len({3, 7} & set(pivots)) == 1
    second = K.diagonal() - K[:, pivots[0]] ** 2 / K[pivots[0], pivots[0]]
    assert pivots[1] == second.argmax()


def test_ahead_is_counted_in_standard_errors():
    ours = np.array([[0.90], [0.92], [0.91]])
    other = ours - np.array([[0.01], [0.02], [0.03]])
    over_draws = 0.01 / np.sqrt(3)
    assert small._in_errors(ours, other, np.inf) == pytest.approx(0.02 / over_draws)
    of_rows = np.sqrt(0.91 * 0.09 / (100 * 3))
    assert small._in_errors(ours, other, 100) == pytest.approx(0.02 / of_rows)


def test_comparisons_that_are_further_behind_are_counted():
    distance = np.array([[-1.2, 0.0], [3.0, -0.9]])
    assert small._below(distance) == "1 of 4 below -1"


def test_real_tables_are_left_out_where_they_are_not(monkeypatch):
    monkeypatch.delenv("ANYNORM_DATA", raising=False)
    titles = [title for title, _ in small.Run(small.FULL, 0, 60.0).jobs()]
    assert titles == ["accuracy spam-like", "large", "prediction"]


def test_tables_add_up(tmp_path, monkeypatch):
    """Of this run where it had them, otherwise as recorded; each table counts the same."""
    rng = np.random.default_rng(0)
    sizes = dataclasses.replace(small.FULL, tables=("first", "second"), counts=(5, 10))
    held = {"n_test": 1000, "n_support": 9, "no budget": 0.95}

    def draw(ahead):
        others = rng.uniform(0.7, 0.9, (len(small.WAYS), 2))
        return {
            **held,
            **dict(zip(small.WAYS, others.tolist(), strict=True)),
            small.OURS: (others[1:].max(axis=0) + ahead).tolist(),
        }

    old = [draw(0.02), draw(0.01), draw(0.03)]
    run = small.Run(sizes, 0, 60.0)
    row = Row(run._work("second"), "", "", 1.0, details={"draws": old})
    monkeypatch.setattr(small, "RECORDED", tmp_path / "small.json")
    harness.save({"accuracy second": row}, small.RECORDED, {})
    new = [draw(0.0), draw(-0.01), draw(0.01), draw(-0.02)] * 5
    left = iter(new)
    monkeypatch.setattr(run, "_call", lambda function, **given: next(left))
    run.accuracy("first")
    together = run.together()
    differences = [
        [np.subtract(each[small.OURS], each["k-means"]) for each in draws] for draws in (new, old)
    ]
    mean = np.mean([np.mean(each, axis=0) for each in differences], axis=0)
    assert f"k-means {100 * mean[0]:.2f} (" in together.note
    ours = [np.mean([each[small.OURS][0] for each in draws]) for draws in (new, old)]
    assert together.ours.startswith(f"{100 * np.mean(ours):.1f} /")
    cost = run.cost()
    least = [np.mean([d[small.OURS][k] for d in new]) - 0.95 for k in range(2)]
    assert cost.ratio == pytest.approx(min(100 * least[0] + 1.5, 100 * least[1] + 0.5))
