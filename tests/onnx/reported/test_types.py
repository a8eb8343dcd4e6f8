# SPDX-License-Identifier: Apache-2.0
"""Conversions to bool and back, and the fields in which a tensor's values may lie."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_models import close, everywhere, f32, i64, kind_of, model_of, numbers, one, refused, run

bfloat16 = ml_dtypes.bfloat16
FLOATS = [np.float16, np.float32, np.float64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def cast_chain(x, dtypes):
    """Casts in a row; the model's output is the last one's."""
    names = ["x", *[f"v{i}" for i in range(len(dtypes) - 1)], "y"]
    nodes = [helper.make_node("Cast", [names[i]], [names[i + 1]], to=kind_of(dtype)) for i, dtype in enumerate(dtypes)]
    return nodes, {"y": dtypes[-1]}


def cast_everywhere(x, *dtypes):
    nodes, outputs = cast_chain(x, dtypes)
    computed = run(model_of(nodes, {"x": x}, outputs), {"x": x})["y"]
    close(run(model_of(nodes, {}, outputs, constants={"x": x}), {}, (3,))["y"], computed)
    return computed


# ---- Bool ----


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_as_bool(dtype):
    x = np.array([np.nan, 0, -0.0, 0.25, -np.inf, np.finfo(dtype).smallest_subnormal], dtype)
    close(cast_everywhere(x, np.bool_), np.array([True, False, False, True, True, True]))


# A NaN that is computed is true like a known one.
@pytest.mark.parametrize("op, value", [("Sqrt", -1.0), ("Log", -1.0), ("Acos", 2.0)])
def test_computed_nan_as_bool(op, value):
    x = f32([value])
    nodes = [helper.make_node(op, ["x"], ["n"]), helper.make_node("Cast", ["n"], ["y"], to=TensorProto.BOOL)]
    for got in [run(model_of(nodes, {"x": x}, {"y": np.bool_}), {"x": x}), run(model_of(nodes, {}, {"y": np.bool_}, constants={"x": x}), {}, (3,))]:
        close(got["y"], np.array([True]))


# A pair of casts through a narrower dtype is no identity.
@pytest.mark.parametrize("start, dtypes, expected", [
    (f32([100, 0, -0.5, np.nan]), [np.bool_, f32], f32([1, 0, 1, 1])),
    (np.array([-1, 0, 7], i64), [np.bool_, np.int32], np.array([1, 0, 1], np.int32)),
    (np.array([256, 0, 512], np.int32), [np.bool_, np.uint8], np.array([1, 0, 1], np.uint8)),
    (np.array([300, -1], np.int32), [np.uint8, np.int32], np.array([44, 255], np.int32)),
    (np.array([200], np.uint8), [np.int8, np.int32], np.array([-56], np.int32)),
    (f32([1.7, -1.7]), [np.int32, f32], f32([1, -1])),
    (f32([1 / 3, 70000]), [np.float16, f32], f32([np.float16(1 / 3), np.inf])),
    (np.array([2**24 + 1], np.int32), [f32, np.int32], np.array([2**24], np.int32)),
    (np.array([2**53 + 1], i64), [np.float64, i64], np.array([2**53], i64)),
    (np.array([1 / 3]), [f32, np.float64], np.array([f32(1 / 3)], np.float64)),
    (f32([1.001]), [bfloat16, f32], f32([1.0])),
    (np.array([True, False]), [f32, np.bool_], np.array([True, False])),
    (np.array([True, False]), [np.int8, np.float16, np.bool_], np.array([True, False])),
])
def test_pairs_of_casts(start, dtypes, expected):
    close(cast_everywhere(start, *dtypes), expected)


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS, np.bool_])
def test_all_pairs_of_dtypes(source):
    x = np.array([0, 1, 2, 100, 127]).astype(source)
    nodes = [helper.make_node("Cast", ["x"], [f"y{i}"], to=kind_of(target)) for i, target in enumerate([*INTEGERS, *FLOATS, np.bool_])]
    got = run(model_of(nodes, {"x": x}, {f"y{i}": target for i, target in enumerate([*INTEGERS, *FLOATS, np.bool_])}), {"x": x}, (3,))
    for value, target in zip(got.values(), [*INTEGERS, *FLOATS, np.bool_], strict=True):
        close(value, x.astype(target))


def test_bool_arithmetic():
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    for op, function in [("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor), ("Equal", np.equal)]:
        close(everywhere(op, {"a": a, "b": b}, 13), function(a, b))
    close(everywhere("Not", {"a": a}), ~a)
    close(one("Where", {"c": a, "x": f32([1, 2, 3, 4]), "y": f32([5, 6, 7, 8])}, result=f32), f32([1, 2, 7, 8]))


# ---- Where a tensor's values lie ----


def tensor(name, dtype, shape, **fields):
    proto = TensorProto(name=name, data_type=kind_of(dtype), dims=shape)
    for field, values in fields.items():
        if field == "raw_data":
            proto.raw_data = values
        else:
            getattr(proto, field).extend(values)
    return proto


def stored(dtype, **fields):
    count = max(len(values) if field != "raw_data" else len(values) // np.dtype(dtype).itemsize for field, values in fields.items())
    model = model_of([helper.make_node("Identity", ["w"], ["y"])], {}, {"y": dtype}, constants={"w": tensor("w", dtype, [count], **fields)})
    return run(model, {}, (3,))["y"]


@pytest.mark.parametrize("dtype, field, values", [
    (np.float16, "int32_data", [15872, 49152]),
    (bfloat16, "int32_data", [0x3FC0, 0xC000]),
    (np.bool_, "int32_data", [1, 0, 1]),
    (np.uint8, "int32_data", [0, 200, 255]),
    (np.int8, "int32_data", [-128, 0, 127]),
    (np.int16, "int32_data", [-32768, 5]),
    (np.uint16, "int32_data", [65535, 5]),
    (np.int32, "int32_data", [-(2**31), 2**31 - 1]),
    (np.int64, "int64_data", [-(2**63), 2**63 - 1]),
    (np.uint32, "uint64_data", [2**32 - 1, 7]),
    (np.uint64, "uint64_data", [2**64 - 1, 7]),
    (np.float32, "float_data", [1.5, -2.0]),
    (np.float64, "double_data", [1 / 3, -2.0]),
])
def test_fields_of_values(dtype, field, values):
    if dtype in (np.float16, bfloat16):
        expected = np.array(values, np.uint16).view(dtype)
        np.testing.assert_array_equal(expected.astype(f32), [1.5, -2.0])
    else:
        expected = np.array(values, dtype)
    for got in [stored(dtype, **{field: values}), stored(dtype, raw_data=expected.tobytes())]:
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


# The same fields in the tensor of a Constant node, and in one that a node uses.
def test_fields_of_values_in_attributes():
    for dtype, field, values in [(np.float16, "int32_data", [15872, 49152]), (np.bool_, "int32_data", [1, 0]), (np.uint8, "int32_data", [3, 255])]:
        node = helper.make_node("Constant", [], ["y"], value=tensor("", dtype, [2], **{field: values}))
        expected = np.array(values, np.uint16).view(np.float16) if dtype == np.float16 else np.array(values, dtype)
        close(run(model_of([node], {}, {"y": dtype}), {}, (3,))["y"], expected)
    half = tensor("w", np.float16, [2], int32_data=[15872, 49152])
    x = np.array([2, 4], np.float16)
    close(run(model_of([helper.make_node("Mul", ["x", "w"], ["y"])], {"x": x}, {"y": np.float16}, constants={"w": half}), {"x": x})["y"],
          np.array([3, -8], np.float16))


def test_values_that_do_not_fit_the_shape():
    node = helper.make_node("Identity", ["w"], ["y"])
    for dtype, shape, fields in [(np.float16, [3], {"int32_data": [15872, 49152]}), (np.float16, [2], {"float_data": [1.5, -2.0]}),
                                 (f32, [2], {"raw_data": b"1234567"}), (f32, [2], {"float_data": [1.0, 2.0, 3.0]}),
                                 (i64, [2], {}), (np.uint8, [1], {"raw_data": b"12"})]:
        refused(model_of([node], {}, {"y": dtype}, constants={"w": tensor("w", dtype, shape, **fields)}))


def test_scalars_and_empty_tensors():
    for value in [np.array(3, f32), np.zeros((0,), f32), np.zeros((2, 0, 3), i64), np.array(True), np.array(2.5, np.float16)]:
        node = helper.make_node("Identity", ["w"], ["y"])
        close(run(model_of([node], {}, {"y": value.dtype}, constants={"w": numpy_helper.from_array(value, "w")}), {}, (3,))["y"], value)


# 16-bit floats are computed as such, whether they are known or not.
@pytest.mark.parametrize("op, pair", itertools.product(["Add", "Mul", "Sub", "Div"], [(np.float16, 1e-3), (bfloat16, 1e-2)]))
def test_arithmetic_of_halves(op, pair):
    dtype, tolerance = pair
    a, b = numbers(9).astype(dtype), (numbers(9, seed=1) + 3).astype(dtype)
    function = {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract, "Div": np.divide}[op]
    expected = function(a.astype(f32), b.astype(f32))
    got = one(op, {"a": a, "b": b})
    assert got.dtype == dtype
    np.testing.assert_allclose(got.astype(f32), expected, rtol=4 * tolerance, atol=tolerance)
