"""``anynorm fit --scheduler`` and ``--workers``: the same job on a Dask cluster."""

from __future__ import annotations

import pathlib
from typing import Any, NamedTuple

from anynorm.app.job import FitOptions, Fitted, OptionError
from anynorm.app.job.schedule import Doing, Show

_REFUSED = {
    "group": "--group", "text": "--text", "transpose": "--transpose", "labels": "--labels",
}  # fmt: skip


class Cluster(NamedTuple):
    """Where the job is to be done, if not here."""

    scheduler: str | None
    workers: int | None
    timeout: float | None

    @property
    def is_asked_for(self) -> bool:
        """Whether there is to be one."""
        return self.scheduler is not None or self.workers is not None

    def check(self, data: pathlib.Path) -> None:
        """Raise where one is needed, or a time-out is given for nothing."""
        if self.is_asked_for:
            return
        if self.timeout is not None:
            raise OptionError("--worker-timeout goes with --scheduler or --workers.")
        if data.is_dir() or (not data.exists() and set("*?[") & set(data.name)):
            raise OptionError(
                f"{data} is not one file. Folders and patterns of Parquet files are read by a Dask "
                "cluster: --workers N for processes on this machine, or --scheduler ADDRESS."
            )

    def fit(
        self,
        data: pathlib.Path,
        test: pathlib.Path | None,
        reading: dict[str, Any],
        options: FitOptions,
        show: Show,
        began: float,
    ) -> Fitted:
        """Do the job on the cluster; `reading` has the options of `read_table`."""
        from anynorm.app.apart import Asked, connected, dashboard_of, run_fit_apart
        from anynorm.app.apart.models_apart import check_options

        check_options(options)
        for name, option in _REFUSED.items():
            if reading[name]:
                raise OptionError(
                    f"{option} needs all rows in one place; leave it out with --scheduler or "
                    "--workers."
                )
        if reading["format"] not in (None, "parquet"):
            raise OptionError(
                f"--format {reading['format']}: clusters read Parquet files alone. Write them, "
                "e.g. with pandas.DataFrame.to_parquet."
            )
        wanted = Asked(
            data=data,
            target=reading["target"],
            id=reading["id"],
            positive=reading["positive"],
            drop=reading["drop"],
            test=test,
        )
        with connected(self.scheduler, self.workers, self.timeout) as client:
            show(Doing(0.0, "preparing", dashboard_of(client)))
            return run_fit_apart(client, wanted, options, show=show, began=began)
