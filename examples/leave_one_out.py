"""
Leave-one-out errors from one factor
====================================

`LeastSquaresSVC` has the leave-one-out scores of all rows from the factor that it needs anyway, so
choosing C and gamma by them takes one fit a setting, and no folds.
"""

# %%
# Two moons with noise; a curve in C for each gamma.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from anynorm import LeastSquaresSVC

X, y = make_moons(300, noise=0.3, random_state=0)
test, truth = make_moons(5000, noise=0.3, random_state=1)
Cs, found = np.logspace(-3, 3, 13), {}
for gamma in (0.1, 1.0, 10.0):
    models = [LeastSquaresSVC(C=C, gamma=gamma, leave_one_out=True).fit(X, y) for C in Cs]
    found[gamma] = [(m.loo_error_, 1 - m.score(X, y), 1 - m.score(test, truth)) for m in models]
    loo, _, new = found[gamma][int(np.argmin([errors[0] for errors in found[gamma]]))]
    print(f"gamma = {gamma:<4} leave-one-out {loo:.1%} at its best, {new:.1%} of new rows wrong")

# %%
# Leaving one out (lines) follows the error on new rows (dots), up to the luck of 300 rows.  The
# error on the rows themselves (dotted) goes on falling where the model learns labels by heart.
_, ax = plt.subplots()
for (gamma, errors), colour in zip(found.items(), ("C0", "C1", "C2"), strict=True):
    loo, own, new = np.transpose(errors) * 100
    ax.semilogx(Cs, loo, color=colour, label=f"gamma = {gamma:g}")
    ax.semilogx(Cs, new, "o", color=colour, markersize=4)
    ax.semilogx(Cs, own, ":", color=colour)
ax.set(xlabel="C", ylabel="error (%)", ylim=(0, 25))
ax.legend()
plt.show()
