"""The walk from the 2-norm to the 1-norm SVM against what it replaces.

    python -m benchmarks.walk [--quick] [--only TEXT] [--repeats 5] [--output FILE]

* Three rounds on sparse text-like data, against one 2-norm fit of ours.
* Ten rounds on gene data, against ten cold liblinear fits on rescaled copies.  No bias on either
  side, so that both solve the same problems.  The gap of each of the peer's rounds is computed
  here, from its coefficients and a dual point of a tight fit; it runs at the loosest tolerance
  with which all ten reach the gap wanted.  Looking for that tolerance is not timed.
* The whole table of C and rounds by cross-validation, against a grid search for C alone, both
  sides with their default tolerances, on tables and texts of many shapes.
"""

import argparse
import dataclasses
import functools
import pathlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import generators, harness
from benchmarks.harness import Row, measured, seconds
from benchmarks.peers.linear import PEERS

GAP = 1e-4
TEXT_GOAL, GENES_GOAL, TABLE_GOAL = 1.5, 10.0, 5.0
SHAPE_GOAL = 0.5  # times as fast as the grid search for C, at any shape
N_ROUNDS = 10
N_CS, N_FOLDS = 10, 5


# ---------------------------------------------------------------- what runs in fresh processes


def text_ours(folder: str, n_rounds: int, C: float, repeats: int) -> dict[str, Any]:
    """Time three rounds of the walk, or one fit of LinearSVC where `n_rounds` is 1."""
    from anynorm import LinearSVC, ReweightedSVC

    X, y = generators.load(pathlib.Path(folder), "text")
    model: Any = LinearSVC(C, tol=GAP)
    if n_rounds > 1:
        model = ReweightedSVC(C, n_rounds=n_rounds, tol=GAP)
    timing, fitted = harness.timed(lambda: model.fit(X, y), repeats=repeats)
    gaps = [fitted.certificate_.gap]
    if n_rounds > 1:
        gaps = [record.certificate.gap for record in fitted.history_]
    used = int(np.count_nonzero(fitted.coef_))
    return {**dataclasses.asdict(timing), "gap": max(gaps), "n_nonzero": used}


def walk_ours(folder: str, C: float, repeats: int) -> dict[str, Any]:
    """Time ten rounds of ReweightedSVC on the gene data."""
    from anynorm import ReweightedSVC

    X, y = generators.load(pathlib.Path(folder), "genes")
    model = ReweightedSVC(C, n_rounds=N_ROUNDS, tol=GAP, fit_intercept=False)
    timing, fitted = harness.timed(lambda: model.fit(X, y), repeats=repeats)
    return {
        **dataclasses.asdict(timing),
        "gap": max(record.certificate.gap for record in fitted.history_),
        "objective": fitted.history_[-1].objective,
        "n_nonzero": int(fitted.history_[-1].n_nonzero),
    }


def walk_liblinear(folder: str, C: float, repeats: int) -> dict[str, Any]:
    """Time ten cold fits of scikit-learn's LinearSVC, each on a rescaled copy of the data."""
    X, y = generators.load(pathlib.Path(folder), "genes")
    trials = {}
    for tol in PEERS["scikit-learn"].tols:
        trials[tol] = max(
            inner_gap(X, y, C, scale, coef) for scale, coef in liblinear_rounds(X, y, C, tol)
        )
        if trials[tol] <= GAP:
            break
    tol = min(trials, key=lambda key: trials[key])
    timing, rounds = harness.timed(lambda: liblinear_rounds(X, y, C, tol), repeats=repeats)
    coef = rounds[-1][1]
    objective = np.abs(coef).sum() + C * np.maximum(0, 1 - y * (X @ coef)).sum()
    return {
        **dataclasses.asdict(timing),
        "gap": trials[tol],
        "tol": tol,
        "objective": float(objective),
        "n_nonzero": int(np.count_nonzero(coef)),
    }


def liblinear_rounds(
    X: np.ndarray, y: np.ndarray, C: float, tol: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The walk as one does it today; the weights and the coefficients of every round."""
    rounds = []
    scale = np.ones(X.shape[1])
    for _ in range(N_ROUNDS):
        coef = scale * PEERS["scikit-learn"].solve(X * scale, y, C, "hinge", tol)
        rounds.append((scale, coef))
        scale = np.sqrt(np.abs(coef))
    return rounds


def inner_gap(X: np.ndarray, y: np.ndarray, C: float, scale: np.ndarray, coef: np.ndarray) -> float:
    """The relative gap of a round, against the dual value of a tight fit of the same problem."""
    from anynorm.losses import get_loss
    from anynorm.problem import Problem
    from anynorm.problem.certificate import relative_gap
    from anynorm.solvers.linear import solve_linear

    problem = Problem(y=y, C=C, loss=get_loss("hinge"), X=X, intercept=None, feature_scale=scale)
    bound = problem.dual_objective(solve_linear(problem, tol=1e-9).dual)
    return relative_gap(problem.objective(coef), bound)


def table_ours(folder: str, data: str, repeats: int) -> dict[str, Any]:
    """Time ReweightedSVCCV, all rounds and values of C."""
    from anynorm import ReweightedSVCCV

    X, y = generators.load(pathlib.Path(folder), data)
    model = ReweightedSVCCV(N_CS, max_rounds=N_ROUNDS, cv=N_FOLDS)
    timing, fitted = harness.timed(lambda: model.fit(X, y), repeats=repeats)
    chosen = {"C": float(fitted.C_), "n_rounds": int(fitted.n_rounds_)}
    score = float(np.max(fitted.cv_results_["mean_test_score"]))
    return {**dataclasses.asdict(timing), "chosen": chosen, "score": score}


def table_liblinear(folder: str, data: str, repeats: int) -> dict[str, Any]:
    """Time GridSearchCV over scikit-learn's LinearSVC, for C alone."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import LinearSVC

    X, y = generators.load(pathlib.Path(folder), data)
    model = LinearSVC(loss="hinge", random_state=0)
    search = GridSearchCV(model, {"C": np.logspace(-4, 4, N_CS)}, cv=N_FOLDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        timing, fitted = harness.timed(lambda: search.fit(X, y), repeats=repeats)
    chosen = {"C": float(fitted.best_params_["C"])}
    return {**dataclasses.asdict(timing), "chosen": chosen, "score": float(fitted.best_score_)}


# ---------------------------------------------------------------- the rows


class Run:
    """One run of the benchmark, with its data in a folder."""

    def __init__(
        self, folder: pathlib.Path, genes: str, shapes: list[str], repeats: int, limit: float
    ) -> None:
        self.folder, self.genes, self.shapes = str(folder), genes, shapes
        self.repeats, self.limit = repeats, limit

    def _call(self, function: str, **more: Any) -> dict[str, Any]:
        arguments = {"folder": self.folder, "repeats": self.repeats, **more}
        answer: dict[str, Any] = harness.call(
            f"benchmarks.walk:{function}", arguments, limit=self.limit
        )
        return answer

    def text(self, C: float, bound: float | None) -> Row:
        """Three rounds against one."""
        three, one = (self._call("text_ours", n_rounds=k, C=C) for k in (3, 1))
        reached = max(three["gap"], one["gap"]) <= GAP
        return Row(
            work=f"three rounds, sparse text-like, C={C:g}, gap {GAP:g}",
            ours=measured(three),
            other=f"one 2-norm fit of ours {measured(one)}",
            ratio=three["cpu"] / one["cpu"] if reached else None,
            sense="<=",
            bound=bound,
            note=f"{three['n_nonzero']} features left",
            details={"ours": three, "one fit": one},
        )

    def walk(self, C: float, bound: float | None) -> Row:
        """Ten rounds against ten fits of liblinear."""
        mine, theirs = self._call("walk_ours", C=C), self._call("walk_liblinear", C=C)
        notes = []
        if theirs["gap"] > GAP:
            notes.append(f"liblinear reaches {theirs['gap']:.1e} only")
        excess = mine["objective"] / theirs["objective"] - 1
        notes.append(f"last 1-norm objective {100 * excess:+.2f} % from theirs")
        return Row(
            work=f"ten rounds, {self.genes}, C={C:g}, gap {GAP:g}",
            ours=measured(mine),
            other=f"ten liblinear fits, rescaled copies {measured(theirs)}",
            ratio=theirs["cpu"] / mine["cpu"] if mine["gap"] <= GAP else None,
            bound=bound,
            note="; ".join(notes),
            details={"ours": mine, "liblinear": theirs},
        )

    def table(self, data: str, what: str, bound: float | None) -> Row:
        """Cross-validation of C and rounds against that of C."""
        mine, theirs = (self._call(name, data=data) for name in ("table_ours", "table_liblinear"))
        cells = f"{N_CS} C x {N_FOLDS} folds"
        return Row(
            work=f"ReweightedSVCCV, {N_ROUNDS} rounds x {cells}, {what}",
            ours=seconds(mine["cpu"]),
            other=f"GridSearchCV(LinearSVC), {cells} {seconds(theirs['cpu'])}",
            ratio=theirs["cpu"] / mine["cpu"],
            bound=bound,
            note=f"best score {mine['score']:.3f} against {theirs['score']:.3f}",
            details={"ours": mine, "scikit-learn": theirs},
        )

    def jobs(self) -> list[tuple[str, Callable[[], Row]]]:
        """Every row by its name; those without a goal show how the ratio depends on C."""
        return [
            ("three rounds, C=1", functools.partial(self.text, 1.0, TEXT_GOAL)),
            ("three rounds, C=0.1", functools.partial(self.text, 0.1, None)),
            ("three rounds, C=10", functools.partial(self.text, 10.0, None)),
            ("ten rounds, C=1", functools.partial(self.walk, 1.0, GENES_GOAL)),
            ("ten rounds, C=0.01", functools.partial(self.walk, 0.01, None)),
            ("ten rounds, C=100", functools.partial(self.walk, 100.0, None)),
            ("table", functools.partial(self.table, "genes", self.genes, TABLE_GOAL)),
            (
                "table, not standardised",
                functools.partial(self.table, "raw", f"{self.genes}, not standardised", None),
            ),
            *(
                (f"table, {what}", functools.partial(self.table, f"shape{k}", what, SHAPE_GOAL))
                for k, what in enumerate(self.shapes)
            ),
        ]


def microarray(n: int, p: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features of many sizes in correlated groups of ten; every 50th group differs by class."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < 2 * n // 3, 1.0, -1.0)
    groups = rng.standard_normal((n, -(-p // 10)))
    groups[:, ::50] += 0.8 * y[:, None]
    X = 0.7 * np.repeat(groups, 10, axis=1)[:, :p] + 0.7 * rng.standard_normal((n, p))
    return (X + rng.standard_normal(p)) * np.exp(5 + 1.5 * rng.standard_normal(p)), y


def write_data(folder: pathlib.Path, *, quick: bool) -> str:
    """Put the data where the processes of the run find them; says what the gene data are."""
    from anynorm.datasets import load_dataset

    size = 1000 if quick else 50_000
    text = generators.sparse_text(size, size, informative=size // 100, seed=2)
    generators.save(folder, "text", *text)
    name, (X, y) = "generated 72 x 5147", microarray(72, 5147)
    if quick:
        name, (X, y) = "generated 72 x 200", microarray(72, 200)
    else:
        try:
            X, target = load_dataset("leukemia_5147", dtype=np.float64, return_X_y=True)
        except (ValueError, OSError) as error:
            print(f"generated gene data, as leukemia_5147 is not at hand: {str(error)[:100]}")
        else:
            name, y = "leukemia 72 x 5147", np.where(target == 0, 1.0, -1.0)
    generators.save(folder, "raw", X, y)
    generators.save(folder, "genes", *standard_of(X, y))
    return name


def write_shapes(folder: pathlib.Path, *, quick: bool) -> list[str]:
    """Tables and texts of many shapes, likewise; says what they are."""
    from sklearn.datasets import load_breast_cancer

    from anynorm.datasets import load_dataset

    part = 10 if quick else 1
    shapes: dict[str, tuple[Any, np.ndarray]] = {
        "breast cancer 569 x 30": standard_of(*load_breast_cancer(return_X_y=True)),
        "dense 72 x 200": standard_of(*microarray(72, 200)),
        "dense 2000 x 400": generators.dense_classification(2000 // part, 400 // part),
        "dense 1000 x 1000": generators.dense_classification(1000 // part, 1000 // part),
        "tf-idf 2000 x 4000": generators.word_counts(2000 // part, 4000 // part, tfidf=True),
        "counts 1000 x 2000": generators.word_counts(1000 // part, 2000 // part, seed=1),
        "tf-idf 3000 x 300": generators.word_counts(3000 // part, 300 // part, tfidf=True),
        "counts, three classes 900 x 2000": generators.topics(900 // part, 2000 // part),
        "bands, six classes 1500 x 36": standard_of(*generators.correlated_bands(1500 // part, 36)),
    }
    if not quick:
        try:
            shapes["dexter 300 x 20,000"] = load_dataset("dexter_train", return_X_y=True)
        except (ValueError, OSError) as error:
            print(f"without dexter, which is not at hand: {str(error)[:100]}")
    for k, (X, y) in enumerate(shapes.values()):
        generators.save(folder, f"shape{k}", X, y)
    return list(shapes)


def standard_of(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of mean 0 and deviation 1."""
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0), y


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The rows, with their data in the folder."""
    genes = write_data(folder, quick=options.quick)
    shapes = write_shapes(folder, quick=options.quick)
    return Run(folder, genes, shapes, options.repeats, options.limit).jobs()


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the rows asked for."""
    packages = ["numpy", "scipy", "scikit-learn", "numba"]
    return harness.command("walk", __doc__, prepare, packages, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
