"""Self-contained HTML reports of fitted models, which open offline from disk."""

from anynorm.report.content import (
    BudgetReport,
    ClassView,
    Evaluation,
    GenericReport,
    PathReport,
    Report,
    WalkReport,
    steps,
)

__all__ = [
    "BudgetReport",
    "ClassView",
    "Evaluation",
    "GenericReport",
    "PathReport",
    "Report",
    "WalkReport",
    "steps",
]
