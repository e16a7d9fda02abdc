"""Examples in the README, the documentation and the docstrings run and give what they show."""

import doctest
import importlib
import pathlib
import re

import pytest

import anynorm
from benchmarks import report

ROOT = pathlib.Path(__file__).parents[1]
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if _PYTHON.search(page.read_text())
]
# By their files: the folders of solvers need not be regular packages.
SOURCE = pathlib.Path(anynorm.__file__).parent
MODULES = sorted(
    ".".join(["anynorm", *file.relative_to(SOURCE).with_suffix("").parts])
    for file in SOURCE.rglob("*.py")
    if file.name not in ("__init__.py", "demo.py")
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_the_pages(page):
    source = "\n".join(_PYTHON.findall(page.read_text()))
    test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    assert result.failed == 0


@pytest.mark.parametrize("name", ["anynorm", *MODULES])
def test_examples_of_the_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.failed == 0


@pytest.mark.parametrize("page", report.COLUMNS, ids=lambda page: page.name)
def test_benchmark_tables_are_those_of_the_recorded_results(page):
    assert "<!-- benchmark: linear -->" in page.read_text()
    assert report.filled(page) == page.read_text()
