"""What docs/extend.md claims: a new part of the library touches so many files and no more."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import anynorm

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "extend.md"
SOURCE = pathlib.Path(anynorm.__file__).parent

LOSS = '''
from dataclasses import dataclass
import numpy as np
from anynorm.losses.curves import Curve
from anynorm.losses.loss import Loss
from anynorm.norms.dual_sets import Box

@dataclass(frozen=True)
class Halved(Loss):
    """Half of the squared hinge."""
    name: str = "halved"
    one_sided = True
    curvature_bound = 1.0
    def value(self, r, C, weights=None):
        cost = np.maximum(r, 0) ** 2 / 2
        return C * float(cost.sum() if weights is None else weights @ cost)
    def dual_gain(self, a, C, weights=None):
        if np.any(a < -1e-12):
            return -np.inf
        cost = np.full(len(a), C) if weights is None else C * weights
        return float(a.sum() - (a**2 / cost)[a > 0].sum() / 2)
    def dual_set(self, C, weights):
        shift = np.divide(1, C * weights, out=np.zeros(len(weights)), where=weights > 0)
        return Box.of(np.where(weights > 0, np.inf, 0.0), signed=False, shift=shift)
    def curve(self, cost):
        return HalvedCurve(cost)

@dataclass(frozen=True)
class HalvedCurve(Curve):
    def dual(self, residual):
        return self.cost * np.maximum(residual, 0)
    def curvature(self, residual):
        return np.where(residual > 0, self.cost, 0.0)
'''
NORM = '''
from anynorm.norms.dual_sets import Box
from anynorm.norms.norm import Norm

class Doubled(Norm):
    """Twice the sum of the slacks."""
    def value(self, xi):
        return 2 * float(abs(xi).sum())
    def dual_value(self, a):
        return float(abs(a).max()) / 2
    def maximiser(self, a):
        v = 0 * a
        v[abs(a).argmax()] = 0.5 if a[abs(a).argmax()] > 0 else -0.5
        return v
    def dual_set(self, C, weights, signed):
        return Box.of(2 * C * weights, signed)
'''
KERNEL = '''
from anynorm.kernels.kernel import DistanceKernel

class Cauchy(DistanceKernel):
    """1 / (1 + gamma ||x - z||^2)."""
    name, psd = "cauchy", True
    def __init__(self, gamma="scale"):
        self.gamma = gamma
    def of_distances(self, squares):
        return 1 / (1 + self.gamma * squares)
'''
ESTIMATOR = '''
from anynorm.estimators._fitting import solve_classes, store_linear
from anynorm.estimators._linear_model import LinearClassifier
from anynorm.estimators.checks.labels import validate
from anynorm.estimators.checks.parameters import check_parameters

class PlainSVC(LinearClassifier):
    """The squared hinge."""
    loss, fit_intercept, intercept_scaling, class_weight = "squared_hinge", True, None, None
    max_iter, warm_start, n_jobs, random_state, verbose = 1000, False, None, None, 0
    def __init__(self, C=1.0, *, tol=1e-6):
        self.C, self.tol = C, tol
    def fit(self, X, y):
        check_parameters(self)
        data = validate(self, X, y, None)
        from anynorm.solvers.linear import solve_linear
        return store_linear(self, data, solve_classes(self, data, solve_linear, None, report=None))
'''
REPORT = '''
from dataclasses import dataclass
from anynorm.app.report.content import Report

@dataclass(frozen=True, kw_only=True, eq=False)
class ShortReport(Report):
    """The title and the facts alone."""
    kind, scripts = "short", ("short.js",)
    def packed(self):
        return self._shared(0)
'''
# What is added: new files, and lines after others in files that are there; then what it can do.
ADDED = {
    "a loss": (
        {"losses/halved.py": LOSS},
        {
            "losses/__init__.py": [
                (
                    "from __future__ import annotations\n",
                    "from anynorm.losses.halved import Halved\n",
                ),
                ("        LogisticLoss(),\n", "        Halved(),\n"),
            ]
        },
        """
        for Model in (anynorm.LinearSVC, anynorm.ReweightedSVC, anynorm.SparseSVC):
            ours = Model(C=2.0, loss="halved", tol=1e-8).fit(X, y)
            known = Model(C=1.0, loss="squared_hinge", tol=1e-8).fit(X, y)
            assert ours.certificate_.gap <= 1e-8
            assert abs(ours.certificate_.primal - known.certificate_.primal) <= 1e-6
        """,
    ),
    "a norm": (
        {"norms/doubled.py": NORM},
        {
            "norms/__init__.py": [
                (
                    "from __future__ import annotations\n",
                    "from anynorm.norms.doubled import Doubled\n",
                ),
                ("__all__ = [\n", '    "Doubled",\n'),
            ]
        },
        """
        ours = anynorm.SVC(C=1.0, slack=anynorm.norms.Doubled(), tol=1e-8).fit(X, y)
        known = anynorm.SVC(C=2.0, tol=1e-8).fit(X, y)
        assert ours.certificate_.gap <= 1e-8
        assert abs(ours.certificate_.primal - known.certificate_.primal) <= 1e-6
        assert saved(ours).slack == anynorm.norms.Doubled()
        """,
    ),
    "a named kernel": (
        {"kernels/cauchy.py": KERNEL},
        {
            "kernels/__init__.py": [
                (
                    "from __future__ import annotations\n",
                    "from anynorm.kernels.cauchy import Cauchy\n",
                ),
                ('    "linear": Linear,\n', '    "cauchy": Cauchy,\n'),
            ]
        },
        """
        for Model in (anynorm.SVC, anynorm.LeastNormSVC, anynorm.LeastSquaresSVC):
            model = Model(kernel="cauchy", gamma=0.5).fit(X, y)
            assert model.certificate_.gap <= model.tol
            assert (saved(model).decision_function(X) == model.decision_function(X)).all()
        assert anynorm.BudgetSVC(5, kernel="cauchy").fit(X, y).certificate_.gap <= 1e-4
        assert anynorm.kernel_lasso(X, y, kernel="cauchy").certificate.status == "optimal"
        features = anynorm.KernelDictionary(kernel="cauchy", gamma=0.5, n_components=None)
        assert np.allclose(np.diag(features.fit_transform(X)), 1.0)
        """,
    ),
    "an estimator": (
        {"estimators/plain_svc.py": ESTIMATOR},
        {
            "__init__.pyi": [
                (
                    "from anynorm.estimators.svc import SVC as SVC\n",
                    "from anynorm.estimators.plain_svc import PlainSVC as PlainSVC\n",
                )
            ]
        },
        """
        model = anynorm.PlainSVC(C=0.5).fit(X, y)
        known = anynorm.LinearSVC(C=0.5, loss="squared_hinge", tol=1e-6).fit(X, y)
        assert abs(model.certificate_.primal - known.certificate_.primal) <= 1e-6
        assert (saved(model).predict(X) == model.predict(X)).all()
        """,
    ),
    "a report page": (
        {
            "app/report/short_report.py": REPORT,
            "app/report/static/short.js": "pages.short = () => {};",
        },
        {
            "app/report/__init__.py": [
                (
                    "from anynorm.app.report.walk_report import WalkReport\n",
                    "from anynorm.app.report.short_report import ShortReport\n",
                ),
                ("__all__ = [\n", '    "ShortReport",\n'),
            ]
        },
        """
        page = anynorm.report.html(anynorm.report.ShortReport(title="Short"))
        assert "pages.short = () => {};" in page and '"kind":"short"' in page
        """,
    ),
}
PREPARED = """
import os, tempfile
import numpy as np
import anynorm
rng = np.random.default_rng(0)
y = np.where(np.arange(40) % 2, 1.0, -1.0)
X = rng.normal(size=(40, 3)) + 0.7 * y[:, None]

def saved(model):
    path = os.path.join(tempfile.mkdtemp(), "model.anynorm")
    anynorm.save_model(model, path)
    return anynorm.load_model(path)

"""


@pytest.mark.parametrize("what", ADDED)
def test_the_page_counts_the_files_that_are_touched(what):
    files, lines, _ = ADDED[what]
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| [{what}]"))
    counted, listed = re.match(r"\|[^|]*\| (\d+): ([^|]*)\|", row).groups()
    assert int(counted) == len(files) + len(lines)
    for name in lines:
        assert f"`{name}`" in listed
    for name in files:
        assert f"`{name.rpartition('/')[0]}/`" in listed


def test_what_is_added_in_these_files_works_everywhere(tmp_path):
    package = tmp_path / "anynorm"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for files, lines, _ in ADDED.values():
        for name, text in files.items():
            assert not (package / name).exists()
            (package / name).write_text(text)
        for name, after in lines.items():
            text = (package / name).read_text()
            for place, line in after:
                assert text.count(place) == 1, place
                text = text.replace(place, place + line)
            (package / name).write_text(text)
    checks = [f"if True:\n{check}" for *_, check in ADDED.values()]
    found = subprocess.run(
        [sys.executable, "-c", PREPARED + "\n".join(checks)],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "ANYNORM_DISABLE_CACHE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
