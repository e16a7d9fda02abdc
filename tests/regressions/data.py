"""Small data of two classes, and the ways to store them."""

import numpy as np
import scipy.sparse as sp

KINDS = [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array]


def overlapping(n=40, p=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, p)) + 0.8 * y[:, None], y
