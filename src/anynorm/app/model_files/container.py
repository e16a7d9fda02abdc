"""The file itself: an uncompressed zip of JSON documents and .npy arrays, with their digests.

Nothing is taken on trust.  Members are stored, not compressed, so that no member can be larger than
the file; what an array's header declares must equal the bytes that are there; every member's
SHA-256 must be the one in the manifest.  Headers are matched, never evaluated.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from anynorm.app.atomic import atomic_file

FORMAT = "anynorm-model"
VERSION = 1
"""The format that is written; all versions up to it are read."""

_MANIFEST = "manifest.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # so that equal models are equal files
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([<>|](?:b1|[iu][1248]|f[248]|U[1-9][0-9]{0,8}))', "
    rb"'fortran_order': (True|False), 'shape': \(((?:[0-9]{1,19}, ?)*(?:[0-9]{1,19})?)\), \} *\n"
)
_LAST_CODE_POINT = 0x10FFFF  # of Unicode: no text has characters beyond it


class ModelFileError(ValueError):
    """A model file that cannot be read, or a model that cannot be written to one.

    Examples
    --------
    >>> import os
    >>> from anynorm import ModelFileError, load_model
    >>> try:
    ...     load_model(os.__file__)
    ... except ModelFileError as error:
    ...     print("Error:", error)
    Error: ...os.py cannot be loaded: it is not a whole model file of anynorm: ...
    """


def write_container(
    path: str | os.PathLike[str],
    documents: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    versions: Mapping[str, str],
) -> None:
    """Write documents (as JSON) and arrays to a file, which is then there whole or not at all."""
    digests: dict[str, Any] = {}
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def write(name: str, content: bytes) -> None:
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
            digests[name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}

        for name, document in documents.items():
            write(name, _json_bytes(document))
        for name, array in arrays.items():
            write(name, _npy_bytes(array))
        manifest = {"format": FORMAT, "version": VERSION, "written_by": dict(versions)}
        write(_MANIFEST, _json_bytes({**manifest, "members": dict(digests)}))


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a dtype can be members of a file."""
    probe = np.lib.format.dtype_to_descr(dtype.newbyteorder("<")) if not dtype.hasobject else None
    header = f"{{'descr': {probe!r}, 'fortran_order': False, 'shape': (), }}\n"
    return _HEADER.fullmatch(header.encode()) is not None


class Container:
    """An open model file; a context manager.

    Attributes
    ----------
    written_by : dict
        The versions of the libraries that wrote the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        special = self._path.exists() and not (self._path.is_file() or self._path.is_dir())
        if special:  # opening a pipe would wait for ever
            raise self.error("it is no regular file")
        self._file = self._path.open("rb")
        try:
            self._open()
        except ModelFileError:
            self._file.close()
            raise
        except Exception as error:  # whatever zipfile makes of bytes that are not a zip
            self._file.close()
            raise self.error(
                "it is not a whole model file of anynorm: it is truncated, damaged or something "
                "else altogether"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def error(self, reason: str) -> ModelFileError:
        """Return the error that says why this file cannot be read."""
        return ModelFileError(f"{self._path} cannot be loaded: {reason}.")

    def _open(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        self._zip = zipfile.ZipFile(self._file)
        infos = self._zip.infolist()
        names = [info.filename for info in infos]
        if _MANIFEST not in names:
            raise self.error("it has no manifest, so it is not a model file of anynorm")
        self._infos = dict(zip(names, infos, strict=True))
        self._members = self._checked_manifest(size)
        if len(self._infos) != len(names) or set(names) != {_MANIFEST, *self._members}:
            raise self.error("its members are not those of its manifest")
        if sum(info.file_size for info in infos) > size:
            raise self.error("it declares more bytes than it has")

    def _checked_manifest(self, size: int) -> dict[str, Any]:
        """The members by name, after the checks of the format and its version."""
        manifest = parsed_json(self._stored(_MANIFEST, size))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise self.error("it is not a model file of anynorm")
        version, by = manifest.get("version"), manifest.get("written_by")
        if type(version) is not int or version < 1 or not isinstance(by, dict):
            raise self.error("its manifest is damaged")
        if version > VERSION:
            raise self.error(
                f"it has format version {version} (written by anynorm {by.get('anynorm')}), and "
                f"this anynorm reads up to version {VERSION}; upgrade anynorm"
            )
        self.written_by = {str(key): str(value) for key, value in by.items()}
        members = manifest.get("members")
        if not isinstance(members, dict) or _MANIFEST in members:
            raise self.error("its manifest is damaged")
        return members

    def _stored(self, name: str, most: int) -> bytes:
        """The bytes of a member, which must be stored as they are."""
        info = self._infos[name]
        if info.compress_type != zipfile.ZIP_STORED or not (
            0 <= info.file_size == info.compress_size <= most
        ):
            raise self.error(f"its member {name!r} is compressed or of a wrong size")
        return self._zip.read(info)

    def read(self, name: str) -> bytes:
        """Return a member's bytes, of which the digest is right."""
        entry = self._members.get(name)
        if not isinstance(entry, dict):
            raise self.error(f"it has no member {name!r}")
        size, digest = entry.get("size"), entry.get("sha256")
        try:
            content = self._stored(name, self._infos[name].file_size)
        except ModelFileError:
            raise
        except Exception as error:
            raise self.error(f"its member {name!r} is damaged") from error
        if size != len(content) or digest != hashlib.sha256(content).hexdigest():
            raise self.error(f"its member {name!r} is not what was written: its SHA-256 differs")
        return content

    def document(self, name: str) -> Any:
        """Return a JSON member."""
        content = self.read(name)
        try:
            return parsed_json(content)
        except Exception as error:
            raise self.error(f"its member {name!r} is not valid JSON") from error

    def array(self, name: str) -> np.ndarray:
        """Return an array member."""
        content = self.read(name)
        try:
            return parsed_npy(content)
        except Exception as error:
            raise self.error(f"its member {name!r} is not a valid array: {error}") from error


def parsed_json(content: bytes) -> Any:
    """Parse JSON strictly: UTF-8, no repeated names, no NaN."""
    return json.loads(
        content.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_refuse
    )


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _json_bytes(document: Any) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")


def _npy_bytes(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    np.lib.format.write_array(file, little, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def parsed_npy(content: bytes) -> np.ndarray:
    """Return the array of a .npy file of version 1.0, if it is exactly as long as it declares."""
    start = len(_MAGIC) + 2
    end = start + int.from_bytes(content[len(_MAGIC) : start], "little")
    header = _HEADER.fullmatch(content[start:end])
    if not content.startswith(_MAGIC) or header is None:
        raise ValueError("its header is not that of a plain array")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(length) for length in header[3].split(b",") if length.strip())
    if math.prod(shape) * dtype.itemsize != len(content) - end:
        raise ValueError(f"its header declares shape {shape} of {dtype}, which it does not hold")
    flat = np.frombuffer(content, dtype=dtype, offset=end)
    order = "F" if header[2] == b"True" else "C"
    native = flat.astype(dtype.newbyteorder("="))  # a copy: aligned and writeable
    _check_content(native)
    return native.reshape(shape, order=order)  # type: ignore[call-overload]


def _check_content(flat: np.ndarray) -> None:
    """Refuse bytes that are no values of the dtype, which NumPy would take as they are."""
    kind = flat.dtype.kind
    if kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("it has bytes that are no booleans")
    if kind == "U" and flat.view(np.uint32).max(initial=0) > _LAST_CODE_POINT:
        raise ValueError("it has characters that do not exist")
