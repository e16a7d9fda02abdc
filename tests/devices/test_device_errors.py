"""What cannot be done on a device is said, with what to do instead."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm import SVC, ConstrainedLasso, SparseSVC, load_model, save_model, to_onnx
from anynorm.design.device import DevicePlace
from tests.devices.data import curved, host

X, Y = curved(n=60)


def test_labels_and_weights_live_where_X_does(library):
    there = library.array(X)
    with pytest.raises(TypeError, match=r"in one place, but X is in .*, y is in NumPy's memory"):
        SVC().fit(there, Y)
    with pytest.raises(TypeError, match=r"X is in NumPy's memory, y is in .* Move all of it"):
        SVC().fit(X, library.array(Y))
    with pytest.raises(TypeError, match="sample_weight is in NumPy's memory"):
        SVC().fit(there, library.array(Y), np.ones(60))


def test_two_devices_are_not_mixed():
    strict = pytest.importorskip("array_api_strict")
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("array-api-strict has more devices than one with NumPy 2 alone")
    other = strict.Device("device1")
    with pytest.raises(TypeError, match=r"one place, but X is .*CPU_DEVICE.*y is .*device1"):
        SVC().fit(strict.asarray(X), strict.asarray(Y, device=other))
    model = SVC().fit(strict.asarray(X, device=other), strict.asarray(Y, device=other))
    assert model.dual_coef_.device == other
    np.testing.assert_allclose(
        host(model.decision_function(strict.asarray(X, device=other))),
        host(model.decision_function(strict.asarray(X))),
        rtol=1e-12,
        atol=1e-12,
    )


def test_estimators_that_do_not_run_there_say_so(library):
    with pytest.raises(TypeError, match=r"where SparseSVC does not run: SVC and its kin"):
        SparseSVC().fit(library.array(X), library.array(Y))


def test_arrays_that_numpy_cannot_read_are_named():
    strict = pytest.importorskip("array_api_strict")
    there = strict.asarray(X, device=strict.Device("device1"))
    with pytest.raises(TypeError, match="which ConstrainedLasso cannot use here"):
        ConstrainedLasso().fit(there, Y.astype(float))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[:, 0], "table of rows and columns; got an array of 1 dimensions"),
        (lambda X: np.where(X[3, 1] == X, np.nan, X), r"X has NaN in column 1 \(first at row 3\)"),
        (lambda X: np.where(X[3, 1] == X, np.inf, X), r"X has infinity in column 1"),
        (lambda X: X.astype(complex), "must hold real numbers"),
        (lambda X: X[:0], "0 sample"),
        (lambda X: X[:-1], "X has 59 rows"),
    ],
)
def test_rows_that_cannot_be_used(library, change, message):
    with pytest.raises(ValueError, match=message):
        SVC().fit(library.array(change(X)), library.array(Y))


def test_other_features_are_refused(library):
    model = SVC().fit(library.array(X), library.array(Y))
    with pytest.raises(ValueError, match="X has 3 features, but SVC is expecting 5"):
        model.predict(library.array(X[:, :3]))


def test_a_matrix_of_kernel_values_belongs_in_memory(library):
    K = library.array(X @ X.T)
    with pytest.raises(ValueError, match="a precomputed kernel cannot be used; give it as a NumPy"):
        SVC(kernel="precomputed").fit(K, library.array(Y))


def test_sparse_tensors_are_refused():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    sparse = torch.asarray(X).to_sparse()
    with pytest.raises(TypeError, match="sparse array on a device, which SVC cannot use"):
        SVC().fit(sparse, torch.asarray(Y))
    with pytest.raises(TypeError, match="sparse array on a device, which SVC cannot use"):
        SVC().fit(X, Y).predict(sparse)


def test_a_missing_library_is_named(library, monkeypatch):
    def lost(name):
        raise ImportError(name)

    monkeypatch.setattr("anynorm.design.device.importlib.import_module", lost)
    with pytest.raises(ImportError, match=r"pip install 'anynorm\[gpu\]', or give NumPy arrays"):
        SVC().fit(library.array(X), library.array(Y))


def test_running_out_of_memory_says_what_takes_it(library, monkeypatch):
    class OutOfMemoryError(RuntimeError):
        pass

    def full(*given):
        raise OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("anynorm.kernels.device_gram.DeviceKernel.values", full)
    with pytest.raises(MemoryError, match=r"X of 0 MB .* up to cache_size=500 MB.* Lower cache_si"):
        SVC().fit(library.array(X), library.array(Y))


def test_a_failed_fit_leaves_the_model_as_it_was(library):
    model = SVC().fit(library.array(X), library.array(Y))
    before = host(model.dual_coef_).copy()
    with pytest.raises(TypeError):
        model.fit(library.array(X), Y)
    assert np.array_equal(host(model.dual_coef_), before)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_models_go_to_machines_without_a_device(library, tmp_path, kernel, dtype):
    rows = X.astype(dtype)
    model = SVC(kernel=kernel, warm_start=True).fit(library.array(rows), library.array(Y))
    save_model(model, tmp_path / "model.anynorm")
    expected = host(model.decision_function(library.array(rows)))
    for moved in (load_model(tmp_path / "model.anynorm"), pickle.loads(pickle.dumps(model))):
        assert isinstance(moved.dual_coef_, np.ndarray)
        assert isinstance(moved.support_vectors_, np.ndarray)
        np.testing.assert_allclose(moved.decision_function(rows), expected, atol=2e-3)
        assert np.array_equal(moved.predict(rows), host(model.predict(library.array(rows))))
        assert moved.score(rows, Y) == model.score(library.array(rows), library.array(Y))
        assert moved.certificate_ == model.certificate_
        assert library.is_here(moved.predict(library.array(rows)))
    assert library.is_here(model.dual_coef_)  # it has stayed where it was


def test_models_of_sparse_rows_predict_rows_on_a_device(library):
    model = SVC().fit(sp.csr_array(X), Y)
    found = model.decision_function(library.array(X))
    np.testing.assert_allclose(host(found), model.decision_function(X), rtol=1e-9, atol=1e-9)


def test_a_place_says_where_it_is(library):
    place = DevicePlace.of(library.array(X))
    assert str(place).startswith(place.library)
    assert place == DevicePlace.of(library.array(Y))
    assert place.bytes_left() > 0


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_models_of_a_device_are_translated_to_onnx(library, kernel):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = SVC(kernel=kernel).fit(library.array(X), library.array(Y))
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    found = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})[0]
    assert np.array_equal(np.asarray(found).ravel(), host(model.predict(library.array(X))))
