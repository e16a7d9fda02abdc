"""The Lasso and the SVM as one problem: what the paper's reductions are worth in practice.

    python -m benchmarks.papers.bridge [--parts svm sweeps lasso signal sublinear screening]
                                       [--repeats 3] [--quick] [--fresh] [--results FILE]

* svm, lasso: an SVM by Lasso solvers and a Lasso by SVM solvers, the error against D^2 / sigma.
* sweeps: what more sweeps of coordinate descent change in it.
* signal: which column of a dictionary a spoilt signal is, by the Lasso and by the kernel Lasso.
* sublinear: the share of a matrix that the sublinear SVM reads, against its size.
* screening: the share of rows that are certain before the optimum is reached, along C.

"An Equivalence between the Lasso and Support Vector Machines" (Jaggi 2014) has no experiments;
these are ours.  Results are kept in a JSON file and are not made again, `--fresh` starts anew.
Tables and figures go from that file into docs/papers-bridge.md; those of a quick run, or of another
file, are printed.
"""

import argparse
import functools
import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from anynorm import ConstrainedLasso, kernel_lasso, min_norm_point, sublinear_svm
from anynorm.kernels.gram import Gram
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Solution
from anynorm.reductions import SVMAsLasso, lasso_to_svm, soft_margin, svm_to_lasso
from anynorm.screening import Screening, screen
from anynorm.solvers.kernel import solve_kernel
from benchmarks.generators import planted_margin
from benchmarks.papers.store import Store, carry_out, command_line, recorded

Solver = Callable[[np.ndarray, np.ndarray, float], np.ndarray]

RESULTS = recorded("bridge")
PARTS = ("svm", "sweeps", "lasso", "signal", "sublinear", "screening")

SVM_ROWS, SVM_CS = (10, 30, 90), np.logspace(-2, 3, 6).tolist()
# Penalised solvers by name: their module and what to set beside the tolerance.
PENALISED: dict[str, tuple[str, dict[str, Any]]] = {
    "scikit-learn Lasso": ("sklearn.linear_model", {"max_iter": 2000}),
    "celer": ("celer", {"max_iter": 10, "max_epochs": 2000}),
}
LARS, OURS, PATH = "LARS", "ConstrainedLasso", "ConstrainedLasso.path"
BISECTIONS = 40
SWEEPS, SWEEPS_PROBLEM = (200, 2000, 20_000), (30, 1.0)  # rows and C
LASSO_SHAPE = (40, 60)
LASSO_SHARES = (0.1, 0.3, 0.6, 0.8, 0.9, 0.97, 0.99, 0.999)  # of the least radius that reaches b

N_SAMPLES, N_PULSES = 128, 41
SPIKES, N_DRAWS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4), 40
NOISE, SPIKE = 0.1, 3.0
PULSE_WIDTH = 0.05

SIZES, EPS = (500, 1000, 2000, 4000, 8000), (0.2, 0.3)
MARGIN = 0.5

SCREEN_CS = np.logspace(-3, 3, 13).tolist()
SCREEN_GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
SCREEN_LOSSES = ("hinge", "squared_hinge")
NEAR, NEAR_SHARE = "near", 0.95  # the solution for 0.95 C, instead of one of a given gap


# ---------------------------------------------------------------- an SVM by Lasso solvers


def installed() -> list[str]:
    """The penalised solvers that are at hand."""
    return [name for name, (home, _) in PENALISED.items() if importlib.util.find_spec(home)]


def by_penalty(
    name: str, A: np.ndarray, b: np.ndarray, radius: float, **changes: Any
) -> np.ndarray:
    """The Lasso in a ball by a solver of the penalised one, the penalty found by bisection."""
    home, settings = PENALISED[name]
    model = importlib.import_module(home).Lasso(
        fit_intercept=False, tol=1e-14, warm_start=True, **{**settings, **changes}
    )
    A = np.asfortranarray(A)
    low, high = 0.0, float(np.abs(A.T @ b).max()) / len(A)
    coef = np.zeros(A.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(BISECTIONS):
            model.set_params(alpha=0.5 * (low + high)).fit(A, b)
            if np.abs(model.coef_).sum() > radius:
                low = model.alpha
            else:
                high, coef = model.alpha, model.coef_.copy()
    return coef


def by_lars(A: np.ndarray, b: np.ndarray, radius: float) -> np.ndarray:
    """The Lasso in a ball from the path of LARS, between the two breakpoints around the radius."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = lars_path(A, b, method="lasso")[2]
    sizes = np.abs(path).sum(axis=0)
    beyond = np.flatnonzero(sizes >= radius)
    if not len(beyond):
        return np.asarray(path[:, -1])
    k = max(int(beyond[0]), 1)
    share = (radius - sizes[k - 1]) / (sizes[k] - sizes[k - 1])
    return np.asarray(path[:, k - 1] + share * (path[:, k] - path[:, k - 1]))


def in_ball(A: np.ndarray, b: np.ndarray, radius: float) -> np.ndarray:
    """The Lasso by our own solver, at its tightest."""
    model = ConstrainedLasso(radius, fit_intercept=False, tol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(model.fit(A, b).coef_)


def by_path(A: np.ndarray, b: np.ndarray, radius: float) -> np.ndarray:
    """The Lasso from our own exact path."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = ConstrainedLasso(fit_intercept=False).path(A, b, radius_max=radius)
    return path.coef_at(radius=radius)[0]


def excess(value: float, best: float) -> float:
    """How much a value is above the best one, relative to it; no less than rounding."""
    return max(abs(value / best - 1.0), float(np.finfo(float).eps))


def two_classes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two clouds of points in three dimensions that overlap."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return rng.normal(size=(n, 3)) + 0.7 * y[:, None], y


def svm(store: Store, sizes: Sequence[int], repeats: int) -> Iterator[str]:
    """Soft-margin SVMs as a Lasso, by solvers that know nothing of the translation."""
    for n in sizes:
        for C in SVM_CS:
            for seed in range(repeats):
                key = f"{n}/{C:g}/{seed}"
                if not store.done("svm", key):
                    store.add("svm", key, svm_problem(n, C, seed))
        yield f"svm  {n} rows: {len(SVM_CS)} values of C, {repeats} draws"


def translated(n: int, C: float, seed: int) -> SVMAsLasso:
    """One SVM as a Lasso."""
    points = soft_margin(*two_classes(n, seed), C=C)
    # The known separating vector ties all columns, which LARS cannot take: use one beside it.
    return svm_to_lasso(points, points.w * np.linspace(1, 1.2, points.d))


def svm_problem(n: int, C: float, seed: int) -> dict[str, Any]:
    """The translation of one SVM, and the relative error of each solver's ||A x||^2."""
    lasso = translated(n, C, seed)
    best = least_norm(lasso.points)
    solvers: dict[str, Solver] = {name: functools.partial(by_penalty, name) for name in installed()}
    solvers |= {LARS: by_lars, OURS: in_ball, PATH: by_path}
    errors = {
        name: excess(simplex_value(lasso, solve(lasso.A, lasso.b, lasso.radius)), best["value"])
        for name, solve in solvers.items()
    }
    return {"translation": lasso.translation, "gap": best["gap"], "errors": errors}


def sweeps(store: Store, counts: Sequence[int], repeats: int) -> Iterator[str]:
    """One SVM by coordinate descent with more and more sweeps for each penalty."""
    name = "scikit-learn Lasso"
    for count in counts:
        if store.done("sweeps", str(count)):
            continue
        errors = []
        for seed in range(repeats):
            lasso = translated(*SWEEPS_PROBLEM, seed)
            x = by_penalty(name, lasso.A, lasso.b, lasso.radius, max_iter=count)
            best = least_norm(lasso.points)["value"]
            errors.append(excess(simplex_value(lasso, x), best))
        store.add("sweeps", str(count), errors)
        yield f"sweeps  {count}: largest error {max(errors):.1e}"


def simplex_value(lasso: SVMAsLasso, x: np.ndarray) -> float:
    """The value of coefficients that are scaled to the simplex, without the translation."""
    x = np.abs(x)
    if not x.any():
        return float("inf")
    return lasso.objective(x / x.sum())


def least_norm(points: Any) -> dict[str, Any]:
    """The reference: the point of least norm, at a tolerance that leaves only rounding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = min_norm_point(points, tol=1e-13)
    return {"x": found.x, "value": found.certificate.primal, "gap": found.certificate.gap}


# ---------------------------------------------------------------- a Lasso by SVM solvers


def lasso(store: Store, repeats: int) -> Iterator[str]:
    """Lassos as an SVM, by libsvm and by the point of least norm."""
    for seed in range(repeats):
        for share in LASSO_SHARES:
            key = f"{share:g}/{seed}"
            if not store.done("lasso", key):
                store.add("lasso", key, lasso_problem(share, seed))
    yield f"lasso  {len(LASSO_SHARES)} radii, {repeats} draws"


def lasso_problem(share: float, seed: int) -> dict[str, Any]:
    """D^2 / sigma of the points of one Lasso, and the relative error of each SVM solver.

    The points are as long as D at most, and the best margin sigma is the residual of the Lasso: it
    vanishes as the radius comes near to the least one with which A x = b can be solved.
    """
    rng = np.random.default_rng(seed)
    A = rng.normal(size=LASSO_SHAPE)
    b = A[:, :4] @ [1.0, -1.0, 2.0, 0.5] + rng.normal(size=len(A))
    points = lasso_to_svm(A, b, radius=share * exact_radius(A, b))
    best = float(np.sum((A @ in_ball(A, b, points.radius) - b) ** 2))
    libsvm = OneClassSVM(kernel="precomputed", nu=1 / points.n, tol=1e-10, max_iter=10_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        libsvm.fit(points.kernel())
    z = np.zeros(points.n)
    z[libsvm.support_] = libsvm.dual_coef_[0]
    errors = {
        name: excess(float(np.sum((A @ points.to_lasso(x) - b) ** 2)), best)
        for name, x in {
            "libsvm OneClassSVM": z / z.sum(),
            "min_norm_point": least_norm(points)["x"],
        }.items()
    }
    longest = float(points.norms_squared().max())
    return {
        "translation": longest / float(np.sqrt(best)), "errors": errors,
        "stopped": bool(libsvm.fit_status_),
    }  # fmt: skip


def exact_radius(A: np.ndarray, b: np.ndarray) -> float:
    """The least 1-norm of x with A x = b, a linear programme."""
    from scipy.optimize import linprog

    found = linprog(np.ones(2 * A.shape[1]), A_eq=np.hstack([A, -A]), b_eq=b, method="highs")
    return float(found.fun)


# ---------------------------------------------------------------- the kernel Lasso on a signal


def pulses() -> tuple[np.ndarray, np.ndarray]:
    """The times of the samples, and the dictionary: short waves, one place after the other."""
    t = np.linspace(0, 1, N_SAMPLES)
    places = np.linspace(0.1, 0.9, N_PULSES)
    return t, wave(t[:, None] - places)


def wave(t: np.ndarray) -> np.ndarray:
    """A short wave around 0."""
    return np.exp(-0.5 * (t / PULSE_WIDTH) ** 2) * np.cos(2 * np.pi * t / PULSE_WIDTH)


def signal_of(spikes: float, seed: int) -> tuple[np.ndarray, int]:
    """One wave of the dictionary with noise, a share of its samples replaced; and which it is."""
    rng = np.random.default_rng(seed)
    _, A = pulses()
    j = int(rng.integers(N_PULSES))
    b = A[:, j] + NOISE * rng.normal(size=N_SAMPLES)
    hit = rng.random(N_SAMPLES) < spikes
    b[hit] += SPIKE * rng.choice([-1.0, 1.0], N_SAMPLES)[hit]
    return b, j


def laplacian(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """exp(-||u - v||_1 / N), which a few large differences change little."""
    return np.asarray(laplacian_kernel(U, V, gamma=1 / N_SAMPLES))


def signal_coefs(b: np.ndarray) -> dict[str, np.ndarray]:
    """The coefficients of the Lasso and of two kernel Lassos, all with the radius 1."""
    _, A = pulses()
    kernels: dict[str, dict[str, Any]] = {
        "Gaussian kernel": {"kernel": "rbf", "gamma": 1 / N_SAMPLES},
        "Laplacian kernel": {"kernel": laplacian},
    }
    found = {"Lasso": in_ball(A, b, 1.0)}
    for name, settings in kernels.items():
        coef = kernel_lasso(A, b, **settings).coef
        assert coef is not None
        found[name] = coef
    return found


def signal(store: Store, draws: int) -> Iterator[str]:
    """Whether the largest coefficient is at the right wave, and how many are in use."""
    if not store.done("signal", "drawn"):
        b, j = signal_of(0.2, 0)
        coefs = {name: coef.round(6).tolist() for name, coef in signal_coefs(b).items()}
        store.add("signal", "drawn", {"b": b.round(4).tolist(), "true": j, "coefs": coefs})
    for spikes in SPIKES:
        key = f"{spikes:g}"
        if store.done("signal", key):
            continue
        right: dict[str, int] = {}
        used: dict[str, list[int]] = {}
        nearest = 0
        for seed in range(draws):
            b, j = signal_of(spikes, seed)
            nearest += int(np.abs(pulses()[1].T - b).sum(axis=1).argmin() == j)
            for name, coef in signal_coefs(b).items():
                right[name] = right.get(name, 0) + int(np.abs(coef).argmax() == j)
                used.setdefault(name, []).append(int(np.sum(np.abs(coef) > 1e-6)))
        median = {name: float(np.median(counts)) for name, counts in used.items()}
        store.add(
            "signal", key, {"draws": draws, "right": right, "used": median, "nearest": nearest}
        )
        yield f"signal  {100 * spikes:g} % spikes: {right} of {draws}"


# ---------------------------------------------------------------- the sublinear SVM


def sublinear(store: Store, sizes: Sequence[int], repeats: int) -> Iterator[str]:
    """Entries read, and the margin that a certificate finds afterwards; and that of the mean."""
    for n in sizes:
        for seed in range(repeats):
            keys = {eps: f"{n}/{eps:g}/{seed}" for eps in EPS}
            if all(store.done("sublinear", key) for key in keys.values()):
                continue
            A = planted_margin(n, MARGIN, seed=seed)
            mean = A.mean(axis=1)
            of_mean = float((mean @ A).min() / np.linalg.norm(mean))
            for eps, key in keys.items():
                found = sublinear_svm(A, eps=eps, scale=1.0, certify=True, random_state=seed)
                share = found.entries_read / A.size
                value = {"share": share, "margin": found.margin, "mean": of_mean}
                store.add("sublinear", key, value)
            yield f"sublinear  n = d = {n}, draw {seed}: {share:.3f} read with eps {eps:g}"


# ---------------------------------------------------------------- screening


def cancer(n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Breast cancer, which comes with scikit-learn, standardised; the first n rows."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], np.where(y[:n] > 0, 1.0, -1.0)


def screening(store: Store, Cs: Sequence[float], n: int | None) -> Iterator[str]:
    """The share of certain rows by loss, C and gap."""
    X, y = cancer(n)
    gram = Gram.rbf(X, 1 / X.shape[1])
    for name in SCREEN_LOSSES:
        for C in Cs:
            key = f"{name}/{C:g}"
            if store.done("screening", key):
                continue
            problem = Problem(y=y, C=C, loss=get_loss(name), gram=gram)
            nearby = Problem(y=y, C=NEAR_SHARE * C, loss=get_loss(name), gram=gram)
            near = solve_kernel(nearby, tol=1e-9).dual
            assert near is not None
            # Where most duals are at C they grow with it; where none is they stay.
            reports = [at_duals(problem, duals) for duals in (near, near / NEAR_SHARE)]
            value = screened(problem, min(reports, key=lambda report: report.gap))
            store.add("screening", key, value)
        yield f"screening  {name}: {len(Cs)} values of C"


def at_duals(problem: Problem, dual: np.ndarray) -> Screening:
    """What is certain from dual variables and the function that belongs to them."""
    unknown = certify(problem, dual, 0.0, dual, tol=0.0)
    return screen(problem, Solution(dual=dual, certificate=unknown, n_iter=0, coef=dual))


def with_gap(problem: Problem, dual: np.ndarray, gap: float) -> Screening:
    """What is certain at optimal duals that are shrunk until they have the gap."""
    low, high = 0.0, 1.0
    for _ in range(25):
        middle = 0.5 * (low + high)
        if at_duals(problem, (1 - middle) * dual).gap > gap:
            high = middle
        else:
            low = middle
    return at_duals(problem, (1 - low) * dual)


def screened(problem: Problem, near: Screening) -> dict[str, Any]:
    """The share of certain rows at each gap.

    `mistakes` counts certain rows whose dual variable is another one in the solution at a gap of
    1e-9, by more than 1e-4 of the largest.
    """
    exact = solve_kernel(problem, tol=1e-9).dual
    assert exact is not None
    reports = {f"{gap:g}": with_gap(problem, exact, gap) for gap in SCREEN_GAPS}
    reports[NEAR] = near
    shares, mistakes = {}, 0
    for name, report in reports.items():
        known = ~np.isnan(report.dual_values)
        apart = np.abs(report.dual_values[known] - exact[known])
        shares[name] = float(known.mean())
        mistakes += int(np.sum(apart > 1e-4 * exact.max()))
    most = problem.C if problem.loss.name == "hinge" else np.inf
    free = (exact > 1e-9 * problem.C) & (exact < (1 - 1e-9) * most)
    return {
        "shares": shares, "mistakes": mistakes, "near_gap": near.gap,
        "limit": float(1 - free.mean()),
    }  # fmt: skip


# ---------------------------------------------------------------- the command


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, then make the tables and figures."""
    options = command_line("bridge", __doc__, PARTS, repeats=3).parse_args(arguments)
    from benchmarks.papers import bridge_report

    carry_out("bridge", options, _experiments, bridge_report)


def _experiments(store: Store, options: argparse.Namespace) -> Iterator[str]:
    quick = options.quick
    repeats = 1 if quick else options.repeats
    if "svm" in options.parts:
        yield from svm(store, SVM_ROWS[:1] if quick else SVM_ROWS, repeats)
    if "sweeps" in options.parts:
        yield from sweeps(store, SWEEPS[:2] if quick else SWEEPS, repeats)
    if "lasso" in options.parts:
        yield from lasso(store, repeats)
    if "signal" in options.parts:
        yield from signal(store, 3 if quick else N_DRAWS)
    if "sublinear" in options.parts:
        yield from sublinear(store, SIZES[:2] if quick else SIZES, min(repeats, 2))
    if "screening" in options.parts:
        Cs, n = (SCREEN_CS[::4], 150) if quick else (SCREEN_CS, None)
        yield from screening(store, Cs, n)


if __name__ == "__main__":
    main()
