"""
Fewer kernel values per prediction
==================================

A kernel SVM evaluates the kernel at every support vector for each prediction.  Two ways to need
fewer: the best function in the span of B rows (BudgetSVC, strict), or the 1-norm, which chooses
among kernels at all rows (KernelDictionary and SparseSVC).
"""

# %%
# One class around the other; the ordinary SVM as the measure.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from anynorm import SVC, BudgetSVC, KernelDictionary, SparseSVC
from anynorm.datasets import make_skin

X, y = make_skin(300, random_state=0)
test, truth = make_skin(5000, random_state=1)
plain = SVC(C=1.0, gamma=0.5).fit(X, y)
plain_size, plain_error = len(plain.support_), 1 - plain.score(test, truth)
print(f"SVC: {plain_size} support vectors, error {plain_error:.3f}")

# %%
# Both ways, at several sizes.
budgets, dictionaries = [], []
for budget in (5, 10, 20, 40, 60):
    model = BudgetSVC(budget, C=1.0, gamma=0.5, strict=True).fit(X, y)
    budgets.append((len(model.support_), 1 - model.score(test, truth)))
    cost = model.certificate_full_.gap
for C in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0):
    model = make_pipeline(KernelDictionary(gamma=0.5, n_components=None), SparseSVC(C=C)).fit(X, y)
    dictionaries.append((np.count_nonzero(model[-1].coef_), 1 - model.score(test, truth)))
for name, found in (("strict budget", budgets), ("dictionary", dictionaries)):
    print(f"{name:<14}", ", ".join(f"{size}: {error:.3f}" for size, error in found))

# %%
# Both take functions for what they do to the fit.  A strict budget does so for the objective of the
# ordinary SVM, and its second certificate says how much of that a few rows leave undone.
print(f"what {budget} rows cost at most: {cost:.1%} of the objective")

# %%
# The error on new rows by the number of kernel values.
figure, ax = plt.subplots()
ax.plot(*np.transpose(budgets), marker="o", label="BudgetSVC(strict=True)")
ax.plot(*np.transpose(dictionaries), marker="s", label="KernelDictionary + SparseSVC")
ax.plot(plain_size, plain_error, "k*", markersize=12, label="SVC")
ax.set(xlabel="kernel values per prediction", ylabel="error on new rows", ylim=(0, None))
ax.legend()
plt.show()
