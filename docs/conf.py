"""Sphinx configuration; nothing here needs the network."""

from anynorm import __version__

project = "anynorm"
author = "the anynorm developers"
copyright = "2025, the anynorm developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
templates_path = ["_templates"]
exclude_patterns = ["_build"]

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"anynorm {release}"
html_static_path = ["_static"]


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
            spans = line.split("`")
            spans[::2] = [span.replace("|", r"\|") for span in spans[::2]]
            lines[number] = "`".join(spans)


def setup(app):
    """Register the hook above; it runs after napoleon's."""
    app.connect("autodoc-process-docstring", escape_bars)
