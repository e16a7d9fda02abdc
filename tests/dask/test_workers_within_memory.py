"""Workers whose memory is limited to a quarter of the data, beyond what they take empty."""

import os
import sys

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import psutil
import pytest
import scipy.sparse as sp
import zarr

from anynorm import LinearSVC, SparseSVC
from anynorm.design.heap import give_back
from benchmarks.dask_rows import peaks_of
from tests.dask.conftest import local_cluster

MEGABYTES, N_BLOCKS = 384, 96
N_COLUMNS, MANY = 128, 20_000  # of dense and of sparse rows
ENTRIES = 8 * N_COLUMNS // 12  # per sparse row: as many bytes
STEP = MEGABYTES * 2**20 // 8 // N_COLUMNS // N_BLOCKS

# Only the nannies act, at the limit itself: no rows are written to disk, and nobody waits.
SETTINGS = {f"distributed.worker.memory.{k}": False for k in ("target", "spill", "pause")}
SETTINGS |= {"distributed.worker.memory.terminate": 1.0}


def dense_rows(k):
    rng = np.random.default_rng(k)
    X = rng.standard_normal((STEP, N_COLUMNS))
    w = np.random.default_rng(10**6).standard_normal(N_COLUMNS) / 5
    return X, (X @ w + rng.standard_normal(STEP) > 0).astype(int)


def sparse_rows(k):
    rng = np.random.default_rng(k)
    columns = rng.integers(MANY, size=(STEP, ENTRIES), dtype=np.int32)
    places = np.arange(0, STEP * ENTRIES + 1, ENTRIES, dtype=np.int32)
    values = np.full(STEP * ENTRIES, ENTRIES**-0.5)
    X = sp.csr_matrix((values, columns.ravel(), places), shape=(STEP, MANY))
    w = np.random.default_rng(10**6).standard_normal(MANY)
    return X, (X @ w + 0.2 * rng.standard_normal(STEP) > 0).astype(int)


def some_of(file, k):
    """Block k of a memory-mapped file."""
    return np.array(np.load(file, mmap_mode="r")[k * STEP : (k + 1) * STEP])


def write(kind, folder):
    """The rows on disk, block after block; their labels."""
    make, y = sparse_rows if kind == "sparse" else dense_rows, []
    shape = N_BLOCKS * STEP, N_COLUMNS
    if kind == "npy":
        whole = np.lib.format.open_memmap(folder / "X.npy", "w+", float, shape)
    elif kind == "zarr":
        whole = zarr.open(str(folder / "X"), mode="w", shape=shape, chunks=(STEP, N_COLUMNS))
    for k in range(N_BLOCKS):
        X, labels = make(k)
        y.append(labels)
        if kind == "parquet":
            frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(N_COLUMNS)])
            frame.assign(label=labels).to_parquet(folder / f"{k:03d}.parquet")
        elif kind == "sparse":
            sp.save_npz(folder / f"{k}.npz", X, compressed=False)
        else:
            whole[k * STEP : (k + 1) * STEP] = X
    return np.concatenate(y)


def collection(kind, folder, y, n_blocks):
    """The first blocks of the files, lazily."""
    labels = da.from_array(y[: n_blocks * STEP], chunks=STEP)
    if kind == "parquet":
        frame = dd.read_parquet([str(folder / f"{k:03d}.parquet") for k in range(n_blocks)])
        return frame.drop(columns="label"), frame["label"]
    if kind == "zarr":
        return da.from_zarr(str(folder / "X"))[: n_blocks * STEP], labels
    if kind == "npy":
        read, given, meta = some_of, [(folder / "X.npy", k) for k in range(n_blocks)], None
    else:
        read, given = sp.load_npz, [(folder / f"{k}.npz",) for k in range(n_blocks)]
        meta = sp.csr_matrix((0, MANY))
    shape = STEP, MANY if kind == "sparse" else N_COLUMNS
    parts = [da.from_delayed(dask.delayed(read)(*each), shape, float, meta) for each in given]
    return da.concatenate(parts), labels


def memory_of(client):
    """What the workers' processes take, without what they have freed."""
    client.run(give_back)
    return client.run(lambda: psutil.Process(os.getpid()).memory_info().rss)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what glibc does with memory")
@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("parquet", LinearSVC(C=1e-3, loss="hinge", tol=1e-3)),
        ("npy", LinearSVC(C=1e-3, loss="squared_hinge", tol=1e-3)),
        ("zarr", SparseSVC(C=1e-2, loss="logistic", tol=1e-3)),
        ("sparse", LinearSVC(C=0.1, loss="hinge", tol=1e-2)),
    ],
)
def test_a_quarter_of_the_data_is_memory_enough_for_two_workers(tmp_path, kind, model):
    y = write(kind, tmp_path)
    with dask.config.set(SETTINGS):
        for _ in range(2):  # the second pair of workers loads what the first has compiled
            with local_cluster() as cluster, distributed.Client(cluster) as client:
                model.fit(*collection(kind, tmp_path, y, 8))
                taken = max(memory_of(client).values())
        limit = taken + MEGABYTES * 2**20 // 4 // 2
        with local_cluster(memory_limit=limit) as cluster, distributed.Client(cluster) as client:
            with peaks_of(client) as seen:
                model.fit(*collection(kind, tmp_path, y, N_BLOCKS))
            assert {*client.run(os.getpid).values()} == {*seen}  # none was ended
    assert max(seen.values()) <= limit
    assert model.certificate_.status == "optimal"
    rows, labels = (sparse_rows if kind == "sparse" else dense_rows)(0)
    if kind == "parquet":
        rows = pd.DataFrame(rows, columns=model.feature_names_in_)
    assert (model.predict(rows) == labels).mean() > 0.8
