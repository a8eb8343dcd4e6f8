# SPDX-License-Identifier: Apache-2.0
"""Convolutions in rarer layouts and dtypes, and rearrangements of space: dilation, blocks of the batch, bilinear upsampling, against NumPy."""

import re

import numpy as np
import pytest
from operator_table import FLOATS, Case, case, check, values, wide
from window_reference import convolution, resize, transposed_convolution

DTYPES = ("bool", "int8", "uint16", "uint32", "int64", "uint64", "bfloat16", "float32", "float64")


def arranged(array, source, target):
    """The array of a plain layout in another one, in which a factor such as 4c splits an axis."""
    tokens = re.findall(r"(\d*)([A-Za-z])", target)
    factors = {letter.upper(): int(size) for size, letter in tokens if size}
    names, shape = [], []
    for letter, extent in zip(source, array.shape):
        if factor := factors.get(letter):
            names += [letter, letter.lower()]
            shape += [extent // factor, factor]
        else:
            names.append(letter)
            shape.append(extent)
    return np.ascontiguousarray(array.reshape(shape).transpose([names.index(letter) for _, letter in tokens]))


# data, weight, strides, padding, dilation, groups, layouts of data and weight
CONVOLUTIONS = [
    ((1, 6, 5, 5), (6, 3, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 2, "HWCN", "HWIO"),
    ((1, 3, 7, 9), (5, 3, 3, 2), [2, 1], [1, 0, 2, 3], [1, 2], 1, "NHWC", "OHWI"),
    ((2, 6, 5, 5), (9, 2, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 3, "NCHW", "HWIO"),
    ((1, 8, 6, 7), (16, 8, 1, 1), [1, 1], [0, 0, 0, 0], [1, 1], 1, "NCHW8c", "OIHW8i16o"),
    ((1, 16, 6, 7), (16, 1, 3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 16, "NCHW8c", "OIHW1i8o"),
    ((1, 0, 5, 5), (4, 0, 3, 3), [1, 1], [0, 0, 0, 0], [1, 1], 1, "NCHW", "OIHW"),
    ((0, 2, 5, 4), (4, 2, 3, 3), [1, 2], [0, 1, 0, 1], [1, 1], 1, "NHWC", "HWIO"),
]
# data, weight, strides, padding, output padding, dilation, groups
TRANSPOSED = [
    ((1, 4, 5, 6), (4, 3, 3, 2), [2, 3], [1, 0, 0, 1], [1, 2], [1, 1], 1),
    ((2, 4, 3, 3), (4, 2, 3, 3), [1, 1], [1, 1, 1, 1], [0, 0], [2, 1], 2),
    ((0, 2, 3, 3), (2, 5, 2, 2), [2, 2], [0, 0, 0, 0], [0, 0], [1, 1], 1),
]


def convolution_cases(dtype):
    cases = []
    for data, weight, strides, padding, dilation, groups, layout, kernel in CONVOLUTIONS:
        x, w = values(data, dtype, 1, -4, 4), values(weight, dtype, 2, -4, 4)
        y = convolution(wide(x), wide(w), strides, padding, dilation, groups, wide(x).dtype)
        text = (f"nn.conv2d({{0}}, {{1}}, strides={strides}, padding={padding}, dilation={dilation}, groups={groups}, channels={weight[0]}, "
                f'kernel_size={list(weight[2:])}, data_layout="{layout}", kernel_layout="{kernel}")')
        inputs = [arranged(x, "NCHW", layout), arranged(w, "OIHW", kernel)]
        cases.append(Case(text, inputs, arranged(y, "NCHW", layout).astype(x.dtype), 5, 20))
    for data, weight, *options in TRANSPOSED:
        x, w = values(data, dtype, 3, -4, 4), values(weight, dtype, 4, -4, 4)
        strides, padding, extra, dilation, groups = options
        y = transposed_convolution(wide(x), wide(w), *options)
        text = (f"nn.conv2d_transpose({{0}}, {{1}}, channels={weight[1] * groups}, kernel_size={list(weight[2:])}, strides={strides}, padding={padding}, "
                f'dilation={dilation}, groups={groups}, output_padding={extra}, data_layout="NHWC", kernel_layout="HWOI")')
        inputs = [arranged(x, "NCHW", "NHWC"), arranged(w, "IOHW", "HWOI")]
        cases.append(Case(text, inputs, arranged(y, "NCHW", "NHWC").astype(x.dtype), 5, 20))
    return cases


def space_cases(dtype):
    cases = []
    for shape, strides in [((3, 4), (1, 1)), ((2, 3, 5), (2, 1, 3)), ((1,), (4,)), ((0, 2), (2, 2))]:
        x = values(shape, dtype, 5)
        y = np.full([max((n - 1) * s + 1, 0) for n, s in zip(shape, strides)], 1, x.dtype)
        y[tuple(slice(None, None, s) for s in strides)] = x
        cases.append(Case(f"nn.dilate({{0}}, strides={list(strides)}, dilation_value=1f)", [x], y))
    x = values((2, 3, 5, 2), dtype, 6)
    padded = np.pad(x, [(0, 0), (1, 0), (2, 2), (0, 0)], constant_values=1)
    blocks = padded.reshape(2, 2, 2, 3, 3, 2).transpose(2, 4, 0, 1, 3, 5).reshape(12, 2, 3, 2)
    cases.append(Case("nn.space_to_batch_nd({0}, block_shape=[2, 3], paddings=[[1, 0], [2, 2]], pad_value=1f)", [x], blocks))
    cases.append(Case("nn.batch_to_space_nd({0}, block_shape=[2, 3], crops=[[1, 0], [2, 2]])", [blocks], x))
    for shape, widths in [((3, 4), [[1, 2], [0, 3]]), ((0, 2), [[1, 1], [0, 1]])]:
        x, value = values(shape, dtype, 7), values((), dtype, 8)
        cases.append(Case(f"nn.pad({{0}}, {{1}}, pad_width={widths})", [x, value], np.pad(x, widths, constant_values=value)))
    if dtype in FLOATS:
        for layout in ("NCHW", "NHWC"):
            text = f'nn.upsampling({{0}}, scale_h=2f, scale_w=3f, layout="{layout}", method="bilinear", align_corners=True)'
            x = values((1, 3, 4, 5), dtype, 9)
            y = resize(wide(x), [8, 15], "linear", "align_corners")
            cases.append(case(text, [arranged(x, "NCHW", layout)], lambda _, y=y, to=layout: arranged(y, "NCHW", to), factor=4, terms=5))
    return cases


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts(dtype, level):
    check(space_cases(dtype) + (convolution_cases(dtype) if dtype != "bool" else []), level)
