"""A real browser: Chromium, driven by Playwright.  `make test-browser` installs both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anynorm.app.report import write_report
from tests.app.browser.launch import executable, start
from tests.app.report.builders import path_report


@pytest.fixture(scope="session")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="make test-browser installs Playwright")
    with api.sync_playwright() as driver:
        if executable(driver) is None:
            pytest.skip("no Chromium was found: make test-browser installs one")
        browser = start(driver)
        yield browser
        browser.close()


class Opened:
    """A page, and everything that it should not have done."""

    def __init__(self, browser, **context):
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | context)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, file):
        self.page.goto(Path(file).as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")
        return self

    def quiet(self):
        """Whether nothing was complained of, and nothing asked for but the file itself."""
        return self.complaints == [] and len(self.requests) == 1

    def settle(self):
        """Wait until what was asked for is drawn."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => "
                           "requestAnimationFrame(done)))")  # fmt: skip

    def work(self, script, argument=None):
        """The main thread's milliseconds of processor time that a script and its drawing take."""
        session = self.context.new_cdp_session(self.page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

        def spent():
            metrics = session.send("Performance.getMetrics")["metrics"]
            return next(m["value"] for m in metrics if m["name"] == "TaskDuration")

        before = spent()
        self.page.evaluate(script, argument)
        return 1000 * (spent() - before)

    def shown(self):
        """The place that is shown, to the last digit, and the intercept."""
        read = "() => { const d = document.querySelector('[data-s]').dataset;"
        return tuple(float(v) for v in self.page.evaluate(read + " return [d.s, d.intercept]; }"))

    def weights(self):
        """The weights in the table, on all its pages, by name."""
        found: dict[str, float] = {}
        back, on = "button:text-is('Previous')", "button:text-is('Next')"
        while self.page.is_enabled(back):
            self.page.click(back)
        while True:
            text = "(cell) => cell.dataset.value ?? cell.innerText"
            read = f"(rows) => rows.map((row) => Array.from(row.cells, {text}))"
            rows = self.page.eval_on_selector_all("table.data:has(.sort) tbody tr", read)
            found |= {row[0]: float(row[1]) for row in rows if len(row) > 1}
            if not self.page.is_enabled(on):
                return found
            self.page.click(on)


@pytest.fixture
def opened(browser):
    pages: list[Opened] = []

    def make(file, **context):
        pages.append(Opened(browser, **context))
        return pages[-1].open(file)

    yield make
    for page in pages:
        page.context.close()


def microarray(n, p, n_classes=2):
    rng = np.random.default_rng(7)
    y = np.arange(n) % n_classes
    X = rng.standard_normal((n, p))
    for k in range(n_classes):
        X[y == k, 4 * k : 4 * k + 4] += 0.9
    return X, np.array(["sick", "well", "other"])[y]


@pytest.fixture(scope="session")
def wide(tmp_path_factory):
    """72 x 7,129, with names, scales and selection frequencies."""
    X, y = microarray(72, 7129)
    content = path_report(
        X, y, title="Wide data", feature_names=[f"gene {j:04d}" for j in range(7129)],
        sample_names=[f"patient {i}" for i in range(72)], scales=np.linspace(0.5, 2.0, 7129),
        selection_frequency=np.linspace(0.0, 1.0, 7129), notes=["A note."], facts={"Rows": "72"},
    )  # fmt: skip
    file = tmp_path_factory.mktemp("wide") / "report.html"
    write_report(content, file)
    return content, file


@pytest.fixture(scope="session")
def three_classes(tmp_path_factory):
    """90 x 40 of three classes, without names; two rows were never held out."""
    X, y = microarray(90, 40, 3)
    content = path_report(X, y, title="Three classes")
    for view in content.classes:
        view.oof_scores[:, [3, 10]] = np.nan
    file = tmp_path_factory.mktemp("three") / "report.html"
    write_report(content, file)
    return content, file
