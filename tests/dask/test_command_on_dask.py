"""``anynorm fit --scheduler`` and ``--workers``: the main job on a folder of Parquet files."""

import json
import os
import signal
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from anynorm import LinearSVC, ReweightedSVC, SparseSVC, load_metadata, load_model
from anynorm.app.apart import (
    Asked,
    ClusterError,
    connected,
    fit_apart,
    reading_apart,
    run_fit_apart,
)
from anynorm.app.cli.app import app
from anynorm.app.job import FitOptions, OptionError
from anynorm.app.tables import TableError
from tests.dask.conftest import local_cluster
from tests.dask.data import same_optimum
from tests.dask.test_faults import after_rounds, kill_one

FILES = {"model.anynorm", "report.html", "features.csv", "oof_predictions.csv"}
NAMES = [f"x{j}" for j in range(5)]


def frame(n=2400, seed=0, classes=("no", "yes")):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    pull = X @ rng.standard_normal((5, len(classes))) + rng.standard_normal((n, len(classes)))
    out = pd.DataFrame(X * [1, 10, 0.1, 1, 1] + [0, 50, 0, 3, 0], columns=NAMES)
    out["sample"] = [f"s{row}" for row in range(n)]
    out["y"] = np.array(classes)[pull.argmax(axis=1)]
    return out


def write(table, folder, n_files=4, group=250):
    folder.mkdir(exist_ok=True)
    for k, rows in enumerate(np.array_split(np.arange(len(table)), n_files)):
        table.iloc[rows].to_parquet(folder / f"part{k}.parquet", row_group_size=group, index=False)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(frame(), tmp_path_factory.mktemp("data") / "rows")


def invoke(*arguments):
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run(client, data, show=None, **options):
    given = {"target": "y", "id": "sample"}
    files = {name: options.pop(name) for name in ("id", "positive", "drop", "test", "target")
             if name in options}  # fmt: skip
    wanted = Asked(data, **given | files)
    return run_fit_apart(client, wanted, FitOptions(**{"cv": 3} | options), show=show)


def scaled(table):
    return StandardScaler().fit_transform(table[NAMES]), table["y"].to_numpy()


def test_the_command_does_the_job_on_processes_of_this_machine(data, tmp_path):
    out = tmp_path / "out"
    pattern = data / "*.parquet"
    asked = ["--target", "y", "--id", "sample", "--workers", 2, "--cv", 3, "-o", out]
    result = invoke("fit", pattern, *asked, "--json")
    assert result.exit_code == 0, result.output
    assert "Dask's dashboard: http" in result.stderr
    assert {file.name for file in out.iterdir()} == FILES
    found = json.loads(result.stdout)
    assert found["rows"] == 2400
    assert sum(found["class_counts"]) == 2400
    assert found["certificate"]["gap"] <= 1e-4
    assert "800 rows held out, one of 3 parts" in found["error"]["judged_by"]
    assert load_metadata(out / "model.anynorm")["target"] == "y"

    predictions = tmp_path / "predictions.csv"
    model, file = out / "model.anynorm", data / "part0.parquet"
    assert invoke("predict", model, file, "-o", predictions).exit_code == 0
    one = frame().iloc[:600]
    scores = load_model(model).decision_function(one)
    written = pd.read_csv(predictions)
    assert written["decision_value"].to_numpy() == pytest.approx(scores, rel=1e-9)
    assert written["id"].tolist() == one["sample"].tolist()
    assert invoke("card", model).exit_code == 0


@pytest.mark.parametrize(
    ("model", "estimator"),
    [("linear", LinearSVC), ("sparse", SparseSVC), ("reweighted", ReweightedSVC)],
)
def test_the_model_is_that_of_one_machine(client, data, model, estimator):
    fitted = run(client, data, model=model)
    chosen = fitted.learned.model
    assert type(chosen) is estimator
    assert fitted.converged
    X, y = scaled(frame())
    given = {"C": chosen.C, "loss": chosen.loss}
    if model == "reweighted":
        given["n_rounds"] = chosen.n_rounds
    whole = estimator(**given, tol=1e-6).fit(X, y)
    same_optimum(chosen, whole, 1e-4)
    assert chosen.classes_.tolist() == ["no", "yes"]
    apart, here = fitted.learned.scores(frame(), fitted.classes), whole.decision_function(X)
    assert np.mean((apart > 0) == (here > 0)) > 0.995


def test_the_error_is_that_of_rows_that_had_no_part_in_anything(client, data, monkeypatch):
    """Held-out rows are in neither the scale nor the model that they judge."""
    monkeypatch.setattr(fit_apart, "TOL", 1e-9)
    fitted = run(client, data, model="linear", loss="squared_hinge", C=(0.1,))
    table, held = frame(), fitted.oof
    taken = table["sample"].isin(held.ids).to_numpy()
    assert taken.sum() == len(held.ids) == 800
    learnt = table[~taken]
    scaler = StandardScaler().fit(learnt[NAMES])
    given = {"C": 0.1, "loss": "squared_hinge", "tol": 1e-9}
    model = LinearSVC(**given).fit(scaler.transform(learnt[NAMES]), learnt["y"])
    judged = table.set_index("sample").loc[held.ids]
    scores = model.decision_function(scaler.transform(judged[NAMES]))
    assert held.scores == pytest.approx(scores, abs=1e-3)
    wrong = np.mean((held.scores > 0) != (judged["y"] == "yes").to_numpy())
    assert fitted.errors[0].value == pytest.approx(wrong)
    assert fitted.errors[0].standard_error == pytest.approx(np.sqrt(wrong * (1 - wrong) / 799))


def test_other_files_judge_the_model_of_all_rows(client, data, tmp_path):
    other = frame(700, seed=5)
    test = write(other, tmp_path / "test", n_files=2)
    fitted = run(client, data, model="linear", C=(0.01, 0.1), test=test / "*.parquet")
    scores = fitted.learned.scores(other, fitted.classes)
    assert fitted.test.ids.tolist() == other["sample"].tolist()
    assert fitted.test.scores == pytest.approx(scores, rel=1e-9, abs=1e-9)
    wrong = np.mean((scores > 0) != (other["y"] == "yes").to_numpy())
    assert fitted.errors[0].value == pytest.approx(wrong)
    assert len(fitted.oof.ids) == 2400  # by the folds that chose
    assert set(fitted.oof.folds) == {1, 2, 3}
    with pytest.raises(TableError, match="one of the files to learn from"):
        run(client, data, test=data / "part1.parquet")


def test_rows_that_do_not_fit_are_read_again_in_every_round(client, data, monkeypatch):
    held = run(client, data, model="linear", C=(0.1,))
    monkeypatch.setattr(reading_apart, "_HELD", 0.0)
    read = run(client, data, model="linear", C=(0.1,))
    assert any("read from the files in every round" in note for note in read.notes)
    assert not any("read from the files" in note for note in held.notes)
    one, other = (each.learned.model.certificate_.primal for each in (held, read))
    assert one == pytest.approx(other, rel=1e-6)
    assert held.errors == read.errors


def test_gaps_classes_and_weights_are_those_of_the_job_on_one_machine(client, tmp_path):
    table = frame(1500, seed=2, classes=("low", "mid", "top"))
    table["flag"] = table["x0"] > 0
    table["count"] = np.arange(1500) % 7
    table.loc[::50, "x1"] = np.nan
    table.loc[::100, "y"] = None
    folder = write(table, tmp_path / "rows", n_files=3)
    fitted = run(
        client, folder, model="linear", scoring="balanced", class_weight="balanced", drop=("x2",)
    )
    notes = " ".join(fitted.notes)
    assert "15 rows without a label left out" in notes
    assert "'x1' (15 rows)" in notes  # those that have a label
    assert fitted.n_rows == 1485
    assert fitted.classes.tolist() == ["low", "mid", "top"]
    names = fitted.learned.preparation.get_feature_names_out().tolist()
    assert names == ["x0", "x1", "x3", "x4", "flag", "count"]
    assert fitted.errors[0].measure == "balanced error"
    known, used = table.dropna(subset="y").set_index("sample"), ["x0", "x1", "x3", "x4"]
    known[used] = known[used].fillna(known[used].median())
    judge = known.index.isin(fitted.oof.ids)
    peer = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
    peer.fit(known.loc[~judge, used], known.loc[~judge, "y"])
    truth, found = known.loc[judge, "y"], peer.predict(known.loc[judge, used])
    theirs = 1 - balanced_accuracy_score(truth, found)
    error = fitted.errors[0]
    assert abs(error.value - theirs) < 3 * error.standard_error
    one = run(client, folder, model="linear", C=(0.1,), positive="mid", drop=("x2",))
    assert one.classes.tolist() == ["not mid", "mid"]


def test_progress_tells_rounds_and_certified_gaps(client, data):
    told = []
    run(client, data, show=told.append, model="linear", C=(0.1,))
    doing = [each.what for each in told]
    steps = ["reading", "choosing the model", "judging it", "fitting to all rows"]
    assert list(dict.fromkeys(doing)) == steps
    last = told[-2].detail
    assert "all rows, round" in last
    assert ", gap " in last
    assert any("fold 2 of 2, C = 0.1, round 3" in each.detail for each in told)


def test_a_time_limit_ends_the_search_with_what_was_found(client, data, monkeypatch):
    from anynorm.app.apart import searching_apart

    monkeypatch.setattr(searching_apart, "is_over", lambda end: True)
    fitted = run(client, data, model="linear", time_limit=500.0)
    assert fitted.cut
    assert not fitted.converged
    assert "--time-limit ended the search at C = 0.001" in fitted.problems[0]


def test_a_killed_worker_costs_the_job_nothing(own_client, data, monkeypatch):
    seen = after_rounds(monkeypatch, 12, lambda: kill_one(own_client))
    fitted = run(own_client, data, model="linear", C=(0.1,))
    assert len(seen) > 12
    assert fitted.converged
    assert fitted.n_rows == 2400


def test_a_cluster_that_loses_all_workers_ends_the_command_after_its_time_out(
    data, tmp_path, monkeypatch
):
    with local_cluster() as cluster:
        after_rounds(monkeypatch, 5, lambda: cluster.scale(0))
        address = cluster.scheduler_address
        asked = ["--target", "y", "--id", "sample", "--scheduler", address, "--worker-timeout", 2]
        result = invoke("fit", data, *asked, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "has had no worker for 2 s" in result.stderr
    assert "--worker-timeout" in result.stderr
    assert not (tmp_path / "out").exists()


def test_ctrl_c_ends_the_command_and_leaves_the_cluster_usable(client, data, tmp_path, monkeypatch):
    address = client.scheduler.address

    def interrupt():
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

    after_rounds(monkeypatch, 6, interrupt)
    asked = ["--target", "y", "--id", "sample", "--scheduler", address]
    result = invoke("fit", data, *asked, "-o", tmp_path / "out")
    assert result.exit_code == 130
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    assert client.submit(abs, -1).result() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "yy"}, "there is no column 'yy' for --target. Did you mean 'y'"),
        ({"target": None}, "--target NAME"),
        ({"id": None}, r"these are not: 'sample' \((large_)?string\)"),
        ({"drop": ("z*",)}, r"there is no column 'z\*' to drop"),
        ({"target": "x0", "drop": ("y",)}, "more than 100 different labels"),
        ({"model": "kernel"}, "--model kernel is not for clusters"),
        ({"model": "budget"}, r"BudgetSVC\(strict=True\)"),
        ({"scoring": "auc"}, "--scoring auc needs all rows in one place"),
        ({"cv": 2}, "--cv must be at least 3"),
        ({"cv": "loo"}, "--cv loo"),
        ({"class_weight": "maybe=3"}, "names 'maybe', which is no class"),
    ],
)
def test_what_cannot_be_done_is_said(client, data, options, message):
    with pytest.raises((TableError, OptionError), match=message):
        run(client, data, **options)


def test_files_that_cannot_be_used_are_named(client, tmp_path):
    with pytest.raises(TableError, match="no such Parquet file"):
        run(client, tmp_path / "*.parquet")
    folder = write(frame(600), tmp_path / "rows", n_files=2)
    (folder / "part2.parquet").write_bytes(b"nothing")
    with pytest.raises(TableError, match=r"part2.parquet: this is no Parquet file"):
        run(client, folder)
    frame(600).drop(columns="x3").to_parquet(folder / "part2.parquet")
    with pytest.raises(TableError, match=r"part2.parquet: the columns 'x3' of .*part0.parquet"):
        run(client, folder)
    frame(600).assign(x3="a").to_parquet(folder / "part2.parquet")
    with pytest.raises(TableError, match=r"part2.parquet, column 'x3': this column is of numbers"):
        run(client, folder)
    frame(600).assign(x3=np.inf).to_parquet(folder / "part2.parquet")
    with pytest.raises(TableError, match=r"part2.parquet, column 'x3': a value is infinite"):
        run(client, folder)
    frame(600).assign(y="yes").to_parquet(tmp_path / "one.parquet")
    with pytest.raises(TableError, match="every row has the label 'yes'"):
        run(client, tmp_path / "one.parquet")


def test_row_groups_that_are_too_large_for_a_worker_are_named(client, data, monkeypatch):
    monkeypatch.setattr(reading_apart, "_COPIES", 1e12)
    with pytest.raises(TableError, match=r"part0.parquet: row groups of 600 rows are too large"):
        run(client, data)


def test_a_cluster_that_is_not_there_is_said():
    nobody = "tcp://127.0.0.1:9"
    for given, kind, message in [
        ((nobody, None, 2.0), ClusterError, "127.0.0.1:9: no Dask scheduler answers"),
        ((nobody, 2), OptionError, "leave one of them out"),
        ((None, 0), OptionError, "--workers must be at least 1; got 0"),
    ]:
        with pytest.raises(kind, match=message), connected(*given):
            pass


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "is not one file. Folders and patterns of Parquet files are read by a Dask cluster"),
        (("--worker-timeout", 3), "--worker-timeout goes with --scheduler or --workers"),
        (("--workers", 2, "--group", "x0"), "--group needs all rows in one place"),
        (("--workers", 2, "--format", "csv"), "clusters read Parquet files alone"),
        (("--workers", 2, "--worker-timeout", -1), "--worker-timeout must be a number of seconds"),
    ],
)
def test_the_command_says_what_goes_with_a_cluster(data, tmp_path, more, message):
    result = invoke("fit", data, "--target", "y", "-o", tmp_path / "out", *more)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_without_dask_the_command_says_what_to_install(data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = invoke("fit", data, "--target", "y", "--workers", 2, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "pip install 'anynorm[dask]'" in result.stderr
