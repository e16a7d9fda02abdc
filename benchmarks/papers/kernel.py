"""The kernel papers, made again: "Least 1-Norm SVMs" and "Support Vector Machines on a Budget".

    python -m benchmarks.papers.kernel [--parts choice table2 outliers budget counts]
                                       [--repeats 50] [--quick] [--fresh] [--results FILE]

* choice, table2: Table 2 of the Least 1-norm paper, C and sigma chosen as it says, on the 10 of the
  100 splits that are at hand.  Iterations of the paper's first-order SMO, of the same with
  second-order pairs, and of our solver.
* outliers: its Figure 1, and the same for many draws.
* budget, counts: Figure 1 of the budget paper on MNIST, and accuracy against the number of support
  vectors for all ways to have few of them.

Every experiment is kept in a JSON file as soon as it is done, and is not done again: a run that
was stopped goes on where it was, `--fresh` starts anew.  Tables and figures are then made from
that file and put into docs/papers-kernel.md; those of a quick run, or of another file, are printed.
A data set that is not at hand is skipped.
"""

import argparse
import functools
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.svm import LinearSVC as TheirLinearSVC

from anynorm import SVC, BudgetSVC, LeastNormSVC, LeastSquaresSVC, sparse_svm_path
from anynorm.datasets import load_dataset, make_two_gaussians
from anynorm.kernels.gram import Gram
from benchmarks.papers.pairwise import Found, pairwise
from benchmarks.papers.store import Store, command_line, load, open_store, recorded

RESULTS = recorded("kernel")
PARTS = ("choice", "table2", "outliers", "budget", "counts")

IDA_SETS = ("ida_titanic", "ida_heart", "ida_breast_cancer", "ida_german")
METHODS = ("LS", "Least 1-norm")
CS, SIGMAS = np.logspace(0, 2, 5).tolist(), np.logspace(0, 4, 9).tolist()
N_FOLDS, N_TIMES = 10, 10
N_DRAWS = 100

N_TRAIN, N_TEST = 1000, 4000
GAMMA = 0.5  # exp(-||x - z||^2 / (2 sigma^2)) with sigma = 1
BUDGETS = tuple(range(20, 1001, 20))
QUICK_BUDGETS = (20, 60, 100)
COUNTS = (20, 50, 100, 200, 400)
QUICK_COUNTS = (5, 20)
SLACKS = ("l1", "l2")
TOTAL = 10.0  # C = 10 / B, or 10 / sqrt(B)
FACTORS = (1.0, 10.0, 100.0, 1000.0, 10_000.0)  # of the C without a budget, for plain SVMs
GOOD_C = 10.0  # the best of these, for problems that all slacks are in
OLD_FACTOR = 100.0  # of the paper's C, the best for a fit to the rows of largest weights


# ---------------------------------------------------------------- Least 1-norm SVM, Table 2


def classifier(method: str, C: float, **kernel: Any) -> Any:
    """An estimator of ours by the paper's name and C; the paper's LS-SVM has C/2 sum xi^2."""
    if method == "LS":
        return LeastSquaresSVC(C=C / 2, **kernel)
    return LeastNormSVC(C=C, **kernel)


def signed_dual(model: Any, n: int) -> np.ndarray:
    """beta = y * a of a fitted model, for all rows."""
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    return beta


def collapsed(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Equal rows with equal labels as one row, and how often each occurs.

    A weight says the same as repetition; titanic's 2201 rows become at most 28.
    """
    rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    return rows[:, :-1], rows[:, -1], counts.astype(float)


def cross_validated(
    method: str, X: np.ndarray, y: np.ndarray, Cs: Sequence[float], sigmas: Sequence[float],
    n_times: int,
) -> np.ndarray:  # fmt: skip
    """The share of errors by C and sigma in 10-fold cross-validation, repeated `n_times`."""
    folds = RepeatedStratifiedKFold(n_splits=N_FOLDS, n_repeats=n_times, random_state=0)
    splits = [(collapsed(X[train], y[train]), held) for train, held in folds.split(X, y)]
    wrong = np.zeros((len(Cs), len(sigmas)))
    for row, C in enumerate(Cs):
        for column, sigma in enumerate(sigmas):
            model = classifier(method, C, gamma=1 / sigma, tol=1e-3)
            for (rows, labels, counts), held in splits:
                model.fit(rows, labels, sample_weight=counts)
                wrong[row, column] += np.sum(model.predict(X[held]) != y[held])
    return wrong / (n_times * len(y))


class Grid(NamedTuple):
    """What the cross-validation tries, and how often it is repeated."""

    Cs: Sequence[float]
    sigmas: Sequence[float]
    n_times: int


def choice(store: Store, names: Sequence[str], grid: Grid) -> Iterator[str]:
    """Choose C and sigma for each set and method, over the whole set as the paper does."""
    for name in names:
        loaded = load(name, "none")
        if loaded is None:
            continue
        X, y, _ = loaded
        for method in METHODS:
            key = f"{name}/{method}"
            if store.done("choice", key):
                continue
            start = time.monotonic()
            errors = cross_validated(method, X, y, grid.Cs, grid.sigmas, grid.n_times)
            row, column = divmod(int(errors.argmin()), len(grid.sigmas))
            value = {
                "C": grid.Cs[row], "sigma": grid.sigmas[column],
                "errors": errors.round(5).tolist(),
            }  # fmt: skip
            store.add("choice", key, value)
            took = time.monotonic() - start
            yield (
                f"choice  {key}: C {value['C']:g}, sigma {value['sigma']:g}, "
                f"error {100 * errors.min():.1f} %  ({took:.0f} s)"
            )


def table2(store: Store, names: Sequence[str], repeats: int) -> Iterator[str]:
    """Error, support vectors and iterations on every split, where C and sigma are chosen."""
    for name in names:
        if not all(store.done("choice", f"{name}/{method}") for method in METHODS):
            print(f"skipped {name}: C and sigma are not chosen yet (--parts choice)", flush=True)
            continue
        loaded = load(name, "none")
        if loaded is None:
            continue
        X, y, splits = loaded
        for number, (train, test) in enumerate(splits[:repeats]):
            key = f"{name}/{number}"
            if store.done("table2", key):
                continue
            value = {}
            for method in METHODS:
                chosen = store.content["choice"][f"{name}/{method}"]
                value[method] = solved(
                    method, chosen["C"], chosen["sigma"], (X[train], y[train]), (X[test], y[test])
                )
            store.add("table2", key, value)
            yield f"table 2  {key}: {value}"


def solved(
    method: str, C: float, sigma: float, train: tuple[Any, Any], test: tuple[Any, Any]
) -> dict[str, Any]:
    """One split by the paper's SMO, by second-order pairs and by our solver."""
    X, y = train
    gram = Gram.rbf(X, 1 / sigma)
    K, K_test = gram.block(slice(None), slice(None)), gram.cross(test[0])
    bound = np.inf if method == "LS" else C
    system = K + np.eye(len(y)) / C if method == "LS" else K

    def row(found: Found) -> dict[str, Any]:
        wrong = np.sum(test[1] * (K_test @ found.beta + found.intercept) <= 0)
        return {
            "error": float(wrong / len(test[1])),
            "n_support": int(np.count_nonzero(found.beta)),
            "n_iter": found.n_iter,
        }

    model = classifier(method, C, gamma=1 / sigma, tol=1e-4).fit(X, y)
    ours = Found(signed_dual(model, len(y)), float(model.intercept_[0]), int(model.n_iter_))
    return {
        "first order": row(pairwise(system, y, bound)),
        "second order": row(pairwise(system, y, bound, second_order=True)),
        "ours": {**row(ours), "gap": float(model.certificate_.gap)},
    }


# ---------------------------------------------------------------- Least 1-norm SVM, Figure 1


def plane(method: str, X: np.ndarray, y: np.ndarray) -> list[float]:
    """The coefficients and the bias of a linear classifier with the paper's C = 1."""
    model = classifier(method, 1.0, kernel="linear", tol=1e-8).fit(X, y)
    w = model.dual_coef_[0] @ X[model.support_]
    return [*w.tolist(), float(model.intercept_[0])]


def turned(before: Sequence[float], after: Sequence[float]) -> float:
    """The angle between two planes in degrees."""
    first, second = np.array(before[:2]), np.array(after[:2])
    cosine = first @ second / (np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


def outliers(store: Store, draws: int) -> Iterator[str]:
    """Two clouds before and after two labels are switched."""
    for draw in range(draws):
        key = str(draw)
        if store.done("outliers", key):
            continue
        value: dict[str, Any] = {}
        sets = [make_two_gaussians(n_switched=k, random_state=draw) for k in (0, 2)]
        for method in METHODS:
            before, after = (plane(method, X, y) for X, y in sets)
            value[method] = {"before": before, "after": after, "turned": turned(before, after)}
        store.add("outliers", key, value)
        if draw == draws - 1:
            yield f"outliers  {draws} draws"


# ---------------------------------------------------------------- SVM on a budget, Figure 1


class Digits(NamedTuple):
    """One problem: kernel matrices, labels, which digits are positive, and the rows themselves."""

    K: np.ndarray
    y: np.ndarray
    K_test: np.ndarray
    y_test: np.ndarray
    positive: list[int]
    X: np.ndarray
    X_test: np.ndarray


@functools.cache
def mnist() -> Any:
    return load_dataset("mnist", dtype=np.float32)


def digits(number: int, n_train: int = N_TRAIN, n_test: int = N_TEST) -> Digits:
    """Five random digits against the others, scaled to an average norm of 1."""
    data = mnist()
    rng = np.random.default_rng(number)
    positive = np.sort(rng.permutation(10)[:5])
    rows = rng.choice(len(data.target), n_train + n_test, replace=False)
    X = data.data[rows].astype(np.float64)
    X /= np.linalg.norm(X[:n_train], axis=1).mean()
    y = np.where(np.isin(data.target[rows], positive), 1.0, -1.0)
    gram = Gram.rbf(X[:n_train], GAMMA)
    K = gram.block(slice(None), slice(None))
    return Digits(
        (K + K.T) / 2, y[:n_train], gram.cross(X[n_train:]), y[n_train:], positive.tolist(),
        X[:n_train], X[n_train:],
    )  # fmt: skip


def budget_C(slack: str, budget: int, total: float = TOTAL) -> float:
    """The paper's rule for C, which keeps the weight of the slacks about the same for all B."""
    return total / budget if slack == "l1" else total / float(np.sqrt(budget))


def threshold(scores: np.ndarray, y: np.ndarray) -> float:
    """The bias with which the fewest rows are on the wrong side: the middle between two scores."""
    order = np.argsort(scores)
    sorted_scores = scores[order]
    # With the cut below the k-th score the first k rows are negative, the others positive.
    wrong = np.concatenate([[0], np.cumsum(y[order])]) + np.sum(y < 0)
    edges = np.concatenate([[-np.inf], sorted_scores, [np.inf]])
    wrong = np.where(edges[1:] > edges[:-1], wrong, len(y) + 1)
    k = int(wrong.argmin())
    low, high = max(edges[k], sorted_scores[0] - 1), min(edges[k + 1], sorted_scores[-1] + 1)
    return -(low + high) / 2


def pruned_errors(problem: Digits, model: Any, sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Test errors with the s largest weights only, for every s.

    First with the bias of the model, then with the one of the fewest errors on the training rows.
    """
    beta = signed_dual(model, len(problem.y))
    order = np.argsort(-np.abs(beta), kind="stable")
    scores, train_scores = np.zeros(len(problem.y_test)), np.zeros(len(problem.y))
    kept, again = [], []
    for part in np.split(order, sizes)[: len(sizes)]:
        scores += problem.K_test[:, part] @ beta[part]
        train_scores += problem.K[:, part] @ beta[part]
        kept.append(wrong(problem, scores + float(model.intercept_[0])))
        again.append(wrong(problem, scores + threshold(train_scores, problem.y)))
    return kept, again


def wrong(problem: Digits, scores: np.ndarray) -> int:
    """The number of test rows that are on the wrong side, or on the border."""
    return int(np.sum(problem.y_test * scores <= 0))


def fitted_errors(problem: Digits, model: Any) -> int:
    """Test errors of a model as it is."""
    return wrong(problem, problem.K_test @ signed_dual(model, len(problem.y)) + model.intercept_[0])


def budget_problem(problem: Digits, budgets: Sequence[int]) -> dict[str, Any]:
    """Errors by B and s, and those of SVMs without a budget by C."""
    value: dict[str, Any] = {}
    for slack in SLACKS:
        make = functools.partial(BudgetSVC, slack=slack, kernel="precomputed", tol=1e-4)
        models = [make(B, C=budget_C(slack, B)).fit(problem.K, problem.y) for B in budgets]
        errors = [pruned_errors(problem, model, budgets) for model in models]
        corner = budget_C(slack, len(problem.y))
        plain = [
            SVC(C=factor * corner, slack=slack, kernel="precomputed", tol=1e-4).fit(
                problem.K, problem.y
            )
            for factor in FACTORS
        ]
        value[slack] = {
            "kept": [kept for kept, _ in errors],
            "again": [again for _, again in errors],
            "n_support": [len(model.support_) for model in models],
            "plain": [fitted_errors(problem, model) for model in plain],
            "plain_n_support": [len(model.support_) for model in plain],
        }
    return value


def counts_problem(
    problem: Digits, counts: Sequence[int], seed: int
) -> dict[str, dict[str, list[int]]]:
    """Test errors and numbers of support vectors by what each way was allowed to have."""
    rng = np.random.default_rng(seed)
    plain = SVC(C=GOOD_C, kernel="precomputed").fit(problem.K, problem.y)
    found = {"no budget": [(fitted_errors(problem, plain), len(plain.support_))] * len(counts)}
    found["budget norm"] = [budget_norm(problem, B) for B in counts]
    found["strict, the old way"] = [hardest_rows(problem, B) for B in counts]
    found["strict"] = [strict(problem, B) for B in counts]
    found["dictionary + 1-norm"] = dictionary(problem, counts)
    found["Nystroem + LinearSVC"] = [nystroem(problem, B, seed) for B in counts]
    found["random subset"] = [subset(problem, rng.permutation(len(problem.y))[:B]) for B in counts]
    return {
        name: {"errors": [e for e, _ in values], "n_support": [n for _, n in values]}
        for name, values in found.items()
    }


def budget_norm(problem: Digits, budget: int) -> tuple[int, int]:
    """The paper's model, with the paper's C."""
    model = BudgetSVC(budget, C=budget_C("l1", budget), kernel="precomputed")
    model.fit(problem.K, problem.y)
    return fitted_errors(problem, model), len(model.support_)


def hardest_rows(problem: Digits, budget: int) -> tuple[int, int]:
    """What `strict=True` was until 2026: another fit, to the rows of largest weights alone."""
    model = BudgetSVC(budget, C=budget_C("l1", budget, OLD_FACTOR * TOTAL), kernel="precomputed")
    beta = signed_dual(model.fit(problem.K, problem.y), len(problem.y))
    order = np.argsort(-np.abs(beta), kind="stable")
    kept = order[:budget]
    if len(set(problem.y[kept])) == 1:
        kept[-1] = order[problem.y[order] != problem.y[kept[0]]][0]
    return subset(problem, kept, model)


def subset(problem: Digits, rows: np.ndarray, like: Any = None) -> tuple[int, int]:
    """An SVM that knows some rows alone."""
    model = SVC(C=GOOD_C, kernel="precomputed") if like is None else like
    model.fit(problem.K[np.ix_(rows, rows)], problem.y[rows])
    scores = model.decision_function(problem.K_test[:, rows])
    return wrong(problem, scores), len(model.support_)


def strict(problem: Digits, budget: int) -> tuple[int, int]:
    """The best function in the span of that many rows, as we find them."""
    model = BudgetSVC(budget, C=GOOD_C, strict=True, kernel="precomputed")
    model.fit(problem.K, problem.y)
    return fitted_errors(problem, model), len(model.support_)


def dictionary(problem: Digits, counts: Sequence[int]) -> list[tuple[int, int]]:
    """The 1-norm SVM on the kernel's columns, at the end of those that use so many."""
    path = sparse_svm_path(problem.K, problem.y, max_features=max(counts))
    values = []
    for count in counts:
        coef, intercept = path.coef_at(n_features=count)
        values.append(
            (wrong(problem, problem.K_test @ coef + intercept), int(np.count_nonzero(coef)))
        )
    return values


def nystroem(problem: Digits, count: int, seed: int) -> tuple[int, int]:
    """scikit-learn's features of random rows and its linear SVM."""
    features = Nystroem(gamma=GAMMA, n_components=count, random_state=seed).fit(problem.X)
    model = TheirLinearSVC(C=GOOD_C, max_iter=100_000).fit(features.transform(problem.X), problem.y)
    return wrong(problem, model.decision_function(features.transform(problem.X_test))), count


def counted(
    store: Store, repeats: int, counts: Sequence[int], sizes: tuple[int, int]
) -> Iterator[str]:
    """One random problem after the other, each by all ways."""
    for number in range(repeats):
        if store.done("counts", str(number)):
            continue
        start = time.monotonic()
        value = counts_problem(digits(number, *sizes), counts, number)
        store.add("counts", str(number), {"counts": list(counts), "n_test": sizes[1], **value})
        took = time.monotonic() - start
        yield f"counts  {number + 1} of {repeats} problems  ({took:.0f} s)"


def summed(
    store: Store, repeats: int, budgets: Sequence[int], sizes: tuple[int, int]
) -> Iterator[str]:
    """Solve one random problem after the other, keeping the sums of all numbers."""
    known = store.content.get("budget", {}).get("sums", {"done": 0})
    for number in range(known["done"], repeats):
        start = time.monotonic()
        value = budget_problem(digits(number, *sizes), budgets)
        sums = value if number == 0 else added(known["values"], value)
        known = {
            "done": number + 1, "n_test": sizes[1], "budgets": list(budgets), "values": sums,
        }  # fmt: skip
        store.add("budget", "sums", known)
        took = time.monotonic() - start
        yield f"budget  {number + 1} of {repeats} problems  ({took:.0f} s)"


def added(first: Any, second: Any) -> Any:
    """The sum of two values of the same shape, entry by entry."""
    if isinstance(first, dict):
        return {key: added(first[key], second[key]) for key in first}
    return (np.asarray(first) + np.asarray(second)).tolist()


# ---------------------------------------------------------------- the command


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then make the tables and figures."""
    options = command_line("kernel", __doc__, PARTS, repeats=50).parse_args(arguments)
    from benchmarks.papers import kernel_report

    store = open_store("kernel", options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        for line in _experiments(store, options):
            print(line, flush=True)
    if store.path == RESULTS:
        kernel_report.write(store.content)
    else:
        print(kernel_report.text(store.content))


def _experiments(store: Store, options: argparse.Namespace) -> Iterator[str]:
    quick = options.quick
    names = IDA_SETS[:2] if quick else IDA_SETS
    repeats = min(options.repeats, 2) if quick else options.repeats
    grid = Grid(CS[::4], SIGMAS[::4], 1) if quick else Grid(CS, SIGMAS, N_TIMES)
    if "choice" in options.parts:
        yield from choice(store, names, grid)
    if "table2" in options.parts:
        yield from table2(store, names, repeats)
    if "outliers" in options.parts:
        yield from outliers(store, 5 if quick else N_DRAWS)
    if not {"budget", "counts"} & set(options.parts):
        return
    try:
        mnist()
    except (ValueError, OSError) as error:
        print(f"skipped mnist: {str(error)[:150]}", flush=True)
        return
    sizes = (100, 200) if quick else (N_TRAIN, N_TEST)
    if "budget" in options.parts:
        yield from summed(store, repeats, QUICK_BUDGETS if quick else BUDGETS, sizes)
    if "counts" in options.parts:
        yield from counted(store, repeats, QUICK_COUNTS if quick else COUNTS, sizes)


if __name__ == "__main__":
    main()
