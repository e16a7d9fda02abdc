"""The loop over drawn problems: fits, counts, and a line for everything that is wrong.

Certificates are computed in float64, at the scores that float64 gives.  What is false of the exact
scores of the same coefficients, and only there, is counted as blurred.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import sklearn

import anynorm
from tests.adversarial.families import FAMILIES
from tests.adversarial.judge import ENDED, complaints, tally_of

COLUMNS = ["fits", *dict.fromkeys(ENDED.values()), "refused", "blurred", "failed", "false"]
SLOWEST = 5

_OWN = tuple(str(Path(package.__file__).parent) for package in (anynorm, sklearn))


@dataclass(frozen=True)
class Outcome:
    """How the fit of one drawn problem ended: one of COLUMNS, and what is wrong with it."""

    index: int
    family: str
    words: str
    ended: str
    wrong: tuple[str, ...]
    seconds: float

    def reproducer(self, seed: int) -> str:
        """The command that draws the same problem again."""
        return f"python -m tests.adversarial --seed {seed} --only {self.index}"


def attempt(seed: int, index: int) -> Outcome:
    """Draw problem `index` of a seed, fit it and judge what is claimed."""
    family = list(FAMILIES)[index % len(FAMILIES)]
    words, fit = FAMILIES[family](np.random.default_rng([seed, index]))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            claims = fit()
        except Exception as error:
            ended = "refused" if is_clear(error) else "failed"
            wrong = () if ended == "refused" else (f"{type(error).__name__}: {error}",)
            return Outcome(index, family, words, ended, wrong, time.process_time() - began)
        seconds = time.process_time() - began
        doubtful = [claim for claim in claims if complaints(claim)]
        wrong = tuple(line for claim in doubtful for line in complaints(claim, blurred=True))
    ended = "false" if wrong else "blurred" if doubtful else tally_of(claims)
    return Outcome(index, family, words, ended, wrong, seconds)


def is_clear(error: Exception) -> bool:
    """Whether an error is one that checks raise, not one that numbers ran into."""
    if not isinstance(error, ValueError):
        return False
    where = traceback.extract_tb(error.__traceback__)[-1].filename
    return where.startswith(_OWN) and not isinstance(error, np.linalg.LinAlgError)


@dataclass
class Counts:
    """What a run has found so far."""

    by_family: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    slowest: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.by_family[outcome.family].update(["fits", outcome.ended])
        self.slowest = sorted([*self.slowest, outcome], key=lambda o: -o.seconds)[:SLOWEST]

    def total(self, column: str) -> int:
        """The number of outcomes of a kind in all families."""
        return sum(counts[column] for counts in self.by_family.values())

    def table(self) -> str:
        """All counts, a line per family."""
        lines = [["", *COLUMNS]]
        for family, counts in self.by_family.items():
            lines.append([family, *(str(counts[column]) for column in COLUMNS)])
        lines.append(["all", *(str(self.total(column)) for column in COLUMNS)])
        return "\n".join("".join(f"{cell:>14}" for cell in line) for line in lines)
