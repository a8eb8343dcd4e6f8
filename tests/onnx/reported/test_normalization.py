# SPDX-License-Identifier: Apache-2.0
"""Normalisations: statistics that are given or computed, weights that are left out, and the axes of Softmax, which changed meaning."""

import numpy as np
import pytest
from onnx import helper
from small_models import close, everywhere, f32, folded, model_of, node_model, numbers, one, reference, refused, run, same_as

# ---- BatchNormalization ----


# Inference uses the given statistics: the batch's own would give 1.
@pytest.mark.parametrize("opset, attributes", [(7, {}), (9, {}), (14, {}), (14, {"training_mode": 0}), (15, {}), (15, {"training_mode": 0})])
@pytest.mark.parametrize("shape", [(2, 1), (2, 1, 3), (1, 1, 2, 2), (1, 1, 2, 2, 2)])
def test_batch_normalization_in_inference(opset, attributes, shape):
    weights = {name: np.full(1, value, f32) for name, value in {"s": 2, "b": 1, "m": 0, "v": 1}.items()}
    x = np.ones(shape, f32)
    close(one("BatchNormalization", {"x": x}, opset, constants=weights, epsilon=0.0, **attributes), np.full(shape, 3, f32))
    close(one("BatchNormalization", {"x": x, **weights}, opset, epsilon=0.0, **attributes), np.full(shape, 3, f32))
    close(folded("BatchNormalization", {"x": x, **weights}, opset, epsilon=0.0, **attributes), np.full(shape, 3, f32))


@pytest.mark.parametrize("epsilon", [0.0, 1e-5, 0.5])
def test_batch_normalization_channels(epsilon):
    x = numbers(2, 3, 4, 5)
    s, b, m, v = (numbers(3, seed=i) for i in range(1, 5))
    v = np.abs(v) + 0.1
    per_channel = [value.reshape(3, 1, 1) for value in (s, b, m, v)]
    expected = (x - per_channel[2]) / np.sqrt(per_channel[3] + f32(epsilon)) * per_channel[0] + per_channel[1]
    close(one("BatchNormalization", {"x": x}, constants={"s": s, "b": b, "m": m, "v": v}, epsilon=epsilon), expected.astype(f32), atol=1e-5)


def test_batch_normalization_in_training_is_refused():
    weights = {name: np.ones(2, f32) for name in "sbmv"}
    node = helper.make_node("BatchNormalization", ["x", *weights], ["y", "rm", "rv"], training_mode=1)
    assert "training_mode" in refused(model_of([node], {"x": numbers(1, 2, 3)}, {"y": f32}, 15, weights))


# ---- Softmax: until opset 12 the axes from `axis` on are one, and the default axis is 1; then axis -1 alone ----


def normalised(op, x, axis, flat):
    """op over one axis, or over all from `axis` on."""
    shape = x.shape
    if flat:
        axis = axis if axis >= 0 else axis + x.ndim
        x, axis = x.reshape(int(np.prod(shape[:axis])), -1), 1
    if op == "Hardmax":
        y = (np.expand_dims(x.argmax(axis),
                            axis) == np.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])).astype(x.dtype)
    else:
        e = np.exp(x - x.max(axis, keepdims=True))
        y = e / e.sum(axis, keepdims=True)
        y = np.log(y) if op == "LogSoftmax" else y
    return y.reshape(shape)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 3, 4), (2, 3, 2, 2)])
def test_softmax_axes(op, shape):
    x = numbers(*shape)
    rank = len(shape)
    for opset in [7, 11, 13]:
        axes = [None, *range(rank)] if opset < 11 else [None, *range(-rank, rank)]
        for axis in axes:
            if axis is None and opset < 13 and rank < 2:
                continue
            default = 1 if opset < 13 else -1
            attributes = {} if axis is None else {"axis": axis}
            expected = normalised(op, x, default if axis is None else axis, opset < 13)
            close(one(op, {"x": x}, opset, levels=(3,), **attributes), expected.astype(f32))
    close(everywhere(op, {"x": x}, 11, axis=0), normalised(op, x, 0, True).astype(f32))
    close(everywhere(op, {"x": x}, 13, axis=0), normalised(op, x, 0, False).astype(f32))


@pytest.mark.parametrize("opset, axis, expected", [(11, 1, 0.25), (11, None, 0.25), (13, None, 0.5)])
def test_golden_softmax(opset, axis, expected):
    attributes = {} if axis is None else {"axis": axis}
    close(one("Softmax", {"x": np.zeros((2, 2, 2), f32)}, opset, **attributes), np.full((2, 2, 2), expected, f32))
    close(one("LogSoftmax", {"x": np.zeros((2, 2, 2), f32)}, opset, **attributes), np.full((2, 2, 2), np.log(expected), f32))


# Large numbers neither overflow nor become NaN; of equal ones Hardmax takes the first.
def test_softmax_of_large_numbers():
    x = np.array([[1000, 1000, -1000], [-1000, -1000, -1000], [0, 88, 89]], f32)
    for op in ["Softmax", "LogSoftmax", "Hardmax"]:
        with np.errstate(divide="ignore"):
            expected = normalised(op, x.astype(np.float64), -1, False)
        if op == "LogSoftmax":
            expected = x - x.max(1, keepdims=True) - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True))
        close(everywhere(op, {"x": x}), expected.astype(f32), atol=1e-4)


# ---- LayerNormalization and its kin: optional weights ----


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_layer_normalization_without_bias(dtype):
    x = np.broadcast_to(np.array([1, 2, 3, 4], dtype), (2, 3, 4)).copy()
    row = np.array([-1.3416, -0.4472, 0.4472, 1.3416], dtype)
    for scale in [{}, {"s": np.ones(4, dtype)}]:
        if scale:
            close(one("LayerNormalization", {"x": x}, constants=scale), np.broadcast_to(row, x.shape), rtol=1e-4)
        close(one("LayerNormalization", {"x": x, "s": np.ones(4, dtype)}), np.broadcast_to(row, x.shape), rtol=1e-4)


@pytest.mark.parametrize("axis", [-1, -2, -3, 0, 1, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_layer_normalization_axes(axis, bias):
    x = numbers(2, 3, 4)
    weights = {"s": numbers(*x.shape[axis:], seed=1)}
    if bias:
        weights["b"] = numbers(*x.shape[axis:], seed=2)
    axes = tuple(range(axis % 3, 3))
    mean = x.mean(axes, keepdims=True)
    deviation = 1 / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    expected = [((x - mean) * deviation * weights["s"] + weights.get("b", 0)).astype(f32), mean, deviation.astype(f32)]
    for run_time in [True, False]:
        got = one("LayerNormalization", {"x": x, **(weights if run_time else {})}, constants={} if run_time else weights, outputs=3, axis=axis)
        for actual, wanted in zip(got, expected, strict=True):
            close(actual, wanted, 1e-4, 1e-5)


# The scale may have fewer axes than are normalised.
def test_layer_normalization_with_a_broadcast_scale():
    x, s = numbers(2, 3, 4), numbers(4, seed=1)
    axes = (1, 2)
    expected = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5) * s
    close(one("LayerNormalization", {"x": x}, constants={"s": s}, axis=1), expected.astype(f32), 1e-4, 1e-5)


@pytest.mark.parametrize("op, opset, shapes, attributes", [
    ("InstanceNormalization", 17, [(2, 3, 5), (3,), (3,)], {"epsilon": 0.1}),
    ("InstanceNormalization", 17, [(2, 3, 4, 5), (3,), (3,)], {}),
    ("GroupNormalization", 21, [(2, 6, 4, 5), (6,), (6,)], {"num_groups": 3}),
    ("GroupNormalization", 18, [(2, 6, 4), (3,), (3,)], {"num_groups": 3}),
    ("RMSNormalization", 23, [(2, 3, 4), (4,)], {}),
    ("RMSNormalization", 23, [(2, 3, 4), (3, 4)], {"axis": 1, "epsilon": 0.01}),
    ("MeanVarianceNormalization", 13, [(2, 3, 4, 5)], {}),
])
def test_other_normalizations(op, opset, shapes, attributes):
    inputs = {f"x{i}": numbers(*shape, seed=i) for i, shape in enumerate(shapes)}
    same_as(reference, node_model(op, inputs, opset, **attributes), inputs, rtol=1e-4)


# The reference evaluator forgets the magnitude for p = 1. A vector of zeros stays so.
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lp_normalization(p, axis):
    x = numbers(2, 3, 4)
    x[0] = 0
    norm = np.abs(x).sum(axis, keepdims=True) if p == 1 else np.sqrt((x * x).sum(axis, keepdims=True))
    close(everywhere("LpNormalization", {"x": x}, 22, axis=axis, p=p), np.divide(x, norm, out=np.zeros_like(x), where=norm != 0))


# The reference evaluator fills in as many channels as there are batches. An even size has its longer half behind.
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
def test_lrn(size):
    x = numbers(2, 7, 3, 3)
    total = np.stack([(x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1] ** 2).sum(1) for c in range(7)], 1)
    close(one("LRN", {"x": x}, size=size, alpha=0.5, beta=0.6, bias=1.5), (x / (1.5 + 0.5 / size * total) ** 0.6).astype(f32), 1e-4)


# A normalisation behind a convolution that it is folded into, with channels of another number than the data's.
@pytest.mark.parametrize("group", [1, 2])
def test_batch_normalization_behind_a_convolution(group):
    x, w = numbers(1, 4, 5, 5), numbers(6, 4 // group, 3, 3, seed=1)
    weights = {"w": w, "b": numbers(6, seed=2), "s": numbers(6, seed=3), "o": numbers(6, seed=4), "m": numbers(6, seed=5),
               "v": np.abs(numbers(6, seed=6)) + 0.1}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["a"], group=group), helper.make_node("BatchNormalization", ["a", "s", "o", "m", "v"], ["y"])]
    model = model_of(nodes, {"x": x}, {"y": f32}, constants=weights)
    got = run(model, {"x": x})["y"]
    close(got, reference(model, {"x": x})["y"], 1e-4, 1e-4)
