"""``--model budget``: rows chosen once for each gamma serve all budgets and C."""

import numpy as np
import pandas as pd
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC as Libsvm

from anynorm import BudgetSVC, LinearSVC, job, tables
from anynorm.estimators import budget_svc


def rows_and_others():
    X, y = make_moons(160, noise=0.25, random_state=0)
    return X[:120], y[:120], X[120:]


def test_features_of_the_first_rows_are_the_problem_over_their_span():
    X, y, others = rows_and_others()
    span = BudgetSVC(12, C=3.0, gamma=1.5, strict=True)._landmarks(X, y, None)
    Z, Z_others = span.design().dense(), span.features_of(others)
    assert Z.shape == (120, 12)
    for count in (4, 12):
        chosen = X[span.rows[:count]]
        inverse = np.linalg.inv(rbf_kernel(chosen, gamma=1.5))

        def kernel(A, B, chosen=chosen, inverse=inverse):
            return rbf_kernel(A, chosen, gamma=1.5) @ inverse @ rbf_kernel(chosen, B, gamma=1.5)

        ours = LinearSVC(C=2.0, tol=1e-9).fit(Z[:, :count], y)
        theirs = Libsvm(C=2.0, kernel=kernel, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(
            ours.decision_function(Z_others[:, :count]),
            theirs.decision_function(others),
            atol=2e-4,
        )


def test_rows_are_chosen_once_for_each_width_in_a_fold(monkeypatch):
    X, y, _ = rows_and_others()
    table = tables.Table(
        pd.DataFrame(X, columns=["a", "b"]), y, np.arange(len(y)).astype(str), None, None, "moons"
    )
    counted, choose = [], budget_svc.BudgetSVC._landmarks
    monkeypatch.setattr(
        budget_svc.BudgetSVC,
        "_landmarks",
        lambda self, *given: counted.append(self.gamma) or choose(self, *given),
    )
    options = job.FitOptions(model="budget", budget=8, cv=3)
    fitted = job.run_fit(table, options, test=None)
    detail = fitted.learned.detail
    # three widths in three folds of the search and of each of the three that judge it; then the
    # chosen width with other budgets in three folds
    assert len(counted) == 3 * 3 * (1 + 3) + 3
    assert (detail.sizes <= np.array([[each["budget"]] for each in detail.candidates])).all()
    assert len(fitted.learned.model.support_) <= 8
    assert fitted.errors[0].value < 0.2
