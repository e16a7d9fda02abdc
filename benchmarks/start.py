"""What the first fit costs: fresh processes, nothing compiled yet, and everything compiled before.

    python -m benchmarks.start [--quick] [--only TEXT] [--repeats 5] [--output FILE]

* The first fit of every estimator with an empty Numba cache, against the first fit of skglm's
  `SparseLogisticRegression` in the same run; scikit-learn's, which compiles nothing, beside them.
* The same with a filled cache, against the second fit in the same process.

Times are those of a user who has imported NumPy, SciPy and scikit-learn, and include the import of
the package that is measured.  All are medians over `repeats` processes, of CPU time.
"""

import argparse
import dataclasses
import functools
import pathlib
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.harness import Row, seconds

SHARE_GOAL = 0.4  # of skglm's first fit
SECONDS_GOAL = 5.0  # for a first fit
WARM_GOAL = 0.3  # seconds more than the second fit, where everything is compiled
AS_INSTALLED = {"PYTHONDONTWRITEBYTECODE": ""}  # modules are not parsed anew in each process
SKGLM, SKLEARN = "skglm SparseLogisticRegression", "scikit-learn SVC"


# ---------------------------------------------------------------- what runs in fresh processes


def data() -> tuple[np.ndarray, np.ndarray]:
    """The breast cancer data, 569 x 30."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), np.where(y > 0, 1, -1)


def peers() -> dict[str, Callable[[np.ndarray, np.ndarray], Any]]:
    """Their first fits, each with its import."""

    def skglm(X: np.ndarray, y: np.ndarray) -> Any:
        from skglm import SparseLogisticRegression

        return SparseLogisticRegression(alpha=0.01).fit(X, y)

    def sklearn(X: np.ndarray, y: np.ndarray) -> Any:
        from sklearn.svm import SVC

        return SVC().fit(X, y)

    return {SKGLM: skglm, SKLEARN: sklearn}


def ours() -> dict[str, Callable[[np.ndarray, np.ndarray], Any]]:
    """The same kinds of fits that `anynorm warm-up` makes."""
    from anynorm.app.first_fits import fits

    return fits()


def first_fit(name: str) -> dict[str, float]:
    """CPU and wall seconds of the first fit in this process, and of the second."""
    import sklearn.svm  # noqa: F401

    warnings.simplefilter("ignore")
    X, y = data()
    clocks = []
    for _ in range(2):
        wall, cpu = time.perf_counter(), time.process_time()
        (peers() if name in (SKGLM, SKLEARN) else ours())[name](X, y)
        clocks.append((time.perf_counter() - wall, time.process_time() - cpu))
    (first_wall, first_cpu), (wall, cpu) = clocks
    return {"first_wall": first_wall, "first_cpu": first_cpu, "wall": wall, "cpu": cpu}


# ---------------------------------------------------------------- rows


@dataclasses.dataclass
class Run:
    """A run with its options."""

    repeats: int
    limit: float

    def measured(self, name: str, *, warm: bool) -> dict[str, Any]:
        """Medians over processes, with an empty cache each or with one that another has filled."""
        trials = []
        with tempfile.TemporaryDirectory() as shared:
            for index in range(self.repeats + warm):
                with tempfile.TemporaryDirectory() as empty:
                    folder = shared if warm else empty
                    trial = harness.call(
                        "benchmarks.start:first_fit",
                        {"name": name},
                        limit=self.limit,
                        environment={"NUMBA_CACHE_DIR": folder, **AS_INSTALLED},
                    )
                if index or not warm:
                    trials.append(trial)
        return {key: statistics.median(trial[key] for trial in trials) for key in trials[0]}

    @functools.cached_property
    def skglm(self) -> dict[str, Any]:
        """What the others are compared with, once in a run."""
        return self.measured(SKGLM, warm=False)

    def cold(self, name: str) -> Row:
        """The first fit with nothing compiled."""
        found = self.measured(name, warm=False)
        long = "" if found["first_cpu"] <= SECONDS_GOAL else f", over {SECONDS_GOAL:g} s"
        return Row(
            work=f"first fit, empty cache: {name}",
            ours=seconds(found["first_cpu"]),
            other=f"{SKGLM} {seconds(self.skglm['first_cpu'])}",
            ratio=found["first_cpu"] / self.skglm["first_cpu"],
            sense="<=",
            bound=None if name == SKLEARN else SHARE_GOAL,
            note=f"wall {seconds(found['first_wall'])}{long}",
            details={"ours": found, "skglm": self.skglm},
        )

    def warm(self, name: str) -> Row:
        """The first fit with everything compiled."""
        found = self.measured(name, warm=True)
        return Row(
            work=f"first fit, filled cache: {name}",
            ours=seconds(found["first_cpu"]),
            other=f"the second {seconds(found['cpu'])}",
            ratio=found["first_cpu"] - found["cpu"],
            sense="<=",
            bound=WARM_GOAL,
            unit="s more",
            note=f"wall {seconds(found['first_wall'])}",
            details={"ours": found},
        )


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The rows."""
    run = Run(1 if options.quick else options.repeats, options.limit)
    names = list(ours())
    return [
        *((f"cold {name}", functools.partial(run.cold, name)) for name in [SKLEARN, *names]),
        *((f"warm {name}", functools.partial(run.warm, name)) for name in names),
    ]


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the rows asked for."""
    packages = ["numpy", "scipy", "scikit-learn", "numba", "skglm"]
    return harness.command("start", __doc__, prepare, packages, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
