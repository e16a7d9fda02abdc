"""The command as a process, what it prints while it works, and where its packages are missing."""

import subprocess
import sys

import pytest
from rich.console import Console

from anynorm import __version__
from anynorm.app import cli
from anynorm.app.cli import output
from anynorm.app.job import Doing


def test_python_m_anynorm_is_the_command_and_starts_without_heavy_packages():
    code = (
        "import runpy, sys\n"
        "sys.argv = ['anynorm', '--version']\n"
        "try:\n"
        "    runpy.run_module('anynorm', run_name='__main__')\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "print([name for name in ('numpy', 'sklearn', 'pandas', 'numba') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"anynorm {__version__}", "[]"]


def test_missing_packages_are_named_with_the_remedy(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("anynorm.app.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    message = capsys.readouterr().err
    assert "'typer'" in message
    assert "pip install 'anynorm[cli]'" in message


def test_the_bar_says_what_is_done_what_is_left_and_a_hint_where_it_takes_long(monkeypatch):
    terminal = Console(force_terminal=True, width=140, record=True, stderr=True)
    monkeypatch.setattr(output, "err", lambda: terminal)
    monkeypatch.setattr(output, "_LONG", -1.0)
    with output.progress_bar(hidden=False, hint="shorten it") as show:
        show(Doing(0.0, "preparing", "This takes about 3 minutes: all of it."))
        show(Doing(0.25, "choosing the model", "fold 2 of 5, 300 pivots of the path", 83.2))
    text = terminal.export_text()
    assert "This takes about 3 minutes: all of it.\n" in text
    assert "choosing the model" in text
    assert "fold 2 of 5, 300 pivots of the path" in text
    assert "about 1:24 left" in text
    assert text.count("shorten it") == 1


def test_a_hidden_bar_prints_nothing(monkeypatch):
    terminal = Console(force_terminal=True, record=True, stderr=True)
    monkeypatch.setattr(output, "err", lambda: terminal)
    with output.progress_bar(hidden=True) as show:
        show(Doing(0.0, "preparing", "This takes about 3 minutes."))
        show(Doing(0.5, "choosing the model"))
    assert terminal.export_text() == ""


def test_tables_wider_than_the_terminal_are_printed_whole(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    output.print_table(["feature", "weight"], [["g" * 60, "1.5"]], texts=("feature",))
    assert "g" * 60 + "     1.5" in capsys.readouterr().out


def test_names_that_look_like_markup_are_printed_as_they_are(capsys):
    output.print_facts(output.out(), [("Data", "[red]x[/red]")])
    output.print_table(["feature"], [["[bold]gene[/bold]"]], texts=("feature",))
    text = capsys.readouterr().out
    assert "[red]x[/red]" in text
    assert "[bold]gene[/bold]" in text
