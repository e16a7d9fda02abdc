"""Dask arrays whose blocks are read from HDF5 and Zarr."""

import dask.array as da
import h5py
import zarr

from anynorm import LinearSVC
from tests.dask.data import rows, same_optimum


def test_blocks_are_read_from_hdf5_in_this_process(tmp_path):
    X, y = rows()
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"] = X
    with h5py.File(tmp_path / "rows.h5") as file:
        apart = LinearSVC(tol=1e-5).fit(da.from_array(file["X"], chunks=(500, -1)), y)
    same_optimum(apart, LinearSVC(tol=1e-5).fit(X, y), 1e-5)


def test_blocks_are_read_from_zarr_by_the_workers(client, tmp_path):
    X, y = rows()
    zarr.save(str(tmp_path / "rows.zarr"), X)
    apart = LinearSVC(tol=1e-5).fit(da.from_zarr(str(tmp_path / "rows.zarr")).rechunk((500, -1)), y)
    same_optimum(apart, LinearSVC(tol=1e-5).fit(X, y), 1e-5)
