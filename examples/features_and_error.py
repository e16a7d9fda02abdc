"""
How many features, and how wrong?
=================================

For the 1-norm SVM the price C decides how many features there are.  The exact path has the answer
for every C at once: here with the error on many new rows, which one never has, and with what
cross-validation made of 100 rows.
"""

# %%
# 4 of 200 features matter.
import matplotlib.pyplot as plt
import numpy as np

from anynorm import SparseSVCCV, sparse_svm_path
from anynorm.datasets import make_relevant

X, y = make_relevant(100, n_relevant=4, random_state=0)
test, truth = make_relevant(5000, n_relevant=4, random_state=1)
path = sparse_svm_path(X, y)
prices = np.geomspace(0.5 / path.penalties[0], 1.0, 120)
points = [path.coef_at(C=C) for C in prices]
features = [np.count_nonzero(coef) for coef, _ in points]
error = [np.mean(np.sign(test @ coef + intercept) != truth) for coef, intercept in points]

# %%
# Too small a C uses nothing, and too large a C uses noise: the default, C = 1, takes twelve times
# as many features as matter, and is wrong half as often again as the best.
rules = {rule: SparseSVCCV(rule=rule).fit(X, y) for rule in ("best", "one_se")}
for rule, model in rules.items():
    used, wrong = np.count_nonzero(model.coef_), 1 - model.score(test, truth)
    print(f"{rule:<7} C = {model.C_:.3f}, {used:>2} features, {wrong:.1%} of new rows wrong")
print(f"C = 1               {features[-1]} features, {error[-1]:.1%} of new rows wrong")

# %%
figure, (above, below) = plt.subplots(2, sharex=True, layout="constrained")
above.semilogx(prices, np.array(error) * 100)
above.set(ylabel="error on new rows (%)", ylim=(0, 52))
below.semilogx(prices, features, color="tab:orange")
below.set(xlabel="C", ylabel="features", ylim=(0, None))
for (rule, model), style in zip(rules.items(), ("--", ":"), strict=True):
    for ax in (above, below):
        ax.axvline(model.C_, color="black", linestyle=style, linewidth=1, label=rule)
above.legend(title="rule of SparseSVCCV")
plt.show()
