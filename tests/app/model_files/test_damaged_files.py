"""Whatever is done to a file: the model that was saved, or a ModelFileError, nothing else."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import pathlib
import re
import sys
import tracemalloc
import zipfile
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anynorm import ModelFileError, load_metadata, load_model, norms, save_model
from anynorm.app.model_files import container
from anynorm.app.model_files.kinds import KINDS, public_estimators
from tests.app.model_files import models
from tests.app.model_files.test_round_trip import assert_same

NAMES = ("sparse-cv, three classes", "svc-sparse, two classes", "pipeline", "slack TopK")
FUZZ = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@cache
def saved(name: str, tmp: str) -> bytes:
    path = pathlib.Path(tmp) / "saved.anynorm"
    save_model(models.made(name)[0], path, metadata={"target": "status"})
    return path.read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def loads_the_same_or_says_so(content: bytes, name: str, folder: pathlib.Path) -> bool:
    """Whether the bytes load; what loads must be the model that was saved."""
    path = folder / "changed.anynorm"
    path.write_bytes(content)
    try:
        loaded = load_model(path)
    except ModelFileError:
        return False
    assert_same(models.made(name)[0], loaded)
    return True


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def signed(members: dict[str, bytes]) -> bytes:
    """A file with these members and right digests, as a forger would make it."""
    manifest = json.loads(members["manifest.json"])
    manifest["members"] = {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in members.items()
        if name != "manifest.json"
    }
    return zipped({**members, "manifest.json": json.dumps(manifest).encode()})


@FUZZ
@given(st.data())
def test_flipped_bytes_are_noticed(folder, data):
    name = data.draw(st.sampled_from(NAMES))
    content = bytearray(saved(name, str(folder)))
    places = st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)
    for place in data.draw(places):
        content[place] ^= data.draw(st.integers(1, 255))
    loads_the_same_or_says_so(bytes(content), name, folder)


@FUZZ
@given(st.data())
def test_cut_and_spliced_files_are_noticed(folder, data):
    name = data.draw(st.sampled_from(NAMES))
    content = saved(name, str(folder))
    end = data.draw(st.integers(0, len(content) - 1))
    begin = data.draw(st.integers(0, len(content)))
    middle = data.draw(st.binary(max_size=30))
    assert not loads_the_same_or_says_so(content[:end], name, folder)
    loads_the_same_or_says_so(content[:end] + middle + content[begin:], name, folder)


@FUZZ
@given(st.data())
def test_swapped_members_are_noticed(folder, data):
    name = data.draw(st.sampled_from(NAMES))
    members = members_of(saved(name, str(folder)))
    one = data.draw(st.sampled_from(sorted(members)))
    other = data.draw(st.sampled_from(sorted(members)))
    kind = data.draw(st.sampled_from(["swap", "drop", "rename", "copy"]))
    if kind == "swap":
        members[one], members[other] = members[other], members[one]
    elif kind == "drop":
        del members[one]
    elif kind == "rename":
        members[f"../{one}"] = members.pop(one)
    else:
        members[f"{one}.more"] = members[one]
    same = kind == "swap" and members == members_of(saved(name, str(folder)))
    assert loads_the_same_or_says_so(zipped(members), name, folder) == same


def edited(tree, data):
    """The tree with one of its values changed at random."""
    if isinstance(tree, dict | list) and tree and data.draw(st.integers(0, 20)):
        keys = sorted(tree) if isinstance(tree, dict) else range(len(tree))
        key = data.draw(st.sampled_from(keys))
        changed = dict(tree) if isinstance(tree, dict) else list(tree)
        changed[key] = edited(tree[key], data)
        return changed
    values = (
        st.none() | st.booleans() | st.integers(-5, 2**65) | st.floats(allow_nan=False)
        | st.text(max_size=4) | st.lists(st.integers(0, 3), max_size=3)
        | st.sampled_from([
            {}, {"type": "again", "object": 0}, {"type": "array", "member": "arrays/0.npy"},
            {"type": "tuple", "items": 3}, {"type": "object", "class": "os.system", "state": {}},
            {"type": "array", "member": "model.json"}, {"type": "float", "value": "nan"},
            {"type": "slice", "items": [1, 2]}, {"type": "dtype", "value": "O"},
            {"type": "number", "dtype": "uint8", "value": 300},
            {"type": "objects", "shape": [2**40], "items": []},
            {"type": "dict", "items": [[[], 1]]}, {"type": ["array"]},
        ])
        | st.sampled_from(sorted(KINDS)).map(
            lambda name: {"type": "object", "class": name, "state": {}}
        )
    )  # fmt: skip
    return data.draw(values)


def of_known_packages(loaded: object) -> bool:
    """Whether it, and all that it holds, is an object of ours, scikit-learn's, NumPy's or plain."""
    kinds = {type(loaded), *map(type, getattr(loaded, "__dict__", {}).values())}
    packages = {kind.__module__.split(".")[0] for kind in kinds}
    return packages <= {"anynorm", "sklearn", "numpy", "scipy", "builtins"}


@settings(FUZZ, max_examples=250)
@given(st.data())
def test_forged_trees_with_right_digests_load_or_say_what_is_wrong(folder, data):
    # A forger can compute digests; what then loads may be another model, but nothing else happens.
    name = data.draw(st.sampled_from(NAMES))
    members = members_of(saved(name, str(folder)))
    document = data.draw(st.sampled_from(["model.json", "metadata.json"]))
    members[document] = json.dumps(edited(json.loads(members[document]), data)).encode()
    path = folder / "forged.anynorm"
    path.write_bytes(signed(members))
    for load in (load_model, load_metadata):
        with contextlib.suppress(ModelFileError):
            assert of_known_packages(load(path))


@settings(FUZZ, max_examples=100)
@given(st.data())
def test_forged_arrays_with_right_digests_load_or_say_what_is_wrong(folder, data):
    name = data.draw(st.sampled_from(NAMES))
    members = members_of(saved(name, str(folder)))
    arrays = st.sampled_from(sorted(k for k in members if k.endswith(".npy")))
    member, other = data.draw(arrays), data.draw(arrays)
    members[member], members[other] = members[other], members[member]
    content = bytearray(members[member])
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    members[member] = bytes(content)
    path = folder / "forged.anynorm"
    path.write_bytes(signed(members))
    with contextlib.suppress(ModelFileError):
        model = load_model(path)
        assert of_known_packages(model)
        with contextlib.suppress(Exception):  # a bad model, but compiled code stays in its arrays
            model.decision_function(models.made(name)[1])


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x05\x06" + bytes(18), b"\x80\x04N.", b"{}"])
def test_other_files_are_named_as_such(content, tmp_path):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"other cannot be loaded: it "):
        load_model(path)
    with pytest.raises(ModelFileError, match=r"other cannot be loaded: it "):
        load_metadata(path)


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path)


def test_a_package_that_is_missing_is_named(folder, monkeypatch):
    path = folder / "model.anynorm"
    path.write_bytes(saved("slack TopK", str(folder)))
    monkeypatch.setitem(sys.modules, "anynorm.norms", None)
    with pytest.raises(ModelFileError, match=r"it needs anynorm.norms, which is not installed"):
        load_model(path)


def test_a_newer_format_asks_for_an_upgrade(folder):
    members = members_of(saved("slack TopK", str(folder)))
    manifest = json.loads(members["manifest.json"])
    manifest |= {"version": 2, "written_by": {"anynorm": "9.0"}, "members": "of another kind"}
    path = folder / "newer.anynorm"
    path.write_bytes(zipped({**members, "manifest.json": json.dumps(manifest).encode()}))
    with pytest.raises(ModelFileError, match=r"version 2 \(written by anynorm 9.0\).*upgrade"):
        load_model(path)


def test_classes_of_a_newer_version_ask_for_an_upgrade(folder):
    members = members_of(saved("slack TopK", str(folder)))
    members["model.json"] = members["model.json"].replace(b"anynorm.SVC", b"anynorm.NewSVC")
    path = folder / "newer.anynorm"
    path.write_bytes(signed(members))
    with pytest.raises(ModelFileError, match=r"'anynorm.NewSVC'.*upgrade anynorm"):
        load_model(path)


def test_parameters_newer_than_the_file_have_their_defaults(folder):
    members = members_of(saved("slack TopK", str(folder)))
    tree = json.loads(members["model.json"])
    del tree["state"]["cache_size"]
    members["model.json"] = json.dumps(tree).encode()
    path = folder / "older.anynorm"
    path.write_bytes(signed(members))
    assert load_model(path).cache_size == 500
    tree["state"]["not_known"] = 1
    members["model.json"] = json.dumps(tree).encode()
    path.write_bytes(signed(members))
    with pytest.raises(ModelFileError, match="SVC has no attribute 'not_known'"):
        load_model(path)


def test_a_forged_folder_of_pickles_is_not_followed(folder):
    members = members_of(saved("pipeline", str(folder)))
    tree = json.loads(members["model.json"])
    assert tree["class"] == "sklearn.pipeline.Pipeline"
    tree["state"]["memory"] = "/somewhere"
    members["model.json"] = json.dumps(tree).encode()
    path = folder / "forged.anynorm"
    path.write_bytes(signed(members))
    assert load_model(path).memory is None


def test_another_scikit_learn_is_warned_of(folder):
    members = members_of(saved("pipeline", str(folder)))
    manifest = json.loads(members["manifest.json"])
    manifest["written_by"]["sklearn"] = "0.99"
    path = folder / "other.anynorm"
    path.write_bytes(zipped({**members, "manifest.json": json.dumps(manifest).encode()}))
    with pytest.warns(UserWarning, match=r"parts of scikit-learn 0.99"):
        load_model(path)


def _header(shape: str, descr: str = "<f8") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "member",
    [
        _header("(1000000000000,)"),
        _header("(1000000000, 1000000000)") + bytes(8),
        _header("(4294967296, 4294967296)") + b"",  # 2**64 entries: 0 for careless counting
        _header("(99999999999,)", "|O"),
        _header("(1,)", "<U999999999"),
        _header("(1,)", "|V8") + bytes(8),
        _header("(__import__('os').abort(),)") + bytes(8),
        _header("(-1, -1)") + bytes(8),
        _header("(1,)", "|b1") + b"\x07",
        _header("(1,)", "<U1") + b"\xff\xff\xff\x7f",
    ],
)
def test_impossible_arrays_are_refused_before_memory_is_taken(member, folder):
    members = members_of(saved("slack TopK", str(folder)))
    members["arrays/0.npy"] = member
    path = folder / "forged.anynorm"
    path.write_bytes(signed(members))
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"arrays/0.npy"):
            load_model(path)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_a_zip_bomb_is_refused_before_it_is_opened(folder):
    members = members_of(saved("slack TopK", str(folder)))
    members["arrays/0.npy"] = _header("(12500000,)") + bytes(100_000_000)
    manifest = json.loads(members["manifest.json"])
    manifest["members"]["arrays/0.npy"] = {
        "size": len(members["arrays/0.npy"]),
        "sha256": hashlib.sha256(members["arrays/0.npy"]).hexdigest(),
    }
    members["manifest.json"] = json.dumps(manifest).encode()
    path = folder / "bomb.anynorm"
    path.write_bytes(zipped(members, zipfile.ZIP_DEFLATED))
    assert path.stat().st_size < 1_000_000
    del members
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="compressed or of a wrong size"):
            load_model(path)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("depth", [150, 100_000])
def test_deep_nesting_is_refused(depth, folder):
    members = members_of(saved("slack TopK", str(folder)))
    members["model.json"] = b"[" * depth + b"]" * depth
    path = folder / "deep.anynorm"
    path.write_bytes(signed(members))
    with pytest.raises(ModelFileError):
        load_model(path)


def test_forged_indices_of_sparse_rows_are_refused(folder):
    name = "svc-sparse, two classes"
    members = members_of(saved(name, str(folder)))
    tree = json.loads(members["model.json"])
    indices = tree["state"]["support_vectors_"]["indices"]["member"]
    array = container.parsed_npy(members[indices])
    array[-1] = 2**30
    file = io.BytesIO()
    np.save(file, array)
    members[indices] = file.getvalue()
    path = folder / "forged.anynorm"
    path.write_bytes(signed(members))
    with pytest.raises(ModelFileError):
        load_model(path)


def test_a_failed_save_leaves_the_old_file(folder, monkeypatch):
    path = folder / "kept.anynorm"
    model = models.made("slack TopK")[0]
    save_model(model, path)
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    with pytest.raises(OSError, match="no space left"):
        save_model(model, path)
    assert path.read_bytes() == before
    assert not list(folder.glob("*.tmp"))
    assert not list(folder.glob(".*.tmp"))


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target.anynorm", tmp_path / "link.anynorm"
    link.symlink_to(target)
    save_model(models.made("slack TopK")[0], link)
    assert link.is_symlink()
    assert target.is_file()
    with pytest.raises(FileNotFoundError, match=r"folder .*nowhere does not exist"):
        save_model(models.made("slack TopK")[0], tmp_path / "nowhere" / "model.anynorm")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save_model(models.made("slack TopK")[0], tmp_path)


def test_every_class_of_a_file_is_documented():
    page = pathlib.Path(__file__).parents[3] / "docs" / "model-files.md"
    text = page.read_text()
    public = {f"anynorm.{name}" for name in public_estimators()}
    public |= {f"anynorm.norms.{name}" for name in norms.__all__}
    for name in set(KINDS) - public:  # "every estimator", "every norm"
        assert re.search(rf"\b{name.rpartition('.')[2]}\b", text), name


@pytest.mark.parametrize("name", ["path", "kernel", "pipeline", "scikit-learn-1.6"])
@pytest.mark.filterwarnings("ignore:.*parts of scikit-learn:UserWarning")
def test_files_of_format_version_1_still_load(name):
    path = pathlib.Path(__file__).parent / "data" / f"version-1-{name}.anynorm"
    known = load_metadata(path)
    model = load_model(path)
    scores = model.decision_function(known["rows"])
    np.testing.assert_allclose(scores, known["scores"], rtol=1e-12, atol=1e-12)
    assert model.predict(known["rows"]).tolist() == known["labels"]
    if "certificate" in known:
        fitted = model[-1] if name == "pipeline" else model
        assert fitted.certificate_ == known["certificate"]
