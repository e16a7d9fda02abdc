"""
What the gap promises
=====================

``tol`` is the relative distance between the objective of the model and a bound that no model can go
below.  It says how much there is to gain by going on, which a solver's own stopping rule does not.
"""

# %%
# One problem, solved to ever tighter gaps.  The optimum is always between the two numbers.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from anynorm import SVC

X, y = make_classification(1500, 10, n_informative=6, flip_y=0.05, random_state=0)
tolerances = 10.0 ** -np.arange(0, 7)
models = [SVC(C=10.0, tol=tol).fit(X, y) for tol in tolerances]
print(f"{'tol':>8} {'objective':>12} {'bound':>12} {'gap':>8} {'steps':>6}")
for tol, model in zip(tolerances, models, strict=True):
    c = model.certificate_
    print(f"{tol:>8.0e} {c.primal:>12.5f} {c.dual:>12.5f} {c.gap:>8.0e} {model.n_iter_:>6}")

# %%
# The true distance from the optimum, known afterwards from the tightest fit, stays below the gap.
best = models[-1].certificate_.dual
gaps = [model.certificate_.gap for model in models]
distance = [max(model.certificate_.primal / best - 1, 1e-9) for model in models]
figure, ax = plt.subplots()
ax.loglog(tolerances, gaps, marker="o", label="certified gap")
ax.loglog(tolerances, distance, marker="s", label="true relative distance")
ax.loglog(tolerances, tolerances, color="0.6", linestyle="--", label="tol")
ax.set(xlabel="tol", ylabel="relative distance from the optimum")
ax.legend()
plt.show()
