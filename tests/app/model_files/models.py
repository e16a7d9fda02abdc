"""Fitted models of every kind that a file may hold, small, with rows to predict."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn import clone, linear_model, svm
from sklearn.base import ClassifierMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

import anynorm
from anynorm import norms
from anynorm.app.model_files.kinds import public_estimators
from anynorm.app.tables import Preparation

RNG = np.random.default_rng(7)
X = RNG.normal(size=(36, 6)) + 1.0
BINARY = np.where(X[:, 0] + 0.3 * RNG.normal(size=36) > 1.0, "yes", "no")
THREE = np.digitize(X[:, 1] + 0.2 * RNG.normal(size=36), [0.7, 1.4])
TARGET = X @ np.arange(6.0)
SPARSE = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
NARROW = X.astype(np.float32)
FRAME = pd.DataFrame(X[:, :3].copy(), columns=["age", "size", "dose"])
FRAME["site"] = np.array(["north", "south", "west"])[np.arange(36) % 3]
FRAME.loc[4, "age"] = np.nan
FRAME.loc[5, "site"] = None
KERNEL = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 10)
SLACKS = {
    "l1": "l1",
    "L1": norms.L1(),
    "L2": norms.L2(),
    "LInf": norms.LInf(),
    "Lp": norms.Lp(3.0),
    "squared": norms.SquaredL2(),
    "TopK": norms.TopK(4),
    "TopK2": norms.TopK2(4.5),
    "K12": norms.K12(2.0),
    "Mahalanobis": norms.Mahalanobis(np.eye(36) + 0.1),
    "weighted": norms.L2(np.arange(1.0, 37.0)),
}

Made = tuple[Any, Any]


SMALL: dict[str, dict[str, Any]] = {
    "BudgetSVC": {"budget": 8},
    "ReweightedSVCCV": {"Cs": [0.1, 1.0], "cv": 3, "max_rounds": 2},
    "SparseSVCCV": {"cv": 3},
    "SVCCV": {"Cs": [0.5, 2.0], "gammas": 2, "cv": 3, "calibration": "sigmoid"},
}
"""What a public classifier needs, or is quicker with."""

CLASSIFIERS = {
    name: Model(**SMALL.get(name, {}))
    for name, Model in public_estimators().items()
    if issubclass(Model, ClassifierMixin)
}


def _classifiers(y: Any) -> dict[str, Callable[[], Made]]:
    def fitted(model: Any) -> Callable[[], Made]:
        return lambda: (clone(model).fit(X, y), X)

    return {name: fitted(model) for name, model in CLASSIFIERS.items()} | {
        "linear": lambda: (anynorm.LinearSVC(warm_start=True).fit(X, y), X),
        "linear-sparse": lambda: (anynorm.LinearSVC(C=0.1).fit(SPARSE, y), SPARSE),
        "sparsified": lambda: (anynorm.ReweightedSVC(C=0.3).fit(X, y).sparsify(), X),
        "sparse": lambda: (anynorm.SparseSVC(C=np.float64(0.5)).fit(X, y), X),
        "sparse-cv": lambda: (
            anynorm.SparseSVCCV(
                cv=StratifiedKFold(3, shuffle=True, random_state=1), rule="one_se"
            ).fit(X, y),
            X,
        ),
        "sparse-cv-prepared": lambda: (
            anynorm.SparseSVCCV(preprocessor=StandardScaler(), cv=3).fit(X, y),
            X,
        ),
        "svc-cv-prepared": lambda: (
            anynorm.SVCCV([0.5], gammas=2, cv=3, preprocessor=_prepared()).fit(FRAME, y),
            FRAME,
        ),
        "svc-cv": lambda: (
            anynorm.SVCCV(
                [0.5], kernel=["linear", "rbf"], gammas=["scale"], cv=3, calibration="isotonic"
            ).fit(X, y),
            X,
        ),
        "svc": lambda: (anynorm.SVC(C=2.0).fit(X, y), X),
        "svc-sparse": lambda: (anynorm.SVC(kernel="rbf").fit(SPARSE, y), SPARSE),
        "svc-narrow": lambda: (anynorm.SVC(gamma=0.1).fit(NARROW, y), NARROW),
        "svc-poly": lambda: (anynorm.SVC(kernel="poly", coef0=1, degree=2).fit(X, y), X),
        "svc-linear": lambda: (anynorm.SVC(kernel="linear", warm_start=True).fit(X, y), X),
        "svc-precomputed": lambda: (anynorm.SVC(kernel="precomputed").fit(KERNEL, y), KERNEL),
        "budget": lambda: (anynorm.BudgetSVC(8, C=5.0, strict=True).fit(X, y), X),
        "least-squares": lambda: (anynorm.LeastSquaresSVC(leave_one_out=True).fit(X, y), X),
    }


def _prepared() -> ColumnTransformer:
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    return ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include=np.number)),
            ("names", OneHotEncoder(handle_unknown="ignore", min_frequency=2), ["site"]),
        ],
        remainder="passthrough",
    )


def _wrapped() -> dict[str, Callable[[], Made]]:
    def classifiers(inner: Any) -> Callable[[], Made]:
        return lambda: (anynorm.Reweighted(inner, n_rounds=2).fit(X, BINARY), X)

    def regressors(inner: Any) -> Callable[[], Made]:
        return lambda: (anynorm.Reweighted(inner, n_rounds=2).fit(X, TARGET), X)

    made = {
        type(inner).__name__: classifiers(inner)
        for inner in (
            linear_model.LogisticRegression(C=0.5),
            linear_model.RidgeClassifier(),
            linear_model.SGDClassifier(random_state=0),
        )
    }
    made |= {
        type(inner).__name__: regressors(inner)
        for inner in (
            linear_model.Ridge(alpha=0.3),
            linear_model.LinearRegression(),
            linear_model.HuberRegressor(),
            linear_model.Lasso(0.1),
            linear_model.ElasticNet(0.1),
            linear_model.SGDRegressor(random_state=0),
            svm.LinearSVR(),
        )
    }
    made["sklearn LinearSVC"] = classifiers(svm.LinearSVC())
    made["ours"] = classifiers(anynorm.LinearSVC())
    made["one against the rest"] = lambda: (
        OneVsRestClassifier(anynorm.Reweighted(svm.LinearSVC())).fit(X, THREE),
        X,
    )
    return made


def _others() -> dict[str, Callable[[], Made]]:
    splitter = RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=3)
    rows = [(np.arange(0, 36, 2), np.arange(1, 36, 2)), (np.arange(1, 36, 2), np.arange(0, 36, 2))]
    return {
        "lasso": lambda: (anynorm.ConstrainedLasso(3.0).fit(X, TARGET), X),
        "lasso-cv": lambda: (anynorm.ConstrainedLassoCV(cv=3).fit(X, TARGET), X),
        "lasso-frame": lambda: (
            anynorm.ConstrainedLasso(2.0).fit(FRAME[["size", "dose"]], TARGET),
            FRAME[["size", "dose"]],
        ),
        "dictionary": lambda: (
            make_pipeline(
                anynorm.KernelDictionary(n_components=9, gamma=0.2), anynorm.SparseSVC()
            ).fit(X, BINARY),
            X,
        ),
        "dictionary-sparse": lambda: (
            make_pipeline(
                anynorm.KernelDictionary("poly", 0.5, random_state=np.random.RandomState(4)),
                anynorm.LinearSVC(),
            ).fit(SPARSE, THREE),
            SPARSE,
        ),
        "polynomial": lambda: (
            make_pipeline(anynorm.PolynomialDictionary(), anynorm.SparseSVC()).fit(X, BINARY),
            X,
        ),
        "pipeline": lambda: (
            make_pipeline(_prepared(), anynorm.SparseSVCCV(cv=splitter)).fit(FRAME, BINARY),
            FRAME,
        ),
        "preparation": lambda: (
            Pipeline([("prepare", Preparation()), ("model", anynorm.SparseSVC())]).fit(
                FRAME, BINARY
            ),
            FRAME,
        ),
        "scalers": lambda: (
            make_pipeline(RobustScaler(), MinMaxScaler(), anynorm.SparseSVCCV(cv=rows)).fit(
                X, THREE
            ),
            X,
        ),
        "booleans": lambda: (anynorm.LinearSVC().fit(X, BINARY == "yes"), X),
        "objects": lambda: (anynorm.LinearSVC().fit(X, BINARY.astype(object)), X),
        "floats": lambda: (anynorm.SVC().fit(X, THREE.astype(np.float32)), X),
        "small integers": lambda: (anynorm.SparseSVC().fit(X, THREE.astype(np.int8)), X),
        "weights": lambda: (
            anynorm.LinearSVC(class_weight={"yes": 2.0, "no": np.float32(0.5)}).fit(X, BINARY),
            X,
        ),
        "stopped": lambda: (
            anynorm.LinearSVC(max_iter=1, tol=1e-12).fit(X * [1, 1, 1, 1, 1, 1e4], THREE),
            X,
        ),
        "output": lambda: (
            make_pipeline(StandardScaler().set_output(transform="pandas"), anynorm.LinearSVC()).fit(
                FRAME[["size", "dose"]], BINARY
            ),
            FRAME[["size", "dose"]],
        ),
    }


MAKERS: dict[str, Callable[[], Made]] = {
    **{f"{name}, two classes": make for name, make in _classifiers(BINARY).items()},
    **{f"{name}, three classes": make for name, make in _classifiers(THREE).items()},
    **{
        f"slack {name}": lambda slack=slack: (  # type: ignore[misc]
            anynorm.SVC(slack=slack, kernel="linear").fit(X, BINARY),
            X,
        )
        for name, slack in SLACKS.items()
    },
    **_wrapped(),
    **_others(),
}


@cache
def made(name: str) -> Made:
    """The fitted model of a name, and rows to predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MAKERS[name]()
