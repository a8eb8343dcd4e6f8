# SPDX-License-Identifier: Apache-2.0
"""Slices, padding and gathers: negative steps, counts and indices, and results without elements."""

import numpy as np
import pytest
from onnx import helper
from small_models import close, declared, everywhere, f32, folded, i32, i64, model_of, node_model, numbers, one, refused, run, session, treadle

LOWEST, HIGHEST = -(2**63), 2**63 - 1

# ---- Slice ----


def sliced(x, start, end, step, axis=0):
    """ONNX clamps the bounds: start to 0…n (negative steps: 0…n-1), end to 0…n (-1…n-1)."""
    n = x.shape[axis]
    start, end = (start + n if start < 0 else start), (end + n if end < 0 else end)
    low, high = (0, n) if step > 0 else (-1, n - 1)
    start, end = min(max(start, low if step > 0 else 0), high), min(max(end, low), high)
    return x.take([i for i in range(start, end, step) if 0 <= i < n], axis)


BOUNDS = [(7, 1, -2), (-1, LOWEST, -3), (2, 7, -2), (5, -1, -1), (4, 4, 1), (0, HIGHEST, 3), (-3, HIGHEST, 1), (-100, 100, 4), (100, -100, -4),
          (9, 0, -1), (9, -11, -1), (8, 2, 1),
          (3, 8, 10), (8, 3, -10), (HIGHEST, LOWEST, -1), (10, 12, 1), (-12, -10, 1), (0, 5, HIGHEST), (9, LOWEST, LOWEST), (5, 6, -1),
          (0, LOWEST, -1), (1, LOWEST, -1)]


@pytest.mark.parametrize("start, end, step", BOUNDS)
def test_slice_bounds(start, end, step):
    x = np.arange(10, dtype=f32)
    expected = sliced(x, start, end, step)
    start, end, axes, step = (np.array([value], i64) for value in (start, end, 0, step))
    close(everywhere("Slice", {"x": x}, 13, constants={"s": start, "e": end, "a": axes, "t": step}), expected)
    # The bounds and the step as run-time inputs.
    close(one("Slice", {"x": x, "s": start, "e": end}, 13, constants={"a": axes, "t": step}, levels=(0,)), expected)
    close(one("Slice", {"x": x, "s": start, "e": end, "a2": None, "t": step}, 13, levels=(3,)), expected)


@pytest.mark.parametrize("bounds, expected", [((7, 1, -2), [7, 5, 3]), ((-1, LOWEST, -3), [9, 6, 3, 0]), ((2, 7, -2), []), ((5, -1, -1), []),
                                              ((4, 4, 1), [])])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_golden_slices(bounds, expected, dtype):
    low = np.iinfo(dtype).min
    start, end, step = (np.array([max(value, low)], dtype) for value in bounds)
    y = one("Slice", {"x": np.arange(10, dtype=f32)}, constants={"s": start, "e": end, "a": np.array([0], dtype), "t": step})
    np.testing.assert_array_equal(y, np.array(expected, f32))


@pytest.mark.parametrize("shape", [(5, 7), (3, 4, 6)])
def test_slice_of_each_axis(shape):
    x = np.arange(np.prod(shape), dtype=f32).reshape(shape)
    for axis in range(-len(shape), len(shape)):
        for start, end, step in [(-1, LOWEST, -2), (1, -1, 1), (3, 0, -1)]:
            given = {"s": np.array([start], i64), "e": np.array([end], i64), "a": np.array([axis], i64), "t": np.array([step], i64)}
            close(one("Slice", {"x": x}, constants=given, levels=(3,)), sliced(x, start, end, step, axis))


def test_slice_of_several_axes():
    x = np.arange(60, dtype=f32).reshape(3, 4, 5)
    given = {"s": np.array([-1, 3], i64), "e": np.array([LOWEST, 0], i64), "a": np.array([2, -2], i64), "t": np.array([-2, -1], i64)}
    close(everywhere("Slice", {"x": x}, constants=given), x[:, 3:0:-1, ::-2])
    close(one("Slice", {"x": x}, 9, starts=[1, -3], ends=[2**31 - 1, -1], axes=[0, 2]), x[1:, :, -3:-1])
    close(one("Slice", {"x": x}, 9, starts=[0, 1], ends=[2, 3]), x[:2, 1:3])


def test_step_of_nothing():
    given = {"s": np.array([0], i64), "e": np.array([3], i64), "a": np.array([0], i64), "t": np.array([0], i64)}
    refused(node_model("Slice", {"x": numbers(4)}, constants=given))


# A result without elements goes on like any other.
@pytest.mark.parametrize("start, end, step", [(2, 7, -2), (5, -1, -1), (4, 4, 1), (12, 20, 1)])
def test_use_of_an_empty_slice(start, end, step):
    given = {"s": np.array([start], i64), "e": np.array([end], i64), "a": np.array([0], i64), "t": np.array([step], i64), "k": f32([1, 2, 3])}
    nodes = [helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["c"]), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("Concat", ["r", "k"], ["y"], axis=0),
             helper.make_node("ReduceSum", ["r"], ["total"]), helper.make_node("Shape", ["c"], ["count"])]
    x = np.arange(10, dtype=f32)
    outputs = {"y": f32, "total": f32, "count": i64, "r": f32}
    expected = {"y": f32([1, 2, 3]), "total": f32([0]), "count": np.array([0], i64), "r": f32([])}
    for got in [run(model_of(nodes, {"x": x}, outputs, constants=given), {"x": x}),
                run(model_of(nodes, {}, outputs, constants={**given, "x": x}), {}, (3,))]:
        for name, value in expected.items():
            close(got[name], value)


# ---- Pad ----

PADS = [[-1, 2], [2, -1], [-1, -1], [0, 0], [3, 3], [4, -4], [-4, 4], [-4, 0], [0, -4], [-2, -2]]


def padded(x, begin, end, mode, value):
    """Crops by the negative counts, then pads what is left."""
    x = x[max(-begin, 0) : len(x) - max(-end, 0)]
    return np.pad(x, (max(begin, 0), max(end, 0)), mode, **({"constant_values": value} if mode == "constant" else {}))


@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize("opset", [7, 11, 18])
def test_negative_pads(pads, opset):
    x = f32([1, 2, 3, 4])
    expected = padded(x, *pads, "constant", 9)
    if opset < 11:
        close(everywhere("Pad", {"x": x}, opset, pads=pads, value=9.0), expected)
        return
    given = {"p": np.array(pads, i64), "v": np.array(9, f32)}
    close(everywhere("Pad", {"x": x}, opset, constants=given), expected)


@pytest.mark.parametrize("pads, value, expected", [([-1, 2], 9, [2, 3, 4, 9, 9]), ([4, -4], 0, [0, 0, 0, 0])])
def test_golden_pads(pads, value, expected):
    close(one("Pad", {"x": f32([1, 2, 3, 4])}, constants={"p": np.array(pads, i64), "v": np.array(value, f32)}), f32(expected))


# Only as much as is left can be mirrored or repeated; more is refused, never read from outside.
@pytest.mark.parametrize("mode, opset", [("edge", 11), ("reflect", 11), ("edge", 18), ("reflect", 18), ("wrap", 19)])
@pytest.mark.parametrize("pads", [*PADS, [3, 0], [0, 3], [4, 0], [0, 5], [-2, 2], [-3, 1], [2, -3]])
def test_pads_from_what_is_left(mode, opset, pads):
    x = f32([1, 2, 3, 4])
    left = 4 - max(-pads[0], 0) - max(-pads[1], 0)
    added = max(*pads, 0)
    given = {"p": np.array(pads, i64)}
    if added and left < 1:
        refused(node_model("Pad", {"x": x}, opset, constants=given, mode=mode))
    elif mode == "reflect" and added >= left:
        # More than one reflection: NumPy's meaning, or refused.
        try:
            y = one("Pad", {"x": x}, opset, constants=given, mode=mode)
        except Exception as error:
            assert "TRD-IMP" in str(error) or "TRD-TYPE" in str(error)
            return
        close(y, padded(x, *pads, mode, 0))
    else:
        close(everywhere("Pad", {"x": x}, opset, constants=given, mode=mode), padded(x, *pads, mode, 0))


@pytest.mark.parametrize("axes", [[0], [1], [-1], [1, 0], [-1, -2], [0, 1]])
def test_pad_axes(axes):
    x = numbers(3, 4)
    count = len(axes)
    for opset in [18, 19, 21]:
        begin, end = [1, -1][:count], [-2, 2][:count]
        expected = x
        for axis, b, e in zip(axes, begin, end):
            expected = np.apply_along_axis(padded, axis, expected, b, e, "constant", 5)
        given = {"p": np.array(begin + end, i64), "v": np.array(5, f32), "a": np.array(axes, i64)}
        close(one("Pad", {"x": x}, opset, constants=given), expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.float16, np.float64, np.bool_])
def test_pad_dtypes(dtype):
    x = np.array([[1, 0], [0, 1]]).astype(dtype)
    close(one("Pad", {"x": x}, constants={"p": np.array([0, 1, -1, 0], i64), "v": np.array(1, dtype)}),
          np.pad(x[:1], ((0, 0), (1, 0)), constant_values=dtype(1)))


def test_pads_that_crop_too_much():
    for pads in [[-5, 0], [-3, -2], [-5, 9]]:
        refused(node_model("Pad", {"x": f32([1, 2, 3, 4])}, constants={"p": np.array(pads, i64)}))


# ---- Gather ----


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_negative_indices(dtype):
    x, indices = f32([11, 12, 13, 14]), np.array([-4, -1, 2, -2], dtype)
    close(everywhere("Gather", {"x": x}, constants={"i": indices}), f32([11, 14, 13, 13]))
    close(one("Gather", {"x": x, "i": indices}), f32([11, 14, 13, 13]))


@pytest.mark.parametrize("shape, dtype", [((4,), i64), ((3, 4), i64), ((3, 4), i32), ((2, 3, 4), i64)])
def test_gather_axes(shape, dtype):
    x = numbers(*shape)
    for axis in range(-len(shape), len(shape)):
        n = x.shape[axis]
        for indices in [np.array(-n, dtype), np.array([[-1, 0], [n - 1, -n]], dtype), np.zeros((0,), dtype)]:
            expected = np.take(x, indices, axis)
            close(one("Gather", {"x": x, "i": indices}, axis=axis, levels=(3,)), expected)
            close(one("Gather", {"x": x}, constants={"i": indices}, axis=axis, levels=(3,)), expected)


# An index outside is refused when it is known, and reads the nearest element when it is data.
def test_indices_outside():
    x = f32([11, 12, 13, 14])
    for index in [4, -5, 2**40, -(2**63)]:
        refused(node_model("Gather", {"x": x}, constants={"i": np.array([index], i64)}))
        close(one("Gather", {"x": x, "i": np.array([index, 1], i64)}), f32([14 if index > 0 else 11, 12]))
    for index in [4, -5, 2**31 - 1, -(2**31)]:
        close(one("Gather", {"x": x, "i": np.array([index], i32)}), f32([14 if index > 0 else 11]))


@pytest.mark.parametrize("op, indices", [("GatherElements", [[-1, 0], [0, -2]]), ("GatherND", [[-1, 0], [0, -2]])])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_negative_indices_of_other_gathers(op, indices, dtype):
    x = f32([[1, 2], [3, 4]])
    if op == "GatherND" and dtype == np.int32:
        return  # its indices are int64
    i = np.array(indices, dtype)
    expected = np.take_along_axis(x, i % 2, 0) if op == "GatherElements" else x[tuple((i % 2).T)]
    close(everywhere(op, {"x": x}, 13, constants={"i": i}), expected)
    close(one(op, {"x": x, "i": i}, 13), expected)


@pytest.mark.parametrize("op", ["GatherElements", "GatherND"])
def test_indices_of_other_gathers_outside(op):
    x = f32([[1, 2], [3, 4]])
    for indices in [[[2, 0], [0, 1]], [[0, -3], [0, 0]], [[2**40, 0], [-(2**62), 0]]]:
        y = one(op, {"x": x, "i": np.array(indices, i64)}, 13)
        assert np.isin(y, x).all()


def test_negative_indices_of_scatters():
    x = f32([1, 2, 3, 4])
    close(one("ScatterElements", {"x": x, "i": np.array([-1, -4], i64), "u": f32([9, 8])}, 16), f32([8, 2, 3, 9]))
    close(one("ScatterND", {"x": x, "i": np.array([[-1], [-4]], i64), "u": f32([9, 8])}, 16), f32([8, 2, 3, 9]))
    close(one("ScatterElements", {"x": x}, 16, constants={"i": np.array([-1, -4], i64), "u": f32([9, 8])}, reduction="add"), f32([9, 2, 3, 13]))
    close(one("OneHot", {"i": np.array([-1, 0, 3, -5], i64)}, 11, f32, {"d": np.array(3, i64), "v": f32([0, 1])}),
          f32([[0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 0, 0]]))


def test_number_of_index_tuples_that_is_not_known():
    node = helper.make_node("GatherND", ["x", "i"], ["y"])
    model = model_of([node], [declared("x", f32, [2, 2]), declared("i", i64, ["n", 2])], {"y": f32}, 13)
    x = f32([[1, 2], [3, 4]])
    for level in (0, 3):
        compiled = session(model, level)
        for indices, expected in [([[0, 0], [1, 1]], [1, 4]), ([[1, 0]], [3]), ([[-1, -2]] * 7, [3] * 7), (np.zeros((0, 2)), [])]:
            close(compiled.run(None, {"x": x, "i": np.array(indices, i64)})[0], f32(expected))


@pytest.mark.parametrize("op, shape, tuple_length",
                         [("Gather", ["n"], None), ("Gather", ["n", "m"], None), ("GatherND", ["n", "m", 1], 1), ("GatherND", [3, "m", 2], 2),
                          ("GatherElements", ["n", 3], None)])
def test_gathers_of_unknown_extents(op, shape, tuple_length):
    x = numbers(4, 3)
    model = model_of([helper.make_node(op, ["x", "i"], ["y"])], [declared("x", f32, ["a", 3]), declared("i", i64, shape)], {"y": f32}, 13)
    compiled = session(model)
    for n, m in [(1, 1), (4, 2), (2, 5)]:
        extents = [{"n": n, "m": m}.get(e, e) for e in shape]
        i = np.random.default_rng(n).integers(-3, 3, extents)
        if op == "Gather":
            expected = x[i]
        elif op == "GatherND":
            expected = x[tuple(np.moveaxis(i, -1, 0))]
        else:
            expected = np.take_along_axis(x, i % 4, 0)
        close(compiled.run(None, {"x": x, "i": i.astype(i64)})[0], expected)


def test_symbolic_extents_of_slices_and_pads():
    nodes = [helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["b"]), helper.make_node("Pad", ["b", "p", "v"], ["y"])]
    given = {"s": np.array([-1], i64), "e": np.array([LOWEST], i64), "a": np.array([0], i64), "t": np.array([-2], i64),
             "p": np.array([1, 0, -1, 1], i64), "v": np.array(7, f32)}
    compiled = session(model_of(nodes, [declared("x", f32, ["n", 2])], {"y": f32}, constants=given))
    for n in [2, 3, 9]:
        x = numbers(n, 2)
        expected = np.pad(x[::-2], ((1, 0), (0, 1)), constant_values=f32(7))[:-1]
        close(compiled.run(None, {"x": x})[0], expected)


# Indices that a node computes, not an input.
def test_computed_indices():
    nodes = [helper.make_node("ArgMax", ["x"], ["i"], axis=1, keepdims=0), helper.make_node("Sub", ["i", "c"], ["j"]),
             helper.make_node("Gather", ["t", "j"], ["y"])]
    x, t = numbers(3, 4), numbers(4, 2, seed=1)
    got = run(model_of(nodes, {"x": x}, {"y": f32}, constants={"t": t, "c": np.array(4, i64)}), {"x": x})["y"]
    close(got, t[x.argmax(1) - 4])
    close(folded("Gather", {"t": t, "j": np.array([-1, 1], i64)}), t[[-1, 1]])


# An axis that is an input: a place outside of the rank is refused when the model runs.
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 3)])
def test_cumsum_along_a_given_axis(shape):
    x = numbers(*shape)
    model = model_of([helper.make_node("CumSum", ["x", "axis"], ["y"])], {"x": x, "axis": np.array(0, i64)}, {"y": x})
    engine = session(model)
    rank = len(shape)
    for axis in range(-rank, rank):
        np.testing.assert_allclose(engine.run(None, {"x": x, "axis": np.array(axis, i64)})[0], np.cumsum(x, axis), rtol=1e-6, atol=1e-6)
    for axis in (rank, -rank - 1, 100):
        with pytest.raises(treadle.Error, match="TRD-RUN"):
            engine.run(None, {"x": x, "axis": np.array(axis, i64)})
