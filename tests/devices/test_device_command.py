"""``anynorm fit --device``: the same files, and clear words where there is no such device."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from anynorm import load_model
from anynorm.app.cli.app import app
from anynorm.app.job import FitOptions, OptionError
from anynorm.design import device
from tests.devices.data import curved

runner = CliRunner()


@pytest.fixture
def table(tmp_path):
    X, y = curved(n=90, p=4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["kind"] = np.where(y == 1, "yes", "no")
    frame[:60].to_csv(tmp_path / "data.csv", index=False)
    frame[60:].to_csv(tmp_path / "test.csv", index=False)
    return tmp_path / "data.csv"


@pytest.mark.parametrize("model", ["kernel", "least-squares"])
def test_a_fit_on_a_device_writes_what_one_in_memory_does(table, tmp_path, model):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    where = "cuda" if torch.cuda.is_available() else "cpu"
    found = {}
    for name, more in {"memory": [], "device": ["--device", where]}.items():
        folder = tmp_path / name
        given = ["fit", str(table), "--target", "kind", "-o", str(folder), "--model", model]
        given += ["--test", str(table.with_name("test.csv")), "--cv", "2", "--C", "1"]
        done = runner.invoke(app, [*given, "--quiet", *more])
        assert done.exit_code in (0, 4), done.output  # 4: no better than the baseline
        found[name] = load_model(folder / "model.anynorm")
    frame = pd.read_csv(table).drop(columns="kind")
    scores = [model.decision_function(frame) for model in found.values()]
    assert all(isinstance(each, np.ndarray) for each in scores)
    certificates = [model[-1].certificate_ for model in found.values()]
    assert certificates[1].gap <= 1e-4
    assert np.mean((scores[0] > 0) == (scores[1] > 0)) > 0.9


def test_models_without_a_device_say_so():
    with pytest.raises(OptionError, match=r"--device is for --model kernel, .*, not sparse"):
        FitOptions(device="cuda")


def test_a_device_that_is_not_there(monkeypatch):
    def lost(name):
        raise ImportError(name)

    monkeypatch.setattr(device.importlib, "import_module", lost)
    with pytest.raises(OptionError, match="neither PyTorch nor CuPy is installed"):
        FitOptions(model="kernel", device="cuda")


def test_a_machine_without_cuda():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(OptionError, match="--device cuda cannot be used: PyTorch finds no CUDA"):
        FitOptions(model="kernel", device="cuda")
    with pytest.raises(OptionError, match="no such device"):
        FitOptions(model="kernel", device="nonsense")


def test_sparse_tables_stay_in_memory(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    X = sp.csr_array(np.random.default_rng(0).random((60, 400)) < 0.02).astype(float)
    dump_svmlight_file(X, np.arange(60) % 2, str(tmp_path / "data.svmlight"))
    given = ["fit", str(tmp_path / "data.svmlight"), "-o", str(tmp_path / "out"), "--cv", "2"]
    done = runner.invoke(app, [*given, "--model", "linear", "--device", "cpu"])
    assert done.exit_code == 2
    assert "takes tables of numbers" in " ".join(done.output.split())
