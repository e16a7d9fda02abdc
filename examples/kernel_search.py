"""
C and gamma in one fit
======================

`SVCCV` tries a table of C and gamma with the same folds, and keeps the error, the number of support
vectors and the largest gap of every setting.
"""

# %%
# Two moons with noise.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from anynorm import SVCCV

X, y = make_moons(300, noise=0.3, random_state=0)
test, truth = make_moons(5000, noise=0.3, random_state=1)
Cs, gammas = np.logspace(-2, 3, 6), np.logspace(-2, 2, 9)
model = SVCCV(Cs, gammas=gammas, cv=5).fit(X, y)
print(f"chosen: C = {model.C_:g}, gamma = {model.gamma_:.3g}; {1 - model.best_score_:.1%} wrong in "
      f"the folds that chose, {1 - model.score(test, truth):.1%} of new rows")  # fmt: skip
print(f"largest gap of the {len(model.cv_results_['params'])} settings:",
      f"{np.nanmax(model.cv_results_['max_gap']):.0e}")  # fmt: skip

# %%
# The good settings are a valley: the smaller gamma, the smoother the function, and a larger C makes
# up for it.  The search left white cells early, as hopeless.  The star is not at an edge;
# if it were, the table would be too small.
table = model.cv_results_
error = np.full((len(gammas), len(Cs)), np.nan)
rows, columns = np.searchsorted(gammas, table["param_gamma"]), np.searchsorted(Cs, table["param_C"])
error[rows, columns] = 1 - table["mean_test_score"]
_, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
image = left.imshow(error * 100, origin="lower", cmap="viridis_r", aspect="auto")
left.set_xticks(range(len(Cs)), [f"{C:g}" for C in Cs])
left.set_yticks(range(len(gammas)), [f"{gamma:.3g}" for gamma in gammas])
left.plot(np.searchsorted(Cs, model.C_), np.searchsorted(gammas, model.gamma_), "r*", markersize=14)
left.set(xlabel="C", ylabel="gamma", title="cross-validated error (%)")
plt.colorbar(image, ax=left)
grid = np.linspace(-2, 3, 120)
points = np.array(np.meshgrid(grid, grid)).reshape(2, -1).T
right.scatter(*X.T, c=y, cmap="coolwarm", s=12)
right.contour(grid, grid, model.decision_function(points).reshape(120, 120), levels=[0])
right.set(title=f"boundary, {len(model.support_)} support vectors", aspect="equal")
plt.show()
