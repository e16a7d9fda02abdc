"""Whatever users call holds BLAS at one thread, and gives it back."""

import inspect

import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import anynorm
from anynorm import reductions
from anynorm.design import threads

X, Y = make_classification(60, 6, random_state=0)
SPECIAL = {
    "BudgetSVC": {"budget": 10},
    "Reweighted": {"estimator": LogisticRegression()},
    "ReweightedSVCCV": {"Cs": [1.0], "max_rounds": 2, "cv": 2},
    "SparseSVCCV": {"cv": 2},
}
ESTIMATORS = [
    name
    for name in anynorm.__all__
    if inspect.isclass(getattr(anynorm, name)) and hasattr(getattr(anynorm, name), "get_params")
]
PATH = anynorm.sparse_svm_path(X, Y)
CALLS = {
    "sparse_svm_path": lambda: anynorm.sparse_svm_path(X, Y),
    "SolutionPath.decision_function": lambda: PATH.decision_function(X),
    "SolutionPath.certificate_at": lambda: PATH.certificate_at(PATH.s[-1]),
    "min_norm_point": lambda: anynorm.min_norm_point(X),
    "kernel_lasso": lambda: anynorm.kernel_lasso(X, Y.astype(float)),
    "sublinear_svm": lambda: anynorm.sublinear_svm(X, eps=0.5, scale=100.0),
    "lasso_to_svm": lambda: reductions.lasso_to_svm(X, Y.astype(float)),
}


@pytest.fixture
def entered(monkeypatch):
    """The times that BLAS was held."""
    seen, enter = [], threads._BlasHeld.__enter__

    def noted(hold):
        seen.append(hold)
        enter(hold)

    monkeypatch.setattr(threads._BlasHeld, "__enter__", noted)
    yield seen
    assert not threads._holds


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fits_and_predictions_hold_blas(name, entered):
    model = getattr(anynorm, name)(**SPECIAL.get(name, {})).fit(X, Y)
    assert entered
    for method in ("decision_function", "predict", "transform", "score"):
        if hasattr(model, method) and name != "Reweighted":  # which asks the model it was given
            entered.clear()
            getattr(model, method)(*((X, Y) if method == "score" else (X,)))
            assert entered, method


@pytest.mark.parametrize("name", CALLS)
def test_functions_hold_blas(name, entered):
    CALLS[name]()
    assert entered


def test_every_estimator_of_a_kind_is_here():
    assert {"SVC", "LinearSVC", "ConstrainedLasso", "KernelDictionary"} <= set(ESTIMATORS)
