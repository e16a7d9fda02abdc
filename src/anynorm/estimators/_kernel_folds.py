"""The folds of a search over kernels: the rows that they share, their problems, their scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from anynorm.design import Matrix, design_of
from anynorm.design.far_columns import far_means
from anynorm.estimators._cross_validation import NEVER, Folds, SlicedFolds
from anynorm.estimators._kernel_candidates import Setting
from anynorm.estimators._kernel_model import KernelClassifier, less_means
from anynorm.estimators.checks.labels import labelled
from anynorm.estimators.checks.matrices import known_matrix
from anynorm.kernels.gram import Gram
from anynorm.norms.dual_sets import Box, BudgetBox
from anynorm.problem import Problem

if TYPE_CHECKING:
    from anynorm.estimators._kernel_grid import KernelGrid
    from anynorm.solvers.kernel import Chain, Member


@dataclass(frozen=True)
class Ground:
    """Rows that folds have in common, and where in them each fold learns and is judged."""

    X: Matrix
    folds: list[int]
    train: list[np.ndarray]
    test: list[np.ndarray]

    @classmethod
    def all_of(cls, folds: Folds) -> list[Ground]:
        """One ground where all folds are rows of one matrix, otherwise one for each."""
        if isinstance(folds, SlicedFolds):
            splits = folds.splits
            every = list(range(len(splits)))
            return [cls(folds.rows, every, [s[0] for s in splits], [s[1] for s in splits])]
        return [cls._apart(folds, fold) for fold in range(len(folds.splits))]

    @classmethod
    def _apart(cls, folds: Folds, fold: int) -> Ground:
        train, test = folds.train(fold), folds.test(fold)
        stacked: Any = (
            sp.vstack([train, test], format="csr")
            if sp.issparse(train)
            else np.vstack([train, test])
        )
        first = np.arange(train.shape[0])
        return cls(stacked, [fold], [first], [len(first) + np.arange(test.shape[0])])


class FoldFit:
    """The problems of one fold: a chain of settings for each class that has rows in it."""

    def __init__(
        self, grid: KernelGrid, ground: Ground, fold: int, gram: Gram, settings: list[Setting]
    ) -> None:
        self.ground, self.fold, self.gram = ground, fold, gram
        own = ground.folds.index(fold)
        self.train, self.test = ground.train[own], ground.test[own]
        rows = grid.folds.splits[fold][0]
        nothing = np.broadcast_to(0.0, (len(rows), 1))  # the labels alone are looked at
        self.data = labelled(
            grid.estimator, nothing, grid.y[rows], grid.weights_of(rows), C=grid.settings[-1].C
        )
        losses = [grid.estimator._loss_for(setting.budget, self.data) for setting in settings]
        tried = list(zip(settings, losses, strict=True))
        self.problems: list[int] = []
        self.chains: list[Chain] = []
        for index in range(grid.data.n_problems):
            signs = np.where(grid.data.codes[rows] == grid.data.positive(index), 1.0, -1.0)
            counted = signs if self.data.weights is None else signs[self.data.weights > 0]
            if len(np.unique(counted)) == 2:
                self.problems.append(index)
                self.chains.append(self._chain(signs, tried))

    def _chain(self, signs: np.ndarray, tried: list[tuple[Setting, Any]]) -> Chain:
        """All rows, those held out with the weight 0; rows to learn from, if that cannot be.

        Block SMO does not see variables that are fixed at 0; other methods, and norms without a
        weighted form, are better off without them.
        """
        from anynorm.solvers.kernel import Chain

        y, weights = np.full(self.gram.n, -1.0), np.zeros(self.gram.n)
        y[self.train] = signs
        weights[self.train] = 1.0 if self.data.weights is None else self.data.weights
        gram, rows = self.gram, None
        given: np.ndarray | None = weights
        if not _has_box(Problem(y=y, C=1.0, loss=tried[0][1], gram=gram, sample_weight=weights)):
            y, gram, rows, given = signs, self._part, self.train, self.data.weights
        problems = [
            Problem(y=y, C=setting.C, loss=loss, gram=gram, sample_weight=given)
            for setting, loss in tried
        ]
        problems[0].zero_primal()
        return Chain(problems, rows)

    @cached_property
    def _part(self) -> Gram:
        return self.gram.part(self.train)

    @cached_property
    def X_test(self) -> Matrix:
        """The rows that are held out."""
        return self.ground.X[self.test]

    def scores(self, X: Any, members: list[Member], n_problems: int) -> np.ndarray:
        """The decision values of any rows."""
        means = far_means(design_of(self.ground.X)) if self.gram.kernel.is_inner_product else None
        X = X if means is None else less_means(X, means)
        scores = np.full((X.shape[0], n_problems), NEVER)
        for index, chain, (solution, _) in zip(self.problems, self.chains, members, strict=True):
            beta = np.zeros(self.gram.n)
            assert solution.coef is not None
            beta[slice(None) if chain.rows is None else chain.rows] = (
                chain.problems[0].y * solution.coef
            )
            scores[:, index] = self.gram.predict(X, beta) + solution.intercept
        return scores


def _has_box(problem: Problem) -> bool:
    """Whether a problem with weights can be had, and its duals lie in a box."""
    try:
        problem.zero_primal()
        return isinstance(problem.dual_set, Box | BudgetBox)
    except ValueError:  # a norm without a weighted form
        return False


class FoldStage(KernelClassifier):
    """A fit of a fold as a fitted classifier, for scorers."""

    def __init__(
        self, grid: KernelGrid, fit: FoldFit, members: list[Member], scores: np.ndarray
    ) -> None:
        self.classes_, self.n_features_in_ = grid.data.classes, fit.ground.X.shape[1]
        self.kernel = fit.gram.kernel
        self._held, self._members, self._known = fit, members, scores

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores of X, which are at hand for the rows that were held out."""
        if X is self._held.X_test:
            return self._known
        width = 1 if self._known.ndim == 1 else self._known.shape[1]
        scores = self._held.scores(known_matrix(X, self), self._members, width)
        return scores.ravel() if width == 1 else scores
