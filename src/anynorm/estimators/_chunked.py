"""The way of a fit on a Dask collection: one problem per class after the other, on all workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from anynorm.design.crew import Crew
from anynorm.estimators._fitting import Found, bound_to, limits
from anynorm.estimators._messages import classes_printer
from anynorm.estimators.checks.chunks import ChunkedLabelled
from anynorm.estimators.checks.parameters import intercept_kind, seed
from anynorm.losses import Loss, get_loss
from anynorm.problem.chunked import ChunkedProblem, RowTerms


def solve_chunked_classes(
    estimator: Any,
    data: ChunkedLabelled,
    solve: Callable[..., Found],
    end: float | None,
    **regulariser: Any,
) -> list[Found]:
    """Solve the estimator's binary problems with a solver of rows apart, until the deadline.

    `regulariser` has the pieces of `ChunkedProblem` that say what is penalised.
    """
    first, report = seed(estimator.random_state), classes_printer(estimator, data)
    starts = _starts(estimator, data)
    return [
        solve(
            problem,
            **limits(estimator, end),
            seed=first,
            start=starts[index],
            progress=bound_to(report, index),
        )
        for index, problem in enumerate(chunked_problems(estimator, data, **regulariser))
    ]


def chunked_problems(
    estimator: Any, data: ChunkedLabelled, **regulariser: Any
) -> Iterator[ChunkedProblem]:
    """The binary problems of `data`, with the estimator's C, loss and intercept."""
    crew: Crew = data.X
    for index in range(data.n_problems):
        terms = row_terms(data, index, float(estimator.C), get_loss(estimator.loss))
        kind = intercept_kind(estimator.fit_intercept, estimator.intercept_scaling)
        yield ChunkedProblem(crew, terms, kind, **regulariser)


def row_terms(data: ChunkedLabelled, index: int, C: float, loss: Loss) -> RowTerms:
    """What the rows cost in binary problem `index` of `data`."""
    return RowTerms(
        classes=data.classes,
        positive=data.positive(index),
        class_weights=data.class_weights,
        C=C,
        loss=loss,
    )


def _starts(estimator: Any, data: ChunkedLabelled) -> list[tuple[np.ndarray, float] | None]:
    """The coefficients of the previous fit where `warm_start` asks for them and they fit."""
    coef = getattr(estimator, "coef_", None) if estimator.warm_start else None
    if coef is None or coef.shape != (data.n_problems, data.X.shape[1]):
        return [None] * data.n_problems
    dense = coef.toarray() if hasattr(coef, "toarray") else coef
    return [(w, float(b)) for w, b in zip(dense, estimator.intercept_, strict=True)]
