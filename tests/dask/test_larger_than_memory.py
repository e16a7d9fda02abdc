"""Fits within a memory limit of a quarter of the data, block after block, in one process."""

import subprocess
import sys

import pytest

N_COLUMNS = 128

# The limit is on what the process takes beyond what it has before the fit, once all is imported
# and compiled; pages of mapped files can be given back, and do not count.
CODE = """
import pathlib, resource, sys
import dask, dask.array as da, dask.dataframe as dd, h5py, numpy as np, pandas as pd, zarr
import scipy.sparse as sp
from anynorm import LinearSVC

folder, kind, loss = sys.argv[1:]
p, n_blocks = {columns}, {blocks}
n = {megabytes} * 2**20 // 8 // p
step = n // n_blocks
w = np.random.default_rng(0).standard_normal(p) / 5

def rows(k):
    rng = np.random.default_rng(k)
    X = rng.standard_normal((step, p))
    return X, (X @ w + rng.standard_normal(step) > 0).astype(int)

if kind == "sparse":  # as many bytes, 12 for each entry, in far more columns
    p, entries = 20_000, 8 * p // 12
    w = np.random.default_rng(0).standard_normal(p)

    def rows(k):
        rng = np.random.default_rng(k)
        columns = rng.integers(p, size=(step, entries), dtype=np.int32)
        places = np.arange(0, step * entries + 1, entries, dtype=np.int32)
        values = np.full(step * entries, entries**-0.5)
        X = sp.csr_matrix((values, columns.ravel(), places), shape=(step, p))
        return X, (X @ w + 0.2 * rng.standard_normal(step) > 0).astype(int)

def source(n_blocks):
    if kind in ("hdf5", "zarr"):
        stored = h5py.File(file)["X"] if kind == "hdf5" else zarr.open(file, mode="r")
        X = da.from_array(stored, chunks=(step, p))
        return X[: n_blocks * step], y[: n_blocks * step]
    if kind == "sparse":
        read = dask.delayed(sp.load_npz)
        X = [
            da.from_delayed(read(f"{{folder}}/{{k}}.npz"), (step, p), meta=sp.csr_matrix((0, p)))
            for k in range(n_blocks)
        ]
        return da.concatenate(X), y[: n_blocks * step]
    if kind == "memmap":
        return np.load(file, mmap_mode="r")[: n_blocks * step], y[: n_blocks * step]
    if kind == "parquet":
        frame = dd.read_parquet(parts[:n_blocks])
        return frame.drop(columns="label"), frame["label"]
    made = [dask.delayed(rows)(k) for k in range(n_blocks)]
    X = [da.from_delayed(part[0], (step, p), dtype=float) for part in made]
    return da.concatenate(X), da.from_array(y[: n_blocks * step], chunks=step)

file = pathlib.Path(folder, "X.npy")
parts = [str(pathlib.Path(folder, f"{{k:03d}}.parquet")) for k in range(n_blocks)]
y = np.concatenate([rows(k)[1] for k in range(n_blocks)])
if kind in ("memmap", "hdf5", "zarr"):
    if kind == "memmap":
        X = np.lib.format.open_memmap(file, "w+", float, (n, p))
    elif kind == "hdf5":
        written = h5py.File(file, "w")
        X = written.create_dataset("X", (n, p), float, chunks=(step, p))
    else:
        X = zarr.open(file, mode="w", shape=(n, p), chunks=(step, p), dtype=float)
    for k in range(n_blocks):
        X[k * step : (k + 1) * step] = rows(k)[0]
    if kind == "hdf5":
        written.close()
    del X
elif kind == "sparse":
    for k in range(n_blocks):
        sp.save_npz(f"{{folder}}/{{k}}.npz", rows(k)[0], compressed=False)
elif kind == "parquet":
    for k, name in enumerate(parts):
        frame = pd.DataFrame(rows(k)[0], columns=[f"c{{j}}" for j in range(p)])
        frame.assign(label=rows(k)[1]).to_parquet(name)

model = LinearSVC(C=0.1 if kind == "sparse" else 1e-3, loss=loss, tol=1e-3)
model.fit(*source(8))  # compiles
status = pathlib.Path("/proc/self/status").read_text()
taken = int(status.split("VmData:")[1].split()[0]) * 1024
limit = taken + {megabytes} * 2**20 // 4
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    np.ones({megabytes} * 2**20 // 8)
except MemoryError:
    print("limited", end=" ")
model.fit(*source(n_blocks))
print(model.certificate_.status, (model.predict(rows(0)[0]) == rows(0)[1]).mean() > 0.8)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is one of Linux")
@pytest.mark.parametrize(
    ("kind", "megabytes", "loss"),
    # A map's blocks are as large as the memory allows; what there is besides takes some 20 MB.
    [
        ("memmap", 256, "hinge"),
        ("parquet", 128, "hinge"),
        ("hdf5", 128, "logistic"),
        ("zarr", 128, "squared_hinge"),
        ("array", 128, "squared_hinge"),
        ("sparse", 128, "hinge"),
    ],
)
def test_a_quarter_of_the_data_is_memory_enough(tmp_path, kind, megabytes, loss):
    code = CODE.format(columns=N_COLUMNS, blocks=megabytes // 2, megabytes=megabytes)
    command = [sys.executable, "-c", code, str(tmp_path), kind, loss]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "limited optimal True", done.stderr
