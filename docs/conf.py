"""Sphinx configuration; nothing here needs the network, unless ANYNORM_INTERSPHINX asks for it."""

import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile

from docutils import nodes
from latex2mathml.converter import convert

from anynorm import __version__

project = "anynorm"
author = "the anynorm developers"
copyright = "2025-2026, the anynorm developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
# Links to the pages of others: their inventories are fetched, so this is for builds with a network.
if os.environ.get("ANYNORM_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "api/messages.md",
    "auto_examples/*.ipynb",
    "auto_examples/*.py",
    "sg_execution_times.rst",
]

# A broken link inside the documentation is an error; names of other projects are not looked up.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!anynorm\b).*")]
suppress_warnings = ["ref.python"]  # shapes in docstrings, as (n_joints,), are words, not names

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

# The list of all error messages, which faq.md includes.
runpy.run_path(str(pathlib.Path(__file__).parent / "messages.py"), run_name="__main__")

# Pages made for names and examples that are gone would be in no table of contents.
HERE = pathlib.Path(__file__).parent
shutil.rmtree(HERE / "api" / "generated", ignore_errors=True)
for _page in (HERE / "auto_examples").glob("*.rst"):
    if _page.stem != "index" and not (HERE.parent / "examples" / f"{_page.stem}.py").exists():
        _page.unlink()

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",  # all of them run
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "copyfile_regex": "",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "doc_module": ("anynorm",),
    "backreferences_dir": "api/backreferences",  # the examples that use a name, for its page
}

html_theme = "furo"
html_math_renderer = "mathml"  # formulas show without a script from elsewhere
html_title = f"anynorm {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]


def escape_bars(app, what, name, obj, options, lines):
    """Keep absolute values such as |w| from being read as substitutions."""
    literal = None
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        if line.lstrip().startswith(">>>") or line.rstrip().endswith("::") or "math::" in line:
            literal = indent - line.lstrip().startswith(">>>")
        elif literal is None:
            spans = _QUOTED.split(line)
            spans[::2] = [span.replace("|", r"\|") for span in spans[::2]]
            lines[number] = "".join(spans)


_QUOTED = re.compile(r"(``.*?``|`.*?`)")


def visit_inline(self, node):
    """Write a formula in the text as MathML."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_display(self, node):
    """Write a formula on a line of its own as MathML."""
    self.body.append(f"<div>{convert(node.astext(), display='block')}</div>")
    raise nodes.SkipNode


def write_live_report(app, exception):
    """Put the report of `make demo` beside the pages: report.md shows it."""
    if exception is not None or app.builder.format != "html":
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "anynorm"]
        given = ["--target", "diagnosis", "--id", "sample", "--positive", "malignant"]
        data = "breast_cancer.csv"
        fit = ["fit", data, *given, "--rule", "one_se", "--quiet", "-o", "out"]
        for arguments in (["example", data], fit):
            subprocess.run([*command, *arguments], cwd=folder, check=True, stdout=subprocess.PIPE)
        shutil.copy(pathlib.Path(folder) / "out" / "report.html", app.outdir / LIVE_REPORT)


LIVE_REPORT = "live-report.html"


def setup(app):
    """Register the hooks above; `escape_bars` runs after napoleon."""
    app.connect("build-finished", write_live_report)
    app.connect("autodoc-process-docstring", escape_bars)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
