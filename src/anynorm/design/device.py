"""Arrays that do not live in NumPy's memory: the one module that knows namespaces and devices.

PyTorch and CuPy arrays, on CUDA or not, and those of array-api-strict, are used through the array
API (https://data-apis.org/array-api), by way of array-api-compat.  A `DevicePlace` is a library
and a device; it makes arrays there of NumPy's and the other way round.  What is long stays where it
is; vectors of one number per row or column, and small squares, are copied.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from anynorm.design.limits import MEGABYTE
from anynorm.design.memory import memory_left

DeviceArray = Any
"""An array of one of the libraries below."""

VALUES_AT_A_LAUNCH = 1 << 24
"""Numbers of a block on a device: launches of so many cost next to nothing beside their work."""

_LIBRARIES = {"torch": "PyTorch", "cupy": "CuPy", "array_api_strict": "array-api-strict"}
_DEVICE_SPEED = 30.0  # a cautious guess, by which what runs in memory and when it ends is judged
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


def library_of(value: Any) -> str | None:
    """Return the name of the library that a value is an array of; None for all other values.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.device import library_of
    >>> library_of(np.zeros(2)) is None
    True
    """
    root = type(value).__module__.partition(".")[0]
    is_array = hasattr(value, "shape") and hasattr(value, "dtype")
    return _LIBRARIES.get(root) if is_array else None


def is_sparse_on_device(value: Any) -> bool:
    """Whether a value is a sparse array of such a library."""
    root = type(value).__module__.partition(".")[0]
    if root == "torch":
        return str(getattr(value, "layout", "torch.strided")) != "torch.strided"
    return root == "cupyx"


def to_host(value: Any) -> Any:
    """Return an array of any of the libraries as NumPy's; any other value as it is."""
    library = library_of(value)
    if library is None:
        return value
    if library == "PyTorch":
        value = value.detach().cpu()
        whole = "bfloat" not in str(value.dtype)
        return (value if whole else value.float()).numpy()
    if library == "CuPy":
        return value.get()
    import array_api_strict

    return np.asarray(value.to_device(array_api_strict.Device("CPU_DEVICE")))


def dtype_of(array: Any) -> np.dtype[Any]:
    """Return NumPy's name for the type of an array of whatever library."""
    if isinstance(array, np.ndarray):
        return array.dtype
    name = str(array.dtype).rpartition(".")[2]
    return np.dtype("float32" if name == "bfloat16" else name)


class DevicePlace:
    """A library and a device: where an array lives.

    Examples
    --------
    >>> import array_api_strict
    >>> from anynorm.design.device import DevicePlace
    >>> place = DevicePlace.of(array_api_strict.zeros(3))
    >>> place.library, place.host(place.put(np.arange(3.0)) * 2.0).tolist()
    ('array-api-strict', [0.0, 2.0, 4.0])
    """

    def __init__(self, library: str, xp: Any, device: Any) -> None:
        self.library, self.xp, self.device = library, xp, device

    @classmethod
    def of(cls, array: DeviceArray) -> DevicePlace:
        """Return where an array lives."""
        library = library_of(array)
        assert library is not None
        try:
            compat = importlib.import_module("array_api_compat")
        except ImportError:
            raise ImportError(
                f"{library} arrays are used through array-api-compat, which is not installed. "
                "Install it with pip install 'anynorm[gpu]', or give NumPy arrays."
            ) from None
        return cls(library, compat.array_namespace(array), compat.device(array))

    @classmethod
    def named(cls, device: str) -> DevicePlace:
        """Return what a device's name means: that of PyTorch, or of CuPy where that is there alone.

        A ValueError says why there is no such device.
        """
        for name in ("torch", "cupy"):
            try:
                library = importlib.import_module(name)
            except ImportError:
                continue
            cuda = device.partition(":")[0] == "cuda"
            if cuda and not library.cuda.is_available():
                raise ValueError(
                    f"{_LIBRARIES[name]} finds no CUDA device; check the driver with nvidia-smi, "
                    f"and that {_LIBRARIES[name]} was installed for CUDA"
                )
            if name == "torch":
                try:
                    return cls.of(library.zeros(1, device=device))
                except RuntimeError as error:
                    raise ValueError(f"PyTorch has no such device ({error})") from error
            number = device.partition(":")[2] or "0"
            if not cuda or not number.isdigit():
                raise ValueError("CuPy has CUDA devices alone, such as cuda or cuda:1")
            with library.cuda.Device(int(number)):
                return cls.of(library.zeros(1))
        raise ValueError(
            "neither PyTorch nor CuPy is installed; install one of them for the CUDA that is "
            "there, and anynorm[gpu]"
        )

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, DevicePlace) and other.library == self.library
        return same and str(other.device) == str(self.device)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.library, str(self.device)))

    def __str__(self) -> str:
        return f"{self.library} on {self.device}"

    def __reduce__(self) -> Any:
        raise TypeError("a place on a device cannot be written to a file; the host's arrays can")

    @property
    def speed(self) -> float:
        """About how many times as fast as by one core products are made here."""
        return 1.0 if "cpu" in str(self.device).lower() else _DEVICE_SPEED

    # ------------------------------------------------------------ copies

    host = staticmethod(to_host)

    def put(self, values: Any, dtype: DTypeLike | None = None) -> DeviceArray:
        """Return a copy of NumPy's numbers here."""
        values = np.ascontiguousarray(values, dtype=dtype)
        return self.xp.asarray(values, device=self.device, copy=True)

    def dtype(self, dtype: DTypeLike) -> Any:
        """Return what the library calls a type of NumPy's."""
        return getattr(self.xp, np.dtype(dtype).name)

    def astype(self, array: DeviceArray, dtype: DTypeLike) -> DeviceArray:
        """Return an array with numbers of a type, itself where it has these."""
        wanted = self.dtype(dtype)
        return array if array.dtype == wanted else self.xp.astype(array, wanted)

    # ------------------------------------------------------------ memory

    def empty(self, size: int, dtype: DTypeLike) -> DeviceArray:
        """Return new memory for so many numbers."""
        return self.xp.empty((size,), dtype=self.dtype(dtype), device=self.device)

    def zeros(self, shape: tuple[int, ...]) -> DeviceArray:
        """Return zeros in float64."""
        return self.xp.zeros(shape, dtype=self.dtype(np.float64), device=self.device)

    def bytes_left(self) -> float:
        """Return how much more memory there is, as far as the library tells."""
        kind = str(self.device)
        if self.library == "PyTorch" and kind.startswith("cuda"):
            cuda = importlib.import_module("torch").cuda
            idle = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
            return float(cuda.mem_get_info(self.device)[0] + idle)
        if self.library == "CuPy":
            pool = importlib.import_module("cupy").get_default_memory_pool()
            with self.device:
                return float(self.device.mem_info[0] + pool.free_bytes())
        return memory_left()

    @contextmanager
    def room_for(self, n_bytes: float, what: str, remedy: str) -> Iterator[None]:
        """Have work that takes so much memory fail with an error that says what it was for."""
        left = self.bytes_left()
        message = (
            f"{what} take {n_bytes / MEGABYTE:,.0f} MB of the memory of {self}, of which "
            f"{left / MEGABYTE:,.0f} MB are left. {remedy}"
        )
        if n_bytes > left:
            raise MemoryError(message)
        try:
            yield
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise MemoryError(message) from error

    # ------------------------------------------------------------ parts

    def rows(self, table: DeviceArray, rows: Any) -> DeviceArray:
        """Return some rows of a table: a slice, places or a mask, of NumPy's."""
        if isinstance(rows, slice):
            return table if rows == slice(None) else table[rows, :]
        places = np.asarray(rows)
        places = np.flatnonzero(places) if places.dtype == bool else places
        return self.xp.take(table, self.put(places, np.int64), axis=0)

    def columns(self, table: DeviceArray, columns: Any) -> DeviceArray:
        """Return some columns of a table."""
        if isinstance(columns, slice):
            return table if columns == slice(None) else table[:, columns]
        return self.xp.take(table, self.put(columns, np.int64), axis=1)

    def entries(self, table: DeviceArray, rows: Any, columns: Any) -> DeviceArray:
        """Return the entries of a table at places that are broadcast against each other."""
        places = self.put(rows, np.int64) * table.shape[1] + self.put(columns, np.int64)
        flat = self.xp.take(self.xp.reshape(table, (-1,)), self.xp.reshape(places, (-1,)), axis=0)
        return self.xp.reshape(flat, places.shape)

    def put_rows(self, table: DeviceArray, places: NDArray[np.intp], rows: DeviceArray) -> None:
        """Write rows into a table."""
        if self.library == "array-api-strict":  # the standard has no such assignment
            for k, place in enumerate(places.tolist()):
                table[place, :] = rows[k, :]
        else:
            table[self.put(places, np.int64)] = rows


class Memory:
    """NumPy's memory as a place, for algorithms that run wherever their arrays are."""

    xp: Any = np

    @staticmethod
    def host(array: Any) -> NDArray[Any]:
        """Return an array as NumPy's, which it is."""
        return array

    @staticmethod
    def put(values: Any) -> NDArray[Any]:
        """Return NumPy's numbers here."""
        return values

    @staticmethod
    def zeros(shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return zeros in float64."""
        return np.zeros(shape)

    @staticmethod
    def rows(table: NDArray[Any], rows: Any) -> NDArray[Any]:
        """Return some rows of a table."""
        return table[rows]


# ------------------------------------------------------------ numbers of whatever library


def exponential(values: Any) -> Any:
    """Return exp(values), in place where they are NumPy's."""
    if isinstance(values, np.ndarray):
        return np.exp(values, out=values)
    return DevicePlace.of(values).xp.exp(values)


def positive_part(values: Any) -> Any:
    """Return max(values, 0), in place where they are NumPy's."""
    if isinstance(values, np.ndarray):
        return np.maximum(values, values.dtype.type(0.0), out=values)
    return DevicePlace.of(values).xp.clip(values, 0.0, None)


def power(values: Any, exponent: float) -> Any:
    """Return values to a power, in place where they are NumPy's."""
    if isinstance(values, np.ndarray):
        return np.power(values, exponent, out=values)
    return values**exponent


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of any of the libraries says that memory was missing."""
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    text = str(error).lower()
    return named or (isinstance(error, RuntimeError) and any(m in text for m in _OUT_OF_MEMORY))
