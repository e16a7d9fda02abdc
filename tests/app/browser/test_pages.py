"""The other pages, and what holds for all: themes, narrow screens, print, accessibility."""

import numpy as np
import pytest

from anynorm import BudgetSVC, LinearSVC, ReweightedSVC
from anynorm.app.report import (
    BudgetReport,
    Evaluation,
    GenericReport,
    WalkReport,
    write_report,
)
from anynorm.datasets import make_relevant

NAMES = ["control", "case"]


@pytest.fixture(scope="module")
def data():
    X, y = make_relevant(n_relevant=4, n_features=30, random_state=2)
    return X, (y > 0).astype(int)


@pytest.fixture(scope="module")
def walk(data, tmp_path_factory):
    X, codes = data
    model = ReweightedSVC(C=0.1, n_rounds=5).fit(X, codes)
    history = model.history_
    scores = model.decision_function(X)
    content = WalkReport(
        title="Walk", objectives=[record.objective for record in history],
        coefs=[record.coef for record in history], class_names=NAMES, chosen_round=3,
        bound=max(record.l1_certificate.dual for record in history),
        cv_error=[0.3, 0.2, 0.1, 0.1, 0.1], cv_error_se=[0.02] * 5,
        evaluation=Evaluation(NAMES, codes, scores, scores), certificate=model.certificate_,
    )  # fmt: skip
    file = tmp_path_factory.mktemp("walk") / "report.html"
    write_report(content, file)
    return model, file


def table_weights(page):
    return {name: np.float32(value) for name, value in page.weights().items()}


def test_the_walk_shows_objective_and_features_by_round(opened, walk):
    model, file = walk
    page = opened(file)
    for r in (2, 0, 4):
        page.page.evaluate(
            "(r) => { const slider = document.getElementById('slider'); slider.value = r;"
            " slider.dispatchEvent(new Event('input')); }", r + 1,
        )  # fmt: skip
        record = model.history_[r]
        told = page.page.inner_text("#round-text")
        assert told.startswith(f"Round {r + 1} of 5" + (" (the model)" if r == 2 else ""))
        assert f"{record.n_nonzero} features in use" in told
        assert f"objective {float(f'{record.objective:.6g}'):g}" in told
        used = np.flatnonzero(record.coef[0])
        expected = {f"x{j}": np.float32(record.coef[0, j]) for j in used}
        assert table_weights(page) == expected
    assert page.page.locator(".chart .dot").count() == 15
    assert page.quiet()


def test_the_budget_page_shows_accuracy_against_support_vectors(opened, data, tmp_path):
    X, codes = data
    model = BudgetSVC(12, C=1.0, strict=True).fit(X, codes)
    content = BudgetReport(
        title="Budget", budgets=[4, 12, 24], n_support=[4, 12, 23], accuracy=[0.61, 0.83, 0.85],
        accuracy_se=[0.02, 0.02, 0.01], chosen=1, reference=("SVC", 70.0, 0.86),
        support_names=[f"row {i}" for i in model.support_], support_weights=model.dual_coef_,
        evaluation=Evaluation(NAMES, codes, model.decision_function(X)),
    )  # fmt: skip
    write_report(content, tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    chosen = page.page.inner_text("tr.chosen").split()
    assert chosen == ["12", "(chosen)", "12", "83.0%", "±", "2.0%"]
    dual = dict(zip(content.support_names, model.dual_coef_[0].tolist(), strict=True))
    assert page.weights() == dual
    chart = "[aria-label^='Accuracy against the number'] .marker"
    marker = page.page.locator(chart).bounding_box()
    dots = [dot.bounding_box() for dot in page.page.locator(".chart .dot").all()]
    assert marker["x"] + marker["width"] / 2 == pytest.approx(
        dots[1]["x"] + dots[1]["width"] / 2, abs=0.1
    )
    assert dots[0]["y"] > dots[1]["y"] > dots[2]["y"]
    assert page.quiet()


def test_any_other_model_has_a_page(opened, tmp_path):
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((60, 5)), np.arange(60) % 3
    X[np.arange(60), codes] += 2
    model = LinearSVC().fit(X, codes)
    names = ["a", "b", "c"]
    scores = model.decision_function(X)
    content = GenericReport(
        title="Linear", coefs=model.coef_, class_names=names,
        evaluation=Evaluation(names, codes, scores), certificate=model.certificate_,
    )  # fmt: skip
    write_report(content, tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    right = int((scores.argmax(axis=1) == codes).sum())
    assert f"{60 - right} of 60 wrong" in page.page.inner_text("main")
    page.page.click("[role=tab]:text-is('c')")
    cells = page.page.locator(".confusion .cell b").all_inner_texts()
    assert int(cells[3]) == int(((scores[:, 2] > 0) & (codes == 2)).sum())
    assert page.weights() == {f"x{j}": model.coef_[0, j] for j in range(5)}
    assert str(model.certificate_) == page.page.inner_text("#certificate")
    assert page.quiet()


def luminance(colour):
    channels = np.array([float(v) for v in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrasts(page):
    """The contrast of every text with what lies behind it, by the WCAG's formula."""
    found = page.page.evaluate(
        """() => {
          const behind = (node) => {
            for (let at = node; at; at = at.parentElement) {
              const colour = getComputedStyle(at).backgroundColor;
              if (/^rgb\\(/.test(colour)) return colour;
            }
            return "rgb(255, 255, 255)";
          };
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          const found = [];
          while (walker.nextNode()) {
            const node = walker.currentNode.parentElement;
            if (!walker.currentNode.textContent.trim() || !node.getClientRects().length) continue;
            if (node.closest("script, [hidden], :disabled")) continue;
            const style = getComputedStyle(node);
            const ink = node.closest("svg") ? style.fill : style.color;
            if (/^rgb\\(/.test(ink)) found.push([node.textContent.slice(0, 30), ink, behind(node)]);
          }
          return found;
        }"""
    )
    for text, ink, paper in found:
        light, dark = sorted([luminance(ink), luminance(paper)], reverse=True)
        yield text, (light + 0.05) / (dark + 0.05)


def test_a_button_prints_the_page_or_saves_it(opened, walk):
    page = opened(walk[1])
    page.page.evaluate("() => { window.print = () => { window.printed = true; }; }")
    page.page.click("#print")
    assert page.page.evaluate("() => window.printed")
    assert "PDF" in page.page.get_attribute("#print", "title")
    assert page.page.pdf()[:5] == b"%PDF-"
    page.page.emulate_media(media="print")
    assert not page.page.is_visible("#print")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(opened, wide, scheme):
    page = opened(wide[1], color_scheme=scheme)
    assert page.page.get_attribute("html", "data-theme") == scheme
    measured = list(contrasts(page))
    assert len(measured) > 100
    assert [pair for pair in measured if pair[1] < 4.5] == []
    paper = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.page.click("#theme")
    assert page.page.get_attribute("html", "data-theme") != scheme
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") != paper
    page.page.emulate_media(color_scheme="light" if scheme == "dark" else "dark")
    page.page.emulate_media(color_scheme=scheme)
    assert page.page.get_attribute("html", "data-theme") != scheme  # the button has the last word


@pytest.mark.parametrize("kind", ["wide", "three_classes", "walk"])
def test_everything_has_a_name_and_a_place_in_the_order(opened, request, kind):
    page = opened(request.getfixturevalue(kind)[1])
    unnamed = page.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, [role=img], table")]
          .filter((node) => {
            const label = node.getAttribute("aria-label") || node.closest("label")?.innerText
              || node.querySelector("caption")?.textContent
              || (node.matches("button") && node.innerText);
            return !label || !label.trim();
          }).map((node) => node.outerHTML.slice(0, 120))"""
    )
    assert unnamed == []
    levels = page.page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    ids = page.page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(ids) == len(set(ids))
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.className") == "skip"
    reached = []
    for _ in range(60):
        page.page.keyboard.press("Tab")
        reached.append(page.page.evaluate("document.activeElement.id"))
        if page.page.evaluate("document.activeElement === document.body"):
            break
        outline = page.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "auto" or outline == "solid", reached
    assert reached.index("theme") < reached.index("slider")


def test_a_narrow_screen_needs_no_sideways_scrolling(opened, wide, three_classes, walk):
    for file in (wide[1], three_classes[1], walk[1]):
        page = opened(file, viewport={"width": 360, "height": 740}, has_touch=True)
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.quiet()


def test_print_has_the_whole_table_and_no_controls(opened, wide):
    page = opened(wide[1], color_scheme="dark")
    page.page.press("#slider", "End")
    page.settle()
    in_use = int(page.page.inner_text("#out-count").split()[0])
    assert in_use > 20
    page.page.emulate_media(media="print")
    page.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.page.locator("table.data:has(.sort) tbody tr").count() == in_use
    for selector in ("#slider", ".tools", ".pager", "#theme"):
        assert not page.page.locator(selector).first.is_visible()
    paper = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    assert luminance(page.page.evaluate("getComputedStyle(document.body).color")) < 0.05
    page.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.page.locator("table.data:has(.sort) tbody tr").count() == 20
    assert page.page.pdf(format="A4").startswith(b"%PDF")
    assert page.quiet()
