# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators: broadcasting of slopes, NaN, signs of remainders, and the same answer when the operands are known."""

import itertools

import numpy as np
import pytest
from onnx import helper
from small_models import close, everywhere, f32, folded, i64, model_of, numbers, one, peer, refused, run, same_as

# ---- PRelu ----


# The slope broadcasts one way, from the last axis: a vector does not belong to the channels.
@pytest.mark.parametrize("shape", [(), (1,), (2,), (2, 1, 1), (1, 2, 1, 1), (1, 1), (1, 2, 2, 2), (2, 1), (1, 2, 1), (2, 2, 2)])
@pytest.mark.parametrize("opset", [7, 9, 16])
def test_prelu_slope_shapes(shape, opset):
    x = np.array([-1, -2, 3, -4, -5, 6, -7, -8], f32).reshape(1, 2, 2, 2)
    slope = np.resize(np.array([0.1, 0.5], f32), shape)
    expected = np.where(x < 0, x * slope, x)
    close(one("PRelu", {"x": x}, opset, constants={"s": slope}), expected)
    close(one("PRelu", {"x": x, "s": slope}, opset), expected)
    close(folded("PRelu", {"x": x, "s": slope}, opset), expected)


@pytest.mark.parametrize("data, slope", [((3,), (3,)), ((3,), ()), ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3, 4), (3, 1)),
                                         ((2, 3, 4, 2, 2), (3, 1, 1, 1))])
def test_prelu_of_other_ranks(data, slope):
    x, s = numbers(*data), np.abs(numbers(*slope, seed=1))
    close(everywhere("PRelu", {"x": x}, constants={"s": s}), np.where(x < 0, x * s, x))


def test_prelu_that_does_not_broadcast():
    x = numbers(1, 2, 3)
    for slope in [(2,), (4, 1, 2, 3), (2, 2, 3)]:
        node = helper.make_node("PRelu", ["x", "s"], ["y"])
        refused(model_of([node], {"x": x}, {"y": f32}, constants={"s": numbers(*slope)}))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.float16, np.float64])
def test_prelu_dtypes(dtype):
    x = np.array([[3, 4], [0, 5]]).astype(dtype) if np.dtype(dtype).kind == "u" else np.array([[3, -4], [0, -5]]).astype(dtype)
    s = np.array([2, 3]).astype(dtype)
    close(one("PRelu", {"x": x, "s": s}), np.where(x < 0, x * s, x))


# ---- NaN ----

NAN_ROW = [np.nan, -1, 7, np.inf, -np.inf, 0, np.nan, 5, 2]  # longer than a vector register of floats, so that vector and scalar code run


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("op, operands", [("Max", 2), ("Min", 2), ("Max", 3), ("Min", 3)])
def test_nan_in_either_operand(op, operands, dtype):
    x = np.array(NAN_ROW, dtype)
    others = [np.full(x.shape, 1 + i, dtype) for i in range(operands - 1)]
    function = np.maximum if op == "Max" else np.minimum
    for place in range(operands):
        inputs = others[:place] + [x] + others[place:]
        expected = inputs[0]
        for value in inputs[1:]:
            expected = function(expected, value)
        close(everywhere(op, {f"x{i}": value for i, value in enumerate(inputs)}), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_in_rectifiers(dtype):
    x = np.array(NAN_ROW, dtype)
    close(everywhere("Relu", {"x": x}, 14), np.maximum(x, 0))
    for low, high in [(0, 6), (0, None), (None, 6)]:
        bounds = {"low": None if low is None else np.array(low, dtype), "high": None if high is None else np.array(high, dtype)}
        expected = np.minimum(np.maximum(x, low if low is not None else -np.inf), high if high is not None else np.inf)
        for values in ({}, bounds), (bounds, {}):
            close(one("Clip", {"x": x, **values[0]}, 13, dtype, values[1]), expected.astype(dtype))
        close(folded("Clip", {"x": x, **bounds}, 13), expected.astype(dtype))
    if dtype == np.float32:
        close(everywhere("Clip", {"x": x}, 7, min=0.0, max=6.0), np.clip(x, f32(0), f32(6)))


def test_nan_in_activations():
    x = np.array(NAN_ROW, f32)
    plain = ["HardSigmoid", "HardSwish", "Sign", "Abs", "Sigmoid", "Tanh", "Elu", "Selu", "Softplus", "Exp", "Floor", "Round", "Sqrt"]
    for op, attributes in [("LeakyRelu", {"alpha": 0.1}), ("ThresholdedRelu", {"alpha": 1.0}), *[(name, {}) for name in plain]]:
        y = everywhere(op, {"x": x}, **attributes)
        kept = np.isnan(y[[0, 6]])
        # ThresholdedRelu compares, and NaN is above nothing: 0, as the operator's text has it.
        assert kept.all() or op == "ThresholdedRelu", op
        assert not np.isnan(y[[1, 2, 5, 7, 8]]).any() or op == "Sqrt", op


def test_nan_in_reductions_and_pools():
    x = np.array([[1, np.nan, 3, 4, 5, 6, 7, 8, 9], [np.nan, 1, 2, 3, 4, 5, 6, 7, 8], [9, 8, 7, 6, 5, 4, 3, 2, np.nan], [1, 2, 3, 4, 5, 6, 7, 8, 9]],
                 f32)
    for op, function in [("ReduceMax", np.max), ("ReduceMin", np.min), ("ReduceSum", np.sum)]:
        attributes = {"constants": {"axes": np.array([1], i64)}} if op == "ReduceSum" else {"axes": [1]}
        close(one(op, {"x": x}, 13, keepdims=0, **attributes), function(x, 1))
    close(one("MaxPool", {"x": x.reshape(1, 1, 4, 9)}, kernel_shape=[4, 9]).ravel(), f32([np.nan]))


# A known bound above the other bound: all elements are the upper one.
def test_clip_with_crossed_bounds():
    x = np.array([-3, 0, 1.5, 9], f32)
    close(everywhere("Clip", {"x": x, "low": f32(2), "high": f32(1)}, 13), np.full(4, 1, f32))


# ---- Remainders ----


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("fmod", [0, 1])
def test_signs_of_integer_remainders(dtype, fmod):
    a, b = np.array(list(itertools.product([-8, -7, -1, 0, 1, 7, 8], [-3, -1, 2, 3])), dtype).T
    expected = np.fmod(a, b) if fmod else np.mod(a, b)
    for opset in [10, 13]:
        close(everywhere("Mod", {"a": a.copy(), "b": b.copy()}, opset, fmod=fmod), expected)
    close(one("Mod", {"a": a.copy()}, constants={"b": np.array(-3, dtype)}, fmod=fmod), np.fmod(a, dtype(-3)) if fmod else np.mod(a, dtype(-3)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_signs_of_float_remainders(dtype):
    a, b = np.array(list(itertools.product([-7, -4.5, -0.0, 0.0, 4.5, 7], [-3, -0.5, 3])), dtype).T
    close(everywhere("Mod", {"a": a.copy(), "b": b.copy()}, fmod=1), np.fmod(a, b))


def test_remainders_of_unsigned_numbers():
    for dtype in [np.uint8, np.uint16, np.uint32, np.uint64]:
        a, b = np.array([250, 7, 3, 255], dtype), np.array([7, 250, 3, 2], dtype)
        for fmod in [0, 1]:
            close(everywhere("Mod", {"a": a, "b": b}, fmod=fmod), a % b)


def test_golden_remainders():
    a, b = np.array([-7, 7, -7], np.int32), np.array([3, -3, -3], np.int32)
    np.testing.assert_array_equal(everywhere("Mod", {"a": a, "b": b}), [2, -2, -1])
    np.testing.assert_array_equal(everywhere("Mod", {"a": a.astype(f32), "b": b.astype(f32)}, fmod=1), [-1, 1, -1])


# Integer division rounds to zero, unlike NumPy's.
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integer_division(dtype):
    a, b = np.array(list(itertools.product([-7, -1, 0, 1, 7], [-3, -1, 2, 3])), dtype).T
    close(everywhere("Div", {"a": a.copy(), "b": b.copy()}, 14), np.trunc(a / b).astype(dtype))


# ---- Attributes of one name in operators that are fused ----


def test_fused_operators_keep_their_own_alpha():
    gemm = lambda alpha: helper.make_node("Gemm", ["x", "w"], ["a"], alpha=alpha, beta=3.0)
    tails = [helper.make_node("LeakyRelu", ["a"], ["y"], alpha=0.1), helper.make_node("Elu", ["a"], ["y"], alpha=2.0),
             helper.make_node("HardSigmoid", ["a"], ["y"], alpha=0.5, beta=0.25),
             helper.make_node("Selu", ["a"], ["y"], alpha=1.5, gamma=2.0), helper.make_node("ThresholdedRelu", ["a"], ["y"], alpha=0.4),
             helper.make_node("Celu", ["a"], ["y"], alpha=0.7)]
    outcomes = [lambda a: np.where(a < 0, 0.1 * a, a), lambda a: np.where(a < 0, 2 * np.expm1(a), a), lambda a: np.clip(0.5 * a + 0.25, 0, 1),
                lambda a: 2 * np.where(a > 0, a, 1.5 * np.expm1(a)), lambda a: np.where(a > 0.4, a, 0),
                lambda a: np.maximum(a, 0) + np.minimum(0, 0.7 * np.expm1(a / 0.7))]
    x = np.array([[2, -1], [1, 3]], f32)
    w = np.array([[-3, 1], [1, 2]], f32)
    for tail, outcome in zip(tails, outcomes, strict=True):
        got = run(model_of([gemm(0.5), tail], {"x": x}, {"y": f32}, constants={"w": w}), {"x": x})["y"]
        close(got, outcome(0.5 * x @ w).astype(f32))


def test_golden_alpha():
    nodes = [helper.make_node("Gemm", ["x", "w"], ["a"], alpha=0.5), helper.make_node("LeakyRelu", ["a"], ["y"], alpha=0.1)]
    x = np.array([[2]], f32)
    close(run(model_of(nodes, {"x": x}, {"y": f32}, constants={"w": np.array([[-3]], f32)}), {"x": x})["y"], np.array([[-0.3]], f32))


# The same operator twice in a row with other values of its attribute.
def test_chains_of_one_operator():
    x = numbers(2, 8)
    nodes = [helper.make_node("LeakyRelu", ["x"], ["a"], alpha=0.5), helper.make_node("LeakyRelu", ["a"], ["b"], alpha=0.1),
             helper.make_node("Elu", ["b"], ["c"], alpha=2.0),
             helper.make_node("Elu", ["c"], ["y"], alpha=0.3)]
    same_as(peer, model_of(nodes, {"x": x}, {"y": f32}), {"x": x})
