"""Kernel machines on a GPU against scikit-learn's SVC, our own fits in memory, and TorchKM.

    python -m benchmarks.gpu [--quick] [--only TEXT] [--device cuda] [--peer-rows 20000]

All sides run on one machine in one run, one after the other, each after a first small fit.  Beside
every time stands its gap: that of the certificate for ours, and for a peer how far its objective,
computed by us in float64, is above our certified lower bound.  `--quick` has small data, and
`--device cpu` PyTorch without a GPU: to see that the script works, no more.
"""

import argparse
import importlib
import importlib.util
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import generators

TORCH_CS, TORCH_FOLDS, TORCH_RANGE = 50, 10, (1e-3, 1e3)
SCORED_ROWS = 4096  # of a block whose product gives the device's rate


class Side(NamedTuple):
    """One side of a row: its name, its seconds, and the gap of what it found."""

    name: str
    seconds: float
    gap: float

    def __str__(self) -> str:
        return f"{self.name} {self.seconds:.3g} s (gap {self.gap:.1e})"


class Bench:
    """The rows, for one device."""

    def __init__(self, device: str, quick: bool, peer_rows: int) -> None:
        self.torch = importlib.import_module("torch")
        self.device, self.quick, self.peer_rows = device, quick, peer_rows

    # ------------------------------------------------------------ what rows share

    def there(self, values: np.ndarray) -> Any:
        return self.torch.asarray(values, device=self.device)

    def wait(self) -> None:
        if self.device.startswith("cuda"):
            self.torch.cuda.synchronize()

    def timed(self, task: Callable[[], Any]) -> tuple[float, Any]:
        self.wait()
        began = time.perf_counter()
        found = task()
        self.wait()
        return time.perf_counter() - began, found

    def cache(self, n: int) -> float:
        """Megabytes for kernel rows: all of them, or half of what is left."""
        from anynorm.design.device import DevicePlace

        left = DevicePlace.of(self.torch.zeros(1, device=self.device)).bytes_left()
        return min(0.5 * left, 4.2 * n * n + 1e6) / 2**20

    def size(self, full: int, small: int) -> int:
        return small if self.quick else full

    def fit(self, model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Side, Any]:
        """Ours on the device, rows in float32."""
        narrow, labels = self.there(X.astype(np.float32)), self.there(y.astype(np.int64))
        type(model)(**model.get_params()).fit(narrow[:500], labels[:500])
        seconds, found = self.timed(lambda: model.fit(narrow, labels))
        return Side(f"on {self.device}", seconds, found.certificate_.gap), found

    def in_memory(self, model: Any, X: np.ndarray, y: np.ndarray) -> Side:
        """Ours with all cores."""
        model = type(model)(**model.get_params() | {"n_jobs": -1})
        type(model)(**model.get_params()).fit(X[:500], y[:500])
        seconds, found = self.timed(lambda: model.fit(X, y))
        return Side("in memory, all cores", seconds, found.certificate_.gap)

    def libsvm(self, X: np.ndarray, y: np.ndarray, C: float, bound: float) -> Side | None:
        """scikit-learn's SVC at its default tolerance, where it is not hopeless."""
        from sklearn.svm import SVC

        from anynorm.kernels.gram import Gram

        if len(y) > self.peer_rows:
            return None
        seconds, model = self.timed(lambda: SVC(C=C, cache_size=2000).fit(X, y))
        beta = np.zeros(len(y))
        beta[model.support_] = model.dual_coef_[0]
        scores = Gram.rbf(X, model._gamma).matvec(beta)
        slacks = np.maximum(0.0, 1.0 - y * (scores + model.intercept_[0]))
        primal = 0.5 * float(beta @ scores) + C * float(slacks.sum())
        return Side("scikit-learn SVC", seconds, (primal - bound) / primal)

    def say(self, work: str, goal: str, ours: Side, *others: Side | None) -> None:
        print(f"{work}\n    {ours}; goal: {goal}")
        for other in others:
            if other is not None:
                print(f"    {other}: {other.seconds / ours.seconds:.1f} x ours")

    # ------------------------------------------------------------ the rows

    def rbf(self, n: int, p: int, C: float, tol: float, goal: str) -> None:
        from anynorm import SVC

        X, y = generators.curved_boundary(n, p)
        model = SVC(C=C, tol=tol, cache_size=self.cache(n))
        ours, found = self.fit(model, X, y)
        memory = self.in_memory(SVC(C=C, tol=tol), X, y) if n <= 40_000 else None
        peer = self.libsvm(X, y, C, found.certificate_.dual)
        self.say(f"RBF, {n} x {p}, C = {C:g}, gap {tol:g}", goal, ours, peer, memory)

    def ten_classes(self) -> None:
        from anynorm import SVC

        n, p = self.size(60_000, 600), self.size(784, 40)
        rng = np.random.default_rng(0)
        centres = rng.random((10, p)) * (rng.random((10, p)) < 0.25)
        y = rng.integers(0, 10, n)
        X = 0.75 * centres[y] + 0.5 * rng.random((n, p)) * (rng.random((n, p)) < 0.2)
        ours, _ = self.fit(SVC(C=1.0, tol=1e-3, cache_size=self.cache(n)), X, y)
        self.say(f"ten classes, {n} x {p}, gap 1e-3", "under 20 s", ours)

    def search(self, p: int) -> None:
        from anynorm import SVCCV

        n = self.size(10_000, 300)
        Cs = np.geomspace(*TORCH_RANGE, self.size(TORCH_CS, 5))
        folds = self.size(TORCH_FOLDS, 3)
        X, y = generators.digit_like(n, p) if p > 100 else generators.curved_boundary(n, p)
        gamma = float(1 / (p * X.var()))
        model = SVCCV(Cs, gammas=[gamma], cv=folds, tol=1e-3, stop_early=False)
        model.set_params(cache_size=self.cache(n))
        X32, labels = self.there(X.astype(np.float32)), self.there(y.astype(np.int64))
        seconds, found = self.timed(lambda: model.fit(X32, labels))
        ours = Side(f"on {self.device}", seconds, float(np.nanmax(found.cv_results_["max_gap"])))
        peer = self.torchkm(X, y, Cs, folds, gamma, found)
        work = f"{folds}-fold CV x {len(Cs)} values of C, {n} x {p}"
        self.say(work, "a third of TorchKM's time", ours, peer)

    def torchkm(
        self, X: np.ndarray, y: np.ndarray, Cs: np.ndarray, folds: int, gamma: float, ours: Any
    ) -> Side | None:
        if importlib.util.find_spec("torchkm") is None:
            return None
        from anynorm import SVC
        from anynorm.kernels.gram import Gram

        TorchKMSVC = importlib.import_module("torchkm.estimators").TorchKMSVC
        # its kernel is exp(-2 sigma ||x - z||^2)
        model = TorchKMSVC(
            kernel="rbf", Cs=Cs[::-1].copy(), nC=len(Cs), cv=folds, device=self.device,
            rbf_sigma=gamma / 2, store_path=True, max_iter=100_000,
        )  # fmt: skip
        seconds, _ = self.timed(lambda: model.fit(X, y))
        path = np.asarray(model.alpmat_path_, dtype=np.float64)
        k = int(np.argmin(np.abs(Cs[::-1] - ours.C_)))  # at the C that our search chose
        scores = Gram.rbf(X, gamma).matvec(path[1:, k])
        slacks = np.maximum(0.0, 1.0 - y * (scores + path[0, k]))
        primal = 0.5 * float(path[1:, k] @ scores) + Cs[::-1][k] * float(slacks.sum())
        bound = SVC(C=Cs[::-1][k], gamma=gamma, tol=1e-4, n_jobs=-1).fit(X, y).certificate_.dual
        return Side(f"TorchKM (its gap at C = {Cs[::-1][k]:.2g})", seconds, primal / bound - 1.0)

    def least_squares(self) -> None:
        from anynorm import LeastSquaresSVC
        from anynorm.kernels.gram import Gram

        n = self.size(50_000, 2000)
        X, y = generators.curved_boundary(n, 20)
        X = X.astype(np.float32).astype(np.float64)  # what the device gets
        gamma = float(1 / (20 * X.var()))
        model = LeastSquaresSVC(C=1.0, gamma=gamma, solver="cg", tol=3e-12)
        model.set_params(cache_size=self.cache(n))
        ours, found = self.fit(model, X, y)
        beta = np.zeros(n)
        beta[found.support_.cpu().numpy()] = found.dual_coef_.cpu().numpy()[0]
        rows = np.arange(0, n, max(1, n // 2000))
        scores = Gram.rbf(X, gamma).matvec(beta, rows) + float(found.intercept_[0])
        left = np.linalg.norm(scores + beta[rows] / 2.0 - y[rows]) / np.linalg.norm(y[rows])
        self.say(f"LS-SVM, {n} rows, relative residual {left:.1e}", "1e-6 in under 10 s", ours)

    def prediction(self) -> None:
        from anynorm import SVC

        n, m, p = self.size(100_000, 4000), self.size(20_000, 1000), self.size(100, 20)
        X, y = generators.curved_boundary(n, p)
        train, labels = X[:m].astype(np.float32), y[:m].astype(np.int64)
        model = SVC(C=1e-3, tol=1e-1, cache_size=self.cache(m))
        model.fit(self.there(train), self.there(labels))
        rows = self.there(X.astype(np.float32))
        model.decision_function(rows)
        seconds = min(self.timed(lambda: model.decision_function(rows))[0] for _ in range(3))
        used = len(model.support_)
        block, other = rows[:SCORED_ROWS], model.support_vectors_
        count = max(1, n // SCORED_ROWS)
        product = min(
            self.timed(lambda: [block @ other.T for _ in range(count)])[0] for _ in range(3)
        )
        rate = 2.0 * n * used * p / seconds
        most = 2.0 * count * block.shape[0] * used * p / product
        print(
            f"prediction, {n} rows x {used} support vectors, p = {p}\n    on {self.device} "
            f"{seconds:.3g} s, {rate / 1e12:.2f} Tflop/s; goal: half of the float32 products' "
            f"{most / 1e12:.2f}: {rate / most:.2f} of it"
        )

    def rows(self) -> dict[str, Callable[[], None]]:
        small = self.quick
        return {
            "rbf 20000": lambda: self.rbf(
                self.size(20_000, 1500), 50, 1.0, 1e-3, "20 x scikit-learn, 5 x ours in memory"
            ),
            "rbf 40000": lambda: self.rbf(self.size(40_000, 1500), 20, 100.0, 1e-3, "under 8 s"),
            "rbf 100000": lambda: self.rbf(self.size(100_000, 2000), 100, 1.0, 1e-3, "under 6 s"),
            "rbf 500000": lambda: self.rbf(self.size(500_000, 2500), 100, 1.0, 1e-2, "under 120 s"),
            "ten classes": self.ten_classes,
            "search wide": lambda: self.search(50 if small else 1000),
            "search narrow": lambda: self.search(20),
            "least squares": self.least_squares,
            "prediction": self.prediction,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--peer-rows", type=int, default=20_000)
    asked = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        raise SystemExit("bench-gpu needs PyTorch: .venv/bin/pip install torch")
    bench = Bench(asked.device, asked.quick, asked.peer_rows)
    if asked.device.startswith("cuda") and not bench.torch.cuda.is_available():
        raise SystemExit(
            "PyTorch finds no CUDA device. ARGS='--quick --device cpu' runs small data without one."
        )
    name = bench.torch.cuda.get_device_name() if asked.device.startswith("cuda") else asked.device
    print(f"{name}, PyTorch {bench.torch.__version__}{', small data' * asked.quick}")
    for name, row in bench.rows().items():
        if asked.only in name:
            row()


if __name__ == "__main__":
    main()
