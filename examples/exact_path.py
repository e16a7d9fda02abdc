"""
Every solution of the 1-norm SVM
================================

With few rows and many features, the bound s on the 1-norm decides how many features are in use.
All solutions, for every s, form one path of straight pieces, and cross-validation along it needs no
grid.
"""

# %%
# Sixty rows, 500 features, of which the first five matter.  The path is followed once.
import matplotlib.pyplot as plt
import numpy as np

from anynorm import SparseSVCCV, sparse_svm_path
from anynorm.datasets import make_relevant
from anynorm.plotting import CVCurveDisplay

X, y = make_relevant(60, n_features=500, n_relevant=5, random_state=2)
path = sparse_svm_path(X, y)
print(f"{path.n_joints} joints, worst relative gap {path.gaps.max():.0e}")

# %%
# Each line is a coefficient.  The strokes along the lower edge are the joints, where a feature
# comes or goes, or a row reaches margin 1.
path.plot()
plt.show()

# %%
# Models with at most k features, read off the path.
for k in (1, 2, 3, 5, 10):
    coef, intercept = path.coef_at(n_features=k)
    print(f"at most {k:>2}: {np.flatnonzero(coef).tolist()}")

# %%
# Which s?  The accuracy on held-out rows is a step function of s, known exactly.  The rule "one_se"
# takes the smallest s within one standard error of the best.
model = SparseSVCCV(cv=10, rule="one_se").fit(X, y)
CVCurveDisplay.from_estimator(model)
plt.show()

# %%
# The model it picks, with its proof.
used = np.flatnonzero(model.coef_[0])
print(f"s = {model.s_:.3f}, features {used.tolist()}")
print(model.certificate_)
test, truth = make_relevant(5000, n_features=500, n_relevant=5, random_state=3)
error = 1 - model.score(test, truth)
print(f"error on new rows {error:.3f}, selection error {1 - model.best_score_:.3f}")
