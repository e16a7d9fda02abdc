"""Rows in runs of one kind, as the conformations of a molecule in musk1: how folds part them."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_score

from anynorm import SparseSVC, SparseSVCCV


@pytest.fixture(scope="module")
def molecules():
    """40 molecules, sorted by class, each with the rows of its conformations in a run."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 50))
    labels = centres[:, :6].sum(axis=1) + 1.5 * rng.normal(size=40) > 0
    order = np.argsort(labels, kind="stable")
    groups = np.repeat(np.arange(40), rng.integers(2, 8, 40))
    X = centres[order][groups] + 0.35 * rng.normal(size=(len(groups), 50))
    return X, labels[order][groups].astype(int), groups


def test_a_number_of_folds_chooses_as_well_as_no_choice_at_all(molecules):
    """0.771 where SparseSVC has 0.840 (musk1): folds were runs, of molecules unlike the others."""
    X, y, _ = molecules
    outer = StratifiedKFold(4, shuffle=True, random_state=0)
    chosen, plain, runs = (
        cross_val_score(model, X, y, cv=outer).mean()
        for model in (SparseSVCCV(cv=4), SparseSVC(), SparseSVCCV(cv=StratifiedKFold(4)))
    )
    assert chosen >= plain - 0.01
    assert runs < chosen - 0.03  # what it was, and what this test is about


def test_folds_of_groups_do_not_flatter(molecules):
    X, y, groups = molecules
    model = SparseSVCCV(cv=4)
    flattered = model.fit(X, y).best_score_
    honest = model.fit(X, y, groups=groups).best_score_
    outer = StratifiedGroupKFold(4, shuffle=True, random_state=1).split(X, y, groups)
    new = [
        model.fit(X[train], y[train], groups=groups[train]).score(X[test], y[test])
        for train, test in outer
    ]
    assert flattered > np.mean(new) + 0.1
    assert flattered > honest + 0.1
