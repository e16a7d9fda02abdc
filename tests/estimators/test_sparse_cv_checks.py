"""scikit-learn's own estimator checks for the cross-validated path, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from anynorm import SparseSVCCV


@parametrize_with_checks(
    [
        SparseSVCCV(cv=2),
        SparseSVCCV(cv=2, rule="one_se", max_features=5),
        SparseSVCCV(cv=2, rule="fewest", scoring="balanced_accuracy"),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)
