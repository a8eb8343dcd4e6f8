# SPDX-License-Identifier: Apache-2.0
"""Running sums, the largest elements with ties, and the places of extremes."""

import itertools

import numpy as np
import pytest
from onnx import helper
from small_models import close, declared, everywhere, f32, folded, i64, model_of, node_model, numbers, one, refused, run, session

# ---- CumSum ----


def running_sum(x, axis, reverse, exclusive):
    x = np.flip(x, axis) if reverse else x
    y = np.cumsum(x, axis, dtype=x.dtype)
    if exclusive:
        y = y - x
    return np.flip(y, axis) if reverse else y


@pytest.mark.parametrize("reverse, exclusive, expected", [(0, 0, [1, 3, 6, 10]), (1, 0, [10, 9, 7, 4]), (0, 1, [0, 1, 3, 6]), (1, 1, [9, 7, 4, 0])])
@pytest.mark.parametrize("axis", [np.array(0, i64), np.array([0], i64), np.array(-1, np.int32), np.array([-1], np.int32)])
def test_cumsum(reverse, exclusive, expected, axis):
    for dtype in [f32, np.float64, np.int32, i64]:
        x = np.array([1, 2, 3, 4], dtype)
        attributes = {"reverse": reverse, "exclusive": exclusive}
        close(one("CumSum", {"x": x}, constants={"a": axis}, levels=(3,), **attributes), np.array(expected, dtype))
    close(folded("CumSum", {"x": x, "a": axis}, **attributes), np.array(expected, dtype))


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 5), (2, 1, 3, 2), (0, 3)])
def test_cumsum_axes(shape):
    x = np.random.default_rng(0).integers(-9, 10, shape).astype(f32)
    for axis, (reverse, exclusive) in [*itertools.product(range(len(shape)), [(0, 0), (0, 1), (1, 0), (1, 1)]), (-1, (1, 1))]:
        y = one("CumSum", {"x": x}, 14, constants={"a": np.array(axis, i64)}, levels=(3,), reverse=reverse, exclusive=exclusive)
        close(y, running_sum(x, axis, reverse, exclusive))


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 4)])
def test_cumsum_of_an_axis_that_is_data(shape):
    x = np.random.default_rng(0).integers(-9, 10, shape).astype(f32)
    node = helper.make_node("CumSum", ["x", "a"], ["y"], reverse=1)
    for axis_shape, dtype in [([], i64), ([1], np.int32)]:
        compiled = session(model_of([node], [declared("x", f32, shape), declared("a", dtype, axis_shape)], {"y": f32}))
        for axis in range(-len(shape), len(shape)):
            close(compiled.run(None, {"x": x, "a": np.full(axis_shape, axis, dtype)})[0], running_sum(x, axis, 1, 0))


def test_cumsum_of_a_bad_axis():
    for axis in [2, -3]:
        refused(node_model("CumSum", {"x": numbers(2, 3)}, constants={"a": np.array(axis, i64)}))
    refused(node_model("CumSum", {"x": numbers(2, 3)}, constants={"a": np.array([0, 1], i64)}))


# ---- TopK: of equal elements the lower index comes first ----


def top(x, k, axis, largest):
    # A stable sort by falling value: that of the negated ranks, which exist for unsigned numbers too.
    ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape)
    order = np.argsort(-ranks if largest else ranks, axis=axis, kind="stable").take(range(k), axis)
    return np.take_along_axis(x, order, axis), order


@pytest.mark.parametrize("x, k, largest, values, indices",
                         [([3, 1, 3, 2], 2, 1, [3, 3], [0, 2]), ([1, 5, 1, 2], 2, 0, [1, 1], [0, 2]), ([4, 4, 4, 4], 4, 1, [4] * 4, [0, 1, 2, 3])])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_golden_ties(x, k, largest, values, indices, dtype):
    got = one("TopK", {"x": np.array(x, dtype)}, constants={"k": np.array([k], i64)}, result=[dtype, i64], largest=largest)
    close(got[0], np.array(values, dtype))
    close(got[1], np.array(indices, i64))


@pytest.mark.parametrize("shape", [(6,), (4, 5), (2, 5, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64])
def test_top_k_axes(shape, dtype):
    x = np.random.default_rng(1).integers(0, 4, shape).astype(dtype)
    for axis in range(-len(shape), len(shape)):
        for k, largest in [(1, 1), (2, 0), (x.shape[axis], 1), (x.shape[axis], 0)]:
            got = one("TopK", {"x": x}, constants={"k": np.array([k], i64)}, result=[dtype, i64], levels=(3,), axis=axis, largest=largest)
            for actual, wanted in zip(got, top(x, k, axis, largest), strict=True):
                close(actual, wanted)


# Negation would turn 0 into the largest, and the smallest signed number into itself.
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64])
def test_extreme_integers(dtype):
    info = np.iinfo(dtype)
    x = np.array([info.max, info.min, 0, info.max, info.min, 1], dtype)
    for largest in [0, 1]:
        got = one("TopK", {"x": x}, constants={"k": np.array([6], i64)}, result=[dtype, i64], levels=(3,), largest=largest)
        for actual, wanted in zip(got, top(x, 6, 0, largest), strict=True):
            close(actual, wanted)


@pytest.mark.parametrize("opset", [7, 10, 11, 24])
def test_top_k_opsets(opset):
    x = np.array([[3, 1, 3, 2], [2, 2, 1, 2]], f32)
    k = {"k": 3} if opset < 10 else {"constants": {"k": np.array([3], i64)}}
    got = one("TopK", {"x": x}, opset, result=[f32, i64], **k)
    for actual, wanted in zip(got, top(x, 3, -1, True), strict=True):
        close(actual, wanted)


def test_top_k_of_too_many():
    for k in [5, -1]:
        refused(node_model("TopK", {"x": numbers(4)}, 11, [f32, i64], {"k": np.array([k], i64)}))
    got = one("TopK", {"x": numbers(4)}, 11, [f32, i64], {"k": np.array([0], i64)})
    assert got[0].shape == got[1].shape == (0,)


# ---- ArgMax and ArgMin ----


def place(x, axis, keepdims, last, largest):
    function = np.argmax if largest else np.argmin
    index = x.shape[axis] - 1 - function(np.flip(x, axis), axis) if last else function(x, axis)
    return (np.expand_dims(index, axis) if keepdims else index).astype(i64)


@pytest.mark.parametrize("last, expected", [(0, 1), (1, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int8, np.uint8, np.int32, np.int64])
def test_golden_place(last, expected, dtype):
    x = np.array([2, 5, 5, 1], dtype)
    for axis, keepdims in itertools.product([0, -1], [0, 1]):
        got = everywhere("ArgMax", {"x": x}, 13, i64, axis=axis, keepdims=keepdims, select_last_index=last)
        close(got, np.full((1,) if keepdims else (), expected, i64))
    x = np.array([2, 1, 1, 5], dtype)
    close(one("ArgMin", {"x": x}, 13, i64, select_last_index=last, keepdims=0), np.array(expected, i64))


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("shape", [(20,), (3, 17), (2, 5, 3), (2, 3, 2, 9)])
def test_places_with_ties(op, shape):
    x = np.random.default_rng(2).integers(0, 3, shape).astype(f32)
    for axis, keepdims, last in [*itertools.product(range(len(shape)), [0, 1], [0, 1]), (-1, 0, 1)]:
        got = one(op, {"x": x}, 12, i64, levels=(3,), axis=axis, keepdims=keepdims, select_last_index=last)
        close(got, place(x, axis, keepdims, last, op == "ArgMax"))


@pytest.mark.parametrize("opset", [7, 11])
def test_places_before_the_last_index_could_be_asked_for(opset):
    x = np.array([[2, 5, 5, 1], [7, 7, 0, 0]], f32)
    close(one("ArgMax", {"x": x}, opset, i64, axis=1), np.array([[1], [0]], i64))
    close(one("ArgMin", {"x": x}, opset, i64, axis=1), np.array([[3], [2]], i64))


# ---- Reductions: the axes are an attribute, later an input, which may be empty ----


REDUCTIONS = {
    "ReduceSum": (13, lambda x, a, k: x.sum(a, keepdims=k)), "ReduceMean": (18, lambda x, a, k: x.mean(a, keepdims=k)),
    "ReduceMax": (18, lambda x, a, k: x.max(a, keepdims=k)), "ReduceMin": (18, lambda x, a, k: x.min(a, keepdims=k)),
    "ReduceProd": (18, lambda x, a, k: x.prod(a, keepdims=k)), "ReduceL1": (18, lambda x, a, k: np.abs(x).sum(a, keepdims=k)),
    "ReduceL2": (18, lambda x, a, k: np.sqrt((x * x).sum(a, keepdims=k))), "ReduceSumSquare": (18, lambda x, a, k: (x * x).sum(a, keepdims=k)),
    "ReduceLogSumExp": (18, lambda x, a, k: np.log(np.exp(x).sum(a, keepdims=k))),
}


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reduction_axes(op):
    since, function = REDUCTIONS[op]
    x = numbers(2, 3, 4)
    for axes, keepdims in [(None, 0), (None, 1), ([0], 1), ([1], 0), ([-1], 1), ([0, 2], 0), ([-1, -3], 1), ([0, 1, 2], 0)]:
        expected = np.asarray(function(x, None if axes is None else tuple(axes), bool(keepdims)), f32)
        attribute = {} if axes is None else {"axes": axes}
        close(one(op, {"x": x}, 11, levels=(3,), keepdims=keepdims, **attribute), expected, 1e-4, 1e-5)
        constants = {} if axes is None else {"a": np.array(axes, i64)}
        close(one(op, {"x": x}, since, constants=constants, levels=(0,), keepdims=keepdims), expected, 1e-4, 1e-5)
    every = np.asarray(function(x, None, True), f32)
    close(one(op, {"x": x}, since, constants={"a": np.zeros(0, i64)}), every, 1e-4, 1e-5)
    close(one(op, {"x": x}, since, constants={"a": np.array([1], i64)}, noop_with_empty_axes=1), np.asarray(function(x, 1, True), f32), 1e-4, 1e-5)


def test_reduction_of_nothing():
    x = numbers(2, 0, 3)
    for op, value in [("ReduceSum", 0), ("ReduceL1", 0), ("ReduceSumSquare", 0)]:
        since = REDUCTIONS[op][0]
        close(one(op, {"x": x}, since, constants={"a": np.array([1], i64)}, keepdims=0), np.full((2, 3), value, f32))
    close(one("ReduceProd", {"x": x}, 18, constants={"a": np.array([1], i64)}, keepdims=0), np.ones((2, 3), f32))


# A reduction whose result is reduced again: the axes of the second count in the first one's result.
def test_reductions_in_a_row():
    x = numbers(2, 3, 4, 5)
    nodes = [helper.make_node("ReduceMax", ["x"], ["a"], axes=[1], keepdims=0), helper.make_node("ReduceMean", ["a"], ["b"], axes=[-1], keepdims=0),
             helper.make_node("ArgMax", ["b"], ["y"], axis=1)]
    close(run(model_of(nodes, {"x": x}, {"y": i64}, 13), {"x": x})["y"], x.max(1).mean(-1).argmax(1)[:, None].astype(i64))
