"""The libraries whose arrays are tried: array-api-strict and PyTorch on the CPU.

`make test-gpu` names others in ANYNORM_DEVICES: PyTorch and CuPy on CUDA.
"""

import importlib
import os

import numpy as np
import pytest

DEVICES = os.environ.get("ANYNORM_DEVICES", "array-api-strict torch:cpu").split()


class Library:
    """One library on one device."""

    def __init__(self, name):
        self.name, _, self.device = name.partition(":")
        module = {"array-api-strict": "array_api_strict"}.get(self.name, self.name)
        reason = f"{self.name} is not installed"
        self.module = pytest.importorskip(module, reason=reason)
        if self.device == "cuda" and not self.module.cuda.is_available():
            pytest.skip(f"{self.name} finds no CUDA device")
        if self.name == "cupy" and not self.module.cuda.is_available():
            pytest.skip("cupy finds no CUDA device")

    def array(self, values):
        """NumPy's numbers there."""
        if self.name == "torch":
            return self.module.asarray(np.array(values), device=self.device)
        return self.module.asarray(np.array(values))

    def is_here(self, array):
        """Whether something is an array of the library, on the device."""
        if self.name == "torch":
            return isinstance(array, self.module.Tensor) and array.device.type == self.device
        kind = self.module.ndarray if self.name == "cupy" else type(self.module.zeros(1))
        return isinstance(array, kind)


@pytest.fixture(params=DEVICES)
def library(request):
    importlib.import_module("array_api_compat")
    return Library(request.param)
