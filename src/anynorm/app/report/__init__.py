"""Self-contained HTML reports of fitted models, which open offline from disk."""

from anynorm.app.report.content import (
    BudgetReport,
    ClassView,
    Evaluation,
    GenericReport,
    PathReport,
    Report,
    WalkReport,
    steps,
)
from anynorm.app.report.page import html, path_html, write_report

__all__ = [
    "BudgetReport",
    "ClassView",
    "Evaluation",
    "GenericReport",
    "PathReport",
    "Report",
    "WalkReport",
    "html",
    "path_html",
    "steps",
    "write_report",
]
