# SPDX-License-Identifier: Apache-2.0
"""Attributes and inputs belong to versions of operators: what came later or went earlier is refused. signatures.def is current."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import treadle

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "src/import/onnx/signatures.def"


def model(op, opset, inputs, attributes):
    names = [f"x{i}" for i in range(len(inputs))]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip(names, inputs, strict=True)]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


IMAGE, CHANNELS, MATRIX = [1, 2, 8, 8], [2], [3, 3]
WINDOW = {"kernel_shape": [2, 2]}


# (operator, inputs, attributes, the operator sets that have it, and those that have not)
@pytest.mark.parametrize("op, inputs, attributes, good, bad", [
    ("MaxPool", [IMAGE], {**WINDOW, "ceil_mode": 1}, [10, 12, 22], [7, 8, 9]),
    ("MaxPool", [IMAGE], {**WINDOW, "dilations": [1, 1]}, [10, 11], [8]),
    ("AveragePool", [IMAGE], {**WINDOW, "ceil_mode": 1}, [10, 19], [7, 9]),
    ("AveragePool", [IMAGE], {**WINDOW, "dilations": [1, 1]}, [19, 22], [10, 11, 18]),
    ("BatchNormalization", [IMAGE, *[CHANNELS] * 4], {"spatial": 1}, [7, 8], [9, 14, 15]),
    ("BatchNormalization", [IMAGE, *[CHANNELS] * 4], {"training_mode": 0}, [14, 15], [7, 9]),
    ("Gemm", [MATRIX, MATRIX], {}, [11, 13], [7, 9]),
    ("Relu", [IMAGE], {"bogus": 1}, [], [7, 13, 14]),
    ("Softmax", [IMAGE], {"axis": 1, "axes": [1]}, [], [11, 13]),
    ("Relu", [IMAGE, IMAGE], {}, [], [7, 14]),
    ("Add", [IMAGE], {}, [], [7, 13]),
])
def test_versions(op, inputs, attributes, good, bad):
    for opset in good:
        treadle.InferenceSession(model(op, opset, inputs, attributes), opt_level=1, cache=False)
    for opset in bad:
        with pytest.raises(treadle.ModelError, match="opset|missing"):
            treadle.InferenceSession(model(op, opset, inputs, attributes), opt_level=1, cache=False)


def test_reshape_takes_allowzero_from_14():
    for opset, known in [(13, False), (14, True)]:
        node = helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=1)
        shape = onnx.numpy_helper.from_array(np.array([4], np.int64), "s")
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])], [shape])
        data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()
        if known:
            treadle.InferenceSession(data, cache=False)
        else:
            with pytest.raises(treadle.ModelError, match="allowzero"):
                treadle.InferenceSession(data, cache=False)


def test_table_is_current():
    printed = subprocess.run([sys.executable, ROOT / "tools/make_onnx_signatures"], capture_output=True, text=True, check=True).stdout
    assert PAGE.read_text() == printed, "write it anew: tools/make_onnx_signatures > src/import/onnx/signatures.def"
