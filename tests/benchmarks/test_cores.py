"""The benchmark of the cores runs, and compares what it says."""

from benchmarks import cores


def test_a_speedup_and_the_default_threads_are_measured():
    rows = cores.main(["--quick", "--repeats", "1", "--only", "predict"])
    assert [row.work for row in rows] == [
        "predict 10000 x 20, C=1",
        "predict 10000 x 780, C=1",
        "predict 10000 x 20, C=1, default threads",
    ]
    assert all(row.ratio > 0 and row.bound is None for row in rows)


def test_goals_are_those_of_the_machine(monkeypatch):
    for count, goal in ((1, None), (2, 1.6), (8, 1.6), (16, 6.0), (64, 6.0)):
        monkeypatch.setattr(cores, "CORES", count)
        assert cores._goal("SVC", 6.0) == goal
    monkeypatch.setattr(cores, "CORES", 2)
    assert cores._goal("SparseSVCCV", 4.0) is None


def test_rows_of_few_cores_are_recorded_by_themselves(monkeypatch):
    for count, name in ((2, "few_cores"), (16, "cores")):
        monkeypatch.setattr(cores, "CORES", count)
        assert cores.record_as(None) == name
