"""The generators draw what the papers say; the loader reads what is there and says what is not."""

import os
import urllib.error

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import Bunch

from anynorm import datasets
from anynorm.datasets import load_dataset, make_relevant, make_skin, make_two_gaussians

GENERATORS = [make_skin, make_relevant, make_two_gaussians]

needs_data = pytest.mark.skipif(
    not os.environ.get("ANYNORM_DATA"),
    reason="ANYNORM_DATA is not set: the papers' data sets are not here",
)


@pytest.mark.parametrize("make", GENERATORS)
def test_generators_are_reproducible_and_balanced(make):
    X, y = make(random_state=3)
    again, labels = make(random_state=np.random.RandomState(3))
    other, _ = make(random_state=4)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert not np.array_equal(X, other)
    assert set(y) == {-1.0, 1.0}
    assert y.sum() == 0
    assert make(7, random_state=0)[0].shape[0] == 7


def test_skin_lies_in_its_ring_and_has_the_papers_bayes_error():
    X, y = make_skin(40_000, n_noise=1, random_state=0)
    radius = (X[:, :2] ** 2).sum(axis=1)
    assert radius[y < 0].min() >= 4.5
    assert radius[y < 0].max() <= 8
    # The Bayes rule calls everything in the ring skin, so it errs on the oranges in it alone.
    error = np.mean((y > 0) & (radius >= 4.5) & (radius <= 8))
    assert error == pytest.approx(0.0435, abs=0.003)
    # Conditioned on the ring, the squared radius keeps the exponential's density.
    oranges_in_ring = radius[(y > 0) & (radius >= 4.5) & (radius <= 8)]
    assert radius[y < 0].mean() == pytest.approx(oranges_in_ring.mean(), abs=0.06)
    assert X[:, 2].std() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("n_noise", "size"), [(0, 5), (2, 14), (4, 27), (6, 44), (8, 65)])
def test_skin_dictionary_is_the_polynomial_kernel(n_noise, size):
    inputs, _ = make_skin(30, n_noise=n_noise, random_state=1)
    features, _ = make_skin(30, n_noise=n_noise, dictionary=True, random_state=1)
    assert features.shape == (30, size)
    kernel = (1 + inputs @ inputs.T) ** 2 - 1
    np.testing.assert_allclose(features @ features.T, kernel, atol=1e-10)


def test_relevant_means_are_at_the_papers_distance():
    X, y = make_relevant(20_000, 30, n_relevant=9, random_state=0)
    difference = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    np.testing.assert_allclose(difference[:9], 2 * 1.5 / 3, atol=0.06)
    np.testing.assert_allclose(difference[9:], 0, atol=0.06)
    assert np.linalg.norm(difference[:9]) == pytest.approx(3, abs=0.1)
    assert make_relevant(random_state=0)[0].shape == (100, 200)


def test_two_gaussians_switch_labels_and_nothing_else():
    clean, labels = make_two_gaussians(random_state=5, n_switched=0)
    X, y = make_two_gaussians(random_state=5)
    np.testing.assert_array_equal(X, clean)
    np.testing.assert_array_equal(labels, np.repeat([1.0, -1.0], 20))
    assert (y != labels)[:20].sum() == 1
    assert (y != labels)[20:].sum() == 1
    many, side = make_two_gaussians(20_000, n_switched=0, random_state=0)
    np.testing.assert_allclose(many[side > 0].mean(axis=0), [0, 0], atol=0.05)
    np.testing.assert_allclose(many[side < 0].mean(axis=0), [5, 2], atol=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_skin(1), "n_samples must be an integer of at least 2"),
        (lambda: make_skin(n_noise=-1), "n_noise must be an integer of at least 0"),
        (lambda: make_skin(10.0), "n_samples must be an integer"),
        (lambda: make_relevant(n_features=True), "n_features must be an integer"),
        (lambda: make_relevant(n_features=3, n_relevant=4), "n_relevant must be at most"),
        (lambda: make_relevant(distance=np.nan), "distance must be a finite number"),
        (lambda: make_relevant(distance=-1.0), "distance must be a finite number"),
        (lambda: make_two_gaussians(6, n_switched=7), "n_switched must be at most 6"),
        (lambda: load_dataset("../sonar"), "name must be the plain name"),
        (lambda: load_dataset(""), "name must be the plain name"),
        (lambda: load_dataset("sonar", dtype=int), "dtype must be float32, float64 or None"),
    ],
)
def test_wrong_parameters_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that ANYNORM_DATA names."""
    monkeypatch.setenv("ANYNORM_DATA", str(tmp_path))
    return tmp_path


def test_dense_file_with_several_splits(folder):
    X = np.arange(12, dtype=np.uint8).reshape(4, 3)
    np.savez(
        folder / "tiny.npz",
        X=X,
        y=np.array([0, 1, 1, 0], np.int8),
        class_names=np.array(["no", "yes"]),
        feature_names=np.array(["a", "b", "c"]),
        train_idx=np.array([[0, 1], [2, 3]], np.uint16),
        test_idx=np.array([[2, 3], [0, 1]], np.uint16),
    )
    tiny = load_dataset("tiny")
    assert tiny.data.dtype == np.float64
    np.testing.assert_array_equal(tiny.data, X)
    np.testing.assert_array_equal(tiny.target, [0, 1, 1, 0])
    assert tiny.target_names == ["no", "yes"]
    assert tiny.feature_names == ["a", "b", "c"]
    assert [(list(train), list(test)) for train, test in tiny.splits] == [
        ([0, 1], [2, 3]),
        ([2, 3], [0, 1]),
    ]
    assert (tiny.name, tiny.source) == ("tiny", "file")
    data, target = load_dataset("tiny", dtype=np.float32, return_X_y=True)
    assert data.dtype == np.float32
    np.testing.assert_array_equal(target, tiny.target)


def test_sparse_file_keeps_float32_and_takes_the_first_rows_as_training_part(folder):
    X = sp.random(6, 5, density=0.5, format="csr", dtype=np.float32, random_state=0)
    np.savez(
        folder / "tiny.npz",
        data=X.data,
        indices=X.indices.astype(np.uint16),
        indptr=X.indptr,
        shape=np.array(X.shape, np.int32),
        y=np.array([-1, 1, -1, 1, -1, 1], np.int8),
        n_train=np.int32(4),
    )
    tiny = load_dataset("tiny")
    assert sp.issparse(tiny.data)
    assert tiny.data.format == "csr"
    assert tiny.data.dtype == np.float32
    assert tiny.data.indices.dtype == np.int32
    np.testing.assert_array_equal(tiny.data.toarray(), X.toarray())
    assert tiny.target_names is None
    assert set(tiny.target) == {-1, 1}
    [(train, test)] = tiny.splits
    np.testing.assert_array_equal(train, [0, 1, 2, 3])
    np.testing.assert_array_equal(test, [4, 5])


GOOD = {"X": np.zeros((3, 2)), "y": np.array([0, 1, 0])}
SPARSE = {"data": np.ones(2), "indptr": np.array([0, 1, 2]), "shape": np.array([2, 3])}


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"X": GOOD["X"]}, "it has no 'y'"),
        ({"y": GOOD["y"]}, "it has no 'data'"),
        ({**GOOD, "X": np.zeros(3)}, "X has 1 dimensions"),
        ({**GOOD, "y": np.zeros(4)}, "y has shape"),
        ({**GOOD, "y": np.array([{}, 1, 2], object)}, "allow_pickle"),
        ({**GOOD, "feature_names": np.array(["a"])}, "1 feature names for 2"),
        ({**GOOD, "train_idx": np.array([0, 1]), "test_idx": np.array([1])}, "not a partition"),
        ({**GOOD, "n_train": np.int32(5)}, "not a partition"),
        ({**SPARSE, "indices": np.array([0, 3]), "y": np.array([0, 1])}, "< 3"),
    ],
)
def test_file_in_the_wrong_format_is_named_with_the_reason(folder, parts, reason):
    np.savez(folder / "bad.npz", **parts)
    with pytest.raises(ValueError, match=r"bad\.npz is damaged.*" + reason):
        load_dataset("bad")


@pytest.mark.parametrize("keep", [0, 10, 200])
def test_truncated_file_is_named(folder, keep):
    np.savez_compressed(folder / "cut.npz", X=np.random.default_rng(0).random((9, 9)), y=np.ones(9))
    whole = (folder / "cut.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[:keep])
    with pytest.raises(ValueError, match=r"cut\.npz is damaged"):
        load_dataset("cut")


def test_flipped_bytes_are_found(folder):
    np.savez_compressed(
        folder / "flip.npz", X=np.random.default_rng(0).random((9, 9)), y=np.ones(9)
    )
    raw = bytearray((folder / "flip.npz").read_bytes())
    raw[200:260] = bytes(60)
    (folder / "flip.npz").write_bytes(raw)
    with pytest.raises(ValueError, match=r"flip\.npz is damaged"):
        load_dataset("flip")


def test_unknown_name_says_what_there_is_and_what_to_do(folder, monkeypatch):
    np.savez(folder / "mine.npz", **GOOD)
    with pytest.raises(
        ValueError, match=r"'nothing' is not a known.*has mine.*sonar.*ANYNORM_DATA"
    ):
        load_dataset("nothing")
    monkeypatch.delenv("ANYNORM_DATA")
    with pytest.raises(ValueError, match=r"ANYNORM_DATA is not set.*put nothing\.npz"):
        load_dataset("nothing")


def test_missing_folder_is_an_error_not_a_download(tmp_path, monkeypatch):
    monkeypatch.setenv("ANYNORM_DATA", str(tmp_path / "gone"))
    monkeypatch.setattr(datasets, "fetch_openml", lambda *_, **__: pytest.fail("asked OpenML"))
    with pytest.raises(FileNotFoundError, match=r"ANYNORM_DATA is .*gone.*not a folder"):
        load_dataset("sonar")


@pytest.fixture
def openml(monkeypatch):
    """A stand-in for OpenML: a dict from name to what it answers; no folder is set."""
    monkeypatch.delenv("ANYNORM_DATA", raising=False)
    answers = {}

    def fetch(name, *, version, data_home, as_frame, parser):
        answer = answers[name, version]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    return answers


def test_openml_answers_where_there_is_no_file(openml):
    X = np.random.default_rng(0).random((208, 60))
    labels = np.where(np.arange(208) % 2, "Rock", "Mine").astype(object)
    openml["sonar", 1] = Bunch(data=X, target=labels, feature_names=[f"f{j}" for j in range(60)])
    sonar = load_dataset("sonar")
    np.testing.assert_array_equal(sonar.data, X)
    np.testing.assert_array_equal(sonar.target, np.arange(208) % 2)
    assert sonar.target_names == ["Mine", "Rock"]
    assert sonar.splits == []
    assert (sonar.source, sonar.name) == ("openml", "sonar")


def test_openml_answers_where_the_folder_lacks_the_file(openml, tmp_path, monkeypatch):
    monkeypatch.setenv("ANYNORM_DATA", str(tmp_path))
    openml["leukemia", 1] = Bunch(
        data=np.ones((72, 7129)), target=np.repeat(["ALL", "AML"], 36), feature_names=["g"] * 7129
    )
    leukemia = load_dataset("leukemia")
    assert (leukemia.name, leukemia.source) == ("leukemia_7129", "openml")


def test_openml_rows_with_missing_values_are_left_out(openml):
    X = np.ones((699, 9))
    X[:16, 3] = np.nan
    y = np.where(np.arange(699) < 16, "unsure", np.where(np.arange(699) % 3, "no", "yes"))
    openml["breast-w", 1] = Bunch(data=X, target=y, feature_names=list("abcdefghi"))
    wisconsin = load_dataset("wisconsin_original")
    assert wisconsin.data.shape == (683, 9)
    assert np.isfinite(wisconsin.data).all()
    assert wisconsin.target_names == ["no", "yes"]
    np.testing.assert_array_equal(wisconsin.target, np.arange(16, 699) % 3 == 0)


def test_openml_set_of_another_shape_is_refused(openml):
    openml["iris", 1] = Bunch(data=np.ones((10, 4)), target=np.arange(10), feature_names=[])
    with pytest.raises(ValueError, match=r"shape \(10, 4\) where \(150, 4\) was expected"):
        load_dataset("iris")


def test_openml_out_of_reach_gives_the_remedy(openml):
    openml["wine", 1] = urllib.error.URLError("no route to host")
    with pytest.raises(OSError, match=r"'wine' \(.*no route to host.*ANYNORM_DATA"):
        load_dataset("wine")


@needs_data
@pytest.mark.parametrize(
    ("name", "shape", "counts", "n_splits"),
    [
        ("sonar", (208, 60), [111, 97], 0),
        ("leukemia", (72, 7129), [47, 25], 1),
        ("ida_heart", (270, 13), [150, 120], 10),
        ("srbct", (83, 2308), [29, 11, 18, 25], 1),
        ("a9a", (48_842, 123), [37_155, 11_687], 1),
        ("dexter_train", (300, 20_000), [150, 150], 0),
    ],
)
def test_papers_data_are_read(name, shape, counts, n_splits):
    dataset = load_dataset(name)
    assert dataset.source == "file"
    assert dataset.data.shape == shape
    assert dataset.data.dtype in (np.float32, np.float64)
    assert sorted(np.unique(dataset.target, return_counts=True)[1]) == sorted(counts)
    assert len(dataset.splits) == n_splits
    values = dataset.data.data if sp.issparse(dataset.data) else dataset.data
    assert np.isfinite(values).all()
