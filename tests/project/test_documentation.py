"""Examples in the README, the documentation and the docstrings run and give what they show."""

import ast
import doctest
import importlib
import os
import pathlib
import re
import runpy
import shlex
import subprocess
import types

import pytest

import anynorm
from benchmarks import report

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# A block with what stands on the line before it, its language and its content.
_BLOCK = re.compile(r"^([^\n]*)\n```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
_NEEDS = re.compile(r"<!-- needs data: (\w+) -->")
_SHOWN = {"text"}  # a drawing or a file, nothing to run
_LINK = re.compile(r"(?:\]\(|src=\"|srcset=\")(?!https?://|mailto:|#)([^)\"#\s]+)")
# By their files: the folders of solvers need not be regular packages.
SOURCE = pathlib.Path(anynorm.__file__).parent
MODULES = sorted(
    ".".join(["anynorm", *file.relative_to(SOURCE).with_suffix("").parts])
    for file in SOURCE.rglob("*.py")
    if file.name not in ("__init__.py", "__main__.py")
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# What pages show as it was printed, and what differs from one machine to the next: rounding, gaps,
# which are anything below tol, and times.
_ROUNDING = re.compile(r"\b\d(?:\.\d+)?e-[1-9]\d\b")
_GAP = re.compile(
    r"\b(gap(?: of a fit is)?|differences up to|certified to|within) \d(?:\.\d)?e[-+]\d\d"
)
_TIME = re.compile(r"\b\d+(?:\.\d+)? s\b")


class Checker(doctest.OutputChecker):
    """Compares output without the digits that belong to a machine."""

    def check_output(self, want, got, optionflags):
        want = _TIME.sub("... s", _GAP.sub(r"\1 ...", _ROUNDING.sub("...", want)))
        return super().check_output(want, got, optionflags)


def blocks(page):
    """The code blocks of a page: language, content, and whether it says why it is not run."""
    for before, language, content in _BLOCK.findall("\n" + page.read_text()):
        if not language.startswith("{"):  # a directive of the documentation
            yield language, content, bool(_NOT_RUN.fullmatch(before.strip()))


def python_of(page):
    return "\n".join(content for language, content, _ in blocks(page) if language == "python")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if python_of(page)], ids=lambda page: page.name
)
def test_examples_of_the_pages(page):
    for name in _NEEDS.findall(page.read_text()):
        if not pathlib.Path(os.environ.get("ANYNORM_DATA", ""), f"{name}.npz").exists():
            pytest.skip(f"{page.name} needs the data set {name} in the folder ANYNORM_DATA")
    test = doctest.DocTestParser().get_doctest(python_of(page), {}, page.name, str(page), 0)
    result = doctest.DocTestRunner(Checker(), optionflags=FLAGS).run(test)
    assert result.failed == 0


def commands(page):
    """The shell commands of a page, each with the output that stands below it."""
    for language, content, excused in blocks(page):
        if language == "console" and not excused:
            for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                while command.endswith("\\"):
                    more, _, output = output.partition("\n")
                    command = command[:-1] + more
                yield command, output


def run_command(command):
    """What a command prints: ours in this process, others by the shell."""
    if not command.startswith("anynorm "):
        return subprocess.run(
            command, shell=True, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ).stdout.decode()
    from typer.testing import CliRunner

    from anynorm.app.cli.app import app

    return CliRunner().invoke(app, shlex.split(command)[1:]).output


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(commands(page))], ids=lambda page: page.name
)
def test_shell_commands_of_the_pages(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    for command, wanted in commands(page):
        found = run_command(command)
        assert Checker().check_output(wanted, found, FLAGS), f"{command}\n{found}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_run_or_says_why_it_is_not(page):
    for language, content, excused in blocks(page):
        if language == "python":
            assert content.startswith(">>> "), f"would not be run:\n{content}"
        elif language == "console":
            assert content.startswith("$ "), f"would not be run:\n{content}"
        else:
            assert language in _SHOWN or excused, f"not run, without a reason:\n{content}"


@pytest.mark.parametrize("name", ["anynorm", *MODULES])
def test_examples_of_the_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.failed == 0


@pytest.mark.parametrize("page", report.PAGES, ids=lambda page: page.name)
def test_benchmark_tables_are_those_of_the_recorded_results(page):
    assert "<!-- benchmark: " in page.read_text()
    assert report.filled(page) == page.read_text()


def test_the_summary_names_the_missed_goals_and_no_others():
    rows = report.everything()
    listed = set(re.findall(r"^- (.*): \S+ .* instead of ", report.summary(rows), re.MULTILINE))
    assert listed == {row.work for row in rows if row.met is False}


def test_the_rows_of_the_readme_have_a_peer_its_gap_and_a_loss():
    rows = {row.work: row for row in reversed(report.everything())}
    chosen = [rows[work] for work in report.CHOSEN]
    assert all("gap" in row.ours and "gap" in row.other for row in chosen)
    assert any(row.ratio < 1 for row in chosen)


@pytest.mark.parametrize("page", PAGES[:2], ids=lambda page: page.name)
def test_links_of_the_pages_outside_the_documentation_lead_somewhere(page):
    targets = _LINK.findall(page.read_text())
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target


def test_the_api_reference_has_every_public_name():
    listed = set(re.findall(r"^   (\S+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE))
    public = {name: getattr(anynorm, name) for name in anynorm.__all__ if name[0] != "_"}
    modules = {name for name, member in public.items() if isinstance(member, types.ModuleType)}
    wanted = set(public) - modules
    for name in modules:
        wanted |= set(getattr(getattr(anynorm, name), "__all__", []))
    assert wanted - listed == set()


def test_the_grid_of_models_is_drawn_and_its_cells_exist():
    grid = runpy.run_path(str(ROOT / "docs" / "grid.py"))
    assert grid["FILE"].read_text() == grid["drawing"](), "run python docs/grid.py"
    names = {**{name: getattr(anynorm, name) for name in anynorm.__all__}, "B": 3}
    names["N"] = anynorm.norms.Lp(3)
    for call, page in grid["cells"]():
        assert eval(call, {}, names).get_params()
        assert (ROOT / "docs" / f"{page}.md").exists()


def test_the_questions_page_has_every_warning():
    words = (ROOT / "docs" / "faq.md").read_text().replace("\n", " ")
    calls = [
        node
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn") and node.args
    ]
    texts = [_first_words(call.args[0]) for call in calls]
    missing = [text for text in texts if text and text not in words]
    assert len(calls) > 10
    assert missing == []


def test_every_error_that_a_user_meets_is_listed():
    """Parts of the source that a user calls are all in the list; only what is inside is not."""
    listed = runpy.run_path(str(ROOT / "docs" / "messages.py"))
    page, places = listed["page"](), sum(listed["PARTS"].values(), ())
    inside = ("solvers", "problem", "design", "__init__.py", "app/__init__.py")
    for file in SOURCE.rglob("*.py"):
        name = file.relative_to(SOURCE).as_posix()
        found = list(listed["messages"](file))
        if any(name.startswith(place) for place in places):
            assert all(message in page for message in found), name
        else:
            assert name.startswith(inside) or not found, name
    assert page.count("\n* ") > 250
    assert "y has only one class (…); a classifier needs rows of at least two." in page


def _first_words(message):
    """The first words of a message that are the same each time, or None where none are."""
    parts = [part for part in ast.walk(message) if isinstance(part, ast.Constant)]
    parts.sort(key=lambda part: (part.lineno, part.col_offset))
    texts = [str(part.value).split()[:4] for part in parts]
    return next((" ".join(words).rstrip(".,:;") for words in texts if len(words) > 2), None)
