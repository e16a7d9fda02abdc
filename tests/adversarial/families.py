"""What is fitted: each family draws a problem, fits it and states what was claimed.

A family is a function of a generator that returns words for the problem and a function that fits
it; `FAMILIES` is the table of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import anynorm
from anynorm import norms
from anynorm.reductions import soft_margin
from tests.adversarial import data, exact, known
from tests.adversarial.judge import Claim

Draw = tuple[str, Callable[[], list[Claim]]]

SECONDS = 15.0  # that a fit is given
CLEARLY = 1e-3  # of the largest eigenvalue: a negative one of that size is no rounding
FEASIBLE = 1e-9  # relative: by how much a constraint may be missed


def options(rng) -> dict[str, Any]:
    """Where a fit stops."""
    return {"tol": float(rng.choice([1e-2, 1e-4, 1e-4, 1e-6])), "time_limit": SECONDS}


def parts(model, labels):
    """The binary problems of a fit: place, labels as -1 and +1, certificate."""
    classes = model.classes_
    for k, certificate in enumerate(model.certificate_.per_class):
        positive = classes[1] if len(classes) == 2 else classes[k]
        yield k, np.where(labels == positive, 1.0, -1.0), certificate


def bias_of(rng) -> dict[str, Any]:
    """A free intercept, none, or a penalised one."""
    draw = rng.random()
    if draw < 0.6:
        return {}
    return {"fit_intercept": False} if draw < 0.8 else {"intercept_scaling": 10.0**draw}


def bias_word(model):
    """The same as `known.linear` takes it."""
    if not model.fit_intercept:
        return None
    return "free" if model.intercept_scaling is None else float(model.intercept_scaling)


def linear(rng) -> Draw:
    """LinearSVC with all its losses."""
    rows = data.rows(rng, most_rows=120, most_columns=60)
    loss = str(rng.choice(["hinge", "squared_hinge", "logistic", "squared", "absolute"]))
    model = anynorm.LinearSVC(data.price(rng), loss=loss, **bias_of(rng), **options(rng))
    return f"{model}, {rows.words}", partial(_fit_linear, model, rows)


def one_norm(rng) -> Draw:
    """SparseSVC with all its losses, and penalties that differ."""
    rows = data.rows(rng, most_rows=100, most_columns=60)
    loss = str(rng.choice(["hinge", "hinge", "squared_hinge", "logistic", "absolute"]))
    more = {}
    if rng.random() < 0.25:
        more["penalty_weights"] = rng.choice([0.0, 0.5, 2.0, np.inf], size=rows.X.shape[1])
    model = anynorm.SparseSVC(data.price(rng), loss=loss, **more, **bias_of(rng), **options(rng))
    return f"{model}, {rows.words}", partial(_fit_linear, model, rows)


def _fit_linear(model, rows) -> list[Claim]:
    model.fit(rows.given, rows.labels, sample_weight=rows.weights)
    sparse = isinstance(model, anynorm.SparseSVC)
    penalties = np.ones(rows.X.shape[1]) if sparse else None
    if sparse and model.penalty_weights is not None:
        penalties = model.penalty_weights
    bias = bias_word(model)
    s = None if bias in ("free", None) else bias
    claims = []
    for k, y, certificate in parts(model, rows.labels):
        problem = (rows.X, y, model.C, model.loss, rows.w)
        value = exact.linear_value(
            *problem, model.coef_[k], model.intercept_[k], s=s, penalties=penalties
        )
        others = partial(known.linear, *problem, bias=bias, penalties=penalties)
        blur = exact.blur(*problem, model.coef_[k], model.intercept_[k])
        claims.append(Claim(certificate, value, others, blur=blur))
    return claims


def path(rng) -> Draw:
    """The exact path of the 1-norm SVM, at some of its places."""
    rows = data.rows(rng, most_rows=60, most_columns=30, classes=(2,))
    more = {"fit_intercept": bool(rng.random() < 0.8)}
    if rng.random() < 0.2:
        more["penalty_weights"] = rng.choice([0.0, 0.5, 2.0, np.inf], size=rows.X.shape[1])
    if rng.random() < 0.3:
        more["max_joints"] = int(rng.integers(1, 8))
    shares = rng.random(2)
    words = f"sparse_svm_path(**{more}) at {shares.round(3)}, {rows.words}"
    return words, partial(_follow, rows, more, shares)


def _follow(rows, more, shares) -> list[Claim]:
    path = anynorm.sparse_svm_path(
        rows.given, rows.labels, sample_weight=rows.weights, time_limit=SECONDS, **more
    )
    y = np.where(rows.labels == path.classes_[-1], 1.0, -1.0)
    penalties = more.get("penalty_weights", np.ones(rows.X.shape[1]))
    claims = []
    for s in [*(shares * path.s[-1]), path.s[-1]]:
        coef, intercept = path.coef_at(s=s)
        C = path.knots.price(path.knots.segment(s))
        problem = (rows.X, y, C, "hinge", rows.w)
        value = exact.linear_value(*problem, coef, intercept, penalties=penalties)
        bias = "free" if more["fit_intercept"] else None
        others = partial(known.linear, *problem, bias=bias, penalties=penalties)
        blur = exact.blur(*problem, coef, intercept)
        claims.append(Claim(path.certificate_at(s), value, others, blur=blur))
    return claims


def walk(rng) -> Draw:
    """ReweightedSVC: every round's problem, and the 1-norm problem that it walks to."""
    rows = data.rows(rng, most_rows=80, most_columns=60)
    loss = str(rng.choice(["hinge", "squared_hinge", "logistic", "squared", "absolute"]))
    more = {"fit_intercept": bool(rng.random() < 0.8), "prune": bool(rng.random() < 0.8)}
    rounds = int(rng.integers(1, 5))
    model = anynorm.ReweightedSVC(
        data.price(rng), n_rounds=rounds, loss=loss, **more, **options(rng)
    )
    return f"{model}, {rows.words}", partial(_walk, model, rows)


def _walk(model, rows) -> list[Claim]:
    model.fit(rows.given, rows.labels, sample_weight=rows.weights)
    claims, bias = [], bias_word(model)
    for k, y, _ in parts(model, rows.labels):
        problem = (rows.X, y, model.C, model.loss, rows.w)
        for record in model.history_:
            point = (record.coef[k], record.intercept[k])
            for certificate, measure in (
                (record.certificate, {"scales": record.feature_scale[k]}),
                (record.l1_certificate, {"penalties": np.ones(rows.X.shape[1])}),
            ):
                value = exact.linear_value(*problem, *point, **measure)
                others = partial(known.linear, *problem, bias=bias, **measure)
                reached = "scales" in measure  # the walk need not get to the 1-norm
                claim = Claim(certificate.per_class[k], value, others, meant=reached)
                claims.append(replace(claim, blur=exact.blur(*problem, *point)))
    return claims


def slack_of(rng, n: int, weighted: bool):
    """Any norm of the slacks."""
    k = float(np.exp(rng.uniform(0.0, np.log(n + 1.0))))
    drawn = [norms.L1(), norms.L2(), norms.LInf(), norms.SquaredL2()]
    drawn += [norms.Lp(float(rng.choice([1.2, 1.5, 3.0, 8.0]))), norms.TopK(k), norms.TopK2(k)]
    drawn += [norms.K12(k)]
    if not weighted:
        A = rng.normal(size=(n, n))
        drawn.append(norms.Mahalanobis(A @ A.T / n + 0.3 * np.eye(n)))
    return drawn[rng.integers(len(drawn))]


def kernel_of(rng, rows) -> tuple[Any, np.ndarray, dict[str, Any], bool, str]:
    """What is given as X, the kernel matrix, the parameters, whether it is definite, words."""
    kind = str(rng.choice(KERNELS))
    X, n = rows.X, len(rows.X)
    reach = float(np.abs(X).max(initial=0.0)) or 1.0
    gamma = float(10.0 ** rng.uniform(-2, 1)) / reach**2
    if kind in ("linear", "rbf", "poly"):
        degree, coef0 = int(rng.integers(1, 4)), float(rng.choice([0.0, 1.0]))
        parameters = {"gamma": gamma, "degree": degree, "coef0": coef0}
        K = exact.kernel_matrix(X, kind, **parameters)
        return rows.given, K, {"kernel": kind, **parameters}, True, kind
    A = rng.normal(size=(n, 1 if kind == "low rank" else n + 1))
    K = A @ A.T
    if kind == "indefinite":
        K = K - 0.5 * np.trace(K) / n * np.ones((n, n)) - (0.1 * np.trace(K) / n) * np.eye(n)
        K *= data.scale(rng)
        return K, exact.exactly(K), {"kernel": "precomputed"}, is_definite(K), kind
    if kind == "sigmoid":
        Z = rng.normal(size=(n, 2))
        values = np.tanh(Z @ Z.T - 1.0)
        return Z, exact.exactly(values), {"kernel": _sigmoid}, is_definite(values), kind
    if kind == "function":
        Z = rng.normal(size=(n, 2))
        return Z, exact.exactly(_laplacian(Z, Z)), {"kernel": _laplacian}, True, kind
    K *= data.scale(rng)
    given = K.astype(np.float32) if kind == "narrow" else K
    return given, exact.exactly(given), {"kernel": "precomputed"}, True, kind


def is_definite(K) -> bool:
    """Whether a matrix has no eigenvalue that is clearly negative."""
    least, largest = np.linalg.eigvalsh(K)[[0, -1]]
    return bool(least > -CLEARLY * max(largest, 0.0))


def _sigmoid(A, B):
    return np.tanh(A @ B.T - 1.0)


def _laplacian(A, B):
    return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))


KERNELS = ["linear", "rbf", "poly", "linear", "rbf", "poly"]
KERNELS += ["precomputed", "narrow", "low rank", "indefinite", "sigmoid", "function"]


def kernel(rng) -> Draw:
    """SVC with all norms and both constraints, BudgetSVC and LeastNormSVC."""
    rows = data.rows(rng, most_rows=50, most_columns=20)
    X, K, parameters, definite, word = kernel_of(rng, rows)
    n, C = len(rows.X), data.price(rng)
    draw, limits = rng.random(), options(rng)
    if draw < 0.7:
        slack, equality = slack_of(rng, n, rows.weights is not None), bool(rng.random() < 0.4)
        constraints = "equality" if equality else "inequality"
        model = anynorm.SVC(C, slack=slack, constraints=constraints, **parameters, **limits)
    elif draw < 0.85:
        budget = int(rng.integers(1, n + 1))
        name, equality = str(rng.choice(["l1", "l2"])), False
        slack = norms.TopK(budget) if name == "l1" else norms.TopK2(budget)
        model = anynorm.BudgetSVC(budget, C, slack=name, **parameters, **limits)
    else:
        slack, equality = norms.L1(), True
        model = anynorm.LeastNormSVC(C, **parameters, **limits)
    words = f"{model}, {word}, {rows.words}"
    return words, partial(_fit_kernel, model, X, K, rows, (slack, equality), definite)


def least_squares(rng) -> Draw:
    """LeastSquaresSVC by all its solvers."""
    rows = data.rows(rng, most_rows=60, most_columns=20)
    X, K, parameters, definite, word = kernel_of(rng, rows)
    solver = str(rng.choice(["auto", "cholesky", "cg"]))
    model = anynorm.LeastSquaresSVC(data.price(rng), solver=solver, **parameters, **options(rng))
    words = f"{model}, {word}, {rows.words}"
    return words, partial(_fit_kernel, model, X, K, rows, "squared", definite)


def _fit_kernel(model, X, K, rows, loss, definite) -> list[Claim]:
    model.fit(X, rows.labels, sample_weight=rows.weights)
    claims = []
    for k, y, certificate in parts(model, rows.labels):
        beta = np.zeros(len(rows.X))
        beta[model.support_] = model.dual_coef_[k]
        if model.kernel == "linear":  # squares of X would cost digits
            problem = (rows.X, y, model.C, loss, rows.w)
            coef = exact.exactly(rows.X).T @ exact.exactly(beta)
            value = exact.linear_value(*problem, coef, model.intercept_[k])
            others = partial(known.linear, *problem)
        else:
            problem = (K, y, model.C, loss, rows.w)
            value = exact.kernel_value(*problem, beta, model.intercept_[k])
            others = partial(known.kernel, *problem)
        blur = exact.blur(K, y, model.C, loss, rows.w, beta, model.intercept_[k])
        claims.append(Claim(certificate, value, others, definite, blur=blur))
    return claims


def lasso(rng) -> Draw:
    """ConstrainedLasso, a fit and its path."""
    rows = data.rows(rng, most_rows=80, most_columns=60)
    y = rng.normal(size=len(rows.X)) * data.scale(rng) + data.shift(rng)
    if rng.random() < 0.2:
        y = np.round(y)
    radius, free = data.price(rng), bool(rng.random() < 0.7)
    model = anynorm.ConstrainedLasso(radius, fit_intercept=free, **options(rng))
    words = f"{model}, {rows.words}"
    if rng.random() < 0.3:
        share = float(rng.random())
        return f"path at {share:.3f} of {words}", partial(_follow_lasso, model, rows, y, share)
    return words, partial(_fit_lasso, model, rows, y)


def _fit_lasso(model, rows, y) -> list[Claim]:
    model.fit(rows.given, y, sample_weight=rows.weights)
    point = (model.coef_, model.intercept_)
    return [_lasso_claim(model, rows, y, model.radius, point, model.certificate_)]


def _follow_lasso(model, rows, y, share) -> list[Claim]:
    path = model.path(rows.given, y, sample_weight=rows.weights)
    radius = share * path.radii[-1]
    point = path.coef_at(radius=radius)
    return [_lasso_claim(model, rows, y, radius, point, path.certificate_at(radius))]


def _lasso_claim(model, rows, y, radius, point, certificate) -> Claim:
    value = exact.squares(rows.X, y, rows.w, *point)
    others = partial(known.lasso, rows.X, y, rows.w, radius, fit_intercept=model.fit_intercept)
    feasible = np.abs(point[0]).sum() <= radius * (1 + FEASIBLE)
    return Claim(certificate, value, others, feasible=bool(feasible))


def simplex(rng) -> Draw:
    """min_norm_point of columns, of products and of a soft margin; kernel_lasso."""
    rows = data.rows(rng, most_rows=40, most_columns=40)
    limits = {"tol": float(rng.choice([1e-4, 1e-9])), "time_limit": SECONDS}
    kind = str(rng.choice(["columns", "columns", "products", "soft margin", "kernel_lasso"]))
    words = f"{kind} {limits}, {rows.words}"
    if kind == "columns":
        return words, partial(_nearest, rows.given, limits, rows.X)
    if kind == "soft margin":
        C, offset = data.price(rng), [None, 1.0][rng.integers(2)]
        y = np.where(rows.labels == rows.labels[0], 1, -1)
        return f"C={C:g} {words}", partial(_soft, rows, y, C, offset, limits)
    rows = data.rows(rng, most_rows=40, most_columns=40)
    _, K, _, definite, word = kernel_of(rng, rows)
    K = np.asarray(K, dtype=np.float64)
    if kind == "products":
        return f"{word} {words}", partial(_nearest_by_products, K, limits, definite)
    radius, whole = data.price(rng), bool(rng.random() < 0.5)
    words = f"radius={radius:g}, simplex={whole}, {word} {words}"
    ends = np.vstack(
        [radius * np.eye(len(K) - 1), -np.ones(len(K) - 1)]
    )  # of the problem as a hull
    definite = definite or is_definite(ends.T @ K @ ends)
    return words, partial(_combine, K, radius, whole, limits, definite)


def _on_simplex(x) -> bool:
    return bool(x.min() >= 0 and abs(x.sum() - 1) <= FEASIBLE)


def _nearest(given, limits, A) -> list[Claim]:
    found = anynorm.min_norm_point(given, **limits)
    value = exact.square(exact.exactly(A) @ exact.exactly(found.x))
    others = partial(known.hull, A)
    return [Claim(found.certificate, value, others, feasible=_on_simplex(found.x))]


def _soft(rows, y, C, offset, limits) -> list[Claim]:
    points = soft_margin(rows.given, y, C=C, offset=offset)
    found = anynorm.min_norm_point(points, **limits)
    signed = y[:, None] * exact.exactly(rows.X)
    columns = [signed] if offset is None else [signed, exact.exactly(offset * y)[:, None]]
    diagonal = exact.exactly(np.eye(len(y))) / np.sqrt(2 * exact.Exact(C))
    A = np.column_stack([*columns, diagonal]).T
    value = exact.square(A @ exact.exactly(found.x))
    others = partial(known.hull, np.asarray(A, dtype=np.float64))
    return [Claim(found.certificate, value, others, feasible=_on_simplex(found.x))]


def _nearest_by_products(K, limits, definite) -> list[Claim]:
    found = anynorm.min_norm_point(K, kernel_matrix=True, **limits)
    x = exact.exactly(found.x)
    others = partial(known.hull_of_products, K)
    value = x @ exact.exactly(K) @ x
    return [Claim(found.certificate, value, others, definite, feasible=_on_simplex(found.x))]


def _combine(K, radius, whole, limits, definite) -> list[Claim]:
    found = anynorm.kernel_lasso(K, kernel="precomputed", radius=radius, simplex=whole, **limits)
    value = exact.distance(K, found.coef)
    others = partial(known.combination, K, radius, whole)
    feasible = np.abs(found.coef).sum() <= radius * (1 + FEASIBLE)
    return [Claim(found.certificate, value, others, definite, feasible=bool(feasible))]


FAMILIES: dict[str, Callable[[np.random.Generator], Draw]] = {
    "linear": linear,
    "one_norm": one_norm,
    "path": path,
    "walk": walk,
    "kernel": kernel,
    "least_squares": least_squares,
    "lasso": lasso,
    "simplex": simplex,
}
