"""`anynorm warm-up` compiles every kind of fit, says where that is kept, or that it cannot be."""

import inspect

from typer.testing import CliRunner

import anynorm
from anynorm.app import first_fits
from anynorm.app.cli.app import app
from anynorm.design import code_cache


def test_every_estimator_that_learns_a_classifier_or_a_lasso_is_there():
    # `Reweighted` and the dictionaries fit what they are given, and compile nothing else.
    others = {"Reweighted", "KernelDictionary", "PolynomialDictionary"}
    estimators = {
        name
        for name in anynorm.__all__
        if inspect.isclass(getattr(anynorm, name)) and hasattr(getattr(anynorm, name), "fit")
    }
    fitted = {name.replace(",", " ").split()[0] for name in first_fits.fits()}
    assert estimators - others <= fitted


def test_the_fits_run_and_the_folder_is_named(monkeypatch):
    kinds = {name: fit for name, fit in first_fits.fits().items() if name.startswith("SparseSVC h")}
    monkeypatch.setattr(first_fits, "fits", lambda: kinds)
    result = CliRunner().invoke(app, ["warm-up"])
    assert result.exit_code == 0, result.output
    assert f"{len(first_fits.STORAGES)} kinds of fits are compiled" in result.stdout
    assert str(code_cache.cache_folder()) in result.stdout.replace("\n", "")
    assert not CliRunner().invoke(app, ["warm-up", "--quiet"]).stdout


def test_without_a_folder_it_says_so(monkeypatch):
    monkeypatch.setattr(code_cache, "cache_folder", lambda: None)
    result = CliRunner().invoke(app, ["warm-up"])
    assert result.exit_code == 2
    assert "Set NUMBA_CACHE_DIR" in result.stderr


def test_a_one_per_storage_and_kind():
    names = [one.name for one in first_fits.first_fits()]
    assert len(names) == len(set(names)) == len(first_fits.STORAGES) * len(first_fits.fits())
