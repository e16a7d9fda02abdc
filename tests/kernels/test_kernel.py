"""Kernels from outside the package, in everything that takes a kernel."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier

import anynorm
from anynorm import (
    SVC,
    BudgetSVC,
    KernelDictionary,
    LeastNormSVC,
    LeastSquaresSVC,
    kernel_lasso,
    load_model,
    save_model,
)
from anynorm.app.model_files.container import ModelFileError
from anynorm.kernels import RBF, DistanceKernel, Kernel, Linear, Poly, ProductKernel
from anynorm.kernels.gram import Gram, make_gram
from anynorm.kernels.row_makers import RowMaker
from anynorm.kernels.sums import DenseSums


class Cauchy(DistanceKernel):
    """1 / (1 + gamma ||x - z||^2), on all of the fast ways."""

    psd = True

    def __init__(self, gamma="scale"):
        self.gamma = gamma

    @property
    def steepness(self):
        return self.gamma

    def of_distances(self, squares):
        return 1 / (1 + self.gamma * squares)


class Laplacian(Kernel):
    """exp(-gamma |x - z|_1): nothing but its values."""

    psd = True

    def __init__(self, gamma="scale"):
        self.gamma = gamma

    def pairs(self, A, B):
        return laplacian_kernel(A, B, gamma=self.gamma)


class Cosine(ProductKernel):
    """exp(3 cos(x, z)): by products, but not in float32 rows."""

    psd = True

    def of_products(self, values, rows, columns):
        values /= np.sqrt(rows)[:, None]
        values /= np.sqrt(columns)
        return np.exp(3 * values)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=400) > 0.8, 1, -1)
X_NEW = RNG.normal(size=(60, 4))
SCALE = 1 / (4 * X.var())


def cauchy(A, B, gamma=SCALE):
    return 1 / (1 + gamma * ((A[:, None] - B) ** 2).sum(axis=2))


def cosine(A, B):
    lengths = np.outer(np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1))
    return np.exp(3 * (A @ B.T) / lengths)


OWN = {
    "by distances": (Cauchy(), cauchy),
    "by pairs": (Laplacian(), lambda A, B: laplacian_kernel(A, B, gamma=SCALE)),
    "by products": (Cosine(), cosine),
}
MODELS = {
    "SVC": SVC(C=2.0, tol=1e-8),
    "squared": SVC(C=2.0, slack="squared_l2", tol=1e-8),
    "ball": SVC(C=2.0, slack="l2", tol=1e-7),
    "BudgetSVC": BudgetSVC(20, C=2.0, tol=1e-8),
    "strict": BudgetSVC(20, C=2.0, strict=True, tol=1e-6),
    "LeastNormSVC": LeastNormSVC(C=2.0, tol=1e-8),
    "LeastSquaresSVC": LeastSquaresSVC(C=2.0, tol=1e-10),
}


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_takes_it_as_it_takes_the_matrix(name, kind):
    kernel, reference = OWN[kind]
    model = clone(MODELS[name]).set_params(kernel=kernel).fit(X, Y)
    given = clone(MODELS[name]).set_params(kernel="precomputed").fit(reference(X, X), Y)
    assert model.certificate_.gap <= model.tol
    assert model.certificate_.primal == pytest.approx(given.certificate_.primal, rel=1e-5)
    np.testing.assert_allclose(
        model.decision_function(X_NEW), given.decision_function(reference(X_NEW, X)), atol=0.02
    )
    rows = X[model.support_]
    scores = reference(X_NEW, rows) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X_NEW), scores.ravel(), atol=1e-9)


@pytest.mark.parametrize("kind", OWN)
def test_dictionaries_and_the_lasso_take_it(kind):
    kernel, reference = OWN[kind]
    dictionary = KernelDictionary(kernel, n_components=None).fit(X)
    np.testing.assert_allclose(dictionary.transform(X_NEW), reference(X_NEW, X), atol=1e-12)
    assert dictionary.get_feature_names_out()[3] == f"{type(kernel).__name__}_row3"
    points, b = X[:12], X[20]
    every = np.vstack([points, b])
    gamma = {} if kind == "by products" else {"gamma": SCALE}
    found = kernel_lasso(points.T, b, kernel=type(kernel)(**gamma))
    given = kernel_lasso(reference(every, every), kernel="precomputed")
    np.testing.assert_allclose(found.coef, given.coef, atol=1e-7)


@pytest.mark.parametrize("kind", OWN)
def test_sparse_rows_and_float32(kind):
    kernel = OWN[kind][0]
    exact = SVC(kernel=kernel, tol=1e-6).fit(X, Y).decision_function(X_NEW)
    for form in (sp.csr_array, sp.csc_array, lambda rows: rows.astype(np.float32)):
        model = SVC(kernel=kernel, tol=1e-6).fit(form(X), Y)
        np.testing.assert_allclose(model.decision_function(form(X_NEW)), exact, atol=5e-3)


def test_it_runs_on_the_ways_that_it_declares():
    gram = Gram.of(Cauchy(), X)
    maker = RowMaker(gram, exact=False)
    rows = np.empty((2, 400), np.float32)
    maker.make(np.array([3, 9]), rows, np.arange(2))
    error = np.abs(rows - cauchy(X[[3, 9]], X)).max()
    assert 0 < error <= maker.error
    assert isinstance(gram.sums([0]), DenseSums)
    np.testing.assert_array_equal(gram.diagonal(), np.ones(400))
    rounded = RowMaker(Gram.of(Cosine(), X), exact=False)  # from float64 products
    rounded.make(np.array([3, 9]), rows, np.arange(2))
    np.testing.assert_allclose(rows, Cosine().pairs(X[[3, 9]], X), rtol=1e-6, atol=1e-7)
    assert rounded.error < maker.error
    assert isinstance(Gram.of(Cosine(), X).sums([0]), DenseSums)
    assert not isinstance(Gram.of(Laplacian(), X).sums([0]), DenseSums)


def test_distances_are_taken_around_the_rows():
    far = Gram.of(Cauchy(0.3), X + 1e8)
    moved = (X + 1e8) - 1e8
    np.testing.assert_allclose(
        far.block(slice(None), slice(None)), cauchy(moved, moved, 0.3), rtol=1e-6
    )


def test_gamma_comes_from_the_data_with_their_weights():
    weights = np.arange(400) % 3
    repeated = np.repeat(np.arange(400), weights)
    weighted = SVC(kernel=Cauchy(), tol=1e-9).fit(X, Y, sample_weight=weights)
    copies = SVC(kernel=Cauchy(), tol=1e-9).fit(X[repeated], Y[repeated])
    assert weighted._sums.kernel.gamma == pytest.approx(copies._sums.kernel.gamma, rel=1e-12)
    assert SVC(kernel=Cauchy("auto")).fit(X, Y)._sums.kernel == Cauchy(0.25)
    with pytest.raises(ValueError, match="gamma must be"):
        SVC(kernel=Cauchy("big")).fit(X, Y)


@pytest.mark.parametrize(
    "kernel", [Cauchy(0.7), Laplacian(), Cosine(), RBF(0.3), Linear(), Poly(1.0, 2, 0.5)], ids=str
)
def test_clones_pickles_and_words(kernel):
    model = SVC(kernel=kernel)
    again = clone(model).kernel
    assert again == kernel == pickle.loads(pickle.dumps(kernel))
    assert again is not kernel
    assert hash(again) == hash(kernel)
    assert eval(repr(kernel)) == kernel
    assert repr(kernel) in repr(model)
    fitted = pickle.loads(pickle.dumps(model.fit(X, Y)))
    np.testing.assert_array_equal(fitted.predict(X_NEW), model.predict(X_NEW))


def test_its_parameters_can_be_set_and_searched():
    model = SVC(kernel=Cauchy(0.5)).set_params(kernel__gamma=2.0)
    assert model.kernel == Cauchy(2.0)
    search = GridSearchCV(SVC(kernel=Cauchy()), {"kernel__gamma": [1e-3, 0.3]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"kernel__gamma": 0.3}
    with pytest.raises(AttributeError, match="immutable"):
        model.kernel.gamma = 3.0


def test_named_kernels_as_objects_are_the_named_ones(tmp_path):
    for name, kernel in {"rbf": RBF(0.3), "poly": Poly(0.3), "linear": Linear()}.items():
        named = SVC(kernel=name, gamma=0.3).fit(X, Y)
        model = SVC(kernel=kernel, gamma=77.0).fit(X, Y)  # an object has its own parameters
        np.testing.assert_array_equal(model.dual_coef_, named.dual_coef_)
        save_model(model, tmp_path / "model.anynorm")
        loaded = load_model(tmp_path / "model.anynorm")
        assert loaded.kernel == kernel
        np.testing.assert_array_equal(loaded.predict(X_NEW), named.predict(X_NEW))


@pytest.mark.parametrize("make", [SVC, LeastSquaresSVC, KernelDictionary])
def test_model_files_refuse_it_by_its_class(make, tmp_path):
    model = make(kernel=Cauchy()).fit(X, Y)
    message = r"was fitted with a kernel that is an object of the class .*\.Cauchy.*precomputed"
    with pytest.raises(ModelFileError, match=message):
        save_model(model, tmp_path / "model.anynorm")
    with pytest.raises(ModelFileError, match=r"SVC's kernel is a .*\.Cauchy"):
        save_model(OneVsRestClassifier(SVC(kernel=Cauchy())).fit(X, Y), tmp_path / "m.anynorm")
    class_of_a_known_name = type("Mine", (RBF,), {"name": "rbf"})
    with pytest.raises(ModelFileError, match="Mine"):
        save_model(make(kernel=class_of_a_known_name()).fit(X, Y), tmp_path / "model.anynorm")
    assert list(tmp_path.iterdir()) == []


class Translated(Cauchy):
    """The same with nodes for ONNX."""

    def onnx(self, graph, rows, points):
        squares = self.onnx_distances(graph, rows, points)
        scaled = graph.node("Mul", squares, graph.constant(float(self.gamma)))
        return graph.node("Reciprocal", graph.node("Add", scaled, graph.constant(1.0)))


@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_its_nodes_are_what_onnx_computes(offset):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model = SVC(kernel=Translated()).fit(X + offset, Y)
    graph = anynorm.to_onnx(model, dtype="float64").SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    _, scores = session.run(None, {"X": X_NEW + offset})
    np.testing.assert_allclose(scores, model.decision_function(X_NEW + offset), atol=1e-9)


def test_no_translation_to_onnx_is_said_clearly():
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="a Cauchy kernel has no translation to ONNX"):
        anynorm.to_onnx(SVC(kernel=Cauchy()).fit(X, Y))


def test_kernels_that_say_nothing_are_looked_at():
    class Tilted(Kernel):
        def pairs(self, A, B):
            return A @ B.T + np.arange(len(A))[:, None]

    class Negative(Kernel):
        def pairs(self, A, B):
            return -(A @ B.T)

    with pytest.raises(ValueError, match="not symmetric"):
        make_gram(X, Tilted())
    assert make_gram(X, Negative()).semidefinite is False
    with pytest.warns(ConvergenceWarning):
        model = SVC(kernel=Negative()).fit(X, Y)
    assert np.isnan(model.certificate_.gap)


def test_a_class_is_no_kernel():
    for model in (SVC(kernel=Cauchy), KernelDictionary(kernel=Cauchy)):
        with pytest.raises(ValueError, match=r"kernel must be .*a kernel of anynorm\.kernels"):
            model.fit(X, Y)
    with pytest.raises(ValueError, match="kernel must be"):
        make_gram(X, Cauchy)
