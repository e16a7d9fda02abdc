"""Tables of ordinary size on which the walk and linear kernels once took seconds.

Work is counted, not seconds: neither load nor the machine decides.
"""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import anynorm
from anynorm import SVC, LeastNormSVC, ReweightedSVCCV
from anynorm.datasets import make_relevant
from anynorm.solvers.kernel import box_duals
from anynorm.solvers.linear import augmented_lagrangian, solve


@pytest.fixture
def count_calls(monkeypatch):
    """Count the calls of a function from one module."""

    def watch(module, name):
        calls, function = [], getattr(module, name)

        def counted(*given, **named):
            calls.append(name)
            return function(*given, **named)

        monkeypatch.setattr(module, name, counted)
        return calls

    return watch


@pytest.mark.parametrize(("n", "p"), [(150, 30), (40, 60), (320, 160), (620, 620)])
def test_the_table_of_a_small_search_needs_no_newton_steps_in_python(count_calls, n, p):
    """569 x 30 and 72 x 200 took 7 s, 1000 x 1000 53 s: hundreds of solves, all Python's."""
    X, y = make_relevant(n_samples=n, n_features=p, n_relevant=3, random_state=0)
    calls = count_calls(augmented_lagrangian, "minimise_smooth")
    model = ReweightedSVCCV(max_rounds=5).fit(X, y)
    assert np.all(model.cv_results_["max_gap"] <= 1e-3)
    assert len(calls) <= 20 * model.n_rounds_  # those of the model, and some that were missed


@pytest.mark.parametrize("model", [SVC(kernel="linear"), LeastNormSVC(kernel="linear")])
@pytest.mark.parametrize("rare", [0.05, 0.3])
def test_duals_of_a_linear_kernel_come_from_its_features(count_calls, model, rare, monkeypatch):
    """6435 x 36: the features gave a model, but duals that were not its own, and SMO began anew."""
    monkeypatch.setattr(solve, "_WORTH_COMPILING", 0)  # as for larger data
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(600, 12)) @ rng.normal(size=(12, 12)), 1)
    y = np.where(rng.random(600) < rare, 1, -1)
    calls = count_calls(box_duals, "minimise_box")
    model.fit(X, y)
    assert model.certificate_.gap <= 1e-4
    assert not calls


def test_a_first_search_of_a_small_table_needs_no_numba():
    """569 x 30 took 13 s in a fresh process without compiled code, 12 of them to compile."""
    source = pathlib.Path(anynorm.__file__).parents[1]
    code = "import sys, anynorm\nfrom anynorm.datasets import make_relevant\n"
    for n, p in [(60, 8), (40, 200)]:  # fewer columns than rows, and fewer rows
        given = f"*make_relevant(n_samples={n}, n_features={p}, n_relevant=3, random_state=0)"
        code += f"anynorm.ReweightedSVCCV(max_rounds=3, cv=2).fit({given})\n"
    code += "assert 'numba' not in sys.modules"
    variables = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=variables, check=True)
