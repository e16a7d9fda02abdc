"""Blocks of rows that live apart: what is kept beside them is of the last round, or gone."""

import pickle

import numpy as np

from anynorm.design.crew import Block


def test_notes_of_a_copy_that_was_not_asked_in_the_last_round_are_forgotten():
    """After a worker was lost, a stale copy's duals did not add up to the coefficients."""
    block = Block(np.eye(2), np.zeros(2), None, columns=2)
    block.stamp(None, 0)
    block.notes["dual"] = 1.0
    copy = pickle.loads(pickle.dumps(block))
    block.stamp(0, 1)
    assert block.notes == {"dual": 1.0}
    copy.stamp(1, 2)
    assert copy.notes == {}
    copy.stamp(2, 3)
    assert copy.notes == {}
