"""An ONNX graph under construction: nodes whose results have names."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8  # of the time of these operator sets, so that older runtimes read the graph
_TYPES = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
    "str": TensorProto.STRING,
}


class Graph:
    """Nodes, constants, inputs and outputs, in the order in which they are made."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._columns: dict[str, list[str]] = {}

    def input(self, name: str, dtype: str, width: int, columns: Any = None) -> str:
        """Declare rows of `width` columns that are given, by name where names are known."""
        self._inputs.append(helper.make_tensor_value_info(name, _TYPES[dtype], ["n", width]))
        if columns is not None:
            self._columns[name] = [str(column) for column in columns]
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Return the name of the result of an operator."""
        name = f"v{len(self._nodes)}_{operator.lower()}"
        made = helper.make_node(operator, list(inputs), [name], domain=domain, **attributes)
        self._nodes.append(made)
        return name

    def constant(self, values: Any) -> str:
        """Return the name of an array that is part of the graph."""
        name = f"c{len(self._constants)}"
        values = np.asarray(values)
        if values.dtype.kind in "UO":
            texts = np.array([str(value).encode() for value in values.ravel()], dtype=object)
            made = helper.make_tensor(name, TensorProto.STRING, values.shape, texts)
        else:
            made = numpy_helper.from_array(np.ascontiguousarray(values), name)
        self._constants.append(made)
        return name

    def cast(self, value: str, dtype: str) -> str:
        """Return the name of a value in another type."""
        return self.node("Cast", value, to=_TYPES[dtype])

    def output(self, name: str, value: str, dtype: str, shape: list[Any]) -> None:
        """Declare a value that is returned."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, _TYPES[dtype], shape))

    def model(self, name: str, version: str) -> onnx.ModelProto:
        """Return the finished graph, checked."""
        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, initializer=self._constants
        )
        used = {node.domain for node in self._nodes} | {""}
        opsets = [helper.make_opsetid(domain, _OPSETS[domain]) for domain in sorted(used)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        model.producer_name, model.producer_version = "anynorm", version
        helper.set_model_props(
            model, {key: json.dumps(columns) for key, columns in self._columns.items()}
        )
        onnx.checker.check_model(model, full_check=True)
        return model
