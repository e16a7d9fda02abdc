"""Time limits: what is over when they have passed, on problems whose single steps take seconds.

Seconds of the CPU are counted from the moment at which the limit passes, so that other work on the
machine does not matter.
"""

import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from anynorm import SVC, BudgetSVC, LeastNormSVC, LinearSVC, ReweightedSVC, ReweightedSVCCV
from anynorm.norms import Lp
from anynorm.problem.solution import Status

LIMIT = 0.3
MODELS = {
    "LinearSVC": LinearSVC(),
    "LinearSVC, squared hinge": LinearSVC(loss="squared_hinge"),
    "ReweightedSVC": ReweightedSVC(),
    "ReweightedSVCCV": ReweightedSVCCV(5, max_rounds=3),
    "LeastNormSVC": LeastNormSVC(kernel="linear"),
    "BudgetSVC": BudgetSVC(100, strict=True),
    "SVC": SVC(slack=Lp(3.0)),
}


@pytest.fixture(scope="module")
def data():
    """A Gram matrix of the rows takes 2 s, a kernel matrix 4 s."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6000))
    return X, X @ rng.normal(size=6000) + 30 * rng.normal(size=3000) > 0


class Lateness:
    """Seconds of the CPU since a limit has passed, 0 before."""

    def __init__(self, limit):
        self._passed = None
        threading.Timer(limit, self._note).start()

    def _note(self):
        self._passed = time.process_time()

    @property
    def seconds(self):
        return 0.0 if self._passed is None else time.process_time() - self._passed


@pytest.mark.parametrize("name", MODELS)
def test_little_is_done_after_the_limit(data, name):
    """3.7 s (LinearSVC), 36 s (ReweightedSVCCV) and 41 s (SVC) with a limit of 1 s."""
    X, y = data
    model = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(time_limit=5.0).fit(X[:40, :50], y[:40])  # compiled now
        model.set_params(time_limit=LIMIT).fit(X[:600], y[:600])
    late = Lateness(LIMIT)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(X, y)
    assert late.seconds < 0.5
    certificate = model.certificate_
    assert certificate.status is Status.TIME_LIMIT
    assert certificate.dual <= certificate.primal < np.inf
