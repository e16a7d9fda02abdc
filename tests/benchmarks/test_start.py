"""The benchmark of first fits runs in fresh processes, and compares what it says."""

from benchmarks import start


def test_a_first_fit_is_measured_in_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(start.Run, "skglm", {"first_cpu": 10.0})
    rows = start.main(["--quick", "--only", "cold LinearSVC hinge"])
    assert [row.work for row in rows] == ["first fit, empty cache: LinearSVC hinge"]
    found = rows[0].details["ours"]
    assert 0 < found["cpu"] < found["first_cpu"]
    assert rows[0].ratio == found["first_cpu"] / 10.0
