"""Which blocks are read again from where they come from, and that they are the same rows."""

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from sklearn.base import clone

from anynorm import BudgetSVC, LinearSVC, ReweightedSVC, ReweightedSVCCV, SparseSVC
from anynorm.design.block_source import sources_of
from anynorm.design.crew import Block, Sums
from anynorm.design.dask_crew import DaskCrew
from tests.dask.conftest import local_cluster
from tests.dask.data import rows

# Workers of so little memory that no rows stay in it, and that nobody ends or stops.
SETTINGS = {
    f"distributed.worker.memory.{k}": False for k in ("target", "spill", "pause", "terminate")
}


def sources(X):
    return sources_of(X, list(np.ravel(X.to_delayed())))


@pytest.fixture
def stored(tmp_path):
    """Rows in a Zarr store, as Dask reads them."""
    X, y = rows(n=3000)
    zarr.save(str(tmp_path / "rows.zarr"), X)
    return X, y, da.from_zarr(str(tmp_path / "rows.zarr")).rechunk((500, -1))


def test_blocks_of_a_store_are_read_again(stored):
    X, _, apart = stored
    found = np.vstack([source() for source in sources(apart + 1.0)])
    np.testing.assert_array_equal(found, X + 1.0)


def test_partitions_of_files_are_read_again(tmp_path):
    frame = pd.DataFrame({"a": np.arange(10.0), "b": np.arange(10) % 2})
    for k in range(2):
        frame[5 * k : 5 * k + 5].to_parquet(tmp_path / f"{k}.parquet")
    found = pd.concat([source() for source in sources(dd.read_parquet(tmp_path))])
    pd.testing.assert_frame_equal(found, frame)


def test_blocks_that_share_their_work_or_come_from_here_are_not(client, stored, tmp_path):
    _, _, apart = stored
    assert sources(apart - apart.mean(axis=0)) is None  # all rows for each
    assert sources(da.from_array(np.ones((4000, 200)), chunks=(1000, -1))) is None
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"] = np.ones((10, 2))
        assert sources(da.from_array(file["X"], chunks=(5, -1))) is None  # is open here alone
    kept, frame = apart.persist(), dd.from_pandas(pd.DataFrame({"a": [1.0]})).persist()
    distributed.wait([kept, frame])  # in the workers' memory already
    assert sources(kept) is None
    assert sources(kept + 1.0) is None
    assert sources(frame.assign(b=2.0)) is None


def held(blocks: list[Block], message: None) -> Sums:
    return Sums(held=sum(block.held for block in blocks))


def test_workers_without_room_read_every_block_again_and_find_the_same(stored, monkeypatch):
    X, y, apart = stored
    models = [
        LinearSVC(C=0.1, tol=1e-5),
        SparseSVC(C=0.1, tol=1e-5),
        ReweightedSVC(C=0.1, n_rounds=2, tol=1e-5, prune=False),
        ReweightedSVCCV(Cs=[0.1], max_rounds=1, cv=3, tol=1e-5),
        BudgetSVC(8, C=0.1, strict=True, tol=1e-5),
    ]
    counts, plain = [], DaskCrew.describe

    def describe(self):
        counts.append(self.ask(held).held)
        return plain(self)

    monkeypatch.setattr(DaskCrew, "describe", describe)
    with (
        dask.config.set(SETTINGS),
        local_cluster(memory_limit="100 MiB") as cluster,
        distributed.Client(cluster),
    ):
        for model in models:
            found = clone(model).fit(apart, y)
            whole = clone(model).fit(X, y)
            assert found.certificate_.status == "optimal"
            primal = whole.certificate_.primal
            assert found.certificate_.primal == pytest.approx(primal, rel=1e-3)
    assert set(counts) == {0}


def test_workers_with_room_read_every_block_once(client, stored, monkeypatch):
    _, y, apart = stored
    counts, plain = [], DaskCrew.describe

    def describe(self):
        counts.append(self.ask(held).held)
        return plain(self)

    monkeypatch.setattr(DaskCrew, "describe", describe)
    LinearSVC(C=0.1, tol=1e-3).fit(apart, y)
    assert counts == [6]
