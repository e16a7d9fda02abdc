"""
From the 2-norm to the 1-norm, round by round
=============================================

The walk re-weights the features of a 2-norm SVM.  Every round lowers the 1-norm objective; the
error on new rows is often least on the way, not at the end.
"""

# %%
# Ten rounds on data where 6 of 200 features matter.  Negligible ones are dropped
# on the way.
import matplotlib.pyplot as plt
import numpy as np

from anynorm import ReweightedSVC
from anynorm.datasets import make_relevant
from anynorm.plotting import WalkDisplay

X, y = make_relevant(100, n_relevant=6, random_state=1)
test, truth = make_relevant(5000, n_relevant=6, random_state=10)
model = ReweightedSVC(C=0.1, n_rounds=10).fit(X, y)
WalkDisplay.from_estimator(model)
plt.show()

# %%
# The last certificate of the 1-norm problem says how much of the way is left.
last = model.history_[-1]
print(f"1-norm objective {last.objective:.4f}, no model is below {last.l1_certificate.dual:.4f}")

# %%
# All rounds come with one fit, so comparing them costs predictions only.
errors = [float(np.mean(labels != truth)) for labels in model.staged_predict(test)]
figure, ax = plt.subplots()
ax.plot(range(1, 11), errors, marker="o")
ax.set(xlabel="round", ylabel="error on new rows", ylim=(0, None))
plt.show()

# %%
# Without pruning no coefficient is exactly zero.
whole = ReweightedSVC(C=0.1, n_rounds=10, prune=False).fit(X, y)
for name, walk in (("pruned", model), ("whole", whole)):
    print(f"{name:<7} features by round {[record.n_nonzero for record in walk.history_]}")
