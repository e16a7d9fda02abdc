"""
Which features come back?
=========================

The 1-norm picks a short list of features from thousands.  How often each of them is picked from a
random half of the rows says which part of the list would survive another draw of the data.
"""

# %%
# A hundred random halves, and on each of them the models with at most 1, 2, ... 20 features: all
# from one path per half.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from anynorm import sparse_svm_path
from anynorm.datasets import make_relevant

N_HALVES, SIZES = 100, range(1, 21)
X, y = make_relevant(120, n_features=300, n_relevant=6, random_state=0)
frequency = np.zeros((len(SIZES), X.shape[1]))
for half, _ in StratifiedShuffleSplit(N_HALVES, test_size=0.5, random_state=0).split(X, y):
    path = sparse_svm_path(X[half], y[half], max_features=max(SIZES))
    for row, size in zip(frequency, SIZES, strict=True):
        row += path.coef_at(n_features=size)[0] != 0
frequency /= N_HALVES

# %%
# The six features that matter rise early and far above the others.
figure, ax = plt.subplots()
ax.plot(SIZES, frequency[:, 6:], color="0.75", linewidth=0.8)
ax.plot(SIZES, frequency[:, :6], color="tab:blue", linewidth=2)
ax.axhline(0.6, color="tab:red", linestyle="--", linewidth=1)
ax.set(
    xlabel="features allowed",
    ylabel="share of halves that use the feature",
    title="blue: the six that matter; grey: the other 294",
)
plt.show()

# %%
# With q features allowed, those above a share of 0.6 contain at most q^2 / (0.2 p) false ones in
# expectation (Meinshausen and Buehlmann 2010, for exchangeable noise).
for size in (5, 8, 12):
    stable = np.flatnonzero(frequency[size - 1] > 0.6)
    bound = size**2 / (0.2 * X.shape[1])
    print(f"q = {size:>2}: stable {stable.tolist()}, false ones to expect at most {bound:.1f}")
