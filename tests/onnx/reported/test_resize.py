# SPDX-License-Identifier: Apache-2.0
"""Resizing: coordinates come from the scales that are given, not from the extents that they lead to."""

import math

import numpy as np
import pytest
from onnx import helper
from small_models import close, declared, f32, folded, i64, model_of, node_model, numbers, one, reference, same_as, session

# n: the extent; m: the resized one, which ONNX's own tests of align_corners take before it is rounded down.
COORDINATES = {
    "half_pixel": lambda i, scale, n, m: (i + 0.5) / scale - 0.5,
    "pytorch_half_pixel": lambda i, scale, n, m: (i + 0.5) / scale - 0.5 if m > 1 else 0.0,
    "align_corners": lambda i, scale, n, m: i * (n - 1) / (n * scale - 1) if m > 1 else 0.0,
    "asymmetric": lambda i, scale, n, m: i / scale,
}


def weights(n, m, scale, mode, coordinates, nearest="round_prefer_floor"):
    """The (m, n) matrix that resizes one axis."""
    matrix = np.zeros((m, n))
    for i in range(m):
        at = COORDINATES[coordinates](i, scale, n, m)
        if mode == "nearest":
            place = {"round_prefer_floor": math.ceil(at - 0.5), "round_prefer_ceil": math.floor(at + 0.5), "floor": math.floor(at),
                     "ceil": math.ceil(at)}[nearest]
            matrix[i, min(max(place, 0), n - 1)] = 1
        else:
            at = min(max(at, 0), n - 1)
            low = min(math.floor(at), n - 1)
            matrix[i, low] += 1 - (at - low)
            matrix[i, min(low + 1, n - 1)] += at - low
    return matrix


def resized(x, scales, extents, mode, coordinates, nearest="round_prefer_floor"):
    for axis, (scale, extent) in enumerate(zip(scales, extents, strict=True)):
        if extent != x.shape[axis] or scale != 1:
            x = np.moveaxis(np.tensordot(weights(x.shape[axis], extent, scale, mode, coordinates, nearest),
                                         np.moveaxis(x, axis, 0).astype(np.float64), 1), 0, axis)
    return x.astype(f32)


def by_scales(x, scales, opset=13, **attributes):
    return one("Resize", {"x": x}, opset, constants={"roi": np.zeros(0, f32), "s": np.array(scales, f32)}, **attributes)


def by_sizes(x, sizes, opset=13, **attributes):
    return one("Resize", {"x": x}, opset, constants={"roi": np.zeros(0, f32), "s": np.zeros(0, f32), "z": np.array(sizes, i64)}, **attributes)


@pytest.mark.parametrize("opset", [11, 13, 18, 19])
def test_golden_scale(opset):
    x = f32([0, 10, 20]).reshape(1, 1, 1, 3)
    attributes = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    np.testing.assert_allclose(by_scales(x, [1, 1, 1, 2.5], opset, **attributes).ravel(), [0, 1, 5, 9, 13, 17, 20], rtol=1e-6, atol=1e-5)
    # With the size 7 the scale is 7/3.
    np.testing.assert_allclose(by_sizes(x, [1, 1, 1, 7], opset, **attributes).ravel(), [0, 1.428571, 5.714286, 10, 14.285714, 18.571429, 20],
                               rtol=1e-5, atol=1e-5)


SCALES = [(5, 2.5), (3, 1.3), (7, 0.6), (4, 0.3), (6, 2), (5, 0.5), (3, 3.7)]


@pytest.mark.parametrize("extent, scale", SCALES)
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_fractional_scales(extent, scale, coordinates):
    scale = float(f32(scale))  # as the model stores it
    out = math.floor(extent * scale)
    for shape, axes in [((1, 2, extent), [2]), ((1, 2, extent, 4), [2]), ((1, 2, 3, extent), [3])]:
        x = numbers(*shape)
        scales = [scale if i in axes else 1 for i in range(len(shape))]
        extents = [out if i in axes else e for i, e in enumerate(shape)]
        y = by_scales(x, scales, mode="linear", coordinate_transformation_mode=coordinates)
        close(y, resized(x, scales, extents, "linear", coordinates), 1e-4, 1e-5)


@pytest.mark.parametrize("extent, scale", SCALES)
@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest(extent, scale, nearest):
    scale = float(f32(scale))
    out = math.floor(extent * scale)
    x = numbers(1, 1, extent, 2)
    for coordinates in ["half_pixel", "asymmetric", "align_corners"]:
        scales, extents = [1, 1, scale, 1], [1, 1, out, 2]
        y = by_scales(x, scales, mode="nearest", nearest_mode=nearest, coordinate_transformation_mode=coordinates)
        close(y, resized(x, scales, extents, "nearest", coordinates, nearest))


@pytest.mark.parametrize("shape, sizes", [((1, 1, 3, 5), (1, 1, 7, 8)), ((2, 3, 5), (2, 3, 9)), ((1, 2, 6, 6), (1, 2, 4, 3)),
                                          ((1, 1, 3, 3, 3), (1, 1, 5, 4, 7))])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_sizes(shape, sizes, coordinates):
    x = numbers(*shape)
    scales = [m / n for n, m in zip(shape, sizes)]
    y = by_sizes(x, sizes, mode="linear", coordinate_transformation_mode=coordinates)
    close(y, resized(x, scales, sizes, "linear", coordinates), 1e-4, 1e-5)


# ONNX's own evaluator for what has further attributes.
@pytest.mark.parametrize("scales", [(1, 1, 2.5, 0.7), (1, 1, 1.6, 1.6)])
@pytest.mark.parametrize("attributes", [
    {"mode": "cubic"}, {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
    {"mode": "cubic", "coordinate_transformation_mode": "asymmetric"},
    {"mode": "cubic", "coordinate_transformation_mode": "align_corners"},
    {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"}])
def test_other_modes(scales, attributes):
    x = numbers(1, 1, 5, 6)
    opset = 19 if "half_pixel_symmetric" in str(attributes) else 13
    model = node_model("Resize", {"x": x}, opset, constants={"roi": np.zeros(0, f32), "s": np.array(scales, f32)}, **attributes)
    same_as(reference, model, {"x": x}, rtol=1e-4)


# From opset 18 the axes may be named, in any order.
@pytest.mark.parametrize("opset", [18, 19])
@pytest.mark.parametrize("axes, scales", [([2, 3], [0.5, 1.5]), ([3], [0.6]), ([3, 2], [1.5, 0.5]), ([-1], [2.0])])
def test_named_axes(opset, axes, scales):
    x = numbers(1, 2, 6, 8)
    given = np.ones(4)
    given[axes] = f32(scales)
    expected = resized(x, given, [math.floor(n * s) for n, s in zip(x.shape, given)], "linear", "half_pixel")
    close(one("Resize", {"x": x}, opset, constants={"roi": None, "s": f32(scales)}, mode="linear", axes=axes), expected, 1e-4, 1e-5)
    # The same as sizes.
    sizes = np.array([expected.shape[axis] for axis in axes], i64)
    given[axes] = [expected.shape[axis] / x.shape[axis] for axis in axes]
    y = one("Resize", {"x": x}, opset, constants={"roi": None, "s": None, "z": sizes}, mode="linear", axes=axes)
    close(y, resized(x, given, expected.shape, "linear", "half_pixel"), 1e-4, 1e-5)


# Downscaling may widen its filter.
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("scale", [0.4, 0.75])
def test_antialias(mode, scale):
    x = numbers(1, 1, 6, 8)
    model = node_model("Resize", {"x": x}, 18, constants={"roi": None, "s": np.array([1, 1, scale, scale], f32)}, mode=mode, antialias=1)
    same_as(reference, model, {"x": x}, rtol=1e-4)


# An extent that is known only at run time gives what it gives when it is known.
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_symbolic_extent(coordinates, mode):
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode, coordinate_transformation_mode=coordinates)
    for scale in [2.5, 0.6]:
        compiled = session(model_of([node], [declared("x", f32, [1, 1, "h", 3])], {"y": f32}, constants={"s": f32([1, 1, scale, 1])}))
        for extent in [1, 4, 5, 7]:
            if math.floor(extent * scale) == 0:
                continue
            x = numbers(1, 1, extent, 3)
            expected = resized(x, [1, 1, float(f32(scale)), 1], [1, 1, math.floor(extent * float(f32(scale))), 3], mode, coordinates)
            close(compiled.run(None, {"x": x})[0], expected, 1e-4, 1e-5)


def test_upsample_and_folded_resize():
    x = numbers(1, 2, 3, 4)
    expected = resized(x, [1, 1, 2, 2], [1, 2, 6, 8], "nearest", "asymmetric", "floor")
    close(one("Upsample", {"x": x}, 9, constants={"s": f32([1, 1, 2, 2])}), expected)
    close(one("Upsample", {"x": x}, 7, scales=[1.0, 1.0, 2.0, 2.0]), expected)
    expected = resized(x, [1, 1, 2.5, 1], [1, 2, 7, 4], "linear", "half_pixel")
    close(folded("Resize", {"x": x, "roi": np.zeros(0, f32), "s": f32([1, 1, 2.5, 1])}, 13, mode="linear"), expected, 1e-4, 1e-5)


# Opset 10: the element before where an axis grows, the one behind where it shrinks (ONNX's own test_resize_downsample_nearest
# of that opset gives [1, 3]).
@pytest.mark.parametrize("scales", [(1, 1, 0.6, 0.6), (1, 1, 2.0, 0.3), (1, 1, 0.5, 2.5), (1, 1, 1.0, 0.7)])
def test_nearest_of_opset_10(scales):
    x = np.arange(1, 21, dtype=f32).reshape(1, 1, 2, 10)
    y = one("Resize", {"x": x}, 10, constants={"s": np.array(scales, f32)}, mode="nearest")
    expected = x
    for axis, scale in enumerate(np.array(scales, f32).astype(float)):
        n = x.shape[axis]
        places = [(math.ceil if scale < 1 else math.floor)(o / scale) for o in range(math.floor(n * scale))]
        expected = np.take(expected, np.minimum(places, n - 1), axis)
    np.testing.assert_array_equal(y, expected)
    small = np.arange(1, 9, dtype=f32).reshape(1, 1, 2, 4)
    np.testing.assert_array_equal(one("Resize", {"x": small}, 10, constants={"s": np.array([1, 1, 0.6, 0.6], f32)}, mode="nearest").ravel(), [1, 3])
