# SPDX-License-Identifier: Apache-2.0
"""Small models on which other engines went wrong, by kind of fault; run through the command at O0 and O3.

Expected values were worked out by hand from the operators' specification. TREADLE_COMMAND names another build of the command.
"""

import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[3]
TREADLE = Path(os.environ.get("TREADLE_COMMAND", ROOT / "build" / "release" / "bin" / "treadle"))
f32 = np.float32


def run(folder, nodes, feed, outputs, opset=17, initializers=None):
    """The outputs by name, the same at O0 and O3."""
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in feed.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
                              [numpy_helper.from_array(value, name) for name, value in (initializers or {}).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, folder / "m.onnx")
    arguments = []
    for name, value in feed.items():
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    results = []
    for level in (0, 3):
        done = subprocess.run([TREADLE, "run", folder / "m.onnx", *arguments, "-O", str(level), "--no-cache", "--output", folder / "out.npz"],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        results.append(dict(np.load(folder / "out.npz")))
    for name in outputs:
        np.testing.assert_allclose(results[0][name], results[1][name], rtol=1e-5, atol=1e-6)
    return results[1]


def one(folder, op, feed, opset=17, kind=TensorProto.FLOAT, initializers=None, names=None, **attributes):
    names = names or [*feed, *(initializers or {})]
    return run(folder, [helper.make_node(op, names, ["y"], **attributes)], feed, {"y": kind}, opset, initializers)["y"]


def signal(*values):
    return np.array(values, f32).reshape(1, 1, -1)


# The divisor counts cells up to input and declared padding, not those that ceil adds beyond.
@pytest.mark.parametrize("opset", [10, 11, 19])
@pytest.mark.parametrize("include, expected", [(1, [1, 3, 5, 3]), (0, [1.5, 3, 5, 6])])
def test_average_pool_ceil_mode(tmp_path, opset, include, expected):
    y = one(tmp_path, "AveragePool", {"x": signal(1, 2, 3, 4, 5, 6)}, opset, kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1, count_include_pad=include)
    np.testing.assert_allclose(y.ravel(), expected)


@pytest.mark.parametrize("pad, expected", [("SAME_LOWER", [0.75, 1.5, 2.5, 2.25]), ("SAME_UPPER", [1.5, 2.5, 2.25, 1.75])])
def test_average_pool_same(tmp_path, pad, expected):
    y = one(tmp_path, "AveragePool", {"x": signal(1, 2, 3, 4)}, 19, kernel_shape=[4], auto_pad=pad, count_include_pad=1)
    np.testing.assert_allclose(y.ravel(), expected)


def test_max_pool_pads_with_minus_infinity(tmp_path):
    np.testing.assert_array_equal(one(tmp_path, "MaxPool", {"x": signal(-1, -2, -3, -4)}, kernel_shape=[3], strides=[2], auto_pad="SAME_UPPER").ravel(), [-1, -3])


def test_conv_transpose_output_padding(tmp_path):
    y = one(tmp_path, "ConvTranspose", {"x": signal(1, 2, 3)}, initializers={"w": signal(1, 1, 1)}, strides=[2], pads=[1, 1], output_padding=[1])
    np.testing.assert_allclose(y.ravel(), [1, 3, 2, 5, 3, 3])


@pytest.mark.parametrize("pad, expected", [("SAME_UPPER", [1, 1, 2, 1, 2, 1, 2, 1]), ("SAME_LOWER", [1, 2, 1, 2, 1, 2, 1, 1])])
def test_conv_transpose_auto_pad(tmp_path, pad, expected):
    y = one(tmp_path, "ConvTranspose", {"x": signal(1, 1, 1, 1)}, initializers={"w": signal(1, 1, 1)}, strides=[2], auto_pad=pad)
    np.testing.assert_allclose(y.ravel(), expected)


def test_conv_same_with_dilation(tmp_path):
    y = one(tmp_path, "Conv", {"x": signal(1, 2, 3, 4, 5, 6, 7)}, initializers={"w": signal(1, 1, 1)}, dilations=[2], auto_pad="SAME_UPPER")
    np.testing.assert_allclose(y.ravel(), [4, 6, 9, 12, 15, 10, 12])


@pytest.mark.parametrize("opset, axis, expected", [(11, 1, 0.25), (11, None, 0.25), (13, None, 0.5)])
def test_softmax_before_opset_13(tmp_path, opset, axis, expected):
    attributes = {} if axis is None else {"axis": axis}
    np.testing.assert_allclose(one(tmp_path, "Softmax", {"x": np.zeros((2, 2, 2), f32)}, opset, **attributes), np.full((2, 2, 2), expected))


@pytest.mark.parametrize("reverse, exclusive, expected", [(0, 0, [1, 3, 6, 10]), (1, 0, [10, 9, 7, 4]), (0, 1, [0, 1, 3, 6]), (1, 1, [9, 7, 4, 0])])
@pytest.mark.parametrize("axis", [0, -1])
def test_cumsum(tmp_path, reverse, exclusive, expected, axis):
    y = one(tmp_path, "CumSum", {"x": np.array([1, 2, 3, 4], f32)}, initializers={"a": np.array(axis, np.int64)}, reverse=reverse, exclusive=exclusive)
    np.testing.assert_array_equal(y, expected)


def test_nan_is_kept(tmp_path):
    x, one_ = np.array([np.nan, -1, 7], f32), np.ones(3, f32)
    assert np.isnan(one(tmp_path, "Relu", {"x": x})[0])
    for op in ["Max", "Min"]:
        assert np.isnan(one(tmp_path, op, {"x": x, "b": one_})[0]) and np.isnan(one(tmp_path, op, {"b": one_, "x": x})[0])


def test_mod_signs(tmp_path):
    a, b = [-7, 7, -7], [3, -3, -3]
    y = one(tmp_path, "Mod", {"a": np.array(a, np.int32), "b": np.array(b, np.int32)}, kind=TensorProto.INT32)
    np.testing.assert_array_equal(y, [2, -2, -1])
    np.testing.assert_array_equal(one(tmp_path, "Mod", {"a": np.array(a, f32), "b": np.array(b, f32)}, fmod=1), [-1, 1, -1])


@pytest.mark.parametrize("bounds, expected", [((7, 1, -2), [7, 5, 3]), ((-1, -(2**63), -3), [9, 6, 3, 0]), ((2, 7, -2), []), ((5, -1, -1), []), ((4, 4, 1), [])])
def test_slice(tmp_path, bounds, expected):
    start, end, step = (np.array([value], np.int64) for value in bounds)
    y = one(tmp_path, "Slice", {"x": np.arange(10, dtype=f32)}, initializers={"s": start, "e": end, "a": np.array([0], np.int64), "t": step})
    np.testing.assert_array_equal(y, np.array(expected, f32))


def test_scale_behind_relu(tmp_path):
    w = np.eye(2, dtype=f32).reshape(2, 2, 1, 1)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Mul", ["b", "s"], ["y"])]
    x = np.array([-2, 3, -2, 3], f32).reshape(1, 2, 1, 2)
    y = run(tmp_path, nodes, {"x": x}, {"y": TensorProto.FLOAT}, initializers={"w": w, "s": np.array([-1, 2], f32).reshape(2, 1, 1)})["y"]
    np.testing.assert_array_equal(y.ravel(), [0, -3, 0, 6])


def test_intermediate_values_that_are_outputs(tmp_path):
    w = np.eye(2, dtype=f32).reshape(2, 2, 1, 1)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("BatchNormalization", ["a", "s", "b", "m", "v"], ["n"], epsilon=0.0),
             helper.make_node("Relu", ["n"], ["r"])]
    ones, zeros, x = np.ones(2, f32), np.zeros(2, f32), np.array([-2, 3], f32).reshape(1, 2, 1, 1)
    got = run(tmp_path, nodes, {"x": x}, dict.fromkeys(["r", "n", "a"], TensorProto.FLOAT), initializers={"w": w, "s": 2 * ones, "b": ones, "m": zeros, "v": ones})
    assert list(got) == ["r", "n", "a"]
    for name, expected in {"a": [-2, 3], "n": [-3, 7], "r": [0, 7]}.items():
        np.testing.assert_allclose(got[name].ravel(), expected, rtol=1e-5)
