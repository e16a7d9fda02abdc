"""The objective written out in plain numpy, apart from the package, and small data."""

import numpy as np

LOSS_OF_MARGIN = {
    "hinge": lambda m: np.maximum(0.0, 1.0 - m),
    "squared_hinge": lambda m: np.maximum(0.0, 1.0 - m) ** 2,
    "logistic": lambda m: np.logaddexp(0.0, -m),
    "squared": lambda m: (1.0 - m) ** 2,
    "absolute": lambda m: np.abs(1.0 - m),
}


def objective(
    loss, X, y, C, coef, intercept=0.0, weights=None, intercept_scaling=None
):  # y of -1 and +1
    """1/2 ||w||^2 + C sum_i weight_i loss(y_i (x_i'w + b)), and 1/2 (b/s)^2 where s is given."""
    scores = np.asarray(X @ coef, dtype=np.float64) + intercept
    weights = np.ones(len(y)) if weights is None else weights
    penalty = 0.5 * coef @ coef
    if intercept_scaling is not None:
        penalty += 0.5 * (intercept / intercept_scaling) ** 2
    return penalty + C * weights @ LOSS_OF_MARGIN[loss](y * scores)


def objective_of(model, X, y, weights=None):
    """The objective of a fitted LinearSVC or SparseSVC, summed over its binary problems."""
    weights = np.ones(len(y)) if weights is None else weights
    total = 0.0
    for k, (coef, intercept) in enumerate(zip(model.coef_, model.intercept_, strict=True)):
        positive = model.classes_[1 if len(model.classes_) == 2 else k]
        signs = np.where(np.asarray(y) == positive, 1.0, -1.0)
        scaling = model.intercept_scaling if model.fit_intercept else None
        if not hasattr(model, "penalty_weights"):
            total += objective(model.loss, X, signs, model.C, coef, intercept, weights, scaling)
            continue
        used = np.flatnonzero(coef)
        u = np.ones(len(coef)) if model.penalty_weights is None else model.penalty_weights
        total += np.abs(coef[used]) @ np.asarray(u)[used]
        total += 0.0 if scaling is None else abs(intercept / scaling)
        scores = np.asarray(X @ coef, dtype=np.float64) + intercept
        total += model.C * weights @ LOSS_OF_MARGIN[model.loss](signs * scores)
    return total


def noisy_classes(n=60, p=5, n_classes=2, seed=0):
    """Overlapping classes; the entries are multiples of 1/8, exact in float32."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    centres = rng.normal(size=(n_classes, p))
    X = centres[y] + rng.normal(size=(n, p))
    return np.round(8 * X) / 8, y
