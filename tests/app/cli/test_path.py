"""``anynorm path`` and ``anynorm example``, against the library's functions."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from anynorm import __version__, sparse_svm_path
from anynorm.app.cli.app import app


def invoke(*arguments):
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    found = load_iris(as_frame=True)
    frame = found.frame.drop(columns="target")
    frame["species"] = found.target_names[found.target]
    file = tmp_path_factory.mktemp("iris") / "iris.csv"
    frame.to_csv(file, index=False)
    return file


def reference(positive="virginica"):
    X, y = load_iris(return_X_y=True)
    wanted = list(load_iris().target_names).index(positive)
    return sparse_svm_path(StandardScaler().fit_transform(X), y == wanted)


def test_the_joints_are_those_of_the_path(iris):
    result = invoke("path", iris, "--target", "species", "--positive", "virginica", "--json")
    assert result.exit_code == 0, result.output
    values, path = json.loads(result.stdout), reference()
    assert values["stopped"] == "end"
    table = pd.DataFrame(values["joints"])
    np.testing.assert_allclose(table["s"], path.s, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(table["loss"], path.losses, rtol=1e-9, atol=1e-9)
    assert table["features"].tolist() == path.n_nonzero.tolist()
    assert table["C"].tolist()[:-1] == pytest.approx((1 / path.penalties[:-1]).tolist())


def test_features_that_enter_and_leave_keep_the_count(iris, tmp_path):
    file = tmp_path / "joints.csv"
    result = invoke("path", iris, "-t", "species", "--positive", "virginica", "-o", file)
    assert result.exit_code == 0
    table, path = pd.read_csv(file, keep_default_na=False), reference()
    used: set[str] = set()
    names = load_iris().feature_names
    for k, row in enumerate(table.itertuples()):
        used -= set(filter(None, row.leaves.split(", ")))
        used |= set(filter(None, row.enters.split(", ")))
        middle = path.s[k : k + 2].mean()
        assert used == {names[j] for j in np.flatnonzero(path.coef_at(s=middle)[0])}
    assert math.isinf(float(table["C"].iloc[-1]))
    weights = pd.read_csv(tmp_path / "joints_weights.csv")
    for k in range(path.n_joints):
        shown = weights[weights["joint"] == k].set_index("feature")["weight"]
        coef = path.coef_at(s=path.s[k])[0]
        assert shown.to_dict() == pytest.approx({names[j]: coef[j] for j in np.flatnonzero(coef)})


def test_limits_end_the_path(iris):
    more = ("--target", "species", "--positive", "setosa")
    table = invoke("path", iris, *more, "--max-features", 1)
    assert table.exit_code == 0
    assert "max_features" in table.stderr
    few = json.loads(invoke("path", iris, *more, "--max-joints", 4, "--json").stdout)
    assert len(few["joints"]) == 4
    short = json.loads(invoke("path", iris, *more, "--s-max", 0.5, "--json").stdout)
    assert short["joints"][-1]["s"] == pytest.approx(0.5)


def test_quiet_prints_nothing(iris, tmp_path):
    more = ("--target", "species", "--positive", "setosa", "--quiet", "-o", tmp_path / "a.csv")
    assert invoke("path", iris, *more).output == ""
    assert (tmp_path / "a.csv").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--target", "species"), "--positive"),
        ((), "--target"),
        (("--target", "species", "--positive", "rose"), "'rose'"),
        (("--target", "species", "--positive", "setosa", "--scale", "log"), "--scale"),
        (("--target", "species", "--positive", "setosa", "--s-max", "-1"), "--s-max must be"),
        (("--target", "species", "--positive", "setosa", "--max-joints", "0"), "--max-joints"),
    ],
)
def test_bad_input_exits_with_2(iris, more, message):
    result = invoke("path", iris, *more)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_too_little_time_exits_with_3(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 20))).add_prefix("x")
    frame.assign(y=np.arange(300) % 2).to_csv(tmp_path / "noise.csv", index=False)
    result = invoke("path", tmp_path / "noise.csv", "--target", "y", "--time-limit", 1e-9)
    assert result.exit_code == 3
    assert "time_limit" in result.stderr


def test_the_example_is_the_data_of_scikit_learn(tmp_path):
    file = tmp_path / "new" / "example.csv"
    result = invoke("example", file)
    assert result.exit_code == 0
    assert "anynorm fit" in result.stdout
    frame, found = pd.read_csv(file), load_breast_cancer()
    np.testing.assert_allclose(frame[list(found.feature_names)], found.data)
    assert (frame["diagnosis"] == found.target_names[found.target]).all()


def test_the_version_is_that_of_the_package():
    assert invoke("--version").output.strip() == f"anynorm {__version__}"
