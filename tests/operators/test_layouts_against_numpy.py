# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling of whole dtypes in every layout, blocked ones too, and every mode of resampling, against plain NumPy."""

import numpy as np
import pytest
from operator_table import FLOATS, Case, case, check, values, wide
from window_reference import adaptive_pooling, convolution, pooling, resize

# spatial rank, data, weight, strides, padding, dilation, groups
CONVOLUTIONS = [
    (2, (2, 5, 7, 9), (6, 5, 3, 3), [1, 1], [1, 1], [1, 1], 1),
    (2, (1, 6, 9, 8), (4, 3, 3, 2), [2, 1], [1, 0, 2, 3], [1, 2], 2),
    (2, (1, 6, 7, 7), (6, 1, 3, 3), [1, 1], [1, 1], [1, 1], 6),
    (2, (1, 3, 8, 8), (6, 1, 5, 3), [2, 2], [2, 1], [1, 1], 3),
    (2, (3, 17, 5, 5), (19, 17, 1, 1), [1, 1], [0, 0], [1, 1], 1),
    (2, (1, 16, 14, 14), (32, 16, 3, 3), [2, 2], [1, 1], [1, 1], 1),
    (2, (0, 3, 5, 5), (4, 3, 3, 3), [1, 1], [1, 1], [1, 1], 1),
    (2, (1, 1, 1, 1), (1, 1, 1, 1), [1, 1], [0, 0], [1, 1], 1),
    (2, (1, 2, 3, 3), (3, 2, 3, 3), [3, 3], [4, 0, 1, 5], [2, 1], 1),
    (1, (2, 5, 17), (3, 5, 3), [1], [1], [1], 1),
    (1, (1, 4, 16), (6, 2, 4), [2], [3, 0], [2], 2),
    (3, (1, 3, 5, 6, 7), (4, 3, 3, 2, 3), [1, 2, 1], [1, 0, 1], [1, 1, 2], 1),
    (3, (1, 4, 5, 5, 5), (4, 1, 3, 3, 3), [1, 1, 1], [1, 1, 0, 0, 1, 2], [1, 1, 1], 4),
]
LAST = {1: ("NWC", "WIO"), 2: ("NHWC", "HWIO"), 3: ("NDHWC", "DHWIO")}


def channels_last(x):
    return np.moveaxis(x, 1, -1)


def kernel_last(w):
    """OI and the kernel to the kernel and IO."""
    return np.moveaxis(w, (0, 1), (-1, -2))


def blocked(x, block):
    """NC… to NC…c."""
    split = x.reshape(x.shape[0], x.shape[1] // block, block, *x.shape[2:])
    return np.moveaxis(split, 2, -1)


def blocked_kernel(w, i, o):
    """OIHW to OIHW{i}i{o}o."""
    split = w.reshape(w.shape[0] // o, o, w.shape[1] // i, i, *w.shape[2:])
    return split.transpose(0, 2, 4, 5, 3, 1)


def small(shape, dtype, seed):
    """Values whose sums of products stay small, so that low precision shows no rounding but its own."""
    return values(shape, dtype, seed, -1, 1) if dtype in FLOATS else values(shape, dtype, seed, -9, 9)


def rounding(dtype, depth=16):
    """How sums of products of such values may differ."""
    return {"factor": 2, "terms": 0.5 * depth**0.5} if dtype in FLOATS else {}


def convolution_cases(dtype):
    cases = []
    for rank, data, weight, strides, padding, dilation, groups in CONVOLUTIONS:
        x, w = small(data, dtype, 1), small(weight, dtype, 2)
        attributes = f"strides={strides}, padding={padding}, dilation={dilation}, groups={groups}"
        y = convolution(wide(x), wide(w), strides, padding, dilation, groups, wide(x).dtype)
        cases.append(Case(f"nn.conv{rank}d({{0}}, {{1}}, {attributes})", [x, w], y.astype(x.dtype), **rounding(dtype)))
        layout, kernel = LAST[rank]
        layouts = f', data_layout="{layout}", kernel_layout="{kernel}"'
        cases.append(Case(f"nn.conv{rank}d({{0}}, {{1}}, {attributes}{layouts})", [channels_last(x), kernel_last(w)], channels_last(y).astype(x.dtype), **rounding(dtype)))
        wider = {"int8": "int32", "uint8": "int32", "int16": "int32", "float16": "float32"}.get(dtype)
        if wider:
            y = convolution(wide(x), wide(w), strides, padding, dilation, groups, "int32" if wider == "int32" else "float64")
            cases.append(Case(f'nn.conv{rank}d({{0}}, {{1}}, {attributes}, out_dtype="{wider}")', [x, w], y.astype(wider), **rounding(wider)))
    return cases + blocked_cases(dtype)


def blocked_cases(dtype):
    cases = []
    for data, weight, strides, padding, dilation in [
            ((1, 8, 7, 9), (12, 8, 3, 3), [1, 1], [1, 1], [1, 1]), ((2, 4, 6, 5), (4, 4, 1, 1), [2, 1], [0, 0], [1, 1]), ((1, 4, 9, 9), (8, 4, 3, 2), [1, 2], [2, 0, 1, 1], [2, 1])]:
        x, w = small(data, dtype, 3), small(weight, dtype, 4)
        y = convolution(wide(x), wide(w), strides, padding, dilation, 1, wide(x).dtype).astype(x.dtype)
        attributes = f"strides={strides}, padding={padding}, dilation={dilation}, channels={weight[0]}, kernel_size={list(weight[2:])}"
        layouts = 'data_layout="NCHW4c", kernel_layout="OIHW4i4o"'
        for name in ("nn.conv2d", "nn.contrib_conv2d_NCHWc"):
            cases.append(Case(f"{name}({{0}}, {{1}}, {attributes}, {layouts})", [blocked(x, 4), blocked_kernel(w, 4, 4)], blocked(y, 4), **rounding(dtype)))
        cases.append(Case(f'nn.contrib_conv2d_NCHWc({{0}}, {{1}}, {attributes}, data_layout="NCHW2c", kernel_layout="OIHW2i4o", out_layout="NCHW4c")',
                          [blocked(x, 2), blocked_kernel(w, 2, 4)], blocked(y, 4), **rounding(dtype)))
    for data, weight, strides, padding in [((1, 8, 7, 9), (8, 1, 3, 3), [1, 1], [1, 1]), ((2, 4, 6, 5), (4, 1, 5, 2), [2, 1], [2, 0, 1, 1])]:
        x, w = small(data, dtype, 5), small(weight, dtype, 6)
        y = convolution(wide(x), wide(w), strides, padding, [1, 1], data[1], wide(x).dtype).astype(x.dtype)
        attributes = f"strides={strides}, padding={padding}, groups={data[1]}, channels={weight[0]}, kernel_size={list(weight[2:])}"
        layouts = 'data_layout="NCHW4c", kernel_layout="OIHW1i4o"'
        for name in ("nn.conv2d", "nn.contrib_depthwise_conv2d_NCHWc"):
            cases.append(Case(f"{name}({{0}}, {{1}}, {attributes}, {layouts})", [blocked(x, 4), blocked_kernel(w, 1, 4)], blocked(y, 4), **rounding(dtype)))
    return cases


# data, pool_size, strides, padding, dilation
POOLS = [
    ((2, 3, 7, 9), [2, 2], [2, 2], [0, 0], [1, 1]),
    ((1, 4, 8, 7), [3, 2], [2, 1], [1, 0, 2, 1], [1, 1]),
    ((1, 2, 9, 9), [3, 3], [2, 3], [1, 1], [2, 2]),
    ((1, 4, 5, 5), [2, 2], [3, 3], [0, 0], [1, 1]),
    ((0, 3, 4, 4), [2, 2], [1, 1], [0, 0], [1, 1]),
    ((2, 3, 11), [3], [2], [1], [1]),
    ((1, 2, 10), [2], [3], [0, 1], [2]),
    ((1, 2, 5, 6, 4), [2, 3, 2], [2, 1, 2], [0, 1, 0], [1, 1, 1]),
    ((1, 2, 5, 5, 5), [3, 2, 2], [2, 2, 3], [1, 0, 0, 1, 1, 0], [1, 2, 1]),
]


def pooling_cases(dtype):
    cases = []
    for data, size, strides, padding, dilation in POOLS:
        rank = len(data) - 2
        x = values(data, dtype, 1, *((-(2**24), 2**24) if dtype == "int32" else ()))
        for ceil in (False, True):
            attributes = f"pool_size={size}, strides={strides}, dilation={dilation}, padding={padding}, ceil_mode={ceil}"
            options = (size, strides, dilation, padding, ceil)
            last = f', layout="{LAST[rank][0]}"'
            y = pooling(x if x.dtype.kind in "iu" else wide(x), "max", *options)
            if dtype in FLOATS:
                # The lowest finite value of the dtype itself, in windows that hold only padding.
                lowest = -float(np.finfo(dtype).max) if dtype != "bfloat16" else -3.3895313892515355e38
                y = np.maximum(y, lowest)
            y = y.astype(x.dtype)
            cases.append(Case(f"nn.max_pool{rank}d({{0}}, {attributes})", [x], y))
            cases.append(Case(f"nn.max_pool{rank}d({{0}}, {attributes}{last})", [channels_last(x)], channels_last(y)))
            for count in (False, True):
                y = pooling(wide(x), "avg", *options, count).astype(x.dtype)
                call = f"nn.avg_pool{rank}d({{0}}, {attributes}, count_include_pad={count}"
                cases.append(Case(f"{call})", [x], y, 2, 1))
                cases.append(Case(f"{call}{last})", [channels_last(x)], channels_last(y), 2, 1))
                if rank == 2 and data[1] == 4:
                    cases.append(Case(f'{call}, layout="NCHW4c")', [blocked(x, 4)], blocked(y, 4), 2, 1))
    if dtype not in FLOATS:
        ends = np.full((1, 1, 2, 2), np.iinfo(dtype).max, dtype)  # a sum that the dtype does not hold
        return cases + [Case("nn.avg_pool2d({0}, pool_size=[2, 2])", [ends], ends[:, :, :1, :1])]
    for data, output in [((2, 3, 7, 9), [3, 4]), ((1, 4, 5, 5), [1, 1]), ((1, 4, 3, 4), [5, 7]), ((2, 3, 11), [4]), ((1, 2, 5, 6, 4), [2, 3, 4])]:
        x, rank = values(data, dtype, 2), len(data) - 2
        for kind in ("max", "avg"):
            call = f"nn.adaptive_{kind}_pool{rank}d({{0}}, output_size={output}"
            cases.append(case(f"{call})", [x], lambda x, kind=kind, output=output: adaptive_pooling(x, kind, output), factor=2, terms=1))
            cases.append(case(f'{call}, layout="{LAST[rank][0]}")', [channels_last(x)],
                              lambda x, kind=kind, output=output: channels_last(adaptive_pooling(np.moveaxis(x, -1, 1), kind, output)), factor=2, terms=1))
    for data in [(2, 3, 7, 5), (1, 4, 1, 1), (1, 4, 13, 20)]:
        x = values(data, dtype, 3)
        cases.append(case("nn.global_max_pool2d({0})", [x], lambda x: x.max(axis=(2, 3), keepdims=True)))
        cases.append(case("nn.global_avg_pool2d({0})", [x], lambda x: x.mean(axis=(2, 3), keepdims=True), factor=2, terms=1))
        cases.append(case('nn.global_avg_pool2d({0}, layout="NHWC")', [channels_last(x)], lambda x: x.mean(axis=(1, 2), keepdims=True), factor=2, terms=1))
        if data[1] == 4:
            cases.append(case('nn.global_max_pool2d({0}, layout="NCHW4c")', [blocked(x, 4)], lambda x: x.max(axis=(2, 3), keepdims=True)))
    return cases


SIZES = [((1, 2, 5), [8]), ((2, 1, 7), [3]), ((1, 2, 4, 5), [7, 10]), ((1, 3, 8, 6), [3, 4]), ((1, 1, 3, 3), [1, 5]), ((1, 2, 3, 4, 2), [5, 4, 3])]
MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


def resize_cases(dtype):
    cases = []
    for shape, size in SIZES:
        rank, x = len(shape) - 2, values(shape, dtype, 1)
        first = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank]

        def add(method, mode, text="", factor=2, call=None, x=x, size=size, rank=rank, first=first, **options):
            begin = f'image.resize{rank}d({{0}}, size={size}, method="{method}", coordinate_transformation_mode="{mode}"{text}'
            y = resize(wide(x), size, method, mode, **options).astype(x.dtype)
            cases.append(Case(f'{begin}, layout="{first}")', [x], y, factor, 1))
            cases.append(Case(f'{begin}, layout="{LAST[rank][0]}")', [channels_last(x)], channels_last(y), factor, 1))

        for mode in MODES:
            if dtype in FLOATS:
                add("linear", mode)
                if rank < 3:
                    add("cubic", mode, ", cubic_alpha=-0.75f", alpha=-0.75)
        add("nearest_neighbor", "asymmetric", ', rounding_method="floor"', rounding="floor")
        add("nearest_neighbor", "tf_half_pixel_for_nn", ', rounding_method="floor"', rounding="floor")
        for how in ("round_prefer_floor", "round_prefer_ceil", "ceil", "round"):
            add("nearest_neighbor", "half_pixel", f', rounding_method="{how}"', rounding=how)
        if dtype in FLOATS and rank == 2:
            add("cubic", "half_pixel", ", cubic_exclude=1", exclude=1)
            add("linear", "tf_crop_and_resize", ", roi=[0.25f, 0.5f, 1.5f, 1f], extrapolation_value=7f", roi=[0.25, 0.5, 1.5, 1.0], outside=7.0)
    if dtype in FLOATS:
        for method, other, rule in [("nearest_neighbor", "nearest_neighbor", {"rounding": "floor"}), ("bilinear", "linear", {}), ("bicubic", "cubic", {})]:
            x = values((1, 4, 3, 5), dtype, 2)
            y = resize(wide(x), [6, 15], other, "asymmetric", **rule).astype(x.dtype)
            call = f'nn.upsampling({{0}}, scale_h=2f, scale_w=3f, method="{method}"'
            cases.append(Case(f"{call})", [x], y, 2, 1))
            cases.append(Case(f'{call}, layout="NHWC")', [channels_last(x)], channels_last(y), 2, 1))
            if method != "bicubic":
                cases.append(Case(f'{call}, layout="NCHW4c")', [blocked(x, 4)], blocked(y, 4), 2, 1))
    return cases


FAMILIES = {
    "convolution": (convolution_cases, ("float16", "float64", "int8")),
    "pooling": (pooling_cases, ("bfloat16", "float64", "uint8", "int32")),
    "resize": (resize_cases, (*FLOATS, "uint8")),
}


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("family, dtype", [(family, dtype) for family, (_, dtypes) in FAMILIES.items() for dtype in dtypes])
def test_layouts(family, dtype, level):
    check(FAMILIES[family][0](dtype), level)
