"""Draw docs/_static/case-genes.png: which genes come back when half of the patients choose.

    ANYNORM_DATA=... python docs/genes.py

It is the experiment that docs/case-genes.md prints, on its data set.
"""

from __future__ import annotations

import pathlib

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from anynorm import sparse_svm_path
from anynorm.datasets import load_dataset

HALVES, WIDTH = 100, 10  # how often, and how many genes each time
SHOWN = 20


def counted() -> tuple[np.ndarray, np.ndarray]:
    """The names of the genes, and in how many halves each is chosen."""
    data = load_dataset("leukemia_7129")
    train, _ = data.splits[0]
    X, y = np.log2(np.maximum(data.data[train], 100)), data.target[train]
    count = np.zeros(X.shape[1], dtype=int)
    for half, _ in StratifiedShuffleSplit(HALVES, test_size=0.5, random_state=0).split(X, y):
        scale = X[half].std(axis=0)
        Z = (X[half] - X[half].mean(axis=0)) / np.where(scale > 0, scale, 1)
        coef, _ = sparse_svm_path(Z, y[half], max_features=WIDTH).coef_at(n_features=WIDTH)
        count += coef != 0
    return np.array(data.feature_names), count


def draw(file: pathlib.Path) -> None:
    """Write the picture."""
    names, count = counted()
    order = np.argsort(-count, kind="stable")[:SHOWN]
    figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
    ax.barh(names[order], count[order], color="#1d5fa3", height=0.7)
    ax.axvline(HALVES / 2, color="#8a939c", linestyle="--", linewidth=1)
    ax.annotate("half of them", (HALVES / 2, SHOWN - 1), (4, 0), textcoords="offset points",
                va="center", color="#57606a")  # fmt: skip
    ax.invert_yaxis()
    ax.set(xlim=(0, 60), xlabel=f"halves of {HALVES} in which the gene is among the {WIDTH} chosen")
    ax.tick_params(axis="y", labelsize=8, length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    draw(pathlib.Path(__file__).parent / "_static" / "case-genes.png")
