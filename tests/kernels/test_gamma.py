"""Gamma from the data, as scikit-learn reads it."""

import numpy as np
import pytest
from sklearn.svm import SVC

from anynorm.kernels.gamma import resolve_gamma
from tests.kernels.cases import FORMS, X


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_gamma_as_scikit_learn_reads_it(form):
    y = np.arange(13) % 2
    for gamma in ("scale", "auto"):
        theirs = SVC(gamma=gamma).fit(X, y)._gamma
        assert resolve_gamma(gamma, FORMS[form](X)) == pytest.approx(theirs, rel=1e-12)
    repeated = np.repeat(np.arange(13), np.arange(13) % 3)
    assert resolve_gamma("scale", FORMS[form](X), np.arange(13.0) % 3) == pytest.approx(
        resolve_gamma("scale", X[repeated]), rel=1e-12
    )
    assert resolve_gamma("scale", np.ones((3, 2))) == 1.0
    with pytest.raises(ValueError, match="gamma must be"):
        resolve_gamma("big", X)
    with pytest.raises(ValueError, match="gamma must be"):
        resolve_gamma(-1.0, X)
