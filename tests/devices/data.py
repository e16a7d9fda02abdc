"""Small data of two and three classes, and NumPy's own way with devices' arrays."""

import numpy as np

from anynorm.design.device import to_host


def curved(n=400, p=5, seed=0, dtype=np.float64):
    """Rows and two classes that no plane tells apart."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    score = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X.astype(dtype), (score + 0.4 * rng.standard_normal(n) > 0).astype(np.int64)


def three_classes(n=300, p=4, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.digitize(X[:, 0] + 0.3 * rng.standard_normal(n), [-0.5, 0.5]) * 10


host = to_host
