"""What a fitted estimator says of itself in a notebook, above scikit-learn's diagram."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor


def facts_of(estimator: Any) -> list[tuple[str, str]]:
    """The score that chose it, what it uses, and its certificate; nothing before `fit`."""
    found = []
    if hasattr(estimator, "best_score_"):
        name, score = _score(estimator)
        found.append((f"Cross-validated {name}", f"{score:.4g} (of the choice)"))
    if hasattr(estimator, "loo_error_"):
        found.append(("Leave-one-out error", f"{estimator.loo_error_:.1%}"))
    coef = getattr(estimator, "coef_", None)
    if hasattr(estimator, "support_"):
        found.append(("Support vectors", f"{len(estimator.support_):,}"))
    elif coef is not None:
        rows = coef if sp.issparse(coef) else np.atleast_2d(coef)
        used = np.unique(rows.nonzero()[1])
        found.append(("Features", f"{len(used):,} of {rows.shape[1]:,}"))
    if hasattr(estimator, "certificate_"):
        found.append(("Certificate", str(estimator.certificate_)))
    return found


def _score(estimator: Any) -> tuple[str, float]:
    """The name and the value of what a search went by."""
    if is_regressor(estimator):  # it is the negative one that is highest
        return "mean squared error", -estimator.best_score_
    name = "accuracy" if estimator.scoring is None else str(estimator.scoring)
    return name, estimator.best_score_


def summary_html(estimator: Any) -> str:
    """These facts as a line of HTML."""
    parts = [
        f"<b>{html.escape(name)}</b> {html.escape(text)}" for name, text in facts_of(estimator)
    ]
    return f"<p>{' &middot; '.join(parts)}</p>" if parts else ""


class SummarisedEstimator:
    """Mixin, before scikit-learn's base class: the summary stands above its diagram."""

    def _repr_html_inner(self) -> str:
        return summary_html(self) + super()._repr_html_inner()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in shown:
            shown["text/html"] = summary_html(self) + shown["text/html"]
        return shown
