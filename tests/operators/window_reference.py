# SPDX-License-Identifier: Apache-2.0
"""Convolution, pooling and resampling in NumPy, straight from their definitions, for data (N, C, spatial...)."""

import itertools
import math

import numpy as np


def sides(padding, rank):
    """A begin and an end for each spatial axis from padding as Relay writes it: all sides, per axis, or begins, then ends."""
    if len(padding) == 1:
        return [(padding[0], padding[0])] * rank
    if len(padding) == rank:
        return [(p, p) for p in padding]
    return list(zip(padding[:rank], padding[rank:]))


def convolution(x, w, strides, padding, dilation, groups, dtype):
    """y[n, o, p] = sum over i, k of x[n, g*(C/G) + i, p*strides + k*dilation - padding] * w[o, i, k]."""
    rank = x.ndim - 2
    x, w = x.astype(dtype), w.astype(dtype)
    x = np.pad(x, [(0, 0), (0, 0), *sides(padding, rank)])
    extents = [(x.shape[2 + a] - (w.shape[2 + a] - 1) * dilation[a] - 1) // strides[a] + 1 for a in range(rank)]
    y = np.zeros((x.shape[0], w.shape[0], *extents), dtype)
    each_in, each_out = x.shape[1] // groups, w.shape[0] // groups
    for tap in itertools.product(*(range(extent) for extent in w.shape[2:])):
        window = tuple(slice(t * d, t * d + (e - 1) * s + 1, s) for t, d, e, s in zip(tap, dilation, extents, strides))
        part = x[(slice(None), slice(None), *window)]
        for g in range(groups):
            rows = slice(g * each_out, (g + 1) * each_out)
            y[:, rows] += np.einsum("nc...,oc->no...", part[:, g * each_in:(g + 1) * each_in], w[(rows, slice(None), *tap)])
    return y


def pooling(x, kind, size, strides, dilation, padding, ceil_mode, count_include_pad=False):
    """Windows in a loop; in ceil mode the last window may lie in the padding, where max is the lowest finite value and average 0."""
    rank = x.ndim - 2
    around = sides(padding, rank)
    extents = []
    for a in range(rank):
        room = x.shape[2 + a] + sum(around[a]) - (size[a] - 1) * dilation[a] - 1
        extents.append((-(-room // strides[a]) if ceil_mode else room // strides[a]) + 1)
    integer = x.dtype.kind in "iu"
    lowest = np.iinfo(x.dtype).min if integer else np.finfo(x.dtype).min
    y = np.zeros((*x.shape[:2], *extents), x.dtype)
    for at in np.ndindex(*extents):
        axes = [[p * s + k * d - b for k in range(n)] for p, s, n, d, (b, _) in zip(at, strides, size, dilation, around)]
        inside = [[i for i in axis if 0 <= i < extent] for axis, extent in zip(axes, x.shape[2:])]
        declared = [[i for i in axis if -b <= i < extent + e] for axis, extent, (b, e) in zip(axes, x.shape[2:], around)]
        window = x[np.ix_(range(x.shape[0]), range(x.shape[1]), *inside)].reshape(*x.shape[:2], math.prod(map(len, inside)))
        if kind == "max":
            value = window.max(axis=2, initial=lowest)
        else:
            count = max(math.prod(map(len, declared if count_include_pad else inside)), 1)
            total = window.sum(axis=2, dtype=np.int64 if integer else x.dtype)
            value = np.sign(total) * (np.abs(total) // count) if integer else total / count
        y[(slice(None), slice(None), *at)] = value
    return y


def adaptive_pooling(x, kind, output):
    """Window i of an axis covers floor(i*in/out) to ceil((i+1)*in/out) - 1."""
    y = np.zeros((*x.shape[:2], *output), x.dtype)
    for at in np.ndindex(*output):
        window = tuple(slice(i * n // o, -(-(i + 1) * n // o)) for i, n, o in zip(at, x.shape[2:], output))
        part = x[(slice(None), slice(None), *window)].reshape(*x.shape[:2], -1)
        y[(slice(None), slice(None), *at)] = part.max(axis=2) if kind == "max" else part.mean(axis=2)
    return y


def position(o, extent, output, mode, roi=None):
    """Where in the input an output position lies."""
    if mode == "align_corners":
        return o * (extent - 1) / (output - 1) if output > 1 else 0.0
    if mode == "asymmetric":
        return o * extent / output
    if mode == "tf_half_pixel_for_nn":
        return (o + 0.5) * extent / output
    if mode == "pytorch_half_pixel" and output <= 1:
        return 0.0
    if mode == "tf_crop_and_resize":
        begin, end = roi
        return begin * (extent - 1) + o * (end - begin) * (extent - 1) / (output - 1) if output > 1 else 0.5 * (begin + end) * (extent - 1)
    return (o + 0.5) * extent / output - 0.5


def nearest(p, rounding):
    return {"round": math.floor(p + 0.5), "round_prefer_ceil": math.floor(p + 0.5), "round_prefer_floor": math.ceil(p - 0.5), "floor": math.floor(p),
            "ceil": math.ceil(p)}[rounding]


def cubic(t, a):
    """Keys' weight at distance t."""
    t = abs(t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0


def resize_matrix(extent, output, method, mode, rounding="floor", alpha=-0.5, exclude=0, roi=None, outside=0.0):
    """The weights (output, extent) of one axis, and for each output position what is added when it lies outside."""
    weights, extra = np.zeros((output, extent)), np.zeros(output)
    for o in range(output):
        p = position(o, extent, output, mode, roi)
        if mode == "tf_crop_and_resize" and not 0 <= p <= extent - 1:
            extra[o] = outside
            continue
        if method == "nearest_neighbor":
            taps = [(nearest(p, rounding), 1.0)]
        elif method == "linear":
            taps = [(math.floor(p), 1 - (p - math.floor(p))), (math.floor(p) + 1, p - math.floor(p))]
        else:
            taps = [(math.floor(p) + k, cubic(p - math.floor(p) - k, alpha)) for k in range(-1, 3)]
            if exclude:
                taps = [(i, weight) for i, weight in taps if 0 <= i < extent]
                taps = [(i, weight / sum(weight for _, weight in taps)) for i, weight in taps]
        for i, weight in taps:
            weights[o, min(max(i, 0), extent - 1)] += weight
    return weights, extra


def resize(x, size, method, mode, **options):
    """Each spatial axis after the other; with an outside value the axes' outsides join."""
    roi, outside = options.pop("roi", None), options.pop("outside", 0.0)
    rank, beyond = x.ndim - 2, np.zeros(size, bool)
    for a in range(rank):
        part = (roi[a], roi[rank + a]) if roi else None
        weights, extra = resize_matrix(x.shape[2 + a], size[a], method, mode, roi=part, outside=1.0, **options)
        x = np.moveaxis(np.tensordot(x, weights, ([2 + a], [1])), -1, 2 + a)
        beyond |= np.reshape(extra > 0, [-1 if i == a else 1 for i in range(rank)])
    return np.where(beyond, outside, x)
