"""What is said about the package in several files is the same in all of them."""

import pathlib
import re

import anynorm

ROOT = pathlib.Path(__file__).parents[2]


def test_the_citation_has_the_version_and_the_licence_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.M)[1] == anynorm.__version__
    licence = re.search(r'^license = \{ text = "(.+)" \}$', project, re.M)[1]
    assert re.search(r"^license: (.+)$", citation, re.M)[1] == licence
