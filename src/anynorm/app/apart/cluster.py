"""A Dask cluster to work on: one that runs, or processes of this machine."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import joblib

from anynorm.app.job.options import OptionError

if TYPE_CHECKING:
    from distributed import Client

_CONNECTING = 30.0  # seconds, at the most, in which a scheduler that is there answers
_INSTALL = "pip install 'anynorm[dask]'"


class ClusterError(ValueError):
    """A cluster that cannot be used, or that has lost its workers; says what to do."""


@contextmanager
def connected(
    scheduler: str | None, workers: int | None, timeout: float | None = None
) -> Iterator[Client]:
    """A client of the scheduler at an address, or of so many processes on this machine.

    Parameters
    ----------
    scheduler : str or None
        Its address, such as ``tcp://host:8786``; None starts processes here.
    workers : int or None
        How many processes; only where no scheduler is named.
    timeout : float or None, default=None
        The seconds that the cluster may be without any worker; None is what the configuration of
        Dask says, a minute unless it was changed.

    Yields
    ------
    distributed.Client
        Whose workers know this package.

    Raises
    ------
    ClusterError, OptionError
        Where there is no such cluster, or its workers are gone for longer than that.
    """
    _check_options(scheduler, workers, timeout)
    try:
        import dask
        import distributed
    except ModuleNotFoundError as error:
        which = "--scheduler" if scheduler is not None else "--workers"
        raise ClusterError(f"{which} needs the package {error.name!r}: {_INSTALL}.") from None
    from anynorm.design.dask_crew import TIMEOUT_KEY, WorkersGone, check_installed, worker_timeout

    given = {} if timeout is None else {TIMEOUT_KEY: f"{timeout:g}s"}
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(given))
        address: Any = scheduler
        if scheduler is None:
            address = stack.enter_context(_processes(workers or 1))
        client = stack.enter_context(_client(address, timeout))
        try:
            try:
                client.wait_for_workers(1, timeout=worker_timeout())
            except TimeoutError:
                raise WorkersGone(worker_timeout()) from None
            check_installed(client)
            yield client
        except WorkersGone as gone:
            raise ClusterError(
                f"the cluster has had no worker for {gone.seconds:g} s. Start some, or wait longer "
                "with --worker-timeout SECONDS."
            ) from None
        except (distributed.KilledWorker, ModuleNotFoundError) as error:
            raise ClusterError(str(error)) from None


def dashboard_of(client: Client) -> str:
    """Where the cluster can be watched, in words; empty where nobody serves that."""
    link = client.dashboard_link
    return "" if not link else f"Dask's dashboard: {link}"


def _check_options(scheduler: str | None, workers: int | None, timeout: float | None) -> None:
    if scheduler is not None and workers is not None:
        raise OptionError(
            "--workers starts processes on this machine, and --scheduler names a cluster that "
            "runs: leave one of them out."
        )
    if workers is not None and workers < 1:
        raise OptionError(f"--workers must be at least 1; got {workers}.")
    if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
        raise OptionError("--worker-timeout must be a number of seconds above 0.")


def _processes(count: int) -> Any:
    """So many workers on this machine, which share its cores and its memory."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=count,
        threads_per_worker=max(1, joblib.cpu_count() // count),
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.ERROR,
    )


@contextmanager
def _client(address: Any, timeout: float | None) -> Iterator[Client]:
    from distributed import Client

    wait = _CONNECTING if timeout is None else min(_CONNECTING, timeout)
    try:
        client = Client(address, timeout=wait)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ClusterError(
            f"--scheduler {address}: no Dask scheduler answers there ({reason}). Start one with "
            "'dask scheduler' and workers with 'dask worker ADDRESS', or use --workers N for ones "
            "on this machine."
        ) from None
    with client:
        yield client
