"""Tables 1 and 2 and Figures 1 and 2 of "1-norm Support Vector Machines", made again.

    python -m benchmarks.papers.path [--parts table1 counts figure1 figure2 table2 hybrid]
                                     [--repeats 50] [--quick] [--fresh] [--results FILE]

Besides: Zou's hybrid SVM, which weights the 1-norm by a 2-norm SVM, beside the walk on genes.

Every experiment is kept in a JSON file as soon as it is done, and is not done again: a run that
was stopped goes on where it was, `--fresh` starts anew.  Tables and figures are then made from
that file and put into docs/papers-path.md; those of a quick run, or of another file, are printed.
A data set that is not at hand is skipped.
"""

import argparse
import functools
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from anynorm import LinearSVC, SparseSVCCV, sparse_svm_path
from anynorm.datasets import load_dataset, make_skin
from anynorm.estimators.paths.accuracy import accuracy_changes
from anynorm.estimators.paths.solution_path import SolutionPath
from benchmarks.papers import protocol
from benchmarks.papers.counting import readings
from benchmarks.papers.one_norm import one_norm_grid
from benchmarks.papers.protocol import Grid, Model
from benchmarks.papers.store import Store, carry_out, command_line, load, recorded
from benchmarks.papers.walk import GENE_CS
from benchmarks.peers.sparse import highs

RESULTS = recorded("path")
PARTS = ("table1", "counts", "figure1", "figure2", "table2", "hybrid")
VERIFIED = 1e-9

NOISE = (0, 2, 4, 6, 8)
N_TRAIN, N_TEST = 100, 1000
TWO_NORM_CS = np.logspace(-4, 4, 33)

SCALINGS = ("raw", "standard", "log")
N_FOLDS = 10
FIXED_C = 100.0  # of the 2-norm SVM on chosen genes, nearly a hard margin, as Guyon et al. had

GENE_SETS = ("dlbcl_7070", "leukemia_5147", "prostate_12533", "srbct")
HYBRID_ROUNDS = (1, 2, 3, 10)
HYBRID = "hybrid"


# ---------------------------------------------------------------- Table 1 and the figures


def verified_path(X: np.ndarray, y: np.ndarray) -> SolutionPath:
    """The whole path, every joint of which is proven optimal to 1e-9."""
    path = sparse_svm_path(X, y)
    worst = float(path.gaps.max())
    if path.stopped != "end" or worst > VERIFIED:
        raise AssertionError(f"path stopped at {path.stopped} with a worst gap of {worst:.1e}")
    return path


def errors_along(path: SolutionPath, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the number of errors on (X, y) changes, and the share of errors from there on."""
    codes = (y > 0).astype(np.intp)
    changes = accuracy_changes([path], X, codes, np.ones(len(y)))
    order = np.argsort(changes.s, kind="stable")
    places, right = changes.s[order], changes.start + np.cumsum(changes.gains[order])
    last = np.append(places[1:] > places[:-1], True)[: len(places)]  # of changes at one place
    s = np.concatenate([[0.0], places[last]])
    return s, 1 - np.concatenate([[changes.start], right[last]]) / changes.total


def skin(noise: int, repeat: int) -> tuple[Any, Any]:
    """Training and test part of one repeat, as basis functions."""
    train = make_skin(N_TRAIN, n_noise=noise, dictionary=True, random_state=2 * repeat)
    test = make_skin(N_TEST, n_noise=noise, dictionary=True, random_state=2 * repeat + 1)
    return train, test


def table1(store: Store, noises: Sequence[int], repeats: int) -> Iterator[str]:
    """Joints and test errors; yields a line of progress for each experiment."""
    for noise in noises:
        for repeat in range(repeats):
            key = f"{noise}/{repeat}"
            if store.done("table1", key):
                continue
            start = time.monotonic()
            value = _simulation(*skin(noise, repeat))
            store.add("table1", key, value)
            took = time.monotonic() - start
            errors = "  ".join(f"{name} {error:.3f}" for name, error in value["errors"].items())
            yield f"table 1  {key}: {value['joints']} joints  {errors}  ({took:.1f} s)"


def _simulation(train: tuple[Any, Any], test: tuple[Any, Any]) -> dict[str, Any]:
    X, y = train
    path = verified_path(X, y)
    _, along = errors_along(path, *test)
    two_norm = [_error(_two_norm(X, y, C), *test) for C in TWO_NORM_CS]
    vertex = highs(X, y, 0.0, form="primal", solver="simplex")
    return {
        "bases": X.shape[1],
        "joints": path.n_joints,
        "knots": len(path.knots.s),
        "pivots": path.n_pivots,
        "gap": float(path.gaps.max()),
        "s_end": float(path.s[-1]),
        "separable": bool(path.losses[-1] <= 1e-9 * len(y)),
        "errors": {
            "1-norm": float(along.min()),
            "2-norm": min(two_norm),
            "no penalty": _error(Model(vertex.coef, vertex.intercept), *test),
            "end of the path": float(along[-1]),
        },
    }


def _two_norm(X: np.ndarray, y: np.ndarray, C: float, tol: float = 1e-4) -> Model:
    model = LinearSVC(C, tol=tol).fit(X, y)
    return Model(model.coef_.ravel(), float(model.intercept_[0]))


def _error(model: Model, X: np.ndarray, y: np.ndarray) -> float:
    return protocol.n_errors(model, X, y) / len(y)


def counts(store: Store, noises: Sequence[int], repeats: int) -> Iterator[str]:
    """Joints of other readings of the experiment: why do the paper's counts differ?"""
    for repeat in range(repeats):
        for noise in noises:
            key = f"{noise}/{repeat}"
            if not store.done("counts", key):
                value = readings(noise, 2 * repeat)
                store.add("counts", key, value)
                yield f"counts  {key}: {list(value.values())}"


def figure1(store: Store) -> Iterator[str]:
    """The path of 10 + 10 training points and five bases."""
    if not store.done("figure1", "path"):
        X, y = make_skin(20, dictionary=True, random_state=1)
        path = verified_path(X, -y)  # the skin is the positive class, so that the squares rise
        store.add("figure1", "path", _drawn(path))
        yield f"figure 1  {path.n_joints} joints"


def figure2(store: Store, noise: int = 4) -> Iterator[str]:
    """A path with four noise inputs, and the test error along it."""
    if not store.done("figure2", "path"):
        (X, y), (X_test, y_test) = skin(noise, 0)
        path = verified_path(X, -y)
        s, errors = errors_along(path, X_test, -y_test)
        store.add("figure2", "path", _drawn(path))
        store.add("figure2", "error", {"s": s.tolist(), "error": errors.tolist()})
        yield f"figure 2  {path.n_joints} joints, least error {errors.min():.3f}"


def _drawn(path: SolutionPath) -> dict[str, Any]:
    return {"s": path.s.tolist(), "coefs": path.coefs.toarray().round(12).tolist()}


# ---------------------------------------------------------------- Table 2


class Leukemia(NamedTuple):
    """The training and test part of one scaling."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def leukemia(scaling: str) -> Leukemia:
    """Genes as measured, standardised by the training part, or logarithms that are so.

    Logarithms are of values that are at least 100, as Golub et al. had them.
    """
    data = load_dataset("leukemia_7129", dtype=np.float64)
    X, y = data.data, np.where(data.target == 0, 1.0, -1.0)
    train, test = data.splits[0]
    if scaling == "log":
        X = np.log10(np.maximum(X, 100.0))
    if scaling != "raw":
        X = StandardScaler().fit(X[train]).transform(X)
    return Leukemia(X[train], y[train], X[test], y[test])


def table2(store: Store, scalings: Sequence[str], repeats: int) -> Iterator[str]:
    """Joints, errors and genes of the 1-norm SVM and of the two-step methods."""
    for scaling in scalings:
        for repeat in range(repeats):
            key = f"{scaling}/{repeat}"
            if store.done("table2", key):
                continue
            try:
                data = leukemia(scaling)
            except (ValueError, OSError) as error:
                print(f"skipped leukemia_7129: {str(error)[:150]}", flush=True)
                return
            start = time.monotonic()
            folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=repeat)
            splits = list(folds.split(data.X, data.y))
            value = {"1-norm": _one_norm_row(data, splits)}
            if scaling != "raw":  # a 2-norm SVM needs features of one scale
                value["UR"] = _ranked_row(data, splits, univariate_sizes)
                value["RFE"] = _ranked_row(data, splits, elimination_sizes)
            store.add("table2", key, value)
            took = time.monotonic() - start
            yield f"table 2  {key}: {value}  ({took:.1f} s)"


def _one_norm_row(data: Leukemia, splits: Sequence[Any]) -> dict[str, Any]:
    model = SparseSVCCV(cv=splits).fit(data.X, data.y)
    path = model.path_
    worst = float(path.gaps.max())
    if worst > VERIFIED:
        raise AssertionError(f"the path is verified to {worst:.1e} only")
    wrong = np.sum(np.sign(model.oof_decision_function_) != data.y)
    return {
        "cv": int(wrong),
        "test": int(np.sum(model.predict(data.X_test) != data.y_test)),
        "genes": int(np.count_nonzero(model.coef_)),
        "joints": path.n_joints,
        "gap": worst,
    }


def sizes_of(p: int) -> list[int]:
    """All genes, half of them, and so on to one."""
    sizes = [p]
    while sizes[-1] > 1:
        sizes.append(sizes[-1] // 2)
    return sizes


def univariate_sizes(X: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """The best genes by |difference of the class means| / sum of the deviations (Golub et al.)."""
    positive, negative = X[y > 0], X[y < 0]
    spread = positive.std(axis=0) + negative.std(axis=0)
    score = np.abs(positive.mean(axis=0) - negative.mean(axis=0)) / np.where(spread > 0, spread, 1)
    order = np.argsort(-score, kind="stable")
    return [order[:size] for size in sizes_of(X.shape[1])]


def elimination_sizes(X: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Fit, drop the half with the smallest weights, and fit again (Guyon et al.)."""
    kept = [np.arange(X.shape[1])]
    for size in sizes_of(X.shape[1])[1:]:
        weights = np.abs(_two_norm(X[:, kept[-1]], y, FIXED_C, tol=1e-3).coef)
        kept.append(kept[-1][np.argsort(-weights, kind="stable")[:size]])
    return kept


def _ranked_row(data: Leukemia, splits: Sequence[Any], rank: Any) -> dict[str, Any]:
    """Choose the number of genes by cross-validation, the ranking made anew in every fold."""
    wrong = np.zeros(len(sizes_of(data.X.shape[1])))
    for train, held in splits:
        X, y = data.X[train], data.y[train]
        for k, genes in enumerate(rank(X, y)):
            model = _two_norm(X[:, genes], y, FIXED_C, tol=1e-3)
            wrong[k] += protocol.n_errors(model, data.X[held][:, genes], data.y[held])
    best = int(np.flatnonzero(wrong == wrong.min())[-1])  # the fewest genes
    genes = rank(data.X, data.y)[best]
    model = _two_norm(data.X[:, genes], data.y, FIXED_C, tol=1e-3)
    test = protocol.n_errors(model, data.X_test[:, genes], data.y_test)
    return {"cv": float(wrong[best]), "test": float(test), "genes": len(genes)}


# ---------------------------------------------------------------- the hybrid SVM and the walk


def hybrid_grid(X: Any, y: np.ndarray, first_C: float) -> dict[str, list[Model]]:
    """Zou's hybrid SVM: the 1-norm of w_j / |v_j|, where v is a 2-norm SVM with `first_C`."""
    scale = np.abs(_two_norm(X, y, first_C, tol=1e-3).coef)
    scale = scale / scale.max()
    solutions = one_norm_grid(X * scale, y, GENE_CS, free_bias=True)
    return {HYBRID: [Model(scale * found.coef, found.intercept) for found in solutions]}


def hybrid(store: Store, names: Sequence[str], repeats: int) -> Iterator[str]:
    """Accuracy and number of features on genes, by the walk paper's protocol with a free bias."""
    grid = Grid(GENE_CS, HYBRID_ROUNDS, "free")
    for name in names:
        loaded = load(name, "standard")
        if loaded is None:
            continue
        X, y, _ = loaded
        for repeat in range(repeats):
            key = f"{name}/{repeat}"
            if store.done("hybrid", key):
                continue
            start = time.monotonic()
            train, test = protocol.random_half(y, repeat)
            run = functools.partial(
                protocol.evaluate, X, y, train, (X[test], y[test]), Cs=GENE_CS, seed=repeat
            )
            [known] = run(fit=functools.partial(protocol.fit_grid, grid=grid))
            first_C = known.C[protocol.method_name(1)]
            [ours] = run(fit=functools.partial(hybrid_grid, first_C=first_C))
            store.add(
                "hybrid", key,
                {
                    "accuracy": {**known.accuracy, **ours.accuracy},
                    "n_features": {**known.n_features, **ours.n_features},
                },
            )  # fmt: skip
            took = time.monotonic() - start
            yield f"hybrid  {key}: {100 * ours.accuracy[HYBRID]:.1f} %  ({took:.1f} s)"


# ---------------------------------------------------------------- the command


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then make the tables and figures."""
    options = command_line("path", __doc__, PARTS, repeats=50).parse_args(arguments)
    from benchmarks.papers import path_report

    carry_out("path", options, _experiments, path_report)


def _experiments(store: Store, options: argparse.Namespace) -> Iterator[str]:
    quick = options.quick
    repeats = min(options.repeats, 2) if quick else options.repeats
    if "table1" in options.parts:
        yield from table1(store, NOISE[:2] if quick else NOISE, repeats)
    if "counts" in options.parts:
        yield from counts(store, NOISE[:1] if quick else NOISE, min(repeats, 10))
    if "figure1" in options.parts:
        yield from figure1(store)
    if "figure2" in options.parts:
        yield from figure2(store, 2 if quick else 4)
    if "table2" in options.parts:
        yield from table2(store, SCALINGS[1:2] if quick else SCALINGS, min(repeats, 10))
    if "hybrid" in options.parts:
        yield from hybrid(store, ["srbct"] if quick else GENE_SETS, min(repeats, 10))


if __name__ == "__main__":
    main()
