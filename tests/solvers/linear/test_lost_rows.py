"""Rows that are lost at any question: their duals begin anew, and a walk goes where it went."""

import numpy as np
import pytest

from anynorm.design.crew import Block, OneProcess
from anynorm.losses import get_loss
from anynorm.problem.chunked import ChunkedProblem, RowTerms
from anynorm.solvers.linear.chunked import walk_chunked
from tests.estimators.plain import noisy_classes


class Forgetful(OneProcess):
    """Loses what is kept beside the rows of one block before question number `when`."""

    def __init__(self, blocks, when):
        super().__init__(blocks)
        self.when, self.count = when, 0

    def _answers(self, job, message):
        self.count += 1
        if self.count == self.when:
            self.blocks[0].notes.clear()
        return super()._answers(job, message)


def walked(loss, when):
    X, labels = noisy_classes(n=90, p=4, seed=1)
    blocks = [Block(X[k::3], labels[k::3], None, columns=4, number=k) for k in range(3)]
    crew = Forgetful(blocks, when)
    crew.describe()
    terms = RowTerms(
        classes=np.unique(labels), positive=1, class_weights=None, C=0.5, loss=get_loss(loss)
    )
    rounds = walk_chunked(ChunkedProblem(crew, terms, "free"), n_rounds=2, prune=False, tol=1e-5)
    return rounds, crew.count


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_walk_goes_on_wherever_rows_are_lost(loss):
    """Lost between a solution and its 1-norm certificate, they were taken for lost for ever."""
    undisturbed, count = walked(loss, 0)
    for when in range(2, count + 1):
        rounds, _ = walked(loss, when)
        for found, other in zip(rounds, undisturbed, strict=True):
            assert found.certificate.status == "optimal"
            primal = other.certificate.primal
            assert found.certificate.primal == pytest.approx(primal, rel=1e-3)
