"""``anynorm fit``: every option, every exit code, every file."""

import json
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from anynorm import load_metadata, load_model
from anynorm.app.cli.app import app
from anynorm.app.job import searching
from anynorm.design import waiting
from anynorm.problem.solution import Status

FILES = {"model.anynorm", "report.html", "features.csv", "oof_predictions.csv"}


def frame(n=40, seed=0):
    rng = np.random.default_rng(seed)
    ill = np.tile([True, False], n // 2)
    values = rng.normal(size=(n, 5)) + np.outer(ill, [1.5, -1.5, 0, 0, 0])
    table = pd.DataFrame(values * [1, 10, 1, 1, 1], columns=[f"gene{j}" for j in range(5)])
    table.insert(0, "sample", [f"P{row:02d}" for row in range(n)])
    table["sex"] = np.where(rng.random(n) < 0.5, "f", "m")
    table["patient"] = np.repeat(np.arange(n // 4), 4)
    table["status"] = np.where(ill, "ill", "healthy")
    return table


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "data.csv"
    frame().to_csv(file, index=False)
    return file


def invoke(*arguments):
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def fit(data, folder, *more, code=0):
    names = () if "--transpose" in more else ("--id", "sample")
    result = invoke("fit", data, "--target", "status", *names, "-o", folder, "--cv", 3, *more)
    assert result.exit_code == code, result.output
    return result


def fit_json(data, folder, *more, code=0):
    return json.loads(fit(data, folder, "--json", *more, code=code).stdout)


@pytest.fixture(scope="module")
def plain(data, tmp_path_factory):
    """One fit, looked at by several tests."""
    folder = tmp_path_factory.mktemp("plain") / "out"
    result = fit(data, folder, "--drop", "patient")
    return folder, result


def test_the_four_files_are_there_and_nothing_else(plain):
    assert {file.name for file in plain[0].iterdir()} == FILES


def test_the_printed_result_is_short_and_honest(plain):
    text = plain[1].stdout
    assert "nested cross-validation" in text
    assert "Selection error" in text
    assert "which flatter it" in text
    assert "optimal" in text
    assert "gene0" in text
    assert "'sex'" in text  # the note about the categories
    assert len(text.splitlines()) < 40


def test_the_model_file_predicts_from_rows_as_they_were_read(plain, data):
    folder, _ = plain
    model, rows = load_model(folder / "model.anynorm"), pd.read_csv(data)
    assert np.mean(model.predict(rows) == rows["status"]) > 0.8
    metadata = load_metadata(folder / "model.anynorm")
    assert metadata["target"] == "status"
    assert metadata["positive"] == "ill"


def test_features_have_both_units_entry_and_frequency(plain):
    table = pd.read_csv(plain[0] / "features.csv")
    assert table.columns.tolist() == [
        "feature", "weight", "weight_original_units", "s_at_entry", "selection_frequency",
    ]  # fmt: skip
    assert table["weight"].abs().is_monotonic_decreasing
    assert {"gene0", "gene1"} <= set(table["feature"][:2])
    ratio = (table["weight"] / table["weight_original_units"]).to_numpy()
    scales = frame().std(ddof=0, numeric_only=True)
    for name, value in zip(table["feature"], ratio, strict=True):
        if name.startswith("gene") and np.isfinite(value):
            assert value == pytest.approx(scales[name])
    assert table["selection_frequency"].between(0, 1).all()


def test_held_out_predictions_have_names_and_folds(plain, data):
    table = pd.read_csv(plain[0] / "oof_predictions.csv")
    rows = pd.read_csv(data)
    assert table["id"].tolist() == rows["sample"].tolist()
    assert table["label"].tolist() == rows["status"].tolist()
    assert ((table["decision_value"] > 0) == (table["predicted"] == "ill")).all()
    assert set(table["fold"]) == {1, 2, 3}


def test_the_report_names_the_features(plain):
    text = (plain[0] / "report.html").read_text(encoding="utf-8")
    assert "gene0" in text
    assert "P01" in text


def test_the_same_seed_gives_the_same_files_and_another_may_not(data, tmp_path, plain):
    fit(data, tmp_path / "a", "--drop", "patient", "--seed", 0)
    fit(data, tmp_path / "b", "--drop", "patient", "--seed", 7)
    first, same, other = (
        (folder / "oof_predictions.csv").read_text()
        for folder in (plain[0], tmp_path / "a", tmp_path / "b")
    )
    assert first == same != other


def test_json_has_the_same_numbers_as_the_tables(data, tmp_path):
    values = fit_json(data, tmp_path, "--drop", "patient", "--jobs", 2)
    table = pd.read_csv(tmp_path / "oof_predictions.csv")
    assert values["error"]["value"] == pytest.approx((table["label"] != table["predicted"]).mean())
    assert values["error"]["judged_by"].startswith("nested")
    assert values["certificate"]["status"] == "optimal"
    assert values["converged"] is True
    chosen = pd.read_csv(tmp_path / "features.csv").query("weight != 0")
    assert [each["feature"] for each in values["chosen_features"]] == chosen["feature"].tolist()
    assert len(values["files"]) == 4


def test_quiet_prints_nothing(data, tmp_path, monkeypatch):
    def after_a_wait(task, schedule, what):
        waiting._tell("for nobody")  # that the compiler took long
        return searching.learn_path(task, schedule, what)

    monkeypatch.setattr(waiting, "_listeners", WeakKeyDictionary())  # nor for other tests
    monkeypatch.setitem(searching._LEARN_SPARSE, "hinge", after_a_wait)
    assert fit(data, tmp_path, "--quiet").output == ""
    assert {file.name for file in tmp_path.iterdir()} == FILES


def test_max_features_bounds_the_model(data, tmp_path):
    assert fit_json(data, tmp_path, "--max-features", 1)["n_chosen"] <= 1


@pytest.mark.parametrize("rule", ["best", "one_se", "one-se", "fewest"])
def test_rules_are_passed_on(data, tmp_path, rule):
    values = fit_json(data, tmp_path, "--rule", rule, "--drop", "patient")
    assert values["selection_error"]["rule"] == rule.replace("-", "_")


def test_scale_none_leaves_units_alone(data, tmp_path):
    values = fit_json(data, tmp_path, "--scale", "none", "--max-features", 2)
    for each in values["chosen_features"]:
        assert each["weight"] == each["weight_original_units"]


def test_positive_turns_the_weights(data, tmp_path):
    more = ("--max-features", 2, "--drop", "patient")
    ill = fit_json(data, tmp_path / "a", "--positive", "ill", *more)
    healthy = fit_json(data, tmp_path / "b", "--positive", "healthy", *more)
    assert healthy["positive"] == "healthy"
    for one, other in zip(ill["chosen_features"], healthy["chosen_features"], strict=True):
        assert one["weight"] == pytest.approx(-other["weight"])


def test_groups_are_kept_together(data, tmp_path):
    fit(data, tmp_path, "--group", "patient")
    folds = pd.read_csv(tmp_path / "oof_predictions.csv")["fold"].to_numpy().reshape(-1, 4)
    assert (folds == folds[:, :1]).all()


def test_prediction_has_no_use_for_the_groups(data, tmp_path):
    fit(data, tmp_path, "--group", "patient")
    model = load_model(tmp_path / "model.anynorm")
    assert not any("patient" in name for name in model[0].get_feature_names_out())
    rows = pd.read_csv(data)
    scores = []
    for name, table in (("with", rows), ("without", rows.drop(columns="patient"))):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        arguments = [tmp_path / "model.anynorm", tmp_path / f"{name}.csv", "-o", tmp_path / name]
        assert invoke("predict", *arguments).exit_code == 0
        scores.append(pd.read_csv(tmp_path / name).iloc[:, 1:].to_numpy().tolist())
    assert scores[0] == scores[1]


def test_rows_that_look_ordered_are_told_of_with_the_remedy(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(np.repeat(rng.normal(size=(16, 4)), 3, axis=0)).add_prefix("x")
    frame += 0.1 * rng.normal(size=frame.shape)
    frame["sample"] = [f"s{k}" for k in range(48)]
    frame["patient"], frame["status"] = np.arange(48) // 3, np.repeat(["ill", "well"] * 8, 3)
    frame.to_csv(tmp_path / "runs.csv", index=False)

    def told(out, *more, code=0):
        given = tmp_path / "runs.csv", tmp_path / out, "--max-features", 2
        console = fit(*given, *more, code=code).output
        report = (tmp_path / out / "report.html").read_text()
        for text in ("The rows look ordered", "--group COLUMN"):
            assert (text in report) == (text in " ".join(console.split()))
        return "The rows look ordered" in report

    assert told("plain", "--drop", "patient")
    assert not told("grouped", "--group", "patient", code=4)  # there is nothing to be learnt
    frame.sample(frac=1.0, random_state=0).to_csv(tmp_path / "runs.csv", index=False)
    assert not told("shuffled", "--drop", "patient")


@pytest.mark.parametrize(("scoring", "name"), [("balanced", "balanced error"), ("auc", "1 - AUC")])
def test_scoring_decides_what_is_reported(data, tmp_path, scoring, name):
    values = fit_json(data, tmp_path, "--scoring", scoring, "--max-features", 2)
    assert values["error"]["measure"] == values["selection_error"]["measure"] == name
    assert values["plain_error"]["measure"] == "error"


def test_leave_one_out(data, tmp_path):
    small = tmp_path / "small.csv"
    frame(8).to_csv(small, index=False)
    values = fit_json(small, tmp_path / "out", "--cv", "loo", "--max-features", 1, code=4)
    assert "each of 8 left out" in values["error"]["judged_by"]


def test_a_test_file_judges(data, tmp_path):
    held = frame(20, seed=9)
    held.to_csv(tmp_path / "test.csv", index=False)
    more = ("--test", tmp_path / "test.csv", "--drop", "patient")
    values = fit_json(data, tmp_path / "out", *more)
    table = pd.read_csv(tmp_path / "out" / "test_predictions.csv")
    assert table["id"].tolist() == held["sample"].tolist()
    assert values["error"]["value"] == pytest.approx((table["label"] != table["predicted"]).mean())
    assert values["error"]["rows"] == 20


def test_genes_by_samples_with_labels_of_their_own(tmp_path):
    table = frame()
    genes = table.set_index("sample").filter(like="gene").T
    genes.to_csv(tmp_path / "genes.csv", index_label="gene")
    table[["sample", "status"]].to_csv(tmp_path / "samples.csv", index=False)
    values = fit_json(
        tmp_path / "genes.csv", tmp_path / "out", "--transpose", "--labels",
        tmp_path / "samples.csv",
    )  # fmt: skip
    assert (values["rows"], values["features"]) == (40, 5)


@pytest.mark.parametrize("model", ["reweighted", "budget", "linear"])
def test_other_models_write_the_same_files(data, tmp_path, model):
    more = ("--budget", 8) if model == "budget" else ()
    values = fit_json(data, tmp_path, "--model", model, "--cv", 2, *more)
    assert {file.name for file in tmp_path.iterdir()} == FILES
    assert values["model"] == model
    if model == "budget":
        assert values["n_support_vectors"] <= 8


def test_three_classes(tmp_path):
    table = frame(60)
    table.loc[:20, "status"] = "unclear"
    table.to_csv(tmp_path / "data.csv", index=False)
    more = ("--max-features", 3, "--drop", "patient")
    fit(tmp_path / "data.csv", tmp_path / "out", *more)
    features = pd.read_csv(tmp_path / "out" / "features.csv")
    assert set(features["class"]) <= {"healthy", "ill", "unclear"}
    held = pd.read_csv(tmp_path / "out" / "oof_predictions.csv")
    values = held.filter(like="decision_value_").to_numpy()
    names = np.array(["healthy", "ill", "unclear"])
    assert (names[values.argmax(axis=1)] == held["predicted"]).all()


def test_parquet_and_svmlight_are_read_too(tmp_path):
    table = frame()
    table.to_parquet(tmp_path / "data.parquet")
    assert fit_json(tmp_path / "data.parquet", tmp_path / "a", "--max-features", 2)["rows"] == 40
    lines = [
        f"{int(row.status == 'ill')} 1:{row.gene0} 2:{row.gene1}\n" for row in table.itertuples()
    ]
    (tmp_path / "data.svmlight").write_text("".join(lines))
    result = invoke("fit", tmp_path / "data.svmlight", "-o", tmp_path / "b", "--cv", 3, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["classes"] == [0, 1]


BAD = {
    "no such file": (("--labels", "nowhere.csv"), "nowhere.csv"),
    "unknown target": (("--target", "statsu"), "Did you mean 'status'"),
    "model": (("--model", "lasso"), "--model must be one of sparse"),
    "rule": (("--rule", "paper"), "--rule must be one of steady, best, one_se, fewest"),
    "scale": (("--scale", "log"), "--scale must be one of"),
    "scoring": (("--scoring", "f1"), "--scoring must be one of"),
    "cv": (("--cv", "1"), "--cv must be"),
    "max features": (("--max-features", "0"), "--max-features must be"),
    "max features of another": (("--max-features", "3", "--model", "linear"), "--max-features is"),
    "budget": (("--budget", "5"), "--budget is for --model budget"),
    "bad budget": (("--model", "budget", "--budget", "0"), "--budget must be"),
    "time": (("--time-limit", "-1"), "--time-limit must be"),
    "jobs": (("--jobs", "0"), "--jobs must be"),
    "seed": (("--seed", "-1"), "--seed must be"),
    "positive": (("--positive", "maybe"), "'maybe'"),
    "drop": (("--drop", "genes"), "genes"),
    "auc of one": (("--scoring", "auc", "--cv", "loo"), "--scoring auc"),
    "unknown option": (("--tartget", "x"), "--target"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input_exits_with_2_says_why_and_writes_nothing(data, tmp_path, case):
    more, message = BAD[case]
    result = fit(data, tmp_path / "out", *more, code=2)
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""
    assert not (tmp_path / "out").exists()


def test_a_file_in_place_of_the_folder_is_refused(data, tmp_path):
    (tmp_path / "out").write_text("mine")
    assert "is a file" in fit(data, tmp_path / "out", code=2).stderr
    assert (tmp_path / "out").read_text() == "mine"


def test_without_a_target_the_message_says_how_to_name_it(data, tmp_path):
    result = invoke("fit", data, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "--target" in result.stderr


def test_too_little_time_is_told_and_a_model_still_written(tmp_path):
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.normal(size=(300, 20))).add_prefix("x")  # a long path
    noise["sample"], noise["status"] = [f"P{row}" for row in range(300)], np.arange(300) % 2
    noise.to_csv(tmp_path / "data.csv", index=False)
    result = fit(tmp_path / "data.csv", tmp_path / "out", "--time-limit", 1e-6, code=3)
    assert "--time-limit" in result.stderr
    report = (tmp_path / "out" / "report.html").read_text()
    assert "The best model in the time: --time-limit ended 1 path of the folds" in report
    assert "left no time for 2 of the folds" in report
    assert {file.name for file in (tmp_path / "out").iterdir()} == FILES


def test_what_is_not_certified_exits_with_3(data, tmp_path, monkeypatch):
    def uncertified(task, schedule, what):
        from dataclasses import replace

        learned = searching.learn_path(task, schedule, what)
        model = learned.model
        model.certificate_ = replace(model.certificate_, status=Status.MAX_ITER)
        return learned

    monkeypatch.setitem(searching._LEARN_SPARSE, "hinge", uncertified)
    assert "Not converged" in fit(data, tmp_path, "--max-features", 1, code=3).stderr


@pytest.mark.parametrize("where", ["write_report", "fit"])
def test_interruption_leaves_the_files_of_before(data, tmp_path, monkeypatch, where):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for name in FILES:
        (tmp_path / name).write_text("before")
    if where == "fit":
        monkeypatch.setitem(searching._LEARN_SPARSE, "hinge", interrupted)
    else:
        monkeypatch.setattr("anynorm.app.report.write_report", interrupted)
    result = fit(data, tmp_path, "--max-features", 1, code=130)
    assert "Interrupted" in result.stderr
    assert {file.name for file in tmp_path.iterdir()} == FILES
    assert {(tmp_path / name).read_text() for name in FILES} == {"before"}


def test_help_names_every_option_of_the_main_job():
    text = " ".join(invoke("fit", "--help").output.split())
    for option in (
        "--target", "--output", "--model", "--scale", "--group", "--id", "--positive", "--drop",
        "--transpose", "--labels", "--max-features", "--scoring", "--cv", "--rule", "--budget",
        "--seed", "--jobs", "--time-limit", "--quiet", "--json", "--test",
    ):  # fmt: skip
        assert option in text
