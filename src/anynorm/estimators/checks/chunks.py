"""Dask collections and large memory maps, as blocks of rows, each checked where it lies.

The rest of the package does not import Dask; nothing here does before a collection was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from anynorm.design import Matrix
from anynorm.design.block_source import BlockSource, sources_of
from anynorm.design.blocks import ranges
from anynorm.design.crew import Block, Crew, OneProcess
from anynorm.design.memory import rows_at_a_time
from anynorm.estimators.checks.labels import (
    Labelled,
    check_classes,
    check_total,
    class_factors,
    encode,
    usable_labels,
    usable_weights,
)
from anynorm.estimators.checks.matrices import (
    column_names,
    is_collection,
    training_matrix,
    usable_matrix,
)
from anynorm.losses import Loss
from anynorm.norms.dual_sets import Box, CurvedBox

_LABEL, _WEIGHT = "anynorm label", "anynorm weight"


class Parts(NamedTuple):
    """What a block is made of, delayed.

    Attributes
    ----------
    rows : Delayed
        The rows; of a frame with labels and weights among the columns.
    labels, weights : Delayed or None
        One of each per row; None where they are among the columns, or there are no weights.
    """

    rows: Any
    labels: Any = None
    weights: Any = None


@dataclass(frozen=True)
class ChunkedLabelled(Labelled):
    """Rows that live apart: X is their crew, and labels and weights stay beside the rows.

    Attributes
    ----------
    class_weights : ndarray of shape (K,) or None
        The factors of the rows' weights, by class.
    n_blocks : int
        How many blocks there are.
    total : float
        What all rows weigh.
    """

    class_weights: np.ndarray | None = None
    n_blocks: int = 0
    total: float = 0.0

    @property
    def storage(self) -> str:
        """How X is stored, in words."""
        return f"{'sparse' if self.X.sparse else 'dense'}, {self.n_blocks} blocks"


def lives_apart(X: Any) -> bool:
    """Whether X is a Dask collection, or memory-mapped and too large for memory."""
    return is_collection(X) or rows_at_a_time(X) > 0


def chunked(
    estimator: Any, X: Any, y: Any, sample_weight: Any, loss: Loss, *, C: float | None = None
) -> ChunkedLabelled:
    """Check an X that lives apart, and what belongs to its rows, given to a classifier's `fit`.

    `C` is the largest one that is fitted, that of the estimator by default.
    """
    caller, C = type(estimator).__name__, float(estimator.C if C is None else C)
    _check_separable(loss)
    if y is None:
        usable_labels(y, 0, caller)  # which says that it is needed
    if not is_collection(X):
        return labelled_apart(estimator, _mapped(X, y, sample_weight, caller), None, C)
    of_kind = _of_array if hasattr(X, "chunks") else _of_frame
    crew = _crew(*of_kind(X, y, sample_weight), caller)
    try:
        return labelled_apart(estimator, crew, column_names(getattr(X, "_meta", None)), C)
    except BaseException:
        crew.close()
        raise


def _mapped(X: Any, y: Any, sample_weight: Any, caller: str) -> Crew:
    """The rows of a memory-mapped array, read some at a time."""
    labels = usable_labels(y, X.shape[0], caller)
    weights = usable_weights(sample_weight, X.shape[0])
    blocks = []
    for number, place in enumerate(ranges(X.shape[0], rows_at_a_time(X))):
        own = None if weights is None else weights[place]
        read = partial(X.__getitem__, place)
        blocks.append(_held_block(read(), labels[place], own, number, caller).read_by(read))
    return OneProcess(blocks)


def labelled_apart(
    estimator: Any, crew: Crew, names: np.ndarray | None, C: float
) -> ChunkedLabelled:
    """What all blocks together say about the classes."""
    seen = crew.describe()
    if crew.shape[0] == 0:
        raise ValueError("X has no rows in any of its blocks; a classifier needs some.")
    labels, _ = encode(np.array(list(seen.labels)))
    totals = np.array([float(seen.weights.get(label, 0.0)) for label in labels.tolist()])
    factors = None
    if estimator.class_weight is not None:
        factors = class_factors(estimator.class_weight, labels, totals)
        totals = factors * totals
    kept = np.flatnonzero(totals > 0)
    check_classes(labels, kept)
    check_total(C, float(totals.sum()))
    return ChunkedLabelled(
        X=crew,
        codes=np.empty(0, dtype=np.intp),
        classes=labels[kept],
        weights=None,
        feature_names=names,
        class_weights=None if factors is None else factors[kept],
        n_blocks=seen.blocks,
        total=float(totals.sum()),
    )


def _check_separable(loss: Loss) -> None:
    """Raise where a loss is no sum over the rows."""
    if loss.without_weights()[1] is not None:
        raise ValueError(
            "a slack norm with weights of its own does not know the rows of a Dask collection; "
            "give the weights as sample_weight, chunked like X."
        )
    try:
        found: Any = loss.dual_set(1.0, np.ones(1))
    except ValueError:
        found = None
    if not isinstance(found, Box | CurvedBox):
        raise ValueError(
            f"the loss {loss.name!r} is not a sum over the rows, which Dask collections need; use "
            "'hinge', 'squared_hinge', 'logistic', 'squared' or 'absolute', or X.compute()."
        )


def _of_array(X: Any, y: Any, sample_weight: Any) -> tuple[Any, list[Parts]]:
    """A Dask array in blocks of rows, and these, each with what belongs to it."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions; got a Dask array with {X.ndim}.")
    _check_sizes(X, "X")
    X = X.rechunk({1: -1})
    parts = list(X.to_delayed().ravel())
    weights = [None] * len(parts)
    if sample_weight is not None:
        weights = _like_rows(sample_weight, X, "sample_weight")
    labels = _like_rows(y, X, "y")
    return X, [Parts(*each) for each in zip(parts, labels, weights, strict=True)]


def _like_rows(given: Any, X: Any, name: str) -> list[Any]:
    """What there is one of per row of an array, as delayed blocks like those of X."""
    import dask.array as da

    if isinstance(given, int | float):
        given = np.full(X.shape[0], float(given))
    if not is_collection(given):
        given = da.from_array(np.asarray(given), chunks=-1)
    elif not hasattr(given, "chunks"):
        given = given.to_dask_array(lengths=True)
    _check_sizes(given, name)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1:
        raise ValueError(f"{name} must have one dimension; got a Dask array with {given.ndim}.")
    if given.shape[0] != X.shape[0]:
        raise ValueError(
            f"{name} has {given.shape[0]} entries but X has {X.shape[0]} rows; give one per row."
        )
    return list(given.rechunk((X.chunks[0],)).to_delayed().ravel())


def _of_frame(X: Any, y: Any, sample_weight: Any) -> tuple[Any, list[Parts]]:
    """A Dask data frame with labels and weights among its columns, and its partitions.

    All columns are joined to one frame, so that Dask sees to it that their partitions are the
    same, whatever it makes of the files that they are read from.
    """
    if not hasattr(X, "columns") or not hasattr(X, "to_delayed"):
        raise TypeError(f"X must be a Dask array or data frame; got {type(X).__name__}.")
    if isinstance(y, np.ndarray | list | tuple) or isinstance(sample_weight, np.ndarray | list):
        raise TypeError(
            "y and sample_weight must be Dask collections where X is a data frame, whose rows are "
            "not known before it is read. Give columns of the same frame."
        )
    y, sample_weight = _one_column(y, "y"), _one_column(sample_weight, "sample_weight")
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        count = getattr(given, "npartitions", X.npartitions)
        known = X.known_divisions and getattr(given, "known_divisions", False)
        if count != X.npartitions and not known:
            raise ValueError(
                f"{name} has {count} partitions but X has {X.npartitions}, and which rows belong "
                "together is not known. Take them from one frame."
            )
    names = [_LABEL] if sample_weight is None else [_LABEL, _WEIGHT]
    try:
        joined = X.assign(**dict(zip(names, (y, sample_weight), strict=False)))
        return joined, [Parts(part) for part in joined.to_delayed()]
    except ValueError as error:
        raise ValueError(
            f"the partitions of X, y and sample_weight do not belong together ({error}). Take them "
            "from one frame."
        ) from None


def _one_column(given: Any, name: str) -> Any:
    """The column of a data frame that has one; anything else as it is."""
    columns = getattr(given, "columns", None)
    if columns is None or getattr(given, "ndim", 1) == 1:
        return given
    if len(columns) != 1:
        raise ValueError(f"{name} must have one column; got a data frame with {len(columns)}.")
    return given[columns[0]]


def _apart(given: Any) -> tuple[Any, Any, Any]:
    """The rows of a frame, their labels and their weights, which are among its columns."""
    weights = given[_WEIGHT].to_numpy() if _WEIGHT in given.columns else None
    return _features(given), given[_LABEL].to_numpy(), weights


def _features(given: Any) -> Any:
    """The rows without labels and weights."""
    if not hasattr(given, "columns"):
        return given
    return given.drop(columns=[name for name in (_LABEL, _WEIGHT) if name in given.columns])


def _check_sizes(array: Any, name: str) -> None:
    """Raise where the sizes of an array's blocks are not known."""
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        raise ValueError(
            f"{name} has chunks of unknown size. Call {name}.compute_chunk_sizes() first, or give "
            "the data frame that it comes from."
        )


def _crew(collection: Any, blocks: list[Parts], caller: str) -> Crew:
    """The workers of the present Dask client, or this process where there is none."""
    import dask
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    if client is not None and hasattr(client, "scheduler_info"):
        from anynorm.design.dask_crew import DaskCrew

        return DaskCrew.computing(client, _delayed_blocks(collection, blocks, caller))

    def compute(delayed: Any) -> Any:
        return None if delayed is None else dask.compute(delayed, scheduler="synchronous")[0]

    def read(rows: Any) -> Matrix:
        return usable_matrix(_features(compute(rows)), caller)

    made = []
    for k, parts in enumerate(blocks):
        rows, labels, weights = map(compute, parts)
        whole = _held_block(rows, labels, weights, k, caller)
        made.append(whole.read_by(partial(read, parts.rows)))
    return OneProcess(made)


def _delayed_blocks(collection: Any, blocks: list[Parts], caller: str) -> list[Any]:
    """The blocks as workers are to make them."""
    import dask

    sources = sources_of(collection, [parts.rows for parts in blocks])
    make: Any = dask.delayed(_held_block if sources is None else _sourced_block, pure=False)
    firsts = [parts.rows for parts in blocks] if sources is None else sources
    return [
        make(first, parts.labels, parts.weights, k, caller)
        for k, (first, parts) in enumerate(zip(firsts, blocks, strict=True))
    ]


def _sourced_block(
    source: BlockSource, labels: Any, weights: Any, number: int, caller: str
) -> Block:
    """A block, on a worker, whose rows are read again where they do not fit its memory."""
    from anynorm.design.dask_crew import rows_may_stay

    block = _held_block(source(), labels, weights, number, caller)
    return block if rows_may_stay() else block.read_by(partial(_read_again, source, caller))


def _read_again(source: BlockSource, caller: str) -> Matrix:
    return usable_matrix(_features(source()), caller)


def _held_block(X: Any, labels: Any, weights: Any, number: int, caller: str) -> Block:
    """A block whose rows are in memory, checked; errors name it."""
    if labels is None:
        X, labels, weights = _apart(X)
    try:
        n = X.shape[0]
        if len(labels) != n:
            raise ValueError(f"y has {len(labels)} entries but X has {n} rows.")
        if n == 0:
            return Block(X, np.asarray(labels), None, columns=X.shape[1], number=number)
        X, _ = training_matrix(X, caller)
        labels = usable_labels(labels, n, caller)
        encode(labels)
        if weights is not None:
            weights = _weights(np.asarray(weights), n)
    except ValueError as error:
        raise ValueError(f"in block {number} of X, whose rows count from 0: {error}") from None
    return Block(X, labels, weights, columns=X.shape[1], sparse=sp.issparse(X), number=number)


def _weights(weights: np.ndarray, n: int) -> np.ndarray:
    """The weights of a block, which may all be zero there."""
    if weights.shape == (n,) and not weights.any():
        return np.zeros(n)
    found = usable_weights(weights, n)
    assert found is not None
    return found


def share_right(estimator: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """The share of the rows of a Dask collection whose label is predicted, by their weights."""
    import dask

    if y is None:
        usable_labels(y, 0, type(estimator).__name__)  # which says that it is needed
    of_kind = _of_array if hasattr(X, "chunks") else _of_frame
    count, model = dask.delayed(_weight_right, pure=False), dask.delayed(estimator, pure=False)
    _, blocks = of_kind(X, y, sample_weight)
    right, total = np.sum(dask.compute(*(count(model, *parts) for parts in blocks)), axis=0)
    if not total > 0:
        raise ValueError("X has no rows of positive weight to be scored by.")
    return float(right / total)


def _weight_right(estimator: Any, X: Any, labels: Any, weights: Any) -> tuple[float, float]:
    """What the rows of a block weigh that are predicted right, and what all do."""
    if labels is None:
        X, labels, weights = _apart(X)
    if X.shape[0] == 0:
        return 0.0, 0.0
    weights = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    right = np.asarray(estimator.predict(X)) == np.asarray(labels)
    return float(weights[right].sum()), float(weights.sum())


def by_blocks(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a prediction: of a Dask collection it is a lazy Dask array, block by block."""

    @wraps(method)
    def predicted(self: Any, X: Any) -> Any:
        return _lazily(self, method.__name__, X) if is_collection(X) else method(self, X)

    return predicted


def _lazily(estimator: Any, name: str, X: Any) -> Any:
    """The named prediction of every block of X."""
    import dask.array as da

    if not hasattr(X, "chunks"):
        example = _no_rows(estimator, name, X._meta)
        found = X.map_partitions(_of_block, estimator, name, meta=example)
        if example.ndim == 2 and np.isnan(found.shape[-1]):
            found._chunks = (found.chunks[0], (example.shape[1],))
        return found
    example = _no_rows(estimator, name, X)
    X = X.rechunk({1: -1})
    shape = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (X.chunks[0], example.shape[1:])}
    return da.map_blocks(_of_block, X, estimator, name, dtype=example.dtype, meta=example, **shape)


def _no_rows(estimator: Any, name: str, X: Any) -> np.ndarray:
    """What the named prediction of no rows looks like: one row of zeros says so.

    Raises what X would.
    """
    row = np.zeros((1, X.shape[1]))
    if hasattr(X, "columns"):
        row = X.iloc[:0].reindex([0]).fillna(0.0).astype(np.float64)
    found: np.ndarray = getattr(estimator, name)(row)
    return found[:0]


def _of_block(X: Any, estimator: Any, name: str) -> np.ndarray:
    if X.shape[0] == 0:
        return _no_rows(estimator, name, X)
    found: np.ndarray = getattr(estimator, name)(X)
    return found
