"""Models of at most B support vectors: how right they are, what they take, how fast they predict.

    python -m benchmarks.small [--quick] [--only TEXT [--record]] [--repeats 1] [--output FILE]

* Accuracy on held-out rows of `BudgetSVC(B, strict=True)` and of four other ways to B kernel
  functions: random rows with scikit-learn's Nystroem and LinearSVC; the greedy rows of an
  incomplete Cholesky factor, or the centres of k-means, with the same LinearSVC; and the 1-norm
  path over the kernel's columns.  Gamma is that which `SVCCV` chooses for the SVM without a
  budget, on the training rows.  So few kernel functions are a restriction of their own, and a
  larger C than without a budget may suit them: each way chooses between that C and the next of
  the grid, and the 1-norm path its place, by the same quarter of the training rows.  Where that
  path breaks down (a joint with a gap of more than 1e-3), single fits by C stand for it.
  The real tables need ANYNORM_DATA.  A row for each table, one for all of them together, and one
  for what the budget costs on the first.  A table takes five to fifteen minutes: they can be run
  one by one, `--only "accuracy a9a" --record`, and `--only together --record` then adds them up.
* A million rows against Nystroem and LinearSVC with the same kernel and the same C.
* Seconds of prediction by B.
"""

import argparse
import dataclasses
import functools
import math
import os
import pathlib
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import harness, report
from benchmarks.generators import Data, curved_boundary, skewed_table
from benchmarks.harness import Row, seconds

RECORDED = harness.RESULTS / "small.json"
COUNTS = (25, 50, 150)
SPLITS = 20
STEPS = (1.0, math.sqrt(10.0))  # from the C without a budget: to itself, and to the next one
TABLES = ("spam-like", "ida_banana", "ida_image", "ida_waveform", "a9a")
GENERATED = {"spam-like": 1.05, "skewed": 0.5}  # by their strength: 93.5 and 79 % without a budget
SOUND = 1e-3  # gap of a path's joints
DICTIONARY_CS = np.geomspace(1e-2, 1e2, 17)  # four to a decade
COSTS = (1.5, 0.5, 0.0)  # points below no budget: 92 / 93 / 93.5 % where that has 93.5 %
NEAR = -1.0  # standard errors of the difference: as good as the best of the others
PROPORTIONAL = 1.25  # times what B alone would ask for


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The data of a run."""

    tables: tuple[str, ...]
    counts: tuple[int, ...]
    n_train: int
    n_test: int
    large: Data
    large_budget: int
    predicted: int
    prediction_budgets: tuple[int, int]


FULL = Sizes(TABLES, COUNTS, 1500, 3000, Data("curved", 1_000_000, 20, 0), 200, 100_000, (50, 400))
QUICK = Sizes(("skewed",), (10, 20), 150, 200, Data("curved", 3000, 20, 0), 20, 2000, (10, 40))


def table(name: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """At most n rows of a table in a random order, and their labels 1 and -1."""
    if name in GENERATED:
        return skewed_table(n, 57, seed=seed, strength=GENERATED[name])
    from anynorm.datasets import load_dataset

    X, y = load_dataset(name, dtype=np.float64, return_X_y=True)
    rows = np.random.default_rng(seed).permutation(X.shape[0])[:n]
    dense = X[rows].toarray() if hasattr(X, "toarray") else X[rows]
    return dense, np.where(y[rows] == y.max(), 1.0, -1.0)


# ---------------------------------------------------------------- what runs in fresh processes


def accuracies(
    name: str, seed: int, n_train: int, n_test: int, counts: list[int]
) -> dict[str, Any]:
    """Shares of held-out rows that are right, by way and B."""
    from sklearn.preprocessing import StandardScaler

    from anynorm import SVCCV

    X, y = table(name, n_train + n_test, seed)
    n_train = min(n_train, len(y) // 2)
    scaler = StandardScaler().fit(X[:n_train])
    X = scaler.transform(X)
    train, test = (X[:n_train], y[:n_train]), (X[n_train:], y[n_train:])
    search = SVCCV(np.geomspace(0.1, 1e3, 9), cv=5).fit(*train)  # a step is STEPS[1]
    kernel = Kernel(float(search.C_), float(search.gamma_))
    found = {way: WAYS[way](kernel, train, test, counts, seed) for way in WAYS}
    return {
        **found,
        "no budget": float(search.score(*test)),
        "n_support": len(search.support_),
        "n_test": len(test[1]),
    }


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The Gaussian kernel and C of the SVM without a budget."""

    C: float
    gamma: float


Rows = tuple[np.ndarray, np.ndarray]


def of_better_C(
    way: Callable[[Kernel, Rows, Rows, int, int], float],
) -> Callable[[Kernel, Rows, Rows, list[int], int], list[float]]:
    """A way for several budgets, each with the C that is better on a quarter of the rows."""

    def accuracies_of(
        kernel: Kernel, train: Rows, test: Rows, counts: list[int], seed: int
    ) -> list[float]:
        part, held = quartered(train, seed)
        kernels = [dataclasses.replace(kernel, C=step * kernel.C) for step in STEPS]
        found = []
        for B in counts:
            tried = [way(each, part, held, B, seed) for each in kernels]
            found.append(way(kernels[int(np.argmax(tried))], train, test, B, seed))
        return found

    return accuracies_of


def quartered(train: Rows, seed: int) -> tuple[Rows, Rows]:
    """Three quarters of the training rows, and the last one, by which all ways choose."""
    n = len(train[1])
    held = np.random.default_rng(seed).permutation(n) < n // 4
    return (train[0][~held], train[1][~held]), (train[0][held], train[1][held])


def strict(kernel: Kernel, train: Rows, test: Rows, count: int, seed: int) -> float:
    """Ours."""
    from anynorm import BudgetSVC

    model = BudgetSVC(count, C=kernel.C, gamma=kernel.gamma, strict=True, random_state=seed)
    return float(model.fit(*train).score(*test))


def random_rows(kernel: Kernel, train: Rows, test: Rows, count: int, seed: int) -> float:
    """scikit-learn's features of random rows and its linear SVM."""
    return float(nystroem(kernel, count, seed).fit(*train).score(*test))


def nystroem(kernel: Kernel, count: int, seed: int) -> Any:
    """The pipeline of scikit-learn for a function in the span of random rows."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    features = Nystroem(gamma=kernel.gamma, n_components=count, random_state=seed)
    return make_pipeline(features, linear_svm(kernel))


def linear_svm(kernel: Kernel) -> Any:
    """scikit-learn's linear SVM with its own defaults but for C."""
    from sklearn.svm import LinearSVC

    return LinearSVC(C=kernel.C, max_iter=10_000)


def greedy_rows(kernel: Kernel, train: Rows, test: Rows, count: int, seed: int) -> float:
    """The pivots of a Cholesky factor, largest rest first, and the same linear SVM."""
    from sklearn.metrics.pairwise import rbf_kernel

    pivots = cholesky_pivots(rbf_kernel(train[0], gamma=kernel.gamma), count)
    return spanned(kernel, train[0][pivots], train, test)


def centres(kernel: Kernel, train: Rows, test: Rows, count: int, seed: int) -> float:
    """The centres of scikit-learn's k-means, which need not be rows, and the same linear SVM."""
    from sklearn.cluster import KMeans

    found = KMeans(count, n_init=1, random_state=seed).fit(train[0])
    return spanned(kernel, found.cluster_centers_, train, test)


def spanned(kernel: Kernel, points: np.ndarray, train: Rows, test: Rows) -> float:
    """The accuracy of the linear SVM over the features of some points."""
    from sklearn.metrics.pairwise import rbf_kernel

    values, vectors = np.linalg.eigh(rbf_kernel(points, gamma=kernel.gamma))
    root = vectors / np.sqrt(np.maximum(values, 1e-12))
    Z, Z_test = (rbf_kernel(X, points, gamma=kernel.gamma) @ root for X, _ in (train, test))
    return float(linear_svm(kernel).fit(Z, train[1]).score(Z_test, test[1]))


def cholesky_pivots(K: np.ndarray, count: int) -> np.ndarray:
    """The rows that an incomplete Cholesky factor with complete pivoting takes."""
    rest, factor = K.diagonal().copy(), np.zeros((len(K), count))
    pivots = np.zeros(count, dtype=np.intp)
    for k in range(count):
        pivots[k] = rest.argmax()
        column = K[:, pivots[k]] - factor[:, :k] @ factor[pivots[k], :k]
        factor[:, k] = column / math.sqrt(rest[pivots[k]])
        rest -= factor[:, k] ** 2
        rest[pivots[: k + 1]] = 0.0
    return pivots


def dictionary(
    kernel: Kernel, train: Rows, test: Rows, counts: list[int], seed: int
) -> list[float]:
    """The 1-norm path over the kernel's columns, where at most B of them were best.

    The end of a path with so many columns is often far beyond: how many are used is chosen by a
    quarter of the rows, from a path over the others.
    """
    most = max(counts)
    tried = path_shares(kernel, *quartered(train, seed), most)
    shares = path_shares(kernel, train, test, most)
    return [shares[int(np.argmax(tried[: B + 1]))] for B in counts]


def path_shares(kernel: Kernel, train: Rows, test: Rows, most: int) -> list[float]:
    """Shares of test rows that the 1-norm path has right where it uses 0, 1, ... columns.

    Columns of a wide kernel are next to equal, and some paths break down: they are replaced by
    fits of their own, the one of the most columns that are allowed.
    """
    from sklearn.metrics.pairwise import rbf_kernel

    from anynorm import SparseSVC, sparse_svm_path

    K, K_test = (rbf_kernel(X, train[0], gamma=kernel.gamma) for X in (train[0], test[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # which is what we look at
        path = sparse_svm_path(K, train[1], max_features=most)
        if path.gaps.max() <= SOUND:
            found = [path.coef_at(n_features=count) for count in range(most + 1)]
            return [float(np.mean(test[1] * (K_test @ coef + bias) > 0)) for coef, bias in found]
        shares = [float(np.mean(test[1] == np.sign(train[1].sum())))] * (most + 1)
        for C in DICTIONARY_CS:
            fit = SparseSVC(C, tol=SOUND).fit(K, train[1])
            used = np.count_nonzero(fit.coef_)
            if fit.certificate_.gap <= 10 * SOUND and used <= most:
                shares[used:] = [float(fit.score(K_test, test[1]))] * (most + 1 - used)
    return shares


OURS = "strict"
WAYS: dict[str, Callable[..., list[float]]] = {
    OURS: of_better_C(strict),
    "random rows": of_better_C(random_rows),
    "greedy rows": of_better_C(greedy_rows),
    "k-means": of_better_C(centres),
    "dictionary": dictionary,
}


OTHERS = [way for way in WAYS if way != OURS]


def large_ours(data: dict[str, Any], budget: int) -> dict[str, Any]:
    """One fit of ours to many rows."""
    from anynorm import BudgetSVC

    gamma = 1.0 / data["p"]
    model = BudgetSVC(budget, C=1.0, gamma=gamma, strict=True, random_state=0)
    found = _large_fit(model, data)
    return {**found, "gap": float(model.certificate_.gap)}


def large_peer(data: dict[str, Any], budget: int) -> dict[str, Any]:
    """One fit of Nystroem and a linear SVM to the same rows."""
    return {**_large_fit(nystroem(Kernel(1.0, 1.0 / data["p"]), budget, 0), data), "gap": None}


def _large_fit(model: Any, data: dict[str, Any]) -> dict[str, Any]:
    """CPU seconds, and the accuracy on as many held-out rows as a tenth."""
    size = Data(**data)
    n_test = size.n // 10
    X, y = curved_boundary(size.n + n_test, size.p, seed=size.seed)
    timing, _ = harness.timed(lambda: model.fit(X[: size.n], y[: size.n]), repeats=0)
    return {"cpu": timing.cpu, "score": float(model.score(X[size.n :], y[size.n :]))}


def prediction_ours(rows: int, budgets: list[int], repeats: int) -> list[dict[str, Any]]:
    """Time the scores of the same rows by models of different budgets."""
    from anynorm import BudgetSVC

    X, y = curved_boundary(3000, 20)
    X_new, _ = curved_boundary(rows, 20, seed=1)
    found = []
    for B in budgets:
        model = BudgetSVC(B, strict=True, random_state=0).fit(X, y)
        timing, _ = harness.timed(
            functools.partial(model.decision_function, X_new), repeats=repeats
        )
        found.append({**dataclasses.asdict(timing), "n_support": len(model.support_)})
    return found


# ---------------------------------------------------------------- the rows


class Run:
    """One run of the benchmark."""

    def __init__(self, sizes: Sizes, repeats: int, limit: float) -> None:
        self.sizes, self.repeats, self.limit = sizes, repeats, limit
        self._drawn: dict[str, list[dict[str, Any]]] = {}

    def draws(self, name: str) -> list[dict[str, Any]]:
        """The shares of a table, draw by draw: of this run, or those recorded, or else made now."""
        if name not in self._drawn:
            known = [row for row in report.recorded(RECORDED) if row.work == self._work(name)]
            self._drawn[name] = (known[0] if known else self.accuracy(name)).details["draws"]
        return self._drawn[name]

    def _work(self, name: str) -> str:
        return f"accuracy, {name}, B = {_listed(self.sizes.counts)}"

    def _call(self, function: str, **given: Any) -> Any:
        return harness.call(f"benchmarks.small:{function}", given, limit=self.limit)

    def accuracy(self, name: str) -> Row:
        """Ours against the best of the others, B by B, over several draws of the rows."""
        sizes = self.sizes
        given = {"name": name, "n_train": sizes.n_train, "n_test": sizes.n_test}
        draws = [
            self._call("accuracies", **given, counts=list(sizes.counts), seed=seed)
            for seed in range(SPLITS)
        ]
        self._drawn[name] = draws
        shares, others = _shares(draws), OTHERS
        distance, over_draws = (
            np.array([_in_errors(shares[OURS], shares[way], n_test) for way in others])
            for n_test in (draws[0]["n_test"], math.inf)
        )
        return Row(
            work=self._work(name),
            ours=_percent(shares[OURS].mean(axis=0)),
            other="; ".join(f"{way} {_percent(shares[way].mean(axis=0))}" for way in others),
            ratio=float(distance.min()),
            bound=NEAR,
            unit="standard errors",
            note=f"no budget {100 * np.mean([draw['no budget'] for draw in draws]):.1f} % with "
            f"{np.mean([draw['n_support'] for draw in draws]):.0f} support vectors; "
            f"{len(draws)} draws; {_below(distance)}; in errors over the draws alone "
            f"{_below(over_draws)}, the worst {over_draws.min():.2f}",
            details={"draws": draws},
        )

    def together(self) -> Row:
        """The tables' averages of the differences, with their standard errors."""
        draws = [self.draws(name) for name in self.sizes.tables]
        shares = [_shares(of_table) for of_table in draws]
        means = {way: np.mean([each[way].mean(axis=0) for each in shares], axis=0) for way in WAYS}
        ahead = {way: means[OURS] - means[way] for way in OTHERS}
        errors = {
            way: np.sqrt(
                np.sum(
                    [
                        _standard_error(each[OURS], each[way], of_table[0]["n_test"]) ** 2
                        for each, of_table in zip(shares, draws, strict=True)
                    ],
                    axis=0,
                )
            )
            / len(draws)
            for way in OTHERS
        }
        distance = np.array([ahead[way] / errors[way] for way in OTHERS])
        return Row(
            work=f"accuracy, the {len(draws)} tables together, B = {_listed(self.sizes.counts)}",
            ours=_percent(means[OURS]),
            other="; ".join(f"{way} {_percent(means[way])}" for way in OTHERS),
            ratio=float(distance.min()),
            bound=NEAR,
            unit="standard errors",
            note="points ahead (standard error) of "
            + "; ".join(f"{way} {_with_errors(ahead[way], errors[way])}" for way in OTHERS),
        )

    def cost(self) -> Row:
        """How far a budget may be below none, and is, on the first of the tables."""
        name = self.sizes.tables[0]
        draws = self.draws(name)
        ours = _shares(draws)[OURS].mean(axis=0)
        without = float(np.mean([draw["no budget"] for draw in draws]))
        allowed = COSTS[: len(ours)]
        return Row(
            work=f"cost of a budget, {name}, B = {_listed(self.sizes.counts)}",
            ours=_percent(ours),
            other=f"no budget {100 * without:.1f} %, less {_listed(allowed)} points",
            ratio=float((100 * (ours - without) + allowed).min()),
            bound=0.0,
            unit="points",
        )

    def large(self) -> Row:
        """Many rows: points of accuracy over Nystroem, and the time of both."""
        data, budget = self.sizes.large, self.sizes.large_budget
        given = {"data": dataclasses.asdict(data), "budget": budget}
        mine, theirs = (self._call(function, **given) for function in ("large_ours", "large_peer"))
        return Row(
            work=f"fit, {data}, B = {budget}",
            ours=f"{seconds(mine['cpu'])}, {100 * mine['score']:.1f} % (gap {mine['gap']:.1e})",
            other=f"Nystroem + LinearSVC {seconds(theirs['cpu'])}, {100 * theirs['score']:.1f} %",
            ratio=100 * (mine["score"] - theirs["score"]),
            bound=0.0,
            unit="points",
            note=f"{mine['cpu'] / theirs['cpu']:.2f} times its time",
            details={"ours": mine, "Nystroem + LinearSVC": theirs},
        )

    def prediction(self) -> Row:
        """The time of prediction per support vector, the larger budget against the smaller."""
        sizes = self.sizes
        few, many = self._call(
            "prediction_ours",
            rows=sizes.predicted, budgets=list(sizes.prediction_budgets), repeats=self.repeats,
        )  # fmt: skip
        return Row(
            work=f"prediction, {sizes.predicted:,} rows, {many['n_support']} support vectors",
            ours=seconds(many["cpu"]),
            other=f"{few['n_support']} support vectors {seconds(few['cpu'])}",
            ratio=(many["cpu"] / few["cpu"]) / (many["n_support"] / few["n_support"]),
            sense="<=",
            bound=PROPORTIONAL,
            note="times per support vector",
            details={"few": few, "many": many},
        )

    def jobs(self) -> harness.Jobs:
        """Every row by its name; the real tables where they are."""
        here = [
            name for name in self.sizes.tables if name in GENERATED or "ANYNORM_DATA" in os.environ
        ]
        jobs: list[tuple[str, Callable[[], Row]]] = [
            (f"accuracy {name}", functools.partial(self.accuracy, name)) for name in here
        ]
        if len(here) == len(self.sizes.tables):
            jobs += [("together", self.together), ("cost", self.cost)]
        jobs += [("large", self.large), ("prediction", self.prediction)]
        return [(title, harness.in_time(self.limit, title, None, job)) for title, job in jobs]


def _shares(draws: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Shares of held-out rows that are right, a row for each draw and a column for each B."""
    return {way: np.array([draw[way] for draw in draws]) for way in WAYS}


def _in_errors(ours: np.ndarray, other: np.ndarray, n_test: float) -> np.ndarray:
    """How far ours is ahead, B by B, in standard errors of the difference."""
    return (ours - other).mean(axis=0) / _standard_error(ours, other, n_test)


def _standard_error(ours: np.ndarray, other: np.ndarray, n_test: float) -> np.ndarray:
    """That of the difference: over the draws, or what the number of held-out rows alone brings."""
    over_draws = (ours - other).std(axis=0, ddof=1) / math.sqrt(len(ours))
    share = ours.mean(axis=0)
    of_rows = np.sqrt(share * (1 - share) / (n_test * len(ours)))
    return np.maximum(np.maximum(over_draws, of_rows), np.finfo(float).tiny)


def _below(distance: np.ndarray) -> str:
    """How many comparisons are further behind than the goal: by chance some of many are."""
    return f"{np.count_nonzero(distance < NEAR)} of {distance.size} below {NEAR:g}"


def _listed(values: Sequence[float]) -> str:
    return " / ".join(f"{value:g}" for value in values)


def _with_errors(points: np.ndarray, errors: np.ndarray) -> str:
    pairs = zip(100 * points, 100 * errors, strict=True)
    return " / ".join(f"{point:.2f} ({error:.2f})" for point, error in pairs)


def _percent(shares: np.ndarray) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares) + " %"


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The rows of the size asked for."""
    return Run(QUICK if options.quick else FULL, min(options.repeats, 5), options.limit).jobs()


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the rows asked for."""
    packages = ["numpy", "scipy", "scikit-learn", "numba"]
    return harness.command("small", __doc__, prepare, packages, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
