"""A real cluster: two processes on this machine.  `make test-dask` installs Dask."""

import pytest

distributed = pytest.importorskip("distributed", reason="make test-dask installs Dask")


def local_cluster(**options):
    """Two worker processes, without a dashboard."""
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, **options
    )


@pytest.fixture(scope="session")
def session_client():
    with local_cluster() as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def client(session_client):
    """The cluster as the place where collections are computed; no other test sees it."""
    with session_client.as_current():
        yield session_client


@pytest.fixture
def own_client():
    """A cluster that a test may damage."""
    with local_cluster() as cluster, distributed.Client(cluster) as client:
        yield client
