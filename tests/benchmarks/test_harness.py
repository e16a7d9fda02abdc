"""The benchmark measures what it says: gaps against true bounds, memory, fresh processes."""

import json
import sys
import time

import numpy as np
import pytest

from anynorm.losses import get_loss
from anynorm.problem import Problem
from benchmarks import bridge, generators, harness, kernel, linear, report, sparse
from benchmarks.generators import Data
from benchmarks.harness import Row
from benchmarks.linear import Work
from benchmarks.peers import kernel as kernel_peers
from benchmarks.peers import sparse as sparse_peers
from benchmarks.peers.linear import PEERS
from tests.references.linear_program import solve_linear_program


def test_call_runs_in_a_fresh_process_with_one_thread():
    first = harness.call("tests.processes:answer", {"value": [1, 2]})
    second = harness.call("tests.processes:answer", {"value": None})
    assert first["value"] == [1, 2]
    assert first["threads"] == "1"
    assert first["process"] != second["process"]


def test_call_reports_failures_and_time_limits():
    with pytest.raises(RuntimeError, match="has no attribute 'missing'"):
        harness.call("benchmarks.harness:missing", {})
    with pytest.raises(TimeoutError, match=r"over 0\.2 s"):
        harness.call(
            "benchmarks.harness:import_time", {"statement": "import time; time.sleep(9)"}, limit=0.2
        )


def test_what_was_yielded_before_the_time_limit_is_kept():
    assert harness.call_each("tests.processes:count", {"pause": 0}) == [0, 1, 2, 3]
    for limit in (4, 60):  # a busy machine takes long to start a process
        cut = harness.call_each("tests.processes:count", {"pause": 600}, limit=limit)
        if cut:
            break
    assert cut == [0, 1, 2]


def test_timing_keeps_the_first_run_apart():
    results = iter(range(10))
    timing, last = harness.timed(lambda: next(results), repeats=3)
    assert (timing.runs, last) == (3, 3)
    timing, last = harness.timed(lambda: time.sleep(0.02), repeats=3, budget=0.01)
    assert timing.runs == 1
    assert timing.wall == timing.first_wall >= 0.02


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured on Linux only")
@pytest.mark.parametrize("resets", [True, False])
def test_peak_memory_sees_what_is_freed_again(resets):
    peak = harness.call(
        "tests.processes:peak",
        {"megabytes": 40, "resets": resets},
        environment=harness.MEMORY_ENVIRONMENT,
    )
    assert peak == pytest.approx(40 * 2**20, rel=0.1)


def test_peak_memory_refuses_a_process_that_keeps_what_it_freed():
    with pytest.raises(RuntimeError, match="a process of its own"):
        harness.peak_memory(list)


def test_goals_are_judged_in_their_sense():
    faster = Row("fit", "1 s", "peer 3 s", ratio=3.0, bound=2.0)
    smaller = Row("memory", "1 MB", "data", ratio=1.3, sense="<=", bound=1.2)
    assert (faster.met, smaller.met) == (True, False)
    assert Row("fit", "", "", ratio=None, bound=2.0).met is False
    assert Row("fit", "", "", ratio=5.0).met is None
    lines = harness.table([faster, smaller]).splitlines()
    assert "| 3 x" in lines[2]
    assert "| >= 2 x" in lines[2]
    assert "| NO " in lines[3]
    assert len({len(line) for line in lines}) == 1


def test_sparse_text_has_unit_rows_of_the_size_asked_for():
    X, y = generators.sparse_text(300, 400, row_entries=20, informative=40, seed=1)
    assert X.shape == (300, 400)
    assert np.diff(X.indptr).max() <= 20
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1)
    assert 0.3 < np.mean(y > 0) < 0.7


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_peers_agree_and_the_bound_is_below_them(loss):
    work = Work("dense", loss, 0.5, 1e-6)
    X, y = generators.dense_classification(150, 6, informative=3, seed=3)
    values = {
        name: linear.primal_value(work, X, y, peer.solve(X, y, 0.5, loss, 1e-8), 0.0)
        for name, peer in PEERS.items()
        if loss == "squared_hinge" or "dual=False" not in name
    }
    best = min(values.values())
    assert max(values.values()) == pytest.approx(best, rel=1e-6)
    rng = np.random.default_rng(0)
    for _ in range(20):
        point = rng.uniform(-0.2, 0.7, 150) * rng.integers(0, 2)
        assert linear.dual_value(work, X, y, point) <= best


def test_small_run_fills_rows_and_file(tmp_path, capsys):
    output = tmp_path / "linear.json"
    rows = linear.main(
        ["--quick", "--repeats", "1", "--only", "hinge, dense, C=0.1", "--output", str(output)]
    )
    assert [row.work.endswith("free bias") for row in rows] == [False, True]
    for row in rows:
        assert row.ratio > 0
        assert row.details["ours"]["certified_gap"] <= 1e-4
    peer = rows[0].details["peers"]["scikit-learn"]
    assert peer["reached"]
    assert -1e-9 <= peer["gap"] <= 1e-4
    content = json.loads(output.read_text())
    assert content["machine"]["clock"] == "CPU seconds, one thread each side"
    assert [row["ratio"] for row in content["rows"]] == [row.ratio for row in rows]
    assert harness.table(rows) in capsys.readouterr().out
    assert harness.table(rows) in report.table(output)


def test_parts_of_a_run_add_up(tmp_path, monkeypatch, capsys):
    """Rows of --only take the place of those of the same name, on the same machine alone."""
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    ratios = {"first": 1.0, "second": 2.0}

    def prepare(folder, options):
        return [
            (name, lambda name=name: Row("same work", name, "", ratios[name])) for name in ratios
        ]

    def run(*arguments):
        return harness.command("some", "", prepare, ["numpy"], arguments)

    run()
    ratios["second"], ratios["third"] = 3.0, 4.0
    run("--only", "second")
    run("--only", "second", "--record")
    run("--only", "third", "--record")
    content = json.loads((tmp_path / "some.json").read_text())
    assert [(row["name"], row["ratio"]) for row in content["rows"]] == [
        ("first", 1.0), ("second", 3.0), ("third", 4.0),
    ]  # fmt: skip
    content["machine"]["cores"] = -1
    (tmp_path / "some.json").write_text(json.dumps(content))
    with pytest.raises(SystemExit):
        run("--only", "second", "--record")
    assert "another machine" in capsys.readouterr().err


def test_memory_row_relates_the_fit_to_the_data(tmp_path):
    linear.write_data(tmp_path, quick=True)
    row = linear.Run(tmp_path, repeats=1, limit=600).memory(
        Work("sparse", "hinge", 1.0, 1e-3, True)
    )
    used = row.details
    assert used["data"] > 50_000
    assert row.ratio == (used["data"] + used["fit"]) / used["data"] >= 1


def test_import_row_compares_fresh_interpreters(tmp_path):
    row = linear.Run(tmp_path, repeats=1, limit=600).imports("import sys", "import numpy", 1.0)
    assert row.met
    assert row.ratio == row.details["import sys"] / row.details["import numpy"]


def test_linear_programme_peers_solve_the_same_problem():
    X, y = generators.dense_classification(40, 12, informative=3, seed=4)
    penalty = 0.1 * sparse.reference_penalty(X, y)
    problem = Problem(y=y, C=1 / penalty, loss=get_loss("hinge"), X=X, regulariser="l1")
    optimum = penalty * solve_linear_program(problem)
    for name, peer in sparse_peers.PEERS.items():
        point = peer.solve(X, y, penalty)
        accuracy = 1e-9 if name.startswith("HiGHS") else 5e-3
        value = sparse.objective(X, y, penalty, point.coef, point.intercept)
        assert value == pytest.approx(optimum, rel=accuracy)
        bound = sparse.lower_bound(X, y, penalty, point.dual)
        assert bound == pytest.approx(optimum, rel=accuracy)
        assert bound <= optimum * (1 + 1e-12)
    for point in sparse_peers.highs_grid(X, y, [5 * penalty, penalty]):
        coef, intercept = point.coef, point.intercept
    assert sparse.objective(X, y, penalty, coef, intercept) == pytest.approx(optimum, rel=1e-9)
    assert sparse.objective(X, y, 1.01 * sparse.reference_penalty(X, y), np.zeros(12), 0.0) == 40


def test_no_dual_point_gives_a_bound_above_the_optimum():
    X, y = generators.microarray(15, 30, seed=2)
    assert np.abs(X.mean(axis=0)).max() < 1e-12
    penalty = 0.3 * sparse.reference_penalty(X, y)
    point = sparse_peers.highs(X, y, penalty, form="primal", solver="simplex")
    best = sparse.objective(X, y, penalty, point.coef, point.intercept)
    rng = np.random.default_rng(0)
    for _ in range(50):
        dual = rng.uniform(-0.5, 1.5, 15) * rng.integers(0, 2, 15)
        assert sparse.lower_bound(X, y, penalty, dual) <= best * (1 + 1e-12)


def test_squared_hinge_peer_has_its_optimum_between_the_two_values():
    X, y = generators.sparse_text(200, 150, row_entries=15, informative=30, seed=5)
    tight = sparse_peers.scikit_learn(X, y, 2.0, 1e-10)
    optimum, bound = sparse.squared_hinge_values(X, y, 2.0, tight)
    assert bound == pytest.approx(optimum, rel=1e-6)
    value, lower = sparse.squared_hinge_values(X, y, 2.0, 0.5 * tight)
    assert lower < optimum < value


def test_path_row_is_verified_and_never_above_the_grid():
    [row] = sparse.main(["--quick", "--repeats", "1", "--only", "path, dense"])
    mine, theirs = row.details["ours"], row.details["100 warm HiGHS LPs"]
    assert mine["gap"] <= 1e-9
    np.testing.assert_allclose(mine["values"], theirs["values"], rtol=1e-7)
    assert row.ratio == theirs["cpu"] / mine["cpu"]
    assert row.met is None


def test_single_fit_row_takes_the_fastest_peer():
    [row] = sparse.main(["--quick", "--repeats", "1", "--only", "one fit, dense 30"])
    mine = row.details["ours"]
    peers = [row.details[name] for name in sparse.HIGHS if name in row.details]
    assert max(side["gap"] for side in (mine, *peers)) <= 1e-9
    assert row.ratio == min(peer["cpu"] for peer in peers) / mine["cpu"]


def test_peer_that_was_stopped_gives_a_lower_bound_of_its_time():
    trials = [{"gap": 1e-2, "cpu": 5.0, "first_wall": 5.0}]
    other, note = sparse.time_needed(trials, 1e-6, 100.0)
    assert other["cpu"] == 95.0
    assert "at least" in note
    shared = [{"gap": 1e-2, "cpu": 5.0, "first_wall": 20.0}]  # others had the rest of the machine
    assert sparse.time_needed(shared, 1e-6, 100.0)[0]["cpu"] == 20.0
    reached = [*trials, {"gap": 1e-7, "cpu": 7.0, "first_wall": 7.0}]
    assert sparse.time_needed(reached, 1e-6, 100.0) == (reached[1], "")


def test_kernel_data_have_both_classes_and_the_shape_asked_for(tmp_path):
    for kind in ("curved", "digit-like"):
        X, y = Data(kind, 200, 30, 1).load(str(tmp_path))
        again, _ = Data(kind, 200, 30, 1).load(str(tmp_path))
        assert X.shape == (200, 30)
        assert 0.2 < np.mean(y > 0) < 0.8
        np.testing.assert_array_equal(X, again)


@pytest.mark.parametrize("name", kernel_peers.PEERS)
def test_kernel_peers_solve_the_problem_that_ours_is(name):
    if "sklearnex" in name:
        pytest.importorskip("sklearnex", reason="scikit-learn-intelex comes with anynorm[bench]")
    X, y = generators.curved_boundary(120, 6, seed=2)
    task = kernel_peers.Task(10.0, 0.1, budget=20)
    problem = kernel.kernel_problem(X, y, task, name)
    gaps = []
    for tol in (1e-1, 1e-3, 1e-6):
        point = kernel_peers.PEERS[name](X, y, task, tol, 50)
        gaps.append(kernel.true_gap(problem, point.dual, point.intercept))
        assert np.mean(point.decide(X) == y) > 0.6
    assert 0 <= gaps[2] <= 1e-5
    assert gaps[0] > 10 * gaps[2]


def test_least_squares_peer_solves_the_squared_slack():
    X, y = generators.curved_boundary(100, 6, seed=2)
    task = kernel_peers.Task(0.5, 0.1)
    dual, intercept = kernel_peers.least_squares(X, y, task)
    problem = kernel.kernel_problem(X, y, task, "LS-SVM")
    assert kernel.true_gap(problem, dual, intercept) <= 1e-12
    assert kernel.true_gap(problem, 0.9 * dual, intercept) > 1e-4


def test_search_for_a_tolerance_ends_just_below_the_gap():
    trials = list(kernel.aimed(lambda tol: tol, lambda tol: 40 * tol**1.2, 1e-4, 1e-3))
    assert 0.3e-4 <= trials[-1]["gap"] <= 1e-4
    assert kernel.loosest(trials, 1e-4) == trials[-1]
    stuck = list(kernel.aimed(lambda tol: tol, lambda tol: 2e-4 + tol, 1e-4, 1e-3))
    assert len(stuck) < kernel.N_TRIALS
    best = kernel.loosest(stuck, 1e-4)
    assert best["gap"] <= min(trial["gap"] for trial in stuck) / 0.9


def test_kernel_peer_counts_at_its_fastest_cache():
    trial = {"gap": 5e-5, "tol": 1e-3, "accuracy": 0.9}
    trials = [{**trial, "cpu": 2.0}, {**trial, "cpu": 4.0}, {**trial, "cpu": 3.0}]
    assert kernel.peer_time(trials, 1e-4, 60.0) == (trials[2], "")
    assert kernel.peer_time(trials[:1], 1e-4, 60.0) == (trials[0], "")
    assert "reaches 5.0e-05 only" in kernel.peer_time(trials, 1e-5, 60.0)[1]
    nothing, note = kernel.peer_time([], 1e-4, 60.0)
    assert nothing["cpu"] == 60.0
    assert "at least" in note


@pytest.mark.parametrize("name", ["SVC, curved 300", "BudgetSVC", "LeastNormSVC"])
def test_kernel_row_compares_at_one_certified_gap(name):
    [row] = kernel.main(["--quick", "--repeats", "1", "--only", name])
    mine, theirs = list(row.details.values())
    assert max(mine["gap"], mine["certified_gap"], theirs["gap"]) <= 1e-4
    assert abs(mine["accuracy"] - theirs["accuracy"]) <= 0.02
    assert row.ratio == theirs["cpu"] / mine["cpu"]
    if name == "BudgetSVC":
        assert mine["filled"] == pytest.approx(1, abs=1e-6)


def test_least_squares_rows_have_leave_one_out_beside():
    rows = kernel.main(["--quick", "--repeats", "1", "--only", "LS-SVM"])
    plain, left_out, iterative = (row.details["ours"] for row in rows)
    assert max(plain["gap"], left_out["gap"]) <= 1e-9
    assert iterative["gap"] <= 1e-6
    assert 0.5 < left_out["leave_one_out"] < 1


def test_prediction_and_memory_rows_measure_the_same_model():
    wide, narrow = kernel.main(["--quick", "--repeats", "1", "--only", "predict"])
    for row, accuracy in ((wide, 1e-7), (narrow, 1e-4)):
        assert {side["n_support"] for side in row.details.values()} == {200}
        assert float(row.note.split("by ")[1].split()[0]) <= accuracy
    [row] = kernel.main(["--quick", "--only", "memory"])
    used = row.details
    assert row.ratio == (used["data"] + used["fit"]) / (used["data"] + used["limit"])


def test_the_lasso_benchmark_measures_all_sides_in_one_way():
    for kind, n, p in (("dense", 60, 100), ("text", 300, 200)):
        ours = bridge.lasso_ours(kind, n, p, 20, repeats=0)
        assert ours["gap"] <= bridge.LASSO_GAP
        *_, last = bridge.lasso_peer("scikit-learn", kind, n, p, 20, repeats=0, gap=1e-6)
        assert last["gap"] <= 1e-6
    X, y, _ = bridge.lasso_data("dense", 60, 100, 20)
    assert bridge.lasso_gap(X, y, np.zeros(100)) == 0.0
    assert bridge.lasso_gap(X, y, np.ones(100)) > 0.5


def test_the_fastest_rival_counts_and_one_that_is_not_installed_leaves_no_ratio(monkeypatch):
    """A ratio to the rivals that happen to be there would look like one to the fastest."""
    seconds = {"celer": 3.0, "skglm": 2.0, "scikit-learn": 4.0}

    def trials(_, arguments, limit):
        return [{"cpu": seconds[arguments["peer"]], "gap": 1e-7}]

    monkeypatch.setattr(harness, "call", lambda *_, **__: {"cpu": 1.0, "gap": 0.0, "used": 3})
    monkeypatch.setattr(harness, "call_each", trials)
    run = bridge.Run(1, 10.0, quick=True)
    for kind in ("dense", "text"):
        monkeypatch.setattr(bridge, "_installed", lambda home: True)
        row = run.lasso("", kind, 9, 9, 20, 1.5)
        assert row.ratio == 2.0
        assert row.met
        monkeypatch.setattr(bridge, "_installed", lambda home: home != "skglm")
        row = run.lasso("", kind, 9, 9, 20, 1.5)
        assert row.ratio is None
        assert row.met is None
        assert "not installed: skglm" in row.note


def test_the_hull_benchmark_measures_feasible_points():
    A = generators.hull(30, 10, shift=1.0)
    even = np.full(30, 1 / 30)
    assert bridge.hull_gap(A, 5 * even) == pytest.approx(bridge.hull_gap(A, even))
    assert bridge.hull_gap(A, even) > 1e-3
    ours = bridge.hull_ours(30, 10, 1.0, repeats=0)
    assert ours["gap"] <= bridge.HULL_GAP
    for peer in bridge.HULL_PEERS:
        trials = list(bridge.hull_peer(peer, 30, 10, 1.0, repeats=0, gap=1e-4))
        assert trials[-1]["gap"] <= 1e-4


def test_the_screening_and_sublinear_benchmarks_measure_what_they_say():
    size = {"n": 10_000, "p": 3, "apart": 1.0, "kernel": "linear", "gamma": None, "C": 1.0}
    for on in (True, False):
        found = bridge.screening_ours(**size, on=on, repeats=0)
        assert found["gap"] <= bridge.SCREENING_GAP
        assert 0 < found["share"] < 0.02
    A = generators.planted_margin(300, 0.5)
    np.testing.assert_allclose(np.linalg.norm(A, axis=0), 1.0, rtol=1e-5)
    assert A[0].min() == 0.5
    assert (A.mean(axis=1) @ A).min() < 0  # the mean of the points does not separate them
    found = bridge.sublinear(300, 2)
    assert found["share"] == found["half"] == 1.0  # too small for reading less
    assert min(found["margins"]) >= bridge.MARGIN - bridge.EPS
    X, y = generators.two_sides(2000, 3, apart=0.2, curved=True)
    assert X.shape == (2000, 3)
    assert set(y) == {-1.0, 1.0}
