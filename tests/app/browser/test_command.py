"""The report that the command writes agrees with the tables beside it."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, confusion_matrix, roc_auc_score
from typer.testing import CliRunner

from anynorm import load_model
from anynorm.app.cli.app import app

NASTY = 'a "</script><b>" gene'


def written(tmp_path, labels, *options, told=None):
    """The folder of `anynorm fit` on rows with these labels; `told` gets what it printed."""
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
    if told is not None:
        told.append(result.stdout)
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
    rows = rows_of(out / "oof_predictions.csv")
    honest = page.page.locator("section:has(> h2:text-is('Held-out samples'))")
    wrong = {row["id"] for row in rows if row["label"] != row["predicted"]}
    assert set(honest.locator(".members li").all_inner_texts()) == wrong
    y = np.array([row["label"] == "well" for row in rows])
    scores = np.array([float(row["decision_value"]) for row in rows])
    assert f"AUC {float(f'{roc_auc_score(y, scores):.4g}'):g}, held out" in honest.inner_text()
    average = float(f"{average_precision_score(y, scores):.4g}")
    assert f"Average precision {average:g}" in honest.inner_text()
    assert page.quiet(), page.complaints


@pytest.mark.parametrize("model", ["sparse", "reweighted", "budget", "linear"])
def test_three_classes_of_any_model(opened, tmp_path, model):
    labels = np.array(["<i>a", "b", "c"])[np.arange(27) % 3]
    out = written(tmp_path, labels, "--model", model, "--cv", 2)
    page = opened(out / "report.html")
    tabs = page.page.locator("[role=tab]").all_inner_texts()
    assert tabs == ["<i>a", "b", "c"] * (2 if model == "sparse" else 1)
    counted = page.page.locator(".matrix.many").first.locator("b").all_inner_texts()
    assert sum(int(count) for count in counted) == 27
    rows = rows_of(out / "oof_predictions.csv")
    wrong = [f"{row['id']} ({row['label']} as {row['predicted']})"
             for row in rows if row["label"] != row["predicted"]]  # fmt: skip
    honest = page.page.locator(".card:has(.matrix.many)").first
    assert sorted(honest.locator(".chips li").all_inner_texts()) == sorted(wrong)
    assert page.quiet(), page.complaints


def test_every_class_is_shown_where_the_model_has_it(opened, tmp_path):
    """All tabs showed the s of the first class, and judged a classifier that nobody had chosen."""
    labels = np.array(["a", "b", "c"])[np.arange(60) % 3]
    said = []
    out = written(tmp_path, labels, "--json", told=said)
    found = json.loads(said[0])
    table = rows_of(out / "features.csv")
    page = opened(out / "report.html")
    tabs = page.page.locator("[role=tablist]").nth(1).locator("[role=tab]")
    wrong = round(60 * found["selection_error"]["value"])
    for rule in (None, "one_se", found["selection_error"]["rule"]):
        if rule:
            page.page.click(f"button[aria-label='Go to the pick of {rule}']")
            page.settle()
        if rule == "one_se":
            continue
        for k, name in enumerate("abc"):
            tabs.nth(k).click()
            expected = {row["feature"]: float(row["weight"]) for row in table
                        if row["class"] == name and float(row["weight"]) != 0}  # fmt: skip
            assert page.weights() == pytest.approx(expected, rel=1e-9)
            assert page.shown()[0] == pytest.approx(found["choice"]["s"][k])
            assert float(page.page.input_value("#input-C")) == pytest.approx(
                found["choice"]["C"], rel=1e-5
            )
            assert page.page.inner_text("#out-all") == f"{wrong} of 60"
    assert len(set(found["choice"]["s"])) == 3
    page.page.fill("#input-C", "0.05")
    page.page.press("#input-C", "Enter")
    page.settle()
    paths = load_model(out / "model.anynorm")[-1].paths_
    for k in range(3):
        tabs.nth(k).click()
        coef = paths[k].coef_at(C=0.05)[0]
        assert page.shown()[0] == pytest.approx(np.abs(coef).sum(), abs=1e-12)
    assert page.quiet(), page.complaints


def test_a_model_without_features_has_any_C(opened, tmp_path):
    """C was 1 in one place and "any" in another, and s one that the path does not have."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(80) % 20 == 0, "rare", "common")
    table = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"]).assign(y=y)
    table.to_csv(tmp_path / "data.csv", index=False)
    given = ["fit", tmp_path / "data.csv", "-t", "y", "-o", tmp_path / "out", "--cv", 3]
    result = CliRunner().invoke(app, [str(part) for part in given])
    assert result.exit_code == 4, result.output
    assert "s = 0, C = any" in result.output
    page = opened(tmp_path / "out" / "report.html")
    assert page.page.inner_text("#out-C") == "any"
    assert page.page.input_value("#input-C") == ""
    assert page.page.get_attribute("#input-C", "placeholder") == "any"
    assert page.quiet(), page.complaints


def test_the_threshold_moves_the_matrix(opened, tmp_path):
    out = written(tmp_path, np.array(["ill", "well"])[np.arange(45) % 2])
    rows = rows_of(out / "oof_predictions.csv")
    y = np.array([row["label"] == "well" for row in rows])
    scores = np.array([float(row["decision_value"]) for row in rows])
    page = opened(out / "report.html")
    cells = page.page.locator(".confusion").first.locator(".cell b")
    for threshold in (float(np.median(scores)), 0.0):
        page.page.locator("input.threshold").first.evaluate(
            "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }",
            threshold,
        )
        shown = float(page.page.locator("input.threshold").first.input_value())
        expected = (
            confusion_matrix(y, scores.astype(np.float32).astype(float) > shown).ravel().tolist()
        )
        assert [int(text) for text in cells.all_inner_texts()] == expected
    assert page.quiet(), page.complaints


def test_a_grid_of_settings_is_shown_with_the_choice(opened, tmp_path):
    out = written(tmp_path, np.array(["ill", "well"])[np.arange(45) % 2], "--model", "kernel")
    page = opened(out / "report.html")
    grid = page.page.locator(".matrix.grid")
    assert grid.locator("thead th").count() == 7  # six values of C
    assert grid.locator("tbody tr").count() == 5
    page.page.set_viewport_size({"width": 380, "height": 700})
    heading = grid.locator("tbody th").first.bounding_box()
    assert heading["width"] > 30  # no letter under the other
    assert grid.locator(".chosen").count() == 1
    selection = page.page.locator(".facts div:has(dt:text-is('Selection error')) dd").inner_text()
    assert grid.locator(".chosen b").inner_text() == selection.split()[0]
    assert page.quiet(), page.complaints


def test_figures_are_saved_as_files(opened, tmp_path):
    out = written(tmp_path, np.array(["ill", "well"])[np.arange(45) % 2])
    page = opened(out / "report.html")
    with page.page.expect_download() as waiting:
        page.page.click("button[aria-label='Save ROC curve as SVG'] >> nth=0")
    text = waiting.value.path().read_text()
    assert waiting.value.suggested_filename == "roc-curve.svg"
    assert text.startswith("<svg")
    assert 'stroke="rgb(' in text
    assert "true positive rate" in text
    with page.page.expect_download() as waiting:
        page.page.click("button[aria-label='Save Path as PNG']")
    assert waiting.value.path().read_bytes().startswith(b"\x89PNG")
    with page.page.expect_download() as waiting:
        page.page.click("button[aria-label='Save ROC curve as PDF'] >> nth=0")
    drawn = waiting.value.path().read_bytes()
    assert waiting.value.suggested_filename == "roc-curve.pdf"
    assert drawn.startswith(b"%PDF-1.4")
    assert b"(true positive rate) Tj" in drawn
    assert b"/Image" not in drawn  # lines and text, not a picture
    start = int(drawn.split(b"startxref\n")[1].split()[0])
    assert drawn[start:].startswith(b"xref")
    for number, line in enumerate(drawn[start:].split(b"\n")[3:9], start=1):
        assert drawn[int(line.split()[0]) :].startswith(b"%d 0 obj" % number)
    assert page.complaints == []


def test_letters_that_the_font_has_not_make_the_pdf_a_picture(opened, tmp_path):
    out = written(tmp_path, np.array(["ill", "well"])[np.arange(45) % 2])
    page = opened(out / "report.html")
    page.page.evaluate("document.querySelector('.figure svg text').firstChild.data = 'ген'")
    with page.page.expect_download() as waiting:
        page.page.click("button[aria-label='Save ROC curve as PDF'] >> nth=0")
    drawn = waiting.value.path().read_bytes()
    assert b"/Filter /DCTDecode" in drawn
    assert b"\xff\xd8\xff" in drawn  # a JPEG
    assert page.complaints == []


def test_all_classes_are_printed_and_files_name_their_class(opened, tmp_path):
    out = written(tmp_path, np.array(["a", "b", "c"])[np.arange(45) % 3])
    page = opened(out / "report.html")
    page.page.emulate_media(media="print")
    page.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    places = load_model(out / "model.anynorm")[-1].s_
    assert page.page.locator(".printed h2").all_inner_texts() == [
        f"Features of {name} at s = {s:.4g}" for name, s in zip("bc", places[1:], strict=True)
    ]
    page.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.page.emulate_media(media="screen")
    with page.page.expect_download() as waiting:
        page.page.click("button:text-is('Download CSV')")
    rows = list(csv.DictReader(waiting.value.path().read_text().splitlines()))
    assert {row["class"] for row in rows} == {"a"}
    assert {float(row["s"]) for row in rows} == {page.shown()[0]}
    assert all(len(row["selection_frequency"]) < 20 for row in rows)


def test_models_side_by_side(opened, tmp_path):
    written(tmp_path, np.array(["ill", "well"])[np.arange(45) % 2])
    given = ["compare", tmp_path / "data.csv", "--target", "kind", "--id", "name", "--cv", 3]
    more = ["--models", "sparse,linear", "-o", tmp_path / "both"]
    result = CliRunner().invoke(app, [str(part) for part in (*given, *more)])
    assert result.exit_code == 0, result.output
    page = opened(tmp_path / "both" / "compare.html")
    table = {row["name"]: row for row in rows_of(tmp_path / "both" / "compare.csv")}
    for name, row in table.items():
        cells = page.page.locator(f"tr:has(a:text-is('{name}')) td").all_inner_texts()
        assert cells[0] == f"{100 * float(row['error']):.1f}%"
    marks = page.page.locator(".chart .dot, .chart .marker")
    assert marks.count() == 2
    assert marks.nth(1).bounding_box()["y"] > marks.nth(0).bounding_box()["y"] + 20
    assert page.quiet(), page.complaints
    page.page.click("a:text-is('linear')")
    page.page.wait_for_selector("html[data-ready]", state="attached")
    assert "Held-out samples" in page.page.inner_text("main")
