"""The self-test passes here, and a fit that is wrong is found."""

import json

import pytest
from typer.testing import CliRunner

from anynorm.app import selftest
from anynorm.app.cli.app import app


@pytest.fixture(scope="module")
def printed():
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_check_is_certified_and_agrees_with_its_reference(printed):
    assert {check["name"] for check in printed["checks"]} >= {
        "LinearSVC", "SparseSVC", "sparse_svm_path", "SVC", "BudgetSVC", "LeastSquaresSVC",
    }  # fmt: skip
    for check in printed["checks"]:
        assert check["ok"], check
        assert check["gap"] <= 1e-6
        assert check["difference"] <= 1e-5


def test_versions_threads_and_cache_are_said(printed):
    import numpy

    assert printed["versions"]["numpy"] == numpy.__version__
    assert "cores" in printed["threads"]
    assert "folder" in printed["cache"]


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (lambda X, y: (1e-3, 0.0), "the gap 1.0e-03 is above 1e-06"),
        (lambda X, y: (0.0, 0.5), "differs from a friend by 5.0e-01"),
        (lambda X, y: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda X, y: (float("nan"), 0.0), "the gap nan is above"),
    ],
)
def test_what_is_wrong_is_found_with_code_3(monkeypatch, check, said):
    monkeypatch.setattr(selftest, "_CHECKS", (("bad fit", "a friend", check),))
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 3
    assert f"bad fit: {said}" in result.stderr
    assert "FAILED" in result.stdout


def test_no_cache_is_said(monkeypatch):
    monkeypatch.setenv("ANYNORM_DISABLE_CACHE", "1")
    assert "every process compiles anew" in selftest.cache()["folder"]
