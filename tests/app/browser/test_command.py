"""The report that the command writes agrees with the tables beside it."""

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from anynorm.app.cli.app import app

NASTY = 'a "</script><b>" gene'


def written(tmp_path, labels, *options):
    """The folder of `anynorm fit` on rows with these labels."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((len(labels), 10)) * np.arange(1, 11)
    places = np.unique(labels, return_inverse=True)[1]
    X[np.arange(len(labels)), places] += 4.0
    with (tmp_path / "data.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["name", "kind", NASTY, *(f"gene {j}" for j in range(1, 10))])
        for i, row in enumerate(X):
            table.writerow([f"mouse {i}", labels[i], *row])
    out = tmp_path / "out"
    given = ["fit", tmp_path / "data.csv", "--target", "kind", "--id", "name", "-o", out, "--cv", 3]
    result = CliRunner().invoke(app, [str(part) for part in (*given, "--quiet", *options)])
    assert result.exit_code == 0, result.output
    return out


def rows_of(file):
    with file.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_two_classes(opened, tmp_path):
    out = written(tmp_path, np.array(["ill", "well"])[np.arange(45) % 2])
    page = opened(out / "report.html")
    table = {row["feature"]: row for row in rows_of(out / "features.csv")}
    weights = page.weights()
    used = {name for name, row in table.items() if float(row["weight"]) != 0}
    assert set(weights) == used
    assert NASTY in used
    for name in used:
        assert weights[name] == pytest.approx(float(table[name]["weight"]), rel=1e-9)
    with page.page.expect_download() as waiting:
        page.page.click("button:text-is('Download CSV')")
    for row in csv.DictReader(waiting.value.path().read_text().splitlines()):
        for column in ("weight_original_units", "s_at_entry", "selection_frequency"):
            expected = float(table[row["feature"]][column])
            assert float(row[column]) == pytest.approx(expected, rel=1e-6), column
    names = {row["id"] for row in rows_of(out / "oof_predictions.csv")}
    assert set(page.page.locator(".members li").all_inner_texts()) <= names
    assert page.quiet(), page.complaints


@pytest.mark.parametrize("model", ["sparse", "reweighted", "budget", "linear"])
def test_three_classes_of_any_model(opened, tmp_path, model):
    labels = np.array(["<i>a", "b", "c"])[np.arange(27) % 3]
    out = written(tmp_path, labels, "--model", model, "--cv", 2)
    page = opened(out / "report.html")
    assert page.page.locator("[role=tab]").all_inner_texts() == ["<i>a", "b", "c"]
    counted = page.page.locator(".matrix.many b").all_inner_texts()
    assert sum(int(count) for count in counted) == 27
    if model != "sparse":  # the sparse page judges the selection, the file the nested folds
        rows = rows_of(out / "oof_predictions.csv")
        wrong = [f"{row['id']} ({row['label']} as {row['predicted']})"
                 for row in rows if row["label"] != row["predicted"]]  # fmt: skip
        shown = page.page.locator(".card:has(.matrix.many) .chips li").all_inner_texts()
        assert sorted(shown) == sorted(wrong)
    assert page.quiet(), page.complaints
