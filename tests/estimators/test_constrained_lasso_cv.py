"""The radius of the lowest held-out error, over all radii."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from anynorm import ConstrainedLasso, ConstrainedLassoCV, LassoPath, load_model, save_model

X, Y = load_diabetes(return_X_y=True)
X = X * 20
FOLDS = KFold(4, shuffle=True, random_state=3)
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))


def held_out_error(radius, weights=None):
    """By fits at this radius in every fold."""
    errors = []
    for train, test in FOLDS.split(X):
        own = None if weights is None else weights[train]
        model = ConstrainedLasso(radius, tol=1e-10).fit(X[train], Y[train], own)
        squares = (model.predict(X[test]) - Y[test]) ** 2
        errors.append(np.average(squares, weights=None if weights is None else weights[test]))
    return np.array(errors)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_no_radius_has_a_lower_error(weights):
    model = ConstrainedLassoCV(cv=FOLDS).fit(X, Y, weights)
    best = held_out_error(model.radius_, weights).mean()
    assert -model.best_score_ == pytest.approx(best, rel=1e-8)
    for share in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0):
        assert held_out_error(share * model.radius_, weights).mean() >= best * (1 - 1e-9)
    table = model.cv_results_
    assert table["mean_test_score"].max() == pytest.approx(model.best_score_)
    k = len(table["param_radius"]) // 2
    found = held_out_error(table["param_radius"][k], weights)
    scores = [table[f"split{fold}_test_score"][k] for fold in range(4)]
    np.testing.assert_allclose(scores, -found, rtol=1e-7)


def test_the_model_is_the_certified_point_of_the_path_of_all_rows():
    model = ConstrainedLassoCV(cv=FOLDS).fit(X, Y)
    same = ConstrainedLasso(model.radius_, tol=1e-12).fit(X, Y)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-6)
    assert model.alpha_ == pytest.approx(same.alpha_, rel=1e-6)
    assert model.certificate_.gap <= 1e-6
    sparse = ConstrainedLassoCV(cv=FOLDS).fit(sp.csr_array(X), Y)
    assert sparse.radius_ == pytest.approx(model.radius_, rel=1e-9)


def test_one_standard_error_and_few_features():
    best, simple = (ConstrainedLassoCV(cv=FOLDS, rule=x).fit(X, Y) for x in ("best", "one_se"))
    assert simple.radius_ < best.radius_
    errors = held_out_error(best.radius_)
    most = errors.mean() + errors.std(ddof=1) / 2
    assert held_out_error(simple.radius_).mean() <= most * (1 + 1e-9)
    few = ConstrainedLassoCV(cv=FOLDS, max_features=2).fit(X, Y)
    assert np.count_nonzero(few.coef_) <= 2
    with pytest.raises(ValueError, match=r"^rule must be"):
        ConstrainedLassoCV(rule="fewest").fit(X, Y)


def test_lasso_paths_are_kept_in_files(tmp_path):
    model = ConstrainedLassoCV().fit(X, Y)
    for saved in (model.path_, model):
        save_model(saved, tmp_path / "m.anynorm")
        loaded = load_model(tmp_path / "m.anynorm")
        assert type(loaded) is type(saved)
        path = loaded if isinstance(loaded, LassoPath) else loaded.path_
        np.testing.assert_array_equal(path.predict(X), model.path_.predict(X))
        assert repr(path) == repr(model.path_)
        assert path.certificates == model.path_.certificates
        with pytest.raises(ValueError, match="stored without its data"):
            path.certificate_at(radius=1.0)


@parametrize_with_checks([ConstrainedLassoCV(cv=3)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
