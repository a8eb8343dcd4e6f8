# SPDX-License-Identifier: Apache-2.0
"""Batches without elements, whose extent is known or comes at run time: every operator gives its shape and touches nothing."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_models import close, declared, f32, i64, model_of, numbers, session

IMAGE, MATRIX, WORDS = ["n", 8, 6, 6], ["n", 5], ["n", 3, 4]


def constant(*shape, dtype=f32):
    return np.ones(shape, dtype)


# name, extents of x with the batch n, further constants, attributes, extents of y, dtype of y
CASES = [
    ("Relu", MATRIX, {}, {}, MATRIX, f32),
    ("Softmax", MATRIX, {}, {}, MATRIX, f32),
    ("Softmax", MATRIX, {}, {"axis": 0}, MATRIX, f32),
    ("Add", MATRIX, {"c": constant(5)}, {}, MATRIX, f32),
    ("Add", MATRIX, {"c": constant(1, 1)}, {}, MATRIX, f32),
    ("MatMul", MATRIX, {"w": constant(5, 7)}, {}, ["n", 7], f32),
    ("MatMul", WORDS, {"w": constant(4, 7)}, {}, ["n", 3, 7], f32),
    ("MatMul", WORDS, {"w": constant(1, 4, 7)}, {}, ["n", 3, 7], f32),
    ("Gemm", MATRIX, {"w": constant(7, 5), "b": constant(7)}, {"transB": 1}, ["n", 7], f32),
    ("Conv", IMAGE, {"w": constant(8, 8, 3, 3)}, {"pads": [1] * 4}, IMAGE, f32),
    ("Conv", IMAGE, {"w": constant(8, 1, 3, 3)}, {"group": 8}, ["n", 8, 4, 4], f32),
    ("ConvTranspose", IMAGE, {"w": constant(8, 4, 2, 2)}, {"strides": [2, 2]}, ["n", 4, 12, 12], f32),
    ("MaxPool", IMAGE, {}, {"kernel_shape": [2, 2], "strides": [2, 2]}, ["n", 8, 3, 3], f32),
    ("AveragePool", IMAGE, {}, {"kernel_shape": [3, 3], "pads": [1] * 4}, IMAGE, f32),
    ("GlobalAveragePool", IMAGE, {}, {}, ["n", 8, 1, 1], f32),
    ("BatchNormalization", IMAGE, {name: constant(8) for name in "sbmv"}, {}, IMAGE, f32),
    ("LayerNormalization", WORDS, {"s": constant(4)}, {}, WORDS, f32),
    ("InstanceNormalization", IMAGE, {"s": constant(8), "b": constant(8)}, {}, IMAGE, f32),
    ("LRN", IMAGE, {}, {"size": 3}, IMAGE, f32),
    ("PRelu", IMAGE, {"s": constant(8, 1, 1)}, {}, IMAGE, f32),
    ("Transpose", WORDS, {}, {"perm": [2, 0, 1]}, [4, "n", 3], f32),
    ("Reshape", WORDS, {"s": np.array([0, 12], i64)}, {}, ["n", 12], f32),
    ("Flatten", WORDS, {}, {}, ["n", 12], f32),
    ("Slice", WORDS, {"s": np.array([1], i64), "e": np.array([3], i64), "a": np.array([2], i64)}, {}, ["n", 3, 2], f32),
    ("Gather", WORDS, {"i": np.array([2, 0], i64)}, {"axis": 2}, ["n", 3, 2], f32),
    ("Concat", WORDS, {"c": constant(0, 3, 4)}, {"axis": 0}, WORDS, f32),
    ("Pad", MATRIX, {"p": np.array([0, 1, 0, 2], i64)}, {}, ["n", 8], f32),
    ("Tile", MATRIX, {"r": np.array([1, 2], i64)}, {}, ["n", 10], f32),
    ("Expand", MATRIX, {"s": np.array([2, 1, 1], i64)}, {}, [2, "n", 5], f32),
    ("ReduceSum", WORDS, {"a": np.array([2], i64)}, {"keepdims": 0}, ["n", 3], f32),
    ("ReduceMax", WORDS, {}, {"axes": [1], "keepdims": 1}, ["n", 1, 4], f32),
    ("ArgMax", WORDS, {}, {"axis": 2, "keepdims": 0}, ["n", 3], i64),
    ("TopK", MATRIX, {"k": np.array([2], i64)}, {}, ["n", 2], f32),
    ("CumSum", MATRIX, {"a": np.array(1, i64)}, {}, MATRIX, f32),
    ("Cast", MATRIX, {}, {"to": TensorProto.BOOL}, MATRIX, np.bool_),
    ("Where", MATRIX, {}, {}, MATRIX, f32),
    ("DepthToSpace", IMAGE, {}, {"blocksize": 2}, ["n", 2, 12, 12], f32),
    ("Resize", IMAGE, {"roi": constant(0), "s": f32([1, 1, 2, 2])}, {"mode": "linear"}, ["n", 8, 12, 12], f32),
    ("QuantizeLinear", MATRIX, {"s": np.array(0.5, f32), "z": np.array(3, np.uint8)}, {}, MATRIX, np.uint8),
    ("NonZero", MATRIX, {}, {}, [2, "n"], i64),
    ("GatherND", WORDS, {"i": np.zeros((0, 1), i64)}, {}, [0, 3, 4], f32),
    ("OneHot", ["n"], {"d": np.array(4, i64), "v": f32([0, 1])}, {}, ["n", 4], f32),
    ("Einsum", WORDS, {"w": constant(4, 2)}, {"equation": "nij,jk->nki"}, ["n", 2, 3], f32),
    ("RNN", [3, "n", 2], {"w": constant(1, 4, 2), "r": constant(1, 4, 4)}, {"hidden_size": 4}, [3, 1, "n", 4], f32),
    ("GRU", ["n", 2, 2], {"w": constant(1, 12, 2), "r": constant(1, 12, 4)}, {"hidden_size": 4}, ["n", 1, 2, 4], f32),
]


def case_model(name, extents, constants, attributes, result, batch):
    shape = [batch if extent == "n" else extent for extent in extents]
    nodes, inputs = [], ["x", *constants]
    if name == "Where":
        nodes.append(helper.make_node("Greater", ["x", "x"], ["c"]))
        inputs = ["c", "x", "x"]
    return model_of([*nodes, helper.make_node(name, inputs, ["y"], **attributes)], [declared("x", f32, shape)], {"y": result},
                    17 if name != "ReduceMax" else 13, constants)


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
@pytest.mark.parametrize("batch", [0, "n"])
def test_empty_batch(case, batch):
    name, extents, constants, attributes, out, result = case
    model = case_model(name, extents, constants, attributes, result, batch)
    for level in (0, 3):
        compiled = session(model, level)
        x = np.zeros([0 if extent == "n" else extent for extent in extents], f32)
        y = compiled.run(None, {"x": x})[0]
        assert y.dtype == result
        assert list(y.shape) == [0 if extent == "n" else extent for extent in out]
        if batch == "n" and name != "NonZero":  # the next run has elements
            y = compiled.run(None, {"x": np.ones([2 if extent == "n" else extent for extent in extents], f32)})[0]
            assert list(y.shape) == [2 if extent == "n" else extent for extent in out]


# Sums over nothing are 0, products 1; and what follows counts on.
@pytest.mark.parametrize("batch", [0, "n"])
def test_reductions_of_an_empty_batch(batch):
    nodes = [helper.make_node("ReduceSum", ["x", "a"], ["s"], keepdims=0), helper.make_node("ReduceProd", ["x"], ["p"], axes=[0], keepdims=0),
             helper.make_node("Exp", ["s"], ["e"]), helper.make_node("MatMul", ["t", "x"], ["m"]),
             helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Concat", ["x", "k"], ["c"], axis=0)]
    k = numbers(2, 3)
    model = model_of(nodes, [declared("x", f32, [batch, 3])], dict.fromkeys(["s", "p", "e", "m", "c"], f32), 13, {"a": np.array([0], i64), "k": k})
    for level in (0, 3):
        got = session(model, level).run(None, {"x": np.zeros((0, 3), f32)})
        for actual, expected in zip(got, [np.zeros(3, f32), np.ones(3, f32), np.ones(3, f32), np.zeros((3, 3), f32), k], strict=True):
            close(actual, expected)


# A network, whose layout is changed and whose operators are fused.
@pytest.mark.parametrize("batch", [0, "n"])
def test_network_without_a_batch(batch):
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Conv", ["b", "w"], ["c"], pads=[1] * 4), helper.make_node("Add", ["c", "b"], ["d"]),
             helper.make_node("MaxPool", ["d"], ["e"], kernel_shape=[2, 2], strides=[2, 2]), helper.make_node("GlobalAveragePool", ["e"], ["f"]),
             helper.make_node("Flatten", ["f"], ["g"]), helper.make_node("Gemm", ["g", "v"], ["h"]), helper.make_node("Softmax", ["h"], ["y"])]
    model = model_of(nodes, [declared("x", f32, [batch, 8, 8, 8])], {"y": f32}, constants={"w": numbers(8, 8, 3, 3), "v": numbers(8, 10, seed=1)})
    for level in (0, 3):
        compiled = session(model, level)
        assert compiled.run(None, {"x": np.zeros((0, 8, 8, 8), f32)})[0].shape == (0, 10)
        if batch == "n":
            y = compiled.run(None, {"x": numbers(3, 8, 8, 8)})[0]
            np.testing.assert_allclose(y.sum(1), np.ones(3), rtol=1e-5)
