"""Failures of the command that were found by running it elsewhere, or for longer."""

import itertools

from anynorm.app.cli import output
from anynorm.app.job import Doing


def test_quiet_work_that_takes_long_stays_quiet(monkeypatch, capsys):
    """`anynorm fit --quiet` gave advice after half a minute, as on a machine that compiles."""
    clock = itertools.count(0.0, 40.0)
    monkeypatch.setattr(output.time, "monotonic", lambda: next(clock))
    with output.progress_bar(hidden=True, hint="leave out some rows") as show:
        show(Doing(0.1, "reading"))
    assert capsys.readouterr() == ("", "")
