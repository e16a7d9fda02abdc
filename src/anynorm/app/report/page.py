"""One HTML file: the template, the style, the scripts and the data, put together.

The file asks nothing of the network: its content security policy allows its own script and style,
by their hashes, and pictures that it has drawn itself, to save them; so that markup in a name could
not run even if it were not escaped.
"""

from __future__ import annotations

import base64
import hashlib
import html as markup
import json
import os
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from anynorm.app.atomic import atomic_file
from anynorm.app.report.content import Report
from anynorm.app.report.model_report import path_content, report_of
from anynorm.estimators.paths.solution_path import SolutionPath

_SHARED = ("core.js", "pdf.js", "charts.js", "table.js")
_BEFORE = (*_SHARED, "evaluation.js", "reliability.js", "grid.js")
_AFTER = ("page.js",)


def html(content: Report) -> str:
    """Return the report as one self-contained page.

    Parameters
    ----------
    content : Report
        What to show: a `PathReport`, `WalkReport`, `BudgetReport` or `GenericReport`.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from anynorm import report, sparse_svm_path
    >>> path = sparse_svm_path([[-1.0], [1.0]], [0, 1])
    >>> view = report.ClassView("1", path)
    >>> page = report.html(report.PathReport(title="A <b>bold</b> title", classes=[view]))
    >>> print(page[page.index("<title>") : page.index("</title>")])
    <title>A &lt;b&gt;bold&lt;/b&gt; title
    """
    return _page(content, embedded=False)


def write_report(
    content: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
    sample_names: Sequence[str] | None = None,
) -> None:
    """Write the report of a model to a file, whole or not at all.

    Parameters
    ----------
    content : classifier, Pipeline, SolutionPath or Report
        A fitted classifier of anynorm, a pipeline that ends in one, or a path; or what to show: a
        `PathReport`, `WalkReport`, `BudgetReport` or `GenericReport`.
    path : str or path-like
        The file, which is replaced where there is one.
    X, y, title, sample_names : as in `report_of`
        Rows that the model has not seen, with their labels and names, and the page's heading; not
        for a `Report`, which has its own.

    Examples
    --------
    >>> import os, tempfile
    >>> from anynorm import SparseSVCCV, report
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(100, n_relevant=4, random_state=0)
    >>> model = SparseSVCCV(rule="one_se").fit(X[:80], y[:80])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "report.html")
    ...     report.write_report(model, file, X[80:], y[80:])
    ...     print(f"written, {os.path.getsize(file) / 1000:.0f} kB")
    written, ... kB
    """
    if not isinstance(content, Report):
        content = report_of(content, X, y, title=title, sample_names=sample_names)
    elif not (X is y is title is sample_names is None):
        raise TypeError(f"a {type(content).__name__} has its rows and its title; give it alone.")
    page = html(content).encode("utf-8", "replace")
    with atomic_file(path) as file:
        file.write(page)


def path_html(path: SolutionPath) -> str:
    """Return a path as a notebook shows it: the same page, in a frame of its own.

    Parameters
    ----------
    path : SolutionPath
        The path.

    Returns
    -------
    str
        An ``iframe`` element.

    Examples
    --------
    >>> from anynorm import report, sparse_svm_path
    >>> print(report.path_html(sparse_svm_path([[-1.0], [1.0]], [0, 1]))[:7])
    <iframe
    """
    content = path_content(path, "Solution path")
    page = markup.escape(_page(content, embedded=True))
    return (
        '<iframe title="Solution path" sandbox="allow-scripts allow-downloads allow-modals" '
        'style="width: 100%; height: 860px; border: 1px solid #8886; border-radius: 8px" '
        f'srcdoc="{page}"></iframe>'
    )


def _page(content: Report, *, embedded: bool) -> str:
    if not isinstance(content, Report) or not content.scripts:
        raise TypeError(
            f"content must be a PathReport or another kind of report; got {type(content).__name__}."
        )
    # "<" could end the script element, or open a comment in it; in JSON it can stand as an escape
    data = json.dumps(content.packed(), allow_nan=False, separators=(",", ":"))
    style, script = _static("report.css"), _script(content.scripts)
    parts = {
        "TITLE": markup.escape(str(content.title)),
        "POLICY": (
            f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
            "img-src blob:; base-uri 'none'; form-action 'none'"
        ),
        "MODE": "embedded" if embedded else "page",
        "STYLE": style,
        "DATA": data.replace("<", "\\u003c"),
        "SCRIPT": script,
    }
    # all {{NAMES}} in one pass: what is filled in stays as it is
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda match: parts[match[1]], _static("page.html"))


def _digest(text: str) -> str:
    """A source of a content security policy: this very text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()


@cache
def _script(names: tuple[str, ...]) -> str:
    """What all pages share, and what shows this kind of report."""
    parts = "\n".join(_static(name) for name in (*_BEFORE, *names, *_AFTER))
    return f'\n(function () {{\n"use strict";\n{parts}\n}})();\n'


@cache
def _static(name: str) -> str:
    return files("anynorm.app.report").joinpath("static", name).read_text(encoding="utf-8")
