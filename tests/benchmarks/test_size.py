"""The curves of time and memory are measured point by point and end where fits get long."""

import pathlib

from benchmarks import size
from benchmarks.harness import Row


def test_a_curve_ends_after_its_first_long_fit(monkeypatch):
    curve, ended = size.CURVES[0], set()
    found = {"cpu": size.LONGEST + 1, "memory": 2**20, "data": 8}
    monkeypatch.setattr(size.harness, "call", lambda *given, **more: dict(found))
    first, second = (size.point(curve, n, "", 1.0, ended) for n in size.SIZES[:2])
    assert first.details["n"] == size.SIZES[0]
    assert second.details == {}
    assert second.ours == "not run"


def test_the_curves_are_drawn(tmp_path):
    details = {"name": size.CURVES[0].name, "n": 500, "p": 50, "cpu": 0.1, "memory": 2**20}
    rows = [Row(work="", ours="", other="", ratio=None, details=details)]
    size.draw(rows, pathlib.Path(tmp_path, "size.png"))
    assert pathlib.Path(tmp_path, "size.png").stat().st_size > 1000
