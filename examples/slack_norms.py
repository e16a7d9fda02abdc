"""
What a norm of the slacks does
==============================

The same data, the same kernel, and six costs of the slacks.  A few labels are wrong; the norm
decides how much weight they can have.
"""

# %%
# Two moons with six labels switched.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from anynorm import SVC, BudgetSVC, LeastNormSVC, LeastSquaresSVC
from anynorm.norms import K12

X, truth = make_moons(160, noise=0.15, random_state=0)
y = truth.copy()
switched = np.random.default_rng(3).choice(len(y), 6, replace=False)
y[switched] = 1 - y[switched]
models = {
    "hinge: SVC": SVC(C=5.0, gamma=1.0),
    "squared hinge": SVC(C=5.0, gamma=1.0, slack="squared_l2"),
    "between: K12(10)": SVC(C=5.0, gamma=1.0, slack=K12(10)),
    "20 largest: BudgetSVC": BudgetSVC(20, C=5.0, gamma=1.0),
    "both sides: LeastNormSVC": LeastNormSVC(C=5.0, gamma=1.0),
    "squares: LeastSquaresSVC": LeastSquaresSVC(C=5.0, gamma=1.0),
}

# %%
# Lines are where the score is -1, 0 and 1; rings are the switched labels.
grid = np.stack(np.meshgrid(np.linspace(-1.7, 2.7, 120), np.linspace(-1.2, 1.7, 90)), axis=-1)
figure, axes = plt.subplots(2, 3, figsize=(9, 5.4), sharex=True, sharey=True, layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    model.fit(X, y)
    scores = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contour(*grid.T, scores.T, levels=[-1, 0, 1], colors="0.4", linestyles=["--", "-", "--"])
    ax.scatter(*X.T, c=y, cmap="coolwarm", s=12)
    ax.scatter(*X[switched].T, facecolors="none", edgecolors="k", s=60)
    ax.set_title(name, fontsize=10)
plt.show()

# %%
# The weight of a row is bounded by C with the 1-norm of the slacks, one-sided or two-sided, and
# grows with the slack where slacks are squared.  Errors are on clean labels of new rows.
new, labels = make_moons(4000, noise=0.15, random_state=1)
print(f"{'cost of the slacks':<26} {'support':>7} {'weight of the switched':>23} {'error':>6}")
for name, model in models.items():
    weight = np.zeros(len(y))
    weight[model.support_] = np.abs(model.dual_coef_[0])
    share = weight[switched].sum() / weight.sum()
    error = 1 - model.score(new, labels)
    print(f"{name:<26} {len(model.support_):>7} {share:>23.1%} {error:>6.3f}")
