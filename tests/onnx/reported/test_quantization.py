# SPDX-License-Identifier: Apache-2.0
"""Rounding of halves to even and saturation, in every operator that rounds to integers."""

import numpy as np
import pytest
from onnx import helper
from small_models import close, everywhere, f32, folded, i64, model_of, node_model, numbers, one, reference, refused, run, same_as


def quantized(x, scale, zero):
    info = np.iinfo(zero.dtype)
    return np.clip(np.rint((x / scale).astype(np.float64)) + zero.astype(np.float64), info.min, info.max).astype(zero.dtype)


def test_golden_halves():
    y = everywhere("QuantizeLinear", {"x": f32([1, 3, 5, -1, -3]), "s": f32(2), "z": np.array(3, np.int8)}, result=np.int8)
    np.testing.assert_array_equal(y, [3, 5, 5, 3, 1])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("opset", [10, 13, 21])
def test_halves_and_saturation(dtype, opset):
    x = f32([*np.arange(-6, 6.5, 0.5), 1000, -1000, 126.5, 127.5, 254.5, 255.5, -128.5, 1e30, -1e30, np.inf, -np.inf])
    for scale, zero in [(1, 0), (0.5, 7), (2, 3), (0.1, 1)]:
        s, z = f32(scale), np.array(zero, dtype)
        expected = quantized(x, s, z)
        close(one("QuantizeLinear", {"x": x}, opset, dtype, {"s": s, "z": z}, levels=(0,)), expected)
        close(one("QuantizeLinear", {"x": x, "s": s, "z": z}, opset, dtype, levels=(3,)), expected)
    close(folded("QuantizeLinear", {"x": x, "s": s, "z": z}, opset, dtype), expected)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16])
def test_wider_results(dtype):
    x = f32([0.5, 1.5, 2.5, -0.5, -1.5, 40000, -40000, 70000, 32767.5, 32766.5])
    for zero in [0, 5]:
        close(everywhere("QuantizeLinear", {"x": x, "s": f32(1), "z": np.array(zero, dtype)}, 21, dtype), quantized(x, f32(1), np.array(zero, dtype)))


# Without a zero point the result is uint8.
def test_zero_point_left_out():
    x = f32([0.5, 1.5, 300, -4])
    close(everywhere("QuantizeLinear", {"x": x, "s": f32(1)}, 13, np.uint8), np.array([0, 2, 255, 0], np.uint8))
    close(everywhere("DequantizeLinear", {"x": np.array([0, 7, 255], np.uint8), "s": f32(0.5)}, 13, f32), f32([0, 3.5, 127.5]))


@pytest.mark.parametrize("axis", [0, 1, -1, 2])
def test_scale_of_an_axis(axis):
    x = numbers(2, 3, 4) * 100
    n = x.shape[axis]
    s, z = np.abs(numbers(n, seed=1)) + 0.5, np.arange(n).astype(np.int8)
    shape = [1, 1, 1]
    shape[axis] = n
    expected = quantized(x, s.reshape(shape), z.reshape(shape))
    close(everywhere("QuantizeLinear", {"x": x}, 13, np.int8, {"s": s, "z": z}, axis=axis), expected)
    back = ((expected.astype(np.int32) - z.reshape(shape)) * s.reshape(shape)).astype(f32)
    close(everywhere("DequantizeLinear", {"x": expected}, 13, f32, {"s": s, "z": z}, axis=axis), back)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_dequantize(dtype):
    x = np.array([0, 1, 100, 127], dtype)
    zero = {} if dtype == np.int32 else {"z": np.array(100, dtype)}
    expected = (x.astype(i64) - (100 if zero else 0)).astype(f32) * f32(0.3)
    close(everywhere("DequantizeLinear", {"x": x, "s": f32(0.3), **zero}, 13, f32), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_round(dtype):
    x = np.array([*np.arange(-4, 4.5, 0.5), 0.49999997, -0.49999997, 2**22 + 0.5, 1e20 if dtype != np.float16 else 6e4, np.inf, -0.0]).astype(dtype)
    close(everywhere("Round", {"x": x}), np.rint(x))


def test_dynamic_quantize():
    x = f32([0, 0.5, 1, 1.5, 2.5, -1, 3.3, 254, 127.5])
    for values in [x, -x, f32([[1, 2], [3, 254]]), f32([-4])]:
        model = node_model("DynamicQuantizeLinear", {"x": values}, 11, [np.uint8, f32, np.uint8])
        same_as(reference, model, {"x": values})
    # Without any range every scale is right; zeros stay zeros.
    y, scale, zero = one("DynamicQuantizeLinear", {"x": np.zeros(3, f32)}, 11, [np.uint8, f32, np.uint8])
    assert np.isfinite(scale)
    np.testing.assert_array_equal((y.astype(f32) - zero) * scale, np.zeros(3))


def test_quantized_products():
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 256, (3, 8)).astype(np.uint8), generator.integers(-128, 128, (8, 5)).astype(np.int8)
    inputs = {"a": a, "as": f32(0.02), "az": np.uint8(120), "b": b, "bs": f32(0.05), "bz": np.int8(3), "ys": f32(0.4), "yz": np.uint8(100)}
    inputs = {name: np.asarray(value) for name, value in inputs.items()}
    product = (a.astype(np.int32) - 120) @ (b.astype(np.int32) - 3)
    expected = np.clip(np.rint(product * (0.02 * 0.05 / 0.4)) + 100, 0, 255).astype(np.uint8)
    got = one("QLinearMatMul", {"a": a}, 10, np.uint8, {name: value for name, value in inputs.items() if name != "a"})
    assert np.abs(got.astype(int) - expected).max() <= 1  # the product of the scales may be rounded
    close(one("MatMulInteger", {"a": a, "b": b, "az": inputs["az"], "bz": inputs["bz"]}, 10, np.int32), product)


# A quantised convolution as exporters write it, which passes may fuse: halves behind the sum too.
def test_quantized_network():
    generator = np.random.default_rng(0)
    x = generator.integers(-20, 20, (1, 8, 6, 6)).astype(f32) / 4
    weights = {"w": generator.integers(-128, 128, (8, 8, 3, 3)).astype(np.int8), "ws": f32(0.5) * np.ones(8, f32), "wz": np.zeros(8, np.int8),
               "s": np.array(0.25, f32), "z": np.array(0, np.int8), "o": np.array(64, f32),
               "oz": np.array(-5, np.int8)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
             helper.make_node("Conv", ["d", "wd"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("QuantizeLinear", ["r", "o", "oz"], ["y"])]
    model = model_of(nodes, {"x": x}, {"y": np.int8}, 19, weights)
    close(run(model, {"x": x})["y"], reference(model, {"x": x})["y"])


def test_scales_that_do_not_fit():
    x = numbers(2, 3)
    refused(node_model("QuantizeLinear", {"x": x}, 13, np.int8, {"s": np.ones(4, f32), "z": np.zeros(4, np.int8)}, axis=1))
    refused(node_model("QuantizeLinear", {"x": x}, 13, np.int8, {"s": np.ones(3, f32), "z": np.zeros(2, np.int8)}, axis=1))
    refused(node_model("QuantizeLinear", {"x": x}, 13, np.int8, {"s": np.ones(3, f32), "z": np.zeros(3, np.int8)}, axis=2))
