"""Self-contained HTML reports of fitted models, which open offline from disk.

The kinds of report are listed here, each with its content in a module of its own and its script in
static/.
"""

from anynorm.app.report.budget_report import BudgetReport
from anynorm.app.report.compare_report import CompareReport, ModelRow
from anynorm.app.report.content import Evaluation, GridView, ReliabilityView, Report
from anynorm.app.report.generic_report import GenericReport
from anynorm.app.report.model_report import report_of
from anynorm.app.report.page import html, path_html, write_report
from anynorm.app.report.path_report import ClassView, PathReport, steps
from anynorm.app.report.walk_report import WalkReport

__all__ = [
    "BudgetReport",
    "ClassView",
    "CompareReport",
    "Evaluation",
    "GenericReport",
    "GridView",
    "ModelRow",
    "PathReport",
    "ReliabilityView",
    "Report",
    "WalkReport",
    "html",
    "path_html",
    "report_of",
    "steps",
    "write_report",
]
