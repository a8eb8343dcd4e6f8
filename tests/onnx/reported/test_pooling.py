# SPDX-License-Identifier: Apache-2.0
"""Pools: what is counted in a window that lies partly outside, and what stands there.

The sweeps compare with windows that are written out below, from the operators' text: other engines, and for some versions ONNX's own reference
evaluator, were wrong in just these cases.
"""

import itertools
import math

import numpy as np
import pytest
from small_models import f32, numbers, one, signal


def axis_windows(extent, kernel, stride, dilation, begin, end, ceil_mode, auto_pad):
    """For one axis a list of (cells inside, cells inside of input and declared padding)."""
    span = (kernel - 1) * dilation + 1
    if auto_pad.startswith("SAME"):
        count = math.ceil(extent / stride)
        total = max((count - 1) * stride + span - extent, 0)
        begin = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        end = total - begin
    elif ceil_mode:
        count = math.ceil((extent + begin + end - span) / stride) + 1
        count -= (count - 1) * stride >= extent + begin  # no window begins in the padding at the end
    else:
        count = (extent + begin + end - span) // stride + 1
    windows = []
    for i in range(count):
        cells = [i * stride - begin + j * dilation for j in range(kernel)]
        windows.append(([c for c in cells if 0 <= c < extent], sum(-begin <= c < extent + end for c in cells)))
    return windows


def pool(x, kind, kernel, strides, pads=None, ceil_mode=0, dilations=None, auto_pad="NOTSET", include=0):
    """The pool of (N, C, spatial…) in float64: kind "max", "average" or "lp" (p = 2)."""
    rank = len(kernel)
    pads, dilations = pads or [0] * (2 * rank), dilations or [1] * rank
    axes = [axis_windows(x.shape[i + 2], kernel[i], strides[i], dilations[i], pads[i], pads[rank + i], ceil_mode, auto_pad) for i in range(rank)]
    out = np.zeros(x.shape[:2] + tuple(map(len, axes)))
    for place in np.ndindex(*map(len, axes)):
        chosen = [axes[i][place[i]] for i in range(rank)]
        values = x[(slice(None), slice(None), *np.ix_(*[inside for inside, _ in chosen]))].reshape(*x.shape[:2], -1).astype(np.float64)
        if kind == "max":
            result = values.max(-1)
        elif kind == "lp":
            result = np.sqrt((values**2).sum(-1))
        else:
            result = values.sum(-1) / (math.prod(counted for _, counted in chosen) if include else values.shape[-1])
        out[(slice(None), slice(None), *place)] = result
    return out


# The divisor counts cells up to input and declared padding, not those that ceil adds beyond.
@pytest.mark.parametrize("opset", [10, 11, 19, 22])
@pytest.mark.parametrize("include, expected", [(1, [1, 3, 5, 3]), (0, [1.5, 3, 5, 6])])
def test_average_pool_ceil_mode(opset, include, expected):
    y = one("AveragePool", {"x": signal(1, 2, 3, 4, 5, 6)}, opset, kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1, count_include_pad=include)
    np.testing.assert_allclose(y.ravel(), expected)


# Once only the padding at the beginning was counted.
@pytest.mark.parametrize("opset", [7, 11, 19, 22])
@pytest.mark.parametrize("pad, expected", [("SAME_LOWER", [0.75, 1.5, 2.5, 2.25]), ("SAME_UPPER", [1.5, 2.5, 2.25, 1.75])])
def test_average_pool_same(opset, pad, expected):
    y = one("AveragePool", {"x": signal(1, 2, 3, 4)}, opset, kernel_shape=[4], auto_pad=pad, count_include_pad=1)
    np.testing.assert_allclose(y.ravel(), expected)


def test_max_pool_pads_with_minus_infinity():
    y = one("MaxPool", {"x": signal(-1, -2, -3, -4)}, kernel_shape=[3], strides=[2], auto_pad="SAME_UPPER")
    np.testing.assert_array_equal(y.ravel(), [-1, -3])


# (extents, kernel, strides, pads)
WINDOWS = [
    ((6,), [3], [2], [1, 1]),
    ((7,), [3], [2], [0, 1]),
    ((5,), [2], [3], [1, 1]),  # in ceil mode a last window would begin in the padding
    ((9,), [4], [3], [3, 2]),
    ((1,), [3], [2], [1, 1]),
    ((5, 6), [3, 2], [2, 2], [1, 0, 1, 1]),
    ((4, 9), [3, 3], [1, 3], [1, 2, 0, 1]),
    ((7, 7), [2, 2], [3, 3], [1, 1, 1, 1]),
    ((4, 5, 6), [3, 2, 3], [2, 2, 2], [1, 0, 1, 0, 1, 1]),
]


@pytest.mark.parametrize("extents, kernel, strides, pads", WINDOWS)
def test_average_pool_divisor(extents, kernel, strides, pads):
    x = numbers(1, 2, *extents)
    for ceil_mode, include in itertools.product([0, 1], [0, 1]):
        y = one("AveragePool", {"x": x}, kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=ceil_mode, count_include_pad=include)
        np.testing.assert_allclose(y, pool(x, "average", kernel, strides, pads, ceil_mode, include=include), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("extents, kernel, strides, pads", WINDOWS)
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_max_pool_of_negative_numbers(extents, kernel, strides, pads, ceil_mode):
    x = numbers(1, 2, *extents) - 5
    y = one("MaxPool", {"x": x}, kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=ceil_mode)
    np.testing.assert_allclose(y, pool(x, "max", kernel, strides, pads, ceil_mode), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16, np.float64])
def test_max_pool_dtypes(dtype):
    x = np.array([[[-9, -3, -7, -100, -5]]], np.int8).astype(dtype)
    y = one("MaxPool", {"x": x}, kernel_shape=[3], strides=[2], pads=[1, 1])
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, pool(x, "max", [3], [2], [1, 1]).astype(dtype))


@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("extents, kernel, strides",
                         [((7,), [4], [2]), ((5,), [2], [1]), ((5, 8), [2, 3], [2, 3]), ((4, 5, 3), [2, 3, 2], [1, 2, 2])])
def test_auto_pad(pad, extents, kernel, strides):
    x = numbers(2, 1, *extents) - 3
    for op, kind, include in [("MaxPool", "max", None), ("AveragePool", "average", 0), ("AveragePool", "average", 1), ("LpPool", "lp", None)]:
        more = {} if include is None else {"count_include_pad": include}
        y = one(op, {"x": x}, kernel_shape=kernel, strides=strides, auto_pad=pad, **more)
        np.testing.assert_allclose(y, pool(x, kind, kernel, strides, auto_pad=pad, include=include), rtol=1e-5)


# The span is that of the dilated kernel, for the number of windows and for the padding that SAME adds.
@pytest.mark.parametrize("op, opset", [("MaxPool", 12), ("AveragePool", 19), ("LpPool", 18)])
def test_dilation(op, opset):
    kind = {"MaxPool": "max", "AveragePool": "average", "LpPool": "lp"}[op]
    for extents, kernel, strides, dilations in [((9,), [3], [2], [2]), ((8, 9), [2, 3], [1, 2], [3, 2])]:
        x = numbers(1, 1, *extents) - 3
        for more in [{"ceil_mode": 0}, {"ceil_mode": 1}, {"auto_pad": "SAME_LOWER"}, {"pads": [1] * (2 * len(kernel)), "ceil_mode": 1}]:
            y = one(op, {"x": x}, opset, kernel_shape=kernel, strides=strides, dilations=dilations, **more)
            np.testing.assert_allclose(y, pool(x, kind, kernel, strides, dilations=dilations, **more), rtol=1e-5)


# A NaN or an infinity in a window is its maximum like any other number.
def test_max_pool_of_infinities():
    x = signal(-np.inf, -np.inf, -np.inf, 1, np.inf)
    y = one("MaxPool", {"x": x}, kernel_shape=[2], strides=[1], pads=[1, 1])
    np.testing.assert_array_equal(y.ravel(), f32([-np.inf, -np.inf, -np.inf, 1, np.inf, np.inf]))


@pytest.mark.parametrize("shape", [(1, 2, 5), (2, 3, 4, 5), (1, 2, 3, 2, 2)])
def test_global_pools(shape):
    x = numbers(*shape) - 3
    axes = tuple(range(2, len(shape)))
    for op, expected in {"GlobalAveragePool": x.mean(axes, keepdims=True), "GlobalMaxPool": x.max(axes, keepdims=True),
                         "GlobalLpPool": np.sqrt((x * x).sum(axes, keepdims=True))}.items():
        np.testing.assert_allclose(one(op, {"x": x}), expected, rtol=1e-5)
