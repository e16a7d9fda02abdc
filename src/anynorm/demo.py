"""The main job in one go: fit, certify, compare, draw.  Run by ``make demo``.

    python -m anynorm.demo [--output demo.png]

All five losses are fitted on the breast cancer data that come with scikit-learn, and two of them
on a small example with outliers, which is drawn.
"""

import argparse
import pathlib
import time
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from anynorm.datasets import make_two_gaussians
from anynorm.estimators.linear_svc import LinearSVC

LOSSES = ("hinge", "squared_hinge", "logistic", "squared", "absolute")


def main(arguments: list[str] | None = None) -> None:
    """Print the table of fits with their certificates and write the picture."""
    parser = argparse.ArgumentParser(prog="python -m anynorm.demo", description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("demo.png"))
    parser.add_argument("--tol", type=float, default=1e-6, help="relative duality gap (1e-6)")
    options = parser.parse_args(arguments)

    data = load_breast_cancer()
    train, test, labels, held_out = train_test_split(
        data.data, data.target, test_size=0.3, random_state=0, stratify=data.target
    )
    scaler = StandardScaler().fit(train)
    train, test = scaler.transform(train), scaler.transform(test)

    print(f"Breast cancer data: {len(train)} examples to learn from, {len(test)} held out,")
    print(
        f"{train.shape[1]} features.  LinearSVC(C=0.1, tol={options.tol:g}), bias not penalised.\n"
    )
    print("loss                primal        dual       gap  status     accuracy     time")
    models = {}
    for loss in LOSSES:
        start = time.perf_counter()
        model = LinearSVC(C=0.1, loss=loss, tol=options.tol).fit(train, labels)
        seconds = time.perf_counter() - start
        certificate = model.certificate_
        accuracy = model.score(test, held_out)
        print(
            f"{loss:<14}{certificate.primal:12.6f}{certificate.dual:12.6f}{certificate.gap:10.1e}  "
            f"{certificate.status:<10}{accuracy:9.1%}{seconds:8.3f}s"
        )
        models[loss] = model
    print(
        "\nNo model can have an objective below the dual value: the gap is how far, at most,\n"
        "each fit is from the best one.  It is computed apart from the solver."
    )
    draw(models["hinge"], list(data.feature_names), options.output)
    print(f"\nThe picture is in {options.output}")


def draw(model: Any, names: list[str], path: pathlib.Path) -> None:
    """Draw the heaviest weights, and how two losses take outliers."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    weights = model.coef_.ravel()
    heaviest = np.argsort(np.abs(weights))[-10:]
    colours = np.where(weights[heaviest] > 0, "tab:blue", "tab:red")
    left.barh([names[j] for j in heaviest], weights[heaviest], color=colours)
    left.axvline(0, color="black", linewidth=0.8)
    left.set_title("Hinge loss: the ten heaviest weights")
    left.set_xlabel("weight (positive speaks for benign)")

    X, y = make_two_gaussians(random_state=1)
    for label, colour, marker in ((1, "tab:blue", "o"), (-1, "tab:red", "s")):
        points = X[y == label]
        right.scatter(points[:, 0], points[:, 1], color=colour, marker=marker, s=22)
    limits = np.array([X[:, 1].min() - 1, X[:, 1].max() + 1])
    for loss, style in (("squared", "--"), ("absolute", "-")):
        fit = LinearSVC(C=1.0, loss=loss).fit(X, y)
        (w1, w2), b = fit.coef_.ravel(), fit.intercept_[0]
        right.plot(-(b + w2 * limits) / w1, limits, style, color="black", label=f"{loss} loss")
    right.set_ylim(*limits)
    right.set_title("Two switched labels turn the squared loss more")
    right.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
