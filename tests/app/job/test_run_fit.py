"""The main job, against folds, scalers and models put together by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anynorm import SVC, LinearSVC, SparseSVC, load_model, sparse_svm_path
from anynorm.app.job import FitOptions, OptionError, run_fit, summary, write_results
from anynorm.app.job.folds import numbered_splits
from anynorm.app.job.learning import Task
from anynorm.app.job.reporting import facts
from anynorm.app.job.results import entries, feature_table, prediction_table
from anynorm.app.job.searching import learn
from anynorm.app.tables import Table, TableError


def table_of(n=60, seed=0, labels=("healthy", "ill"), positive=None, groups=None):
    rng = np.random.default_rng(seed)
    y = np.tile([-1, 1], n // 2)
    X = rng.normal(size=(n, 10)) + np.outer(y, np.arange(10) < 4) * 0.7
    X = X * np.geomspace(0.1, 50.0, 10) + 3.0
    names = [f"gene{j}" for j in range(X.shape[1])]
    target = np.asarray(labels)[(y > 0).astype(int)]
    ids = np.array([f"s{row}" for row in range(n)])
    frame = pd.DataFrame(X, columns=names)
    return Table(frame, target, ids, groups, positive, "data.csv", target_name="status")


@pytest.fixture(scope="module")
def sparse():
    return run_fit(table_of(), FitOptions(cv=4))


def test_the_curve_is_that_of_scaling_inside_the_folds(sparse):
    """Leaks would show: every fold is put together with a scaler of its own."""
    X, y = sparse.table.features.to_numpy(), sparse.oof.y
    curve = sparse.learned.detail.found.scored.curve
    for fold, (train, test) in enumerate(numbered_splits(sparse.oof.folds)):
        scaler = StandardScaler().fit(X[train])
        path = sparse_svm_path(scaler.transform(X[train]), y[train])
        middles = (curve.low + curve.high) / 2
        scores = path.decision_function(scaler.transform(X[test]), s=middles)
        right = ((scores > 0) == (y[test] == 1)[:, None]).mean(axis=0)
        np.testing.assert_allclose(curve.scores[:, fold], right)


def test_the_honest_error_is_that_of_searches_that_knew_nothing_of_the_rows(sparse):
    """The outer loop by hand: the whole job on the other rows, then its pipeline on these."""
    table = sparse.table
    for train, test in numbered_splits(sparse.oof.folds):
        part = Table(
            table.features.iloc[train], table.target[train], table.ids[train], None, None,
            "part.csv",
        )  # fmt: skip
        inner = run_fit(part, FitOptions(cv=4), test=table_of(12, seed=5))
        scores = inner.learned.pipeline.decision_function(table.features.iloc[test])
        np.testing.assert_allclose(sparse.oof.scores[test], scores, rtol=1e-9, atol=1e-12)
    wrong = np.mean((sparse.oof.scores > 0) != (sparse.oof.y == 1))
    assert sparse.errors[0].value == pytest.approx(wrong)
    assert "nested" in sparse.judged_by


def test_the_model_is_the_one_norm_svm_of_scaled_rows_at_the_chosen_price(sparse):
    X, model = sparse.table.features.to_numpy(), sparse.learned.model
    reference = SparseSVC(C=model.C_, tol=1e-9).fit(StandardScaler().fit_transform(X), sparse.oof.y)
    reached = reference.certificate_.primal
    assert model.certificate_.primal == pytest.approx(reached, rel=1e-8)
    assert model.certificate_.gap <= 1e-9
    assert sparse.converged


def test_weights_in_original_units_need_no_scaling(sparse):
    table = feature_table(sparse).set_index("feature")["weight_original_units"]
    X = sparse.table.features
    coef = table.reindex(X.columns).fillna(0.0).to_numpy()
    scores = sparse.learned.pipeline.decision_function(X)
    offset = scores - X.to_numpy() @ coef
    np.testing.assert_allclose(offset, offset[0], atol=1e-9)


def test_features_enter_where_their_weights_leave_zero(sparse):
    path = sparse.learned.detail.found.paths[0]
    step = 1e-6 * path.s[-1]
    for feature, s in enumerate(entries(path, 0.0)):
        assert path.coef_at(s=s)[0][feature] == 0.0
        assert path.coef_at(s=s + step)[0][feature] != 0.0
        earlier = path.coef_at(s=0.5 * s)[0][feature]
        assert earlier == 0.0


def test_selection_frequencies_count_the_folds_that_use_a_feature(sparse):
    X, y, s = sparse.table.features.to_numpy(), sparse.oof.y, sparse.learned.choice["s"]
    used = []
    for train, _ in numbered_splits(sparse.oof.folds):
        path = sparse_svm_path(StandardScaler().fit_transform(X[train]), y[train])
        used.append(path.coef_at(s=s)[0] != 0)
    table = feature_table(sparse).set_index("feature")["selection_frequency"]
    for name, share in zip(sparse.table.features, np.mean(used, axis=0), strict=True):
        assert table.get(name, 0.0) == pytest.approx(share)


def test_the_positive_label_turns_all_signs():
    options = FitOptions(cv=3, max_features=4)
    plain = run_fit(table_of(), options)
    turned = run_fit(table_of(positive="healthy"), options)
    np.testing.assert_allclose(turned.learned.model.coef_, -plain.learned.model.coef_, atol=1e-9)
    assert turned.classes.tolist() == ["ill", "healthy"]
    assert turned.learned.model.path_.classes_.tolist() == ["ill", "healthy"]
    frame = plain.table.features
    predictions = turned.learned.pipeline.predict(frame)
    assert predictions.tolist() == plain.learned.pipeline.predict(frame).tolist()
    assert summary(turned)["positive"] == "healthy"
    assert turned.errors[0].value == plain.errors[0].value


@pytest.mark.parametrize("scoring", ["error", "balanced", "auc"])
@pytest.mark.parametrize("model", ["sparse", "reweighted"])
def test_without_scales_the_model_is_what_its_estimator_chooses(model, scoring):
    """One search: the estimator's own, with the job's folds, and nothing set on it afterwards."""
    table, options = table_of(40), FitOptions(model=model, cv=2, scoring=scoring, scale="none")
    found = run_fit(table, options, test=table_of(10))
    kept, X = found.learned.model, table.features.to_numpy()
    again = clone(kept).set_params(cv=numbered_splits(found.oof.folds)).fit(X, table.target)
    np.testing.assert_allclose(again.coef_, kept.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(again.classes_, kept.classes_)
    assert again.best_index_ == kept.best_index_
    assert again.best_score_ == pytest.approx(kept.best_score_)


def test_groups_stay_together_in_both_loops():
    groups = np.repeat(np.arange(15), 4)
    found = run_fit(table_of(groups=groups), FitOptions(cv=3))
    for fold in range(1, 4):
        inside = set(groups[found.oof.folds == fold])
        assert not inside & set(groups[found.oof.folds != fold])


def test_groups_stay_together_in_the_folds_within_folds(monkeypatch):
    groups, seen = np.repeat(np.arange(15), 4), []
    part = Task.part

    def watched_part(task, rows, folds):
        seen.append((groups[rows], folds))
        return part(task, rows, folds)

    monkeypatch.setattr(Task, "part", watched_part)
    run_fit(table_of(groups=groups), FitOptions(cv=3))
    assert len(seen) == 3
    for inside, folds in seen:
        for fold in range(1, 4):
            assert not set(inside[folds == fold]) & set(inside[folds != fold])


def test_a_test_file_replaces_the_outer_loop():
    held = table_of(40, seed=3)
    found = run_fit(table_of(), FitOptions(cv=3), test=held)
    wrong = found.learned.pipeline.predict(held.features) != held.target
    assert found.errors[0].value == pytest.approx(wrong.mean())
    assert found.judged_by == "40 rows of data.csv"
    assert len(prediction_table(found.test, found.classes)) == 40


def test_a_test_file_with_unknown_labels_is_refused():
    with pytest.raises(TableError, match="'odd' does not occur"):
        run_fit(table_of(), FitOptions(cv=3), test=table_of(20, labels=("healthy", "odd")))


def test_linear_candidates_are_scored_as_pipelines_would_be():
    found = run_fit(table_of(), FitOptions(model="linear", cv=3))
    X, y, detail = found.table.features.to_numpy(), found.oof.y, found.learned.detail
    for c, candidate in enumerate(detail.candidates):
        for fold, (train, test) in enumerate(numbered_splits(found.oof.folds)):
            reference = make_pipeline(StandardScaler(), LinearSVC(candidate["C"], tol=1e-8))
            score = reference.fit(X[train], y[train]).score(X[test], y[test])
            assert detail.scores[c, fold] == pytest.approx(score)


def test_reweighted_folds_are_scaled_inside():
    found = run_fit(table_of(), FitOptions(model="reweighted", cv=3))
    X, y, model = found.table.features.to_numpy(), found.oof.y, found.learned.model
    for fold, (train, test) in enumerate(numbered_splits(found.oof.folds)):
        reference = make_pipeline(StandardScaler(), model._model(model.C_, model.n_rounds_))
        reference.fit(X[train], y[train])
        np.testing.assert_allclose(
            found.learned.held_out[test], reference.decision_function(X[test]), atol=1e-6
        )
        assert found.learned.fold_scores[fold] == pytest.approx(reference.score(X[test], y[test]))


@pytest.mark.parametrize("model", ["budget", "least-norm", "least-squares", "kernel"])
def test_kernel_models_predict_labels_from_their_files(model, tmp_path):
    table = table_of(40)
    found = run_fit(table, FitOptions(model=model, cv=2, budget=6 if model == "budget" else None))
    files = write_results(found, tmp_path)
    loaded = load_model(files[0])
    scores = found.learned.pipeline.decision_function(table.features)
    np.testing.assert_array_equal(loaded.decision_function(table.features), scores)
    assert set(loaded.predict(table.features)) <= {"healthy", "ill"}
    if model == "budget":
        assert len(found.learned.model.support_) <= 6
        detail = found.learned.detail
        assert [each["budget"] for each in detail.candidates] == [2, 3, 6, 12]
        assert (detail.sizes <= [[2], [3], [6], [12]]).all()
        np.testing.assert_allclose(detail.scores[detail.chosen], found.learned.fold_scores)
        choice = detail.candidates[detail.chosen]
        sizes = []
        X, y = table.features.to_numpy(), found.oof.y
        for train, _ in numbered_splits(found.oof.folds):
            rows = StandardScaler().fit_transform(X[train])
            plain = SVC(C=choice["C"], gamma=choice["width"] / rows.shape[1], tol=1e-3)
            sizes.append(len(plain.fit(rows, y[train]).support_))
        assert detail.reference[1] == pytest.approx(np.mean(sizes), abs=1)


def test_the_kernel_is_chosen_by_folds_that_are_prepared_apart():
    found = run_fit(table_of(), FitOptions(model="kernel", cv=3))
    X, y, model = found.table.features.to_numpy(), found.oof.y, found.learned.model
    for fold, (train, test) in enumerate(numbered_splits(found.oof.folds)):
        reference = make_pipeline(StandardScaler(), SVC(C=model.C_, gamma=model.gamma_, tol=1e-6))
        reference.fit(X[train], y[train])
        np.testing.assert_allclose(
            found.learned.held_out[test], reference.decision_function(X[test]), atol=2e-2
        )
        assert found.learned.fold_scores[fold] == pytest.approx(reference.score(X[test], y[test]))


@pytest.mark.parametrize("model", ["sparse", "kernel", "reweighted"])
def test_probabilities_of_held_out_rows_are_written(model, tmp_path):
    found = run_fit(table_of(), FitOptions(model=model, cv=3))
    assert found.oof.probabilities.shape == (len(found.oof.y), 2)
    np.testing.assert_allclose(found.oof.probabilities.sum(axis=1), 1.0)
    values = summary(found)
    assert 0 < values["brier_score"] < 0.3
    files = write_results(found, tmp_path)
    rows = pd.read_csv(files[3])
    assert {"probability_healthy", "probability_ill"} <= set(rows.columns)
    report = files[1].read_text()
    assert "Brier score" in report
    assert '"reliability":{"classes":["' in report.replace(" ", "")


def test_a_model_without_probabilities_writes_none(tmp_path):
    found = run_fit(table_of(), FitOptions(model="linear", cv=2))
    assert found.oof.probabilities is None
    assert "probability_ill" not in pd.read_csv(write_results(found, tmp_path)[3]).columns


@pytest.mark.parametrize("scoring", ["balanced", "auc"])
def test_other_scores_choose_too(scoring):
    found = run_fit(table_of(), FitOptions(cv=3, scoring=scoring, max_features=5))
    assert [each.measure for each in found.errors] == [
        {"balanced": "balanced error", "auc": "1 - AUC"}[scoring],
        "error",
    ]
    detail = found.learned.detail
    choice, curve = detail.picks["best"], detail.found.scored.curve
    assert curve.low[choice.row] <= choice.place <= curve.high[choice.row]
    best = curve.scores.mean(axis=1).max()
    assert curve.scores[choice.row].mean() == pytest.approx(best)


def test_a_rare_class_of_several_is_no_obstacle():
    table = table_of(60)
    labels = table.target.astype(object)
    labels[:2] = "rare"
    found = run_fit(
        Table(table.features, labels.astype(str), table.ids, None, None, "data.csv"),
        FitOptions(cv=3, max_features=3),
    )
    assert found.oof.scores.shape == (60, 3)
    assert not np.isnan(found.oof.scores).any()


def test_too_little_time_is_said():
    found = run_fit(table_of(200), FitOptions(cv=3, time_limit=1e-6))
    assert not found.converged
    assert any("--time-limit" in problem for problem in found.problems)


def test_two_rows_of_a_class_are_refused_before_any_work():
    table = table_of(30)
    labels = np.where(np.arange(30) < 2, "rare", "often")
    with pytest.raises(OptionError, match="--test FILE"):
        run_fit(Table(table.features, labels, table.ids, None, None, "d.csv"), FitOptions())


def test_any_number_of_threads_gives_the_same(sparse):
    again = run_fit(table_of(), FitOptions(cv=4, jobs=3))
    np.testing.assert_array_equal(again.oof.scores, sparse.oof.scores)
    np.testing.assert_array_equal(again.learned.model.coef_, sparse.learned.model.coef_)


def test_progress_only_grows_and_ends_at_one():
    shown = []
    run_fit(table_of(30), FitOptions(cv=3), show=shown.append)
    shares = [doing.share for doing in shown]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_repeats_are_the_nested_cross_validations_of_the_next_seeds():
    repeated = run_fit(table_of(), FitOptions(cv=3, repeats=3, seed=5))
    alone = [run_fit(table_of(), FitOptions(cv=3, seed=seed)) for seed in (5, 6, 7)]
    assert repeated.repeats == [each.errors[0].value for each in alone]
    assert repeated.errors == alone[0].errors
    np.testing.assert_array_equal(repeated.oof.scores, alone[0].oof.scores)
    assert summary(repeated)["repeats"] == repeated.repeats
    with pytest.raises(OptionError, match="--repeats repeats the nested cross-validation"):
        run_fit(table_of(), FitOptions(cv=3, repeats=2), test=table_of(seed=1))
    for wrong in ({"repeats": 0}, {"repeats": 2, "cv": "loo"}):
        with pytest.raises(OptionError, match=r"^--repeats"):
            FitOptions(**wrong)


def test_searches_that_judge_are_not_believed_where_time_let_them_come_further(monkeypatch):
    """The model of 5000 x 2000 rows had 18 % on its own folds, and 12 % were said."""
    whole = run_fit(table_of(), FitOptions(cv=3))
    assert not any("rather" in each for each in whole.problems)

    def cut(task, schedule, what):
        return replace(learn(task, schedule, what), cut=True, fold_scores=np.full(3, 0.4))

    monkeypatch.setattr("anynorm.app.job.fit.learn", cut)
    found = run_fit(table_of(), FitOptions(cv=3))
    assert found.errors[0].value < 0.5
    assert found.selection_error[0] == pytest.approx(0.6)
    assert any("its error is rather that of the folds which chose it, 60.0%" in each
               for each in found.problems)  # fmt: skip
    assert facts(found)["Selection error"].endswith("on the folds that chose the model)")
