"""Blocks of a Dask collection that are read again from where they come from.

Rows that do not fit the workers' memory are not kept: every question reads them anew, by the tasks
of the collection that lead to one block, run in one go where the block lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_AGAIN = 3  # times the tasks of the collection that all blocks, each read alone, may take
_BYTES = 100_000  # of a block's tasks, on average: where they lead to a source, they have no rows


class BlockSource:
    """What reads one block, wherever it is sent.

    Parameters
    ----------
    graph : dict
        The tasks that lead to the block.
    key : hashable
        The last of them.
    """

    def __init__(self, graph: dict[Any, Any], key: Any) -> None:
        self.graph, self.key = graph, key

    def __call__(self) -> Any:
        """The block."""
        import dask

        return dask.get(self.graph, self.key)


def sources_of(collection: Any, parts: Sequence[Any]) -> list[BlockSource] | None:
    """Return what reads each of the delayed blocks of a collection anew.

    None where that is not to be done: blocks that are in the cluster's memory already, those that
    all need the same work (such as a mean over all rows), and those that come from here.
    """
    from dask.optimization import cull
    from dask.utils import ensure_dict
    from distributed.client import futures_of

    if futures_of(collection):
        return None
    known: dict[int, dict[Any, Any]] = {}
    sources = []
    for part in parts:
        graph = part.__dask_graph__()
        if id(graph) not in known:
            known[id(graph)] = ensure_dict(graph)
        own, _ = cull(known[id(graph)], [part.key])
        sources.append(BlockSource(own, part.key))
    every = {key for source in sources for key in source.graph}
    tasks = sum(len(source.graph) for source in sources)
    if tasks > _AGAIN * len(every) or not _is_light(sources):
        return None
    return sources


def _is_light(sources: Sequence[BlockSource]) -> bool:
    """Whether the tasks can be sent, and are small: nothing of the rows is in them."""
    from distributed.protocol import pickle

    total = 0
    for source in sources:
        apart: list[Any] = []  # large arrays are counted without a copy
        try:
            total += len(pickle.dumps(source, buffer_callback=apart.append))
        except Exception:  # whatever an object says that cannot be sent
            return False
        total += sum(each.raw().nbytes for each in apart)
        if total > _BYTES * len(sources):
            return False
    return True
