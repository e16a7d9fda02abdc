"""The main job on rows that live apart: Parquet files, read by the workers of a Dask cluster."""

from anynorm.app.apart.cluster import ClusterError, connected, dashboard_of
from anynorm.app.apart.fit_apart import run_fit_apart
from anynorm.app.apart.reading_apart import Asked

__all__ = ["Asked", "ClusterError", "connected", "dashboard_of", "run_fit_apart"]
