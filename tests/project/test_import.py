"""Importing anynorm costs next to nothing, and every public name is found."""

import os
import pathlib
import subprocess
import sys

import pytest

import anynorm


def run_fresh(code):
    """What a new interpreter prints."""
    source = str(pathlib.Path(anynorm.__file__).parents[1])
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_import_loads_no_heavy_dependency():
    heavy = "{'numpy', 'scipy', 'sklearn', 'numba', 'matplotlib', 'pandas'}"
    loaded = run_fresh(f"import sys, anynorm; print(sorted({heavy} & set(sys.modules)))")
    assert loaded == "[]"


@pytest.mark.parametrize("name", anynorm.__all__)
def test_public_names_are_found_and_listed(name):
    assert name in dir(anynorm)
    assert getattr(anynorm, name) is getattr(anynorm, name)


def test_star_import_gives_the_public_names():
    names = run_fresh("from anynorm import *; print(LinearSVC.__name__, norms.L1.__name__)")
    assert names == "LinearSVC L1"


def test_unknown_name_is_an_attribute_error_that_lists_the_known():
    with pytest.raises(AttributeError, match=r"no attribute 'LinearSVD'.*LinearSVC"):
        _ = anynorm.LinearSVD
