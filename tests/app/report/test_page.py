"""Pages are whole, safe and small, and hold what the path holds."""

import base64
import json
import pathlib
import re

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm import ReweightedSVC, sparse_svm_path
from anynorm.app.report import (
    BudgetReport,
    ClassView,
    Evaluation,
    GenericReport,
    PathReport,
    Report,
    WalkReport,
    html,
    path_html,
    write_report,
)
from anynorm.app.report import page as page_module
from anynorm.app.report import path_report as path_module
from anynorm.datasets import make_relevant
from tests.app.report.builders import path_report

NASTY = '</script><img src=x onerror="window.hacked=1"><!-- \u2028 \ud800 "quoted"'


@pytest.fixture(scope="module")
def problem():
    X, y = make_relevant(n_relevant=4, n_features=60, random_state=1)
    return X[:50], y[:50]


@pytest.fixture(scope="module")
def content(problem):
    X, y = problem
    return path_report(
        X, y, title=f"T {NASTY}", feature_names=[NASTY] * 60, sample_names=[NASTY] * 50,
        notes=[NASTY], facts={NASTY: NASTY},
    )  # fmt: skip


def data_of(page):
    return json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.S)[1])


def numbers(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype="<" + dtype)


def stored_coefs(view, p):
    parts = [numbers(view[name], kind) for name, kind in
             (("values", "f8"), ("indices", "i4"), ("indptr", "i4"))]  # fmt: skip
    return sp.csr_array(tuple(parts), shape=(len(numbers(view["s"], "f8")), p))


def test_the_page_holds_the_exact_path(content):
    view, path = data_of(html(content))["classes"][0], content.classes[0].path
    coefs = stored_coefs(view, path.n_features_in_)
    for k, s in enumerate(numbers(view["s"], "f8")):
        coef, intercept = path.coef_at(s=s)
        np.testing.assert_array_equal(coefs[[k]].toarray()[0], coef)
        assert numbers(view["intercepts"], "f8")[k] == intercept
    np.testing.assert_array_equal(numbers(view["penalties"], "f8"), path.knots.penalties)


def test_held_out_and_training_values_are_those_of_the_folds_and_of_the_path(content, problem):
    view, given = data_of(html(content))["classes"][0], content.classes[0]
    held = numbers(view["oof"]["scores"], "f4").reshape(len(given.oof_s), -1)
    np.testing.assert_array_equal(held, given.oof_scores.astype(np.float32))
    X, _ = problem
    places = numbers(view["training"]["s"], "f8")
    training = numbers(view["training"]["scores"], "f4").reshape(len(places), -1)
    np.testing.assert_allclose(training, given.path.decision_function(X, places).T, rtol=1e-6)
    np.testing.assert_array_equal(numbers(view["target"], "u1"), given.target)


def test_names_cannot_become_markup(content):
    page = html(content)
    assert NASTY not in page
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 2
    data = data_of(page)
    assert data["features"][0] == data["samples"][3] == data["notes"][0] == NASTY


def test_the_policy_allows_nothing_but_the_page_itself(content):
    page = html(content)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"(src|href)=\"(?!#)", page)
    without_data = re.sub(r'<script id="data".*?</script>', "", page, flags=re.S)
    assert set(re.findall(r"https?://[^\"' )]+", without_data)) == {"http://www.w3.org/2000/svg"}


def test_a_file_is_written_whole_or_not_at_all(content, tmp_path, monkeypatch):
    file = tmp_path / "report.html"
    write_report(content, file)
    whole = file.read_bytes()
    assert whole.decode("utf-8") == html(content).encode("utf-8", "replace").decode("utf-8")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(content, file)
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]
    assert file.read_bytes() == whole


def test_long_paths_are_kept_at_fewer_places_and_say_so(content, monkeypatch):
    monkeypatch.setattr(path_module, "COEFFICIENTS", 200)
    monkeypatch.setattr(path_module, "SCORES", 500)
    monkeypatch.setattr(path_module, "TRAINING_SCORES", 250)
    data = data_of(html(content))
    view, given = data["classes"][0], content.classes[0]
    s = numbers(view["s"], "f8")
    assert 2 < len(s) < len(given.path.knots.s)
    assert set(given.picks.values()) <= set(s)
    coefs = stored_coefs(view, given.path.n_features_in_)
    for k, place in enumerate(s):
        np.testing.assert_allclose(coefs[[k]].toarray()[0], given.path.coef_at(s=place)[0])
    places = numbers(view["oof"]["s"], "f8")
    held = numbers(view["oof"]["scores"], "f4").reshape(len(places), -1)
    for row in range(held.shape[1]):
        straight = np.interp(places, given.oof_s, given.oof_scores[:, row])
        np.testing.assert_allclose(held[:, row], straight, rtol=1e-5, atol=1e-6)
    places = numbers(view["training"]["s"], "f8")
    training = numbers(view["training"]["scores"], "f4").reshape(len(places), -1)
    assert len(places) < len(given.path.knots.s)
    expected = given.path.decision_function(given.path.training_rows()[0], places)
    np.testing.assert_allclose(training, expected.T, rtol=1e-5, atol=1e-6)
    assert any("straight lines in between" in note for note in data["notes"])
    assert any("Out-of-fold decision values are kept" in note for note in data["notes"])


def test_a_path_shows_itself_in_a_notebook(problem):
    path = sparse_svm_path(*problem)
    shown = path._repr_html_()
    assert shown == path_html(path)
    assert shown.startswith("<iframe")
    assert shown.count("<") == 2
    assert 'sandbox="allow-scripts' in shown
    assert "allow-same-origin" not in shown


def test_a_path_without_its_data_has_no_training_values(problem):
    path = sparse_svm_path(*problem).detached()
    view = data_of(html(PathReport(title="t", classes=[ClassView("a", path)])))["classes"][0]
    assert view["training"] is None
    assert view["target"] is None
    target = problem[1] == problem[1].max()
    scores = path.knots.scores(problem[0])
    given = ClassView("a", path, target, training_scores=scores)
    view = data_of(html(PathReport(title="t", classes=[given])))["classes"][0]
    kept = numbers(view["training"]["scores"], "f4").reshape(-1, len(target))
    np.testing.assert_array_equal(kept, scores.T.astype(np.float32))


def test_a_path_of_one_joint_has_a_page():
    path = sparse_svm_path([[1.0], [1.0]], [0, 1])
    assert path.n_joints == 1
    view = data_of(html(PathReport(title="t", classes=[ClassView("1", path)])))["classes"][0]
    assert numbers(view["s"], "f8").tolist() == [0.0]


def test_7129_features_take_less_than_two_and_a_half_megabytes():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((72, 7129)), np.arange(72) % 3 == 0
    X[y, :5] += 1.0
    names = [f"AFFX-HUMGENE/M{j:05d}_M_at" for j in range(7129)]
    content = path_report(X, y, feature_names=names, scales=np.ones(7129),
                          selection_frequency=np.zeros(7129))  # fmt: skip
    assert len(html(content).encode()) < 2_500_000


def test_other_models_have_pages(problem):
    X, y = problem
    model = ReweightedSVC(C=0.1, n_rounds=4).fit(X, y)
    walk = WalkReport(
        title="walk", objectives=[record.objective for record in model.history_],
        coefs=[record.coef for record in model.history_], class_names=["a", "b"],
        certificate=model.certificate_,
    )  # fmt: skip
    data = data_of(html(walk))
    assert data["kind"] == "walk"
    assert data["chosen"] == 3
    assert numbers(data["counts"], "i4").tolist() == [r.n_nonzero for r in model.history_]
    scores = model.decision_function(X)
    evaluation = Evaluation(["a", "b"], y > 0, scores)
    data = data_of(html(GenericReport(title="g", coefs=model.coef_, evaluation=evaluation)))
    np.testing.assert_array_equal(numbers(data["coefs"], "f8"), model.coef_[0])
    assert np.array_equal(numbers(data["evaluation"]["scores"], "f4"), scores.astype(np.float32))
    budget = BudgetReport(title="b", budgets=[5, 10], n_support=[5, 9], accuracy=[0.8, np.nan])
    assert data_of(html(budget))["chosen"] == 1
    with pytest.raises(TypeError, match="content must be a PathReport"):
        html(Report(title="nothing"))


STATIC = pathlib.Path(page_module.__file__).parent / "static"
SHARED = (*page_module._BEFORE, *page_module._AFTER)
KINDS = Report.__subclasses__()


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_report_has_a_script_that_shows_it(kind):
    files = {file.name: file.read_text() for file in STATIC.glob("*.js")}
    assert f"pages.{kind.kind} = " in files[kind.scripts[-1]]
    script = "".join(files.pop(name) for name in (*SHARED, *kind.scripts))
    for other in files.values():  # what the page does not have, it must not ask for
        defined = re.findall(r"^(?:function|class|const|let) (\w+)", other, re.MULTILINE)
        assert [name for name in defined if re.search(rf"\b{name}\b[(.\[]", script)] == []


def test_every_script_is_in_use():
    used = {*SHARED}.union(*(kind.scripts for kind in KINDS))
    assert {file.name for file in STATIC.glob("*.js")} == used


def test_a_new_kind_needs_its_content_and_its_script():
    class Toy(Report):
        kind, scripts = "toy", ("generic.js",)

        def packed(self):
            return self._shared(0) | {"toy": 1}

    data = data_of(html(Toy(title="t")))
    assert (data["kind"], data["toy"], data["title"]) == ("toy", 1, "t")
