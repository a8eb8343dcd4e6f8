# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, padding, blocks of space and depth, resizing, against NumPy; the resizing of the reference is written one axis at a time."""

import numpy as np
import pytest
from operator_table import FLOATS, NUMBERS, Case, case, check, values


def listed(numbers):
    return str([list(pair) for pair in numbers])


def swapped(x, swap):
    return np.swapaxes(x, -1, -2) if swap else x


def product(x, y):
    """x times y; integers as their dtype wraps."""
    return np.matmul(x, y)


def product_cases(dtype):
    cases = []

    def add(text, shapes, reference, out_dtype=None):
        inputs = [values(shape, dtype, 10 + i, -4, 4) for i, shape in enumerate(shapes)]
        text += f', out_dtype="{out_dtype}")' if out_dtype else ")"
        as_sum = (lambda *arrays: reference(*(a.astype(out_dtype) for a in arrays))) if out_dtype else reference
        cases.append(case(text, inputs, as_sum, out_dtype or dtype, factor=5, terms=20))

    for shape, units in [((5, 17), 9), ((1, 33), 1), ((0, 3), 4), ((3, 0), 4), ((2, 3, 5), 7), ((5,), 7), ((17, 70), 40)]:
        if dtype not in ("float32", "int8") and shape in [(17, 70), (1, 33)]:
            continue
        add(f"nn.dense({{0}}, {{1}}, units={units}", [shape, (units, shape[-1])], lambda x, w: product(x, w.T))
        if dtype in ("int8", "uint8"):
            add(f"nn.dense({{0}}, {{1}}, units={units}", [shape, (units, shape[-1])], lambda x, w: product(x, w.T), "int32")
    for swap_a, swap_b in [(False, False), (False, True), (True, False), (True, True)]:
        attributes = f"transpose_a={swap_a}, transpose_b={swap_b}"
        pairs = [((5, 7), (7, 3))] if dtype != "float32" else [((5, 7), (7, 3)), ((33, 18), (18, 65)), ((1, 1), (1, 1)), ((2, 0), (0, 3)), ((0, 2), (2, 3))]
        for a, b in pairs:
            shapes = [a[::-1] if swap_a else a, b[::-1] if swap_b else b]
            add(f"nn.matmul({{0}}, {{1}}, {attributes}", shapes, lambda x, y, a=swap_a, b=swap_b: product(swapped(x, a), swapped(y, b)))
        batches = [((2,), (2,)), ((1,), (3,)), ((3,), (1,)), ((0,), (0,)), ((2, 1), (3,)), ((2, 1), (1, 2))]
        for batch_a, batch_b in batches if dtype == "float32" else [batches[swap_a + 2 * swap_b]]:
            shapes = [batch_a + ((6, 5) if swap_a else (5, 6)), batch_b + ((7, 6) if swap_b else (6, 7))]
            add(f"nn.batch_matmul({{0}}, {{1}}, {attributes}", shapes, lambda x, y, a=swap_a, b=swap_b: product(swapped(x, a), swapped(y, b)))
    return cases


# shape, the widths of every axis
WIDTHS = [((3, 4), ((1, 2), (0, 3))), ((2, 3, 5), ((0, 0), (2, 1), (3, 4))), ((7,), ((5, 6),)), ((2, 1, 4), ((1, 1), (0, 0), (0, 2))), ((1, 9), ((0, 0), (8, 8)))]


def crop_or_pad(x, widths, value):
    """Padding with a value, where negative widths take away."""
    kept = x[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, widths))]
    return np.pad(kept, [(max(a, 0), max(b, 0)) for a, b in widths], constant_values=value) if x.ndim else x


def pad_cases(dtype):
    cases = []
    signed = [((3, 4), ((-1, 2), (0, -2))), ((5,), ((-2, -3),)), ((), ()), ((0, 2), ((1, 1), (0, 1))), ((3, 0), ((0, 0), (2, 0)))]
    for shape, widths in WIDTHS + signed:
        x, value = values(shape, dtype, 1), values((), dtype, 2)
        cases.append(Case(f"nn.pad({{0}}, {{1}}, pad_width={listed(widths)})", [x, value], crop_or_pad(x, widths, value)))
    for shape, widths in WIDTHS:
        x, value = values(shape, dtype, 1), values((), dtype, 2)
        cases.append(Case(f'nn.pad({{0}}, {{1}}, pad_width={listed(widths)}, pad_mode="edge")', [x, value], np.pad(x, widths, mode="edge")))
        if all(max(pair) <= n for n, pair in zip(shape, widths)):
            cases.append(Case(f'nn.mirror_pad({{0}}, mode="SYMMETRIC", pad_width={listed(widths)})', [x], np.pad(x, widths, mode="symmetric")))
        if all(max(pair) < n for n, pair in zip(shape, widths)):
            cases.append(Case(f'nn.mirror_pad({{0}}, mode="REFLECT", pad_width={listed(widths)})', [x], np.pad(x, widths, mode="reflect")))
            cases.append(Case(f'nn.pad({{0}}, {{1}}, pad_width={listed(widths)}, pad_mode="reflect")', [x, value], np.pad(x, widths, mode="reflect")))
    for shape, strides in [((3, 4), (1, 1)), ((2, 3, 5), (2, 1, 3)), ((1,), (4,)), ((0, 2), (2, 2))]:
        x = values(shape, dtype, 3)
        y = np.full([max((n - 1) * s + 1, 0) for n, s in zip(shape, strides)], 1, x.dtype)
        y[tuple(slice(None, None, s) for s in strides)] = x
        cases.append(Case(f"nn.dilate({{0}}, strides={list(strides)}, dilation_value=1f)", [x], y))
    return cases + block_cases(dtype)


def block_cases(dtype):
    """Channels or batch into space and back."""
    cases = []
    for n, c, h, w, b in [(1, 2, 2, 3, 2), (2, 1, 1, 5, 3), (0, 3, 2, 2, 2), (1, 1, 2, 2, 1)]:
        deep, flat = values((n, c * b * b, h, w), dtype, 4), values((n, c, h * b, w * b), dtype, 5)
        spread = deep.reshape(n, b, b, c, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c, h * b, w * b)
        crossed = deep.reshape(n, c, b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c, h * b, w * b)
        folded = flat.reshape(n, c, h, b, w, b).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h, w)
        last = (0, 2, 3, 1)
        cases += [
            Case(f'nn.depth_to_space({{0}}, block_size={b}, mode="DCR")', [deep], spread),
            Case(f'nn.depth_to_space({{0}}, block_size={b}, mode="CDR")', [deep], crossed),
            Case(f"nn.space_to_depth({{0}}, block_size={b})", [flat], folded),
            Case(f'nn.depth_to_space({{0}}, block_size={b}, layout="NHWC")', [deep.transpose(last)], spread.transpose(last)),
            Case(f'nn.space_to_depth({{0}}, block_size={b}, layout="NHWC")', [flat.transpose(last)], folded.transpose(last)),
        ]
    x, value = values((2, 3, 5, 2), dtype, 6), 1
    padded = np.pad(x, [(0, 0), (1, 0), (2, 2), (0, 0)], constant_values=value)
    blocks = padded.reshape(2, 2, 2, 3, 3, 2).transpose(2, 4, 0, 1, 3, 5).reshape(12, 2, 3, 2)
    cases.append(Case(f"nn.space_to_batch_nd({{0}}, block_shape=[2, 3], paddings=[[1, 0], [2, 2]], pad_value={value}f)", [x], blocks))
    cases.append(Case("nn.batch_to_space_nd({0}, block_shape=[2, 3], crops=[[1, 0], [2, 2]])", [blocks], x))
    return cases


def position(o, before, after, mode):
    """Where the element o of an axis is read."""
    if mode == "half_pixel":
        return (o + 0.5) * before / after - 0.5
    if mode == "align_corners":
        return o * (before - 1) / (after - 1) if after > 1 else 0.0
    return o * before / after  # asymmetric


def nearest(at, rounding):
    """The element that nearest_neighbor reads; a hair is added or taken so that rounding errors of the position don't count."""
    hair = 1e-5
    return {"round": np.floor(at + 0.5 + hair), "floor": np.floor(at + hair), "ceil": np.ceil(at - hair),
            "round_prefer_floor": np.ceil(at - 0.5 - hair), "round_prefer_ceil": np.floor(at + 0.5 + hair)}[rounding]


def cubic(distance, a):
    """Keys' weight of a tap at this distance."""
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


def taps(at, size, method, rounding, alpha, exclude):
    """The elements and weights that make a value of one axis; beyond the border the last element stands."""
    base = int(np.floor(at))
    if method == "nearest_neighbor":
        found = [(int(nearest(at, rounding)), 1.0)]
    elif method == "linear":
        found = [(base, 1 - (at - base)), (base + 1, at - base)]
    else:
        found = [(base + i, cubic(base + i - at, alpha)) for i in range(-1, 3)]
        if exclude:
            found = [(i, weight if 0 <= i < size else 0.0) for i, weight in found]
            total = sum(weight for _, weight in found)
            found = [(i, weight / total) for i, weight in found]
    return [(min(max(i, 0), size - 1), weight) for i, weight in found]


def resized(x, size, axes, method, mode, rounding="round", alpha=-0.5, exclude=False):
    """Resampling, which is the same along each axis."""
    for axis, after in zip(axes, size):
        x = np.moveaxis(x, axis, 0)
        rows = [sum(x[i] * w for i, w in taps(position(o, len(x), after, mode), len(x), method, rounding, alpha, exclude)) for o in range(after)]
        x = np.moveaxis(np.array(rows), 0, axis)
    return x


# rank, shape, size, layout, the axes of space
RESIZES = [
    (1, (2, 3, 5), (8,), "NCW", (2,)), (1, (2, 7, 3), (4,), "NWC", (1,)), (1, (1, 1, 1), (3,), "NCW", (2,)),
    (2, (1, 3, 4, 5), (7, 10), "NCHW", (2, 3)), (2, (2, 6, 5, 3), (3, 8), "NHWC", (1, 2)), (2, (1, 2, 3, 3), (1, 1), "NCHW", (2, 3)),
    (2, (0, 2, 3, 3), (6, 6), "NCHW", (2, 3)),
]
METHODS = [("linear", ""), ("nearest_neighbor", "round"), ("nearest_neighbor", "floor"), ("nearest_neighbor", "ceil"),
           ("nearest_neighbor", "round_prefer_floor"), ("nearest_neighbor", "round_prefer_ceil"), ("cubic", "")]


def resize_cases(dtype):
    cases = []
    for place, (rank, shape, size, layout, axes) in enumerate(RESIZES):
        x = values(shape, dtype, 7)
        for turn, (method, rounding) in enumerate(METHODS):
            for step, mode in enumerate(("half_pixel", "align_corners", "asymmetric")):
                if dtype != "float32" and (place + turn + step) % 5:
                    continue
                text = (f'image.resize{rank}d({{0}}, size={list(size)}, layout="{layout}", method="{method}", coordinate_transformation_mode="{mode}", '
                        f'rounding_method="{rounding}")')
                cases.append(case(text, [x], lambda x, s=size, a=axes, m=method, c=mode, r=rounding: resized(x, s, a, m, c, r), factor=4, terms=5))
        for alpha, exclude in [(-0.75, 0), (-0.5, 1)]:
            text = (f'image.resize{rank}d({{0}}, size={list(size)}, layout="{layout}", method="cubic", cubic_alpha={alpha}f, cubic_exclude={exclude})')
            cases.append(case(text, [x], lambda x, s=size, a=axes, p=alpha, e=exclude: resized(x, s, a, "cubic", "half_pixel", alpha=p, exclude=e), factor=4, terms=5))
    for layout, axes in [("NCHW", (2, 3)), ("NHWC", (1, 2))]:
        x = values((1, 3, 4, 5), dtype, 8)
        up = [x.shape[axes[0]] * 2, x.shape[axes[1]] * 3]
        cases.append(case(f'nn.upsampling({{0}}, scale_h=2f, scale_w=3f, layout="{layout}")', [x], lambda x, a=axes: np.repeat(np.repeat(x, 2, a[0]), 3, a[1])))
        for align in (True, False):
            text = f'nn.upsampling({{0}}, scale_h=2f, scale_w=3f, layout="{layout}", method="bilinear", align_corners={align})'
            mode = "align_corners" if align else "asymmetric"
            cases.append(case(text, [x], lambda x, a=axes, s=up, m=mode: resized(x, s, a, "linear", m), factor=4, terms=5))
    return cases


FAMILIES = {"product": (product_cases, NUMBERS), "pad": (pad_cases, ("bool", "int8", "uint16", "bfloat16", "float32", "int64", "float64")), "resize": (resize_cases, FLOATS)}


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("family, dtype", [(family, dtype) for family, (_, dtypes) in FAMILIES.items() for dtype in dtypes])
def test_products_and_images(family, dtype, level):
    check(FAMILIES[family][0](dtype), level)
