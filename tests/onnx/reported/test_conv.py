# SPDX-License-Identifier: Apache-2.0
"""Convolutions: padding that follows from other attributes, and the output's extent of transposed ones.

Expected values come from loops over the kernel's cells written out below; ONNX's reference evaluator swaps or leaves out some of these attributes.
"""

import math

import numpy as np
import pytest
from onnx import helper
from small_models import close, f32, folded, model_of, numbers, one, run, signal


def same_pads(extent, stride, span, auto_pad):
    total = max((math.ceil(extent / stride) - 1) * stride + span - extent, 0)
    return (total // 2, total - total // 2) if auto_pad == "SAME_UPPER" else (total - total // 2, total // 2)


def conv(x, w, strides, dilations, pads=None, auto_pad="NOTSET", group=1):
    """(N, C, spatial…) with (M, C / group, kernel…)."""
    rank = x.ndim - 2
    kernel = w.shape[2:]
    spans = [(kernel[i] - 1) * dilations[i] + 1 for i in range(rank)]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        around = [same_pads(x.shape[i + 2], strides[i], spans[i], auto_pad) for i in range(rank)]
    else:
        around = [(pads[i], pads[rank + i]) if pads else (0, 0) for i in range(rank)]
    x = np.pad(x, [(0, 0), (0, 0), *around]).astype(np.float64)
    out = [(x.shape[i + 2] - spans[i]) // strides[i] + 1 for i in range(rank)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    outputs, inputs = w.shape[0] // group, x.shape[1] // group
    for cell in np.ndindex(*kernel):
        taken = x[(slice(None), slice(None),
                   *[slice(cell[i] * dilations[i], cell[i] * dilations[i] + (out[i] - 1) * strides[i] + 1, strides[i]) for i in range(rank)])]
        for g in range(group):
            y[:, g * outputs : (g + 1) * outputs] += np.einsum("nc...,mc->nm...", taken[:, g * inputs : (g + 1) * inputs],
                                                               w[g * outputs : (g + 1) * outputs][(..., *cell)])
    return y


def conv_transpose(x, w, strides, dilations, begin, out, group=1):
    """(N, C, spatial…) with (C, M / group, kernel…); `begin` is cut in front, `out` are the extents of the result."""
    rank = x.ndim - 2
    inputs, outputs = x.shape[1] // group, w.shape[1]
    spans = [(w.shape[i + 2] - 1) * dilations[i] + 1 for i in range(rank)]
    full = np.zeros((x.shape[0], outputs * group, *[max((x.shape[i + 2] - 1) * strides[i] + spans[i], begin[i] + out[i]) for i in range(rank)]))
    for cell in np.ndindex(*w.shape[2:]):
        place = [slice(cell[i] * dilations[i], cell[i] * dilations[i] + (x.shape[i + 2] - 1) * strides[i] + 1, strides[i]) for i in range(rank)]
        for g in range(group):
            part = np.einsum("nc...,cm->nm...", x[:, g * inputs : (g + 1) * inputs].astype(np.float64),
                             w[g * inputs : (g + 1) * inputs][(..., *cell)])
            full[(slice(None), slice(g * outputs, (g + 1) * outputs), *place)] += part
    return full[(slice(None), slice(None), *[slice(begin[i], begin[i] + out[i]) for i in range(rank)])]


# ---- Conv: padding from the dilated kernel ----


def test_conv_same_with_dilation():
    for opset in [7, 11, 22]:
        y = one("Conv", {"x": signal(1, 2, 3, 4, 5, 6, 7)}, opset, constants={"w": signal(1, 1, 1)}, dilations=[2], auto_pad="SAME_UPPER")
        np.testing.assert_allclose(y.ravel(), [4, 6, 9, 12, 15, 10, 12])


def test_conv_same_with_an_even_kernel():
    for pad, expected in [("SAME_LOWER", [1, 3, 5, 7]), ("SAME_UPPER", [3, 5, 7, 4])]:
        np.testing.assert_allclose(one("Conv", {"x": signal(1, 2, 3, 4)}, constants={"w": signal(1, 1)}, auto_pad=pad).ravel(), expected)


# (extents, kernel, strides, dilations)
SHAPES = [
    ((7,), (3,), [1], [2]),
    ((8,), (2,), [1], [3]),
    ((9,), (4,), [2], [2]),
    ((3,), (5,), [3], [1]),
    ((6, 7), (3, 2), [1, 1], [2, 3]),
    ((9, 8), (3, 4), [2, 3], [2, 1]),
    ((5, 4, 6), (2, 3, 3), [1, 2, 1], [2, 1, 2]),
]


@pytest.mark.parametrize("extents, kernel, strides, dilations", SHAPES)
def test_conv_auto_pad(extents, kernel, strides, dilations):
    x, w = numbers(1, 4, *extents), numbers(6, 2, *kernel, seed=1)
    for pad in ["SAME_UPPER", "SAME_LOWER"]:
        y = one("Conv", {"x": x}, constants={"w": w}, strides=strides, dilations=dilations, auto_pad=pad, group=2)
        np.testing.assert_allclose(y, conv(x, w, strides, dilations, auto_pad=pad, group=2), rtol=1e-4, atol=1e-5)


# The weight as an input, and everything known.
def test_conv_with_a_computed_weight():
    x, w, b = numbers(2, 3, 5, 6), numbers(4, 3, 3, 2, seed=1), numbers(4, seed=2)
    expected = conv(x, w, [2, 1], [1, 2], [1, 0, 2, 1]) + b.reshape(4, 1, 1)
    attributes = {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 2, 1]}
    np.testing.assert_allclose(one("Conv", {"x": x, "w": w, "b": b}, **attributes), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(folded("Conv", {"x": x, "w": w, "b": b}, **attributes), expected, rtol=1e-4, atol=1e-5)


# ---- ConvTranspose: the output's extent ----


def test_conv_transpose_output_padding():
    for opset in [7, 11, 22]:
        y = one("ConvTranspose", {"x": signal(1, 2, 3)}, opset, constants={"w": signal(1, 1, 1)}, strides=[2], pads=[1, 1], output_padding=[1])
        np.testing.assert_allclose(y.ravel(), [1, 3, 2, 5, 3, 3])


@pytest.mark.parametrize("pad, expected", [("SAME_UPPER", [1, 1, 2, 1, 2, 1, 2, 1]), ("SAME_LOWER", [1, 2, 1, 2, 1, 2, 1, 1]),
                                           ("VALID", [1, 1, 2, 1, 2, 1, 2, 1, 1])])
def test_conv_transpose_auto_pad(pad, expected):
    for opset in [11, 22]:
        y = one("ConvTranspose", {"x": signal(1, 1, 1, 1)}, opset, constants={"w": signal(1, 1, 1)}, strides=[2], auto_pad=pad)
        np.testing.assert_allclose(y.ravel(), expected)


TRANSPOSED = [
    ((4,), (3,), [2], [1]),
    ((3,), (2,), [3], [1]),  # the kernel is shorter than the stride: nothing is cut, the output is extended
    ((5,), (3,), [1], [2]),
    ((3, 4), (3, 2), [2, 3], [1, 2]),
    ((2, 3, 2), (2, 3, 3), [2, 1, 2], [1, 2, 1]),
]


@pytest.mark.parametrize("extents, kernel, strides, dilations", TRANSPOSED)
def test_conv_transpose_extents(extents, kernel, strides, dilations):
    rank = len(kernel)
    x, w = numbers(1, 4, *extents), numbers(4, 3, *kernel, seed=1)
    full = [strides[i] * (extents[i] - 1) + (kernel[i] - 1) * dilations[i] + 1 for i in range(rank)]

    def check(begin, out, **attributes):
        y = one("ConvTranspose", {"x": x}, constants={"w": w}, strides=strides, dilations=dilations, group=2, **attributes)
        np.testing.assert_allclose(y, conv_transpose(x, w, strides, dilations, begin, out, group=2), rtol=1e-4, atol=1e-5)

    for extra in {0, min(strides) - 1}:
        pads = [1] * rank + [0] * rank
        check([1] * rank, [full[i] - 1 + extra for i in range(rank)], pads=pads, output_padding=[extra] * rank)
    out = [extents[i] * strides[i] for i in range(rank)]
    cut = [max(full[i] - out[i], 0) for i in range(rank)]
    check([c // 2 for c in cut], out, auto_pad="SAME_UPPER")
    check([c - c // 2 for c in cut], out, auto_pad="SAME_LOWER")
    # output_shape: without auto_pad the larger half of what is cut lies at the beginning.
    wanted = [full[i] - 1 for i in range(rank)]
    check([1] * rank, wanted, output_shape=wanted)


# ---- What the layout pass does between convolutions ----


# A transpose of the spatial axes stands between two convolutions: layouts that the pass chose for them do not fit it.
@pytest.mark.parametrize("perm", [(0, 1, 3, 2), (0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (3, 2, 1, 0)])
@pytest.mark.parametrize("kernel", [1, 3])
def test_transpose_between_convolutions(perm, kernel):
    shape = (1, 2, 3, 5) if kernel == 1 else (2, 8, 8, 16)
    x = numbers(*shape)
    middle = (shape[0], 16 if kernel == 3 else 2, *shape[2:])
    turned = [middle[p] for p in perm]
    w, v = numbers(middle[1], shape[1], kernel, kernel, seed=1), numbers(8, turned[1], kernel, kernel, seed=2)
    pads = [kernel // 2] * 4
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=pads), helper.make_node("Transpose", ["a"], ["b"], perm=perm),
             helper.make_node("Conv", ["b", "v"], ["y"], pads=pads)]
    model = model_of(nodes, {"x": x}, {"y": f32}, constants={"w": w, "v": v})
    one_by_one = [1, 1]
    expected = conv(conv(x, w, one_by_one, one_by_one, pads).transpose(perm), v, one_by_one, one_by_one, pads)
    close(run(model, {"x": x})["y"], expected.astype(f32), rtol=1e-4, atol=1e-3)


# Operators between two convolutions of blocked layout that speak of axes by number.
@pytest.mark.parametrize("name, attributes, constants, outcome", [
    ("Softmax", {"axis": 1}, {}, lambda a: np.exp(a) / np.exp(a).sum(1, keepdims=True)),
    ("ReduceMean", {"axes": [2, 3]}, {}, lambda a: a.mean((2, 3), keepdims=True)),
    ("ReduceMax", {"axes": [1]}, {}, lambda a: np.repeat(a.max(1, keepdims=True), 1, 1)),
    ("Slice", {}, {"s": np.array([3]), "e": np.array([11]), "axes": np.array([1])}, lambda a: a[:, 3:11]),
    ("Slice", {}, {"s": np.array([5]), "e": np.array([0]), "axes": np.array([2]), "t": np.array([-2])}, lambda a: a[:, :, 5:0:-2]),
    ("Pad", {}, {"p": np.array([0, 1, 0, 2, 0, 0, 1, 0])}, lambda a: np.pad(a, [(0, 0), (1, 0), (0, 1), (2, 0)])),
    ("Reshape", {}, {"s": np.array([1, 8, 6, 12])}, lambda a: a.reshape(1, 8, 6, 12)),
    ("Concat", {"axis": 1}, {"c": numbers(1, 3, 6, 6, seed=5)}, lambda a: np.concatenate([a, numbers(1, 3, 6, 6, seed=5)], 1)),
    ("Mul", {}, {"c": numbers(6, seed=5)}, lambda a: a * numbers(6, seed=5)),
    ("PRelu", {}, {"c": numbers(16, 1, 1, seed=5)}, lambda a: np.where(a < 0, a * numbers(16, 1, 1, seed=5), a)),
])
def test_axes_between_convolutions(name, attributes, constants, outcome):
    x, w = numbers(1, 8, 6, 6), numbers(16, 8, 3, 3, seed=1) / 8
    a = conv(x, w, [1, 1], [1, 1], [1] * 4)
    b = outcome(a)
    v = numbers(8, b.shape[1], 1, 1, seed=2)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4), helper.make_node(name, ["a", *constants], ["b"], **attributes),
             helper.make_node("Conv", ["b", "v"], ["y"])]
    model = model_of(nodes, {"x": x}, {"y": f32}, 13 if name.startswith("Reduce") else 17, {"w": w, "v": v, **constants})
    close(run(model, {"x": x})["y"], conv(b, v, [1, 1], [1, 1]).astype(f32), rtol=1e-4, atol=1e-4)


# All extents are equal: only the axes can say whether an operand belongs to the channels.
@pytest.mark.parametrize("shape", [(), (1,), (8,), (1, 8), (8, 1), (8, 8), (8, 1, 1), (1, 8, 1), (1, 1, 8), (8, 1, 8), (8, 8, 8), (1, 8, 1, 1),
                                   (1, 1, 8, 1), (1, 1, 1, 8), (1, 8, 8, 8), (2, 1, 1, 1), (2, 1, 8, 1, 1)])
@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_operands_between_convolutions(shape, op):
    x, w, v, c = numbers(1, 8, 8, 8), numbers(8, 8, 3, 3, seed=1) / 4, numbers(8, 8, 1, 1, seed=2), np.asarray(numbers(*shape, seed=3))
    a = conv(x, w, [1, 1], [1, 1], [1] * 4)
    r = np.maximum(a + c if op == "Add" else a * c, 0)
    for known in [True, False]:
        nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4), helper.make_node(op, ["a", "c"] if known else ["c", "a"], ["b"]),
                 helper.make_node("Relu", ["b"], ["r"])]
        if r.ndim == 4:
            nodes.append(helper.make_node("Conv", ["r", "v"], ["y"]))
        else:
            nodes.append(helper.make_node("Identity", ["r"], ["y"]))
        feed = {"x": x, **({} if known else {"c": c})}
        got = run(model_of(nodes, feed, {"y": f32}, constants={"w": w, "v": v, **({"c": c} if known else {})}), feed, (3,))["y"]
        close(got, (conv(r, v, [1, 1], [1, 1]) if r.ndim == 4 else r).astype(f32), 1e-4, 1e-3)


# The same in front of a convolution, where a scale may move into the weights.
@pytest.mark.parametrize("shape", [(), (8,), (8, 1), (8, 1, 1), (1, 8, 8), (1, 8, 1, 1), (1, 1, 1, 8)])
@pytest.mark.parametrize("group", [1, 2, 8])
def test_operands_before_a_convolution(shape, group):
    x, w, c, b = numbers(1, 8, 8, 8), numbers(8, 8 // group, 3, 3, seed=1) / 4, np.asarray(numbers(*shape, seed=3)), numbers(8, seed=4)
    nodes = [helper.make_node("Mul", ["x", "c"], ["m"]), helper.make_node("Conv", ["m", "w", "b"], ["y"], group=group, pads=[1] * 4)]
    got = run(model_of(nodes, {"x": x}, {"y": f32}, constants={"w": w, "c": c, "b": b}), {"x": x})["y"]
    close(got, (conv(x * c, w, [1, 1], [1, 1], [1] * 4, group=group) + b.reshape(-1, 1, 1)).astype(f32), 1e-4, 1e-4)


# ---- What passes may fold into a convolution ----


# Only a scale that is not negative commutes with Relu.
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_scale_beside_convolution(group, relu, before):
    x, w = numbers(1, 4, 3, 3), numbers(4, 4 // group, 1, 1, seed=1)
    scale = np.array([-1, 2, 0, -0.5], f32).reshape(4, 1, 1)
    rectify = (lambda v: np.maximum(v, 0)) if relu else (lambda v: v)
    if before:  # Mul, Relu, Conv
        order = [("Mul", ["x", "s"]), ("Relu", None), ("Conv", ["w"])]
        expected = conv(rectify(x * scale), w, [1, 1], [1, 1], group=group)
    else:
        order = [("Conv", ["x", "w"]), ("Relu", None), ("Mul", ["s"])]
        expected = rectify(conv(x, w, [1, 1], [1, 1], group=group)) * scale
    nodes, last = [], None
    for i, (op, names) in enumerate(entry for entry in order if relu or entry[0] != "Relu"):
        names = names or []
        inputs = names if last is None else [last, *names]
        last = f"v{i}"
        nodes.append(helper.make_node(op, inputs, [last], **({"group": group} if op == "Conv" else {})))
    nodes.append(helper.make_node("Identity", [last], ["y"]))
    got = run(model_of(nodes, {"x": x}, {"y": f32}, constants={"w": w, "s": scale}), {"x": x})["y"]
    close(got, expected.astype(f32), rtol=1e-4, atol=1e-5)


def test_negative_scale_behind_relu():
    w = np.eye(2, dtype=f32).reshape(2, 2, 1, 1)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Mul", ["b", "s"], ["y"])]
    x = np.array([-2, 3, -2, 3], f32).reshape(1, 2, 1, 2)
    y = run(model_of(nodes, {"x": x}, {"y": f32}, constants={"w": w, "s": np.array([-1, 2], f32).reshape(2, 1, 1)}), {"x": x})["y"]
    np.testing.assert_array_equal(y.ravel(), [0, -3, 0, 6])
