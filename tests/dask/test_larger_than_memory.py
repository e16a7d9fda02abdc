"""Fits within a memory limit of a quarter of the data, block after block, in one process."""

import subprocess
import sys

import pytest

N_COLUMNS = 128

# The limit is on what the process takes beyond what it has before the fit, once all is imported
# and compiled; pages of mapped files can be given back, and do not count.
CODE = """
import pathlib, resource, sys
import dask, dask.array as da, dask.dataframe as dd, numpy as np, pandas as pd
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

def source(n_blocks):
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
if kind == "memmap":
    X = np.lib.format.open_memmap(file, "w+", float, (n, p))
    for k in range(n_blocks):
        X[k * step : (k + 1) * step] = rows(k)[0]
    del X
elif kind == "parquet":
    for k, name in enumerate(parts):
        frame = pd.DataFrame(rows(k)[0], columns=[f"c{{j}}" for j in range(p)])
        frame.assign(label=rows(k)[1]).to_parquet(name)

model = LinearSVC(C=1e-3, loss=loss, tol=1e-3)
model.fit(*source(8))  # compiles
status = pathlib.Path("/proc/self/status").read_text()
taken = int(status.split("VmData:")[1].split()[0]) * 1024
limit = taken + n * p * 8 // 4
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
model.fit(*source(n_blocks))
print(model.certificate_.status, (model.predict(rows(0)[0]) == rows(0)[1]).mean() > 0.8)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is one of Linux")
@pytest.mark.parametrize(
    ("kind", "megabytes", "loss"),
    # A map's blocks are as large as the memory allows; what there is besides takes some 20 MB.
    [("memmap", 256, "hinge"), ("parquet", 128, "hinge"), ("array", 128, "squared_hinge")],
)
def test_a_quarter_of_the_data_is_memory_enough(tmp_path, kind, megabytes, loss):
    code = CODE.format(columns=N_COLUMNS, blocks=megabytes // 2, megabytes=megabytes)
    command = [sys.executable, "-c", code, str(tmp_path), kind, loss]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "optimal True", done.stderr
