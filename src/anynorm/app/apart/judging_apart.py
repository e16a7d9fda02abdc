"""What rows that had no part in a model say of it: counts of all of them, some by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anynorm.app.apart.dealt_blocks import Question, Shown, asked
from anynorm.app.apart.models_apart import SolvedApart
from anynorm.app.job.judging import Held
from anynorm.design.crew import Crew

MOST_SHOWN = 20_000  # rows that come back with their decision values


class Judgement(NamedTuple):
    """Who was taken for whom.

    Attributes
    ----------
    confusion : ndarray of shape (K, K)
        How many rows of class i (rows) were taken for class j (columns).
    held : Held
        Some of the rows, with their decision values.
    """

    confusion: np.ndarray
    held: Held


def question_about(solved: SolvedApart, n_classes: int, n_rows: int, seed: int) -> Question:
    """Ask about all stages of what was solved; `n_rows` will be asked in all."""
    share = min(1.0, MOST_SHOWN / max(1, n_rows))
    return Question(solved.coef, solved.intercept, solved.data.classes, n_classes, share, seed)


def judged(crew: Crew, solved: SolvedApart, n_classes: int, n_rows: int, seed: int) -> Judgement:
    """What the rows that a crew of `SidedBlock` is to be asked about say of the last stage."""
    question = question_about(solved, n_classes, n_rows, seed)
    last = question._replace(coef=question.coef[-1:], intercept=question.intercept[-1:])
    seen = crew.ask(asked, last)
    return Judgement(seen.confusion[0], held_of([each.stage(0) for each in seen.shown], n_classes))


def held_of(shown: Sequence[Shown], n_classes: int) -> Held:
    """Rows of all blocks, in the order of the files."""
    ordered = sorted(shown, key=lambda each: each.number)
    if not ordered:
        width = () if n_classes == 2 else (n_classes,)
        nobody = np.empty(0, dtype=np.intp)
        return Held(np.empty(0, dtype=str), nobody, np.empty((0, *width)), nobody)
    return Held(
        ids=np.concatenate([each.names for each in ordered]),
        y=np.concatenate([each.codes for each in ordered]),
        scores=np.concatenate([each.all_classes(n_classes) for each in ordered]),
        folds=np.concatenate([each.parts for each in ordered]) + 1,
    )
