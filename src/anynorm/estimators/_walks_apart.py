"""The table over C and rounds of `ReweightedSVCCV` where the rows live apart.

Labels come here, so that the folds are those of one machine; rows stay where they are.  In a fold
the rows that are held out weigh nothing, and are scored where they lie.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from anynorm.design.crew import Block, Crew, Sums, each_block
from anynorm.estimators._chunked import chunked_problems, solve_chunked_classes
from anynorm.estimators._cross_validation import mean_held_out, splits_of
from anynorm.estimators._fitting import earlier, is_over, labels_of, limits
from anynorm.estimators._prepared_folds import Split
from anynorm.estimators.checks.chunks import ChunkedLabelled, chunked, labelled_apart
from anynorm.estimators.checks.labels import Labelled
from anynorm.estimators.checks.parameters import seed
from anynorm.estimators.reweighted_svc import ReweightedSVC
from anynorm.estimators.reweighted_svc_cv import ReweightedSVCCV, WalkSearch, by_all_classes
from anynorm.losses import get_loss
from anynorm.problem.certificate import Certificate


def search_walks_apart(
    estimator: ReweightedSVCCV, X: Any, y: Any, sample_weight: Any, groups: Any, end: float | None
) -> None:
    """Choose, fit to all rows and store, until the deadline `end`."""
    if estimator.preprocessor is not None:
        raise ValueError(
            "preprocessor needs all rows in one place, which those of a Dask collection are not. "
            "Prepare the columns in Dask first, or call X.compute()."
        )
    if estimator.scoring not in (None, "accuracy"):
        raise ValueError(
            "scoring must be None or 'accuracy' on a Dask collection, which is never in one place; "
            f"got {estimator.scoring!r}. Other scores need X.compute()."
        )
    loss, largest = get_loss(estimator.loss), estimator._largest_C()
    data = chunked(estimator, X, y, sample_weight, loss, C=largest)
    try:
        places = _places(data.X)
        labels = np.concatenate([place.labels for place in places])
        weights = None
        if sample_weight is not None:
            weights = np.concatenate([place.weights for place in places])
        splits = splits_of(estimator.cv, labels, groups)
        found = np.minimum(np.searchsorted(data.classes, labels), len(data.classes) - 1)
        codes = np.where(data.classes[found] == labels, found, -1)
        WalkSearchApart(
            estimator,
            replace(data, codes=codes),
            labels,
            weights,
            _Splits(splits),  # type: ignore[arg-type]
            None,
            end,
            places=places,
        ).fit()
    finally:
        data.X.close()


class _Splits(NamedTuple):
    """Folds whose rows are not here."""

    splits: list[Split]


class BlockPlace(NamedTuple):
    """Where a block's rows are among all rows, and what there is one of per row."""

    number: int
    start: int
    labels: np.ndarray
    weights: np.ndarray | None

    @property
    def rows(self) -> slice:
        """The rows, among all."""
        return slice(self.start, self.start + len(self.labels))


class FoldBlock(Block):
    """A block of a fold, whose rows weigh nothing where they are held out.

    Attributes
    ----------
    test : ndarray of int
        The rows that are held out.
    test_weights : ndarray or None
        Their weights.
    """

    def __init__(self, source: Block, sides: dict[int, tuple[np.ndarray, np.ndarray]]) -> None:
        train, self.test = sides.get(source.number, (np.ones(source.n), np.empty(0, np.intp)))
        own = source.weights
        self.test_weights = None if own is None else own[self.test]
        super().__init__(
            source._X,
            source.labels,
            train * (np.ones(source.n) if own is None else own),
            columns=source.columns,
            sparse=source.sparse,
            number=source.number,
        )


class Models(NamedTuple):
    """All rounds of a fold and a C: coefficients of shape (rounds, classes against the rest, p)."""

    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray


@dataclass
class WalkSearchApart(WalkSearch):
    """The same table, fold after fold on all workers."""

    places: Sequence[BlockPlace] = ()

    def of_all_rows(self, model: ReweightedSVC) -> tuple[Labelled, Sequence[Any]]:
        """All rows, and the walks of the binary problems over them."""
        from anynorm.solvers.linear.chunked import walk_chunked

        data = self.data
        assert isinstance(data, ChunkedLabelled)
        solve = partial(walk_chunked, n_rounds=int(model.n_rounds), prune=bool(model.prune))
        return data, solve_chunked_classes(model, data, solve, self.end)

    def fill(self) -> None:
        """Walk in every fold with every C, from the solution of the last C."""
        n_grid, _, n_folds = self.empty_table()
        self._models: dict[tuple[int, int], Models] = {}
        # The model of all rows gets as much time as a fold.
        end = earlier(self.end, 1.0 / (n_folds + 1))
        for fold in range(n_folds):
            if is_over(end):
                self._stay(fold, np.arange(n_grid))
                continue
            crew = self._crew(fold)
            try:
                self._walk_apart(fold, crew, end)
            finally:
                crew.close()

    def _crew(self, fold: int) -> Crew:
        """The blocks of a fold."""
        train, test = self.folds.splits[fold]
        learnt, held = np.zeros(len(self.y)), np.zeros(len(self.y), dtype=bool)
        learnt[train], held[test] = 1.0, True
        sides = {
            place.number: (learnt[place.rows], np.flatnonzero(held[place.rows]))
            for place in self.places
        }
        crew: Crew = self.data.X
        return crew.turned(FoldBlock, sides, crew.shape[1])

    def _walk_apart(self, fold: int, crew: Crew, end: float | None) -> None:
        """The walks of one fold for all values of C."""
        from anynorm.solvers.linear.chunked import walk_chunked

        estimator = self.estimator
        data = labelled_apart(estimator, crew, None, float(self.grid[-1]))
        starts: list[Any] = [None] * data.n_problems
        for c, C in enumerate(self.grid):
            if is_over(end):
                self._stay(fold, np.arange(c, len(self.grid)))
                return
            began, model = time.perf_counter(), estimator._model(C, int(estimator.max_rounds))
            walks = [
                walk_chunked(
                    problem,
                    n_rounds=int(model.n_rounds),
                    prune=bool(model.prune),
                    **limits(model, end) | {"tol": self.tol},
                    seed=seed(model.random_state),
                    start=start,
                    progress=self.report,
                )
                for problem, start in zip(chunked_problems(model, data), starts, strict=True)
            ]
            starts = [(rounds[0].coef, rounds[0].intercept) for rounds in walks]
            self.gaps[c, :, fold] = [
                Certificate.combine([part.certificate for part in parts]).gap
                for parts in zip(*walks, strict=True)
            ]
            coef = np.array([[part.coef for part in rounds] for rounds in walks]).swapaxes(0, 1)
            bias = np.array([[part.intercept for part in rounds] for rounds in walks]).T
            models = self._models[fold, c] = Models(coef, bias, data.classes)
            self.features[c, :, fold] = np.count_nonzero(coef.any(axis=1), axis=1)
            seen = crew.ask(_judged, models)
            self.scores[c, :, fold] = seen.right / seen.weight
            self.seconds[c, fold] = time.perf_counter() - began
            self._print(fold, c)
            if self.on_fit is not None:
                self.on_fit(float(self.gaps[c, -1, fold]))

    def hold_constant(self, fold: int, places: np.ndarray, signs: np.ndarray) -> None:
        """Keep models without features."""
        p, rounds = self.data.X.shape[1], int(self.estimator.max_rounds)
        nothing = np.zeros((rounds, len(signs), p))
        for c in places.tolist():
            self._models[fold, c] = Models(nothing, np.tile(signs, (rounds, 1)), self.data.classes)

    def held_out(self, c: int, rounds: int) -> np.ndarray:
        """The decision values of a cell for all rows: those of the others are never made."""
        parts = []
        for fold, (_, test) in enumerate(self.folds.splits):
            found, crew = self._models[fold, c], self._crew(fold)
            only = Models(found.coef[[rounds]], found.intercept[[rounds]], found.classes)
            try:
                seen = dict(crew.ask(_scored, only).scores)
            finally:
                crew.close()
            scores = np.empty((len(self.y), found.coef.shape[1]))
            held = np.zeros(len(self.y), dtype=bool)
            held[test] = True
            for place in self.places:
                if place.number in seen:
                    own = np.flatnonzero(held[place.rows]) + place.start
                    scores[own] = seen[place.number]
            parts.append(by_all_classes(scores[test], found.classes, self.data.classes))
        return mean_held_out(self.folds.splits, parts, len(self.y))


def _places(crew: Crew) -> list[BlockPlace]:
    """The blocks in their order, with their labels."""
    found = sorted(crew.ask(_labels).labels, key=lambda part: part[0])
    starts = np.cumsum([0, *(len(labels) for _, labels, _ in found)]).tolist()
    return [
        BlockPlace(number, start, labels, weights)
        for (number, labels, weights), start in zip(found, starts, strict=False)
    ]


def _labels(blocks: Sequence[Block], message: None) -> Sums:
    """The labels and weights of every block."""

    def one(block: Block) -> Sums:
        return Sums(labels=[(block.number, block.labels, block.weights)])

    return each_block(blocks, one, Sums(labels=[]))


def _scores(block: FoldBlock, models: Models) -> np.ndarray:
    """The decision values of the rows that are held out, of shape (rows, rounds, classes)."""
    coef = models.coef.reshape(-1, models.coef.shape[2])
    found = block.design().take_rows(block.test).matvec(coef.T) + models.intercept.ravel()
    return found.reshape(len(block.test), *models.intercept.shape)


def _judged(blocks: Sequence[Block], models: Models) -> Sums:
    """The weight of held-out rows that every round is right about, and of all of them."""

    def one(block: Block) -> Sums:
        assert isinstance(block, FoldBlock)
        if not block.test.size:
            return Sums(weight=0.0)
        scores, truth = _scores(block, models), block.labels[block.test]
        weights = np.ones(len(truth)) if block.test_weights is None else block.test_weights
        scores = scores[:, :, 0] if scores.shape[2] == 1 else scores
        labels = [labels_of(scores[:, k], models.classes) for k in range(scores.shape[1])]
        right = np.array([weights @ (found == truth) for found in labels])
        return Sums(right=right, weight=float(weights.sum()))

    return each_block(blocks, one, Sums(weight=0.0))


def _scored(blocks: Sequence[Block], models: Models) -> Sums:
    """The decision values of the held-out rows, for one round."""

    def one(block: Block) -> Sums:
        assert isinstance(block, FoldBlock)
        if not block.test.size:
            return Sums(scores=[])
        return Sums(scores=[(block.number, _scores(block, models)[:, 0])])

    return each_block(blocks, one, Sums(scores=[]))
