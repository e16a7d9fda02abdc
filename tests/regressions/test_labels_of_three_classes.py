"""The training scores in a report took three labels for places among the classes."""

import numpy as np
import pandas as pd
import pytest

from anynorm import load_model
from anynorm.app.job import FitOptions, run_fit, write_results
from anynorm.app.tables import Table


@pytest.mark.parametrize("model", ["linear", "least-squares"])
def test_results_are_written_for_three_classes_of_text(model, tmp_path):
    X = np.random.default_rng(0).normal(size=(45, 3)) + np.repeat(np.eye(3) * 3, 15, axis=0)
    target = np.repeat(["a", "b", "c"], 15)
    frame = pd.DataFrame(X, columns=["x", "y", "z"])
    ids = np.array([str(row) for row in range(45)])
    fitted = run_fit(Table(frame, target, ids, None, None, "d.csv"), FitOptions(model=model, cv=3))
    write_results(fitted, tmp_path)
    loaded = load_model(tmp_path / "model.anynorm")
    assert loaded.classes_.tolist() == ["a", "b", "c"]
    assert np.mean(loaded.predict(frame) == target) > 0.9
