"""
What a margin costs
===================

`LinearSVC` has five losses.  They differ in what they charge a row for its margin: whether rows
that are right without doubt cost anything, and how much one row can cost that is far on the wrong
side.
"""

# %%
# The five curves.  Only the hinge and its square charge nothing beyond a margin of 1; the two
# squares charge a wrong row more and more.
import matplotlib.pyplot as plt
import numpy as np

from anynorm import LinearSVC
from anynorm.datasets import make_relevant

margin = np.linspace(-2, 3, 201)
costs = {
    "hinge": np.maximum(0, 1 - margin),
    "squared_hinge": np.maximum(0, 1 - margin) ** 2,
    "logistic": np.log1p(np.exp(-margin)),
    "squared": (1 - margin) ** 2,
    "absolute": np.abs(1 - margin),
}
styles = dict(zip(costs, ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))), strict=True))
_, ax = plt.subplots()
for loss, cost in costs.items():
    ax.plot(margin, cost, linestyle=styles[loss], label=loss)
ax.axvline(0, color="grey", linewidth=0.8)
ax.set(xlabel="margin (below 0 the row is wrong)", ylabel="cost", ylim=(0, 5))
ax.legend()
plt.show()

# %%
# What that does when labels are wrong: 6 of 50 features matter, and a growing share of the 400
# labels is turned around, in eight draws.  Each C is the best of three on the new rows, so that no
# loss suffers from its scale.
test, truth = make_relevant(5000, n_features=50, n_relevant=6, random_state=100)
shares = (0.0, 0.1, 0.2, 0.3)
errors = {loss: np.zeros(len(shares)) for loss in costs}
for seed in range(8):
    X, y = make_relevant(400, n_features=50, n_relevant=6, random_state=seed)
    luck = np.random.default_rng(seed).random(len(y))
    for k, share in enumerate(shares):
        labels = np.where(luck < share, -y, y)
        for loss, found in errors.items():
            models = [LinearSVC(C=C, loss=loss).fit(X, labels) for C in (0.001, 0.01, 0.1)]
            found[k] += min(1 - model.score(test, truth) for model in models) / 8
for loss, found in errors.items():
    print(f"{loss:<14}", "  ".join(f"{error:.1%}" for error in found))

# %%
_, ax = plt.subplots()
for loss, found in errors.items():
    ax.plot(np.array(shares) * 100, found * 100, marker="o", linestyle=styles[loss],
            label=loss)  # fmt: skip
ax.set(xlabel="wrong labels among the rows to learn from (%)", ylabel="error on new rows (%)",
       ylim=(0, None))  # fmt: skip
ax.legend()
plt.show()
