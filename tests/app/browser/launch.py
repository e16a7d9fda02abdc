"""Start Chromium: the system's own, or the one that Playwright brings.

``python -m tests.app.browser.launch`` says whether one starts here.
"""

from __future__ import annotations

import shutil
from pathlib import Path

# Containers often have no sandbox of their own to give, and little shared memory.
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]


def executable(driver) -> str | None:
    """The file to start, or None where there is no Chromium."""
    installed = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    found = installed or driver.chromium.executable_path
    return found if Path(found).exists() else None


def start(driver):
    """Return a browser."""
    return driver.chromium.launch(executable_path=executable(driver), args=ARGUMENTS)


if __name__ == "__main__":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = start(driver)
        page = browser.new_page()
        page.set_content("<p id=here>here</p>")
        print("Chromium", browser.version, "starts and shows", page.inner_text("#here"))
        browser.close()
