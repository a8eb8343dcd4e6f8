# SPDX-License-Identifier: Apache-2.0
"""Convolutions, transposed convolutions and pooling of every layout against plain loops over the taps of the kernel."""

import itertools
import re

import ml_dtypes
import numpy as np
import pytest
from operator_table import FLOATS, NUMBERS, case, check, values, wide

BASE = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
"""The layout of the references, by the number of spatial axes."""


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


def everywhere(places):
    """The index of these spatial places for every batch and channel."""
    return (slice(None), slice(None), *places)


def sums(array):
    """As the dtype in which a reference sums: integers wrap alike in 64 bits."""
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def convolution(x, w, strides, padding, dilation, groups):
    """(N, C, …) with (O, C/groups, …): the sum over channels and taps, by the definition."""
    rank = x.ndim - 2
    x = np.pad(sums(x), [(0, 0), (0, 0)] + [(padding[i], padding[rank + i]) for i in range(rank)])
    w = sums(w)
    extents = [(x.shape[2 + i] - (w.shape[2 + i] - 1) * dilation[i] - 1) // strides[i] + 1 for i in range(rank)]
    y = np.zeros([x.shape[0], w.shape[0], *extents], x.dtype)
    for o, c in itertools.product(range(w.shape[0]), range(w.shape[1])):
        channel = o // (w.shape[0] // groups) * w.shape[1] + c
        for tap in np.ndindex(w.shape[2:]):
            begins = [tap[i] * dilation[i] for i in range(rank)]
            places = tuple(slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(begins, extents, strides))
            y[:, o] += x[(slice(None), channel, *places)] * w[(o, c, *tap)]
    return y


def transposed(x, w, strides, padding, dilation, groups, more):
    """(N, C, …) with (C, O/groups, …): every input is scattered over the output, from which the padding is cut."""
    rank = x.ndim - 2
    x, w = sums(x), sums(w)
    full = [(x.shape[2 + i] - 1) * strides[i] + (w.shape[2 + i] - 1) * dilation[i] + 1 + more[i] for i in range(rank)]
    y = np.zeros([x.shape[0], w.shape[1] * groups, *full], x.dtype)
    for c, o in itertools.product(range(w.shape[0]), range(w.shape[1])):
        channel = c // (w.shape[0] // groups) * w.shape[1] + o
        for tap in np.ndindex(w.shape[2:]):
            begins = [tap[i] * dilation[i] for i in range(rank)]
            places = tuple(slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(begins, x.shape[2:], strides))
            y[(slice(None), channel, *places)] += x[:, c] * w[(c, o, *tap)]
    return y[everywhere(slice(padding[i], full[i] - padding[rank + i]) for i in range(rank))]


# data, weight, strides, padding, dilation, groups
PLAIN = [
    ((1, 3, 7, 9), (5, 3, 3, 2), (2, 1), (1, 0, 2, 3), (1, 2), 1),
    ((2, 6, 5, 5), (9, 2, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 3),
    ((1, 4, 5, 5), (8, 1, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 4),
    ((2, 3, 11), (4, 3, 5), (3,), (2, 4), (2,), 1),
]
LAYOUTS = [("NCHW", "OIHW"), ("NHWC", "HWIO"), ("NHWC", "OHWI"), ("NCW", "OIW"), ("NWC", "WIO")]
# The same, and the layouts of data and weight; float32 alone.
SPECIAL = [
    ((1, 8, 6, 7), (16, 8, 3, 3), (1, 1), (1, 0, 1, 2), (1, 1), 1, "NCHW4c", "OIHW4i8o"),
    ((2, 8, 6, 7), (12, 8, 1, 1), (1, 2), (0, 0, 0, 0), (1, 1), 1, "NCHW4c", "OIHW4i4o"),
    ((1, 16, 6, 7), (16, 1, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 16, "NCHW8c", "OIHW1i8o"),
    ((1, 6, 5, 5), (6, 3, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 2, "HWCN", "HWIO"),
    ((1, 2, 5, 4, 6), (4, 1, 2, 3, 3), (1, 2, 1), (1, 0, 1, 0, 1, 1), (1, 1, 2), 2, "NCDHW", "OIDHW"),
    ((1, 2, 5, 4, 6), (4, 2, 2, 3, 3), (1, 2, 1), (1, 0, 1, 0, 1, 1), (1, 1, 2), 1, "NDHWC", "DHWIO"),
    ((0, 3, 5, 5), (4, 3, 3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 1, "NCHW", "OIHW"),
    ((1, 0, 5, 5), (4, 0, 3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 1, "NCHW", "OIHW"),
    ((3, 1, 1, 1), (33, 1, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, "NCHW", "OIHW"),
    ((1, 17, 9, 14), (31, 17, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1, "NCHW", "OIHW"),
    ((1, 1, 19, 20), (1, 1, 7, 7), (1, 1), (3, 3, 3, 3), (1, 1), 1, "NCHW", "OIHW"),
]


def listed(numbers):
    return str(list(numbers))


def convolve(dtype, shape, kernel, strides, padding, dilation, groups, layouts, name=None, out_dtype=None):
    rank = len(shape) - 2
    base = BASE[rank], BASE[rank].replace("C", "I").replace("N", "O")
    x, w = values(shape, dtype, 1, -4, 4), values(kernel, dtype, 2, -4, 4)
    result = arranged(convolution(wide(x), wide(w), strides, padding, dilation, groups), base[0], layouts[0])
    text = (f"{name or f'nn.conv{rank}d'}({{0}}, {{1}}, strides={listed(strides)}, padding={listed(padding)}, dilation={listed(dilation)}, groups={groups}, "
            f'channels={kernel[0]}, kernel_size={listed(kernel[2:])}, data_layout="{layouts[0]}", kernel_layout="{layouts[1]}"')
    text += f', out_dtype="{out_dtype}")' if out_dtype else ")"
    arrays = [arranged(x, base[0], layouts[0]), arranged(w, base[1], layouts[1])]
    return case(text, arrays, lambda *_: result, out_dtype or dtype, factor=5, terms=20)


def convolution_cases(dtype):
    """Every layout in float32, of the other dtypes one for each shape."""
    cases = []
    for place, one in enumerate(PLAIN):
        fitting = [layouts for layouts in LAYOUTS if len(layouts[0]) == len(one[0])]
        cases += [convolve(dtype, *one, layouts) for layouts in (fitting if dtype == "float32" else [fitting[place % len(fitting)]])]
        if dtype in ("int8", "uint8", "int16"):
            cases.append(convolve(dtype, *one, fitting[0], out_dtype="int32"))
    if dtype == "float32":
        cases += [convolve(dtype, *one[:6], one[6:]) for one in SPECIAL]
    if dtype in ("float32", "float64"):
        cases.append(convolve(dtype, *SPECIAL[0][:6], SPECIAL[0][6:], name="nn.contrib_conv2d_NCHWc"))
        cases.append(convolve(dtype, *SPECIAL[2][:6], SPECIAL[2][6:], name="nn.contrib_depthwise_conv2d_NCHWc"))
    return cases


# data, weight, strides, padding, dilation, groups, output padding
TRANSPOSED = [
    ((1, 4, 5, 6), (4, 3, 3, 2), (2, 3), (1, 0, 0, 1), (1, 1), 1, (1, 2)),
    ((2, 4, 3, 3), (4, 2, 3, 3), (1, 1), (1, 1, 1, 1), (2, 1), 2, (0, 0)),
    ((1, 2, 1, 1), (2, 5, 4, 4), (1, 1), (0, 0, 0, 0), (1, 1), 1, (0, 0)),
    ((0, 2, 3, 3), (2, 5, 2, 2), (2, 2), (0, 0, 0, 0), (1, 1), 1, (0, 0)),
    ((1, 6, 4, 4), (6, 1, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 6, (1, 1)),
    ((2, 3, 5), (3, 4, 3), (2,), (1, 0), (2,), 1, (1,)),
    ((1, 2, 2, 3, 2), (2, 3, 2, 2, 3), (2, 1, 2), (0, 1, 1, 1, 0, 0), (1, 1, 1), 1, (1, 0, 1)),
]


def transposed_cases(dtype):
    cases = []
    for shape, kernel, strides, padding, dilation, groups, more in TRANSPOSED:
        rank = len(shape) - 2
        base, plain = BASE[rank], BASE[rank].replace("C", "O").replace("N", "I")
        x, w = values(shape, dtype, 1, -4, 4), values(kernel, dtype, 2, -4, 4)
        result = transposed(wide(x), wide(w), strides, padding, dilation, groups, more)
        for layouts in [(base, plain)] + ([("NHWC", "HWOI")] if rank == 2 else []):
            text = (f"nn.conv{rank}d_transpose({{0}}, {{1}}, channels={kernel[1] * groups}, kernel_size={listed(kernel[2:])}, strides={listed(strides)}, "
                    f"padding={listed(padding)}, dilation={listed(dilation)}, groups={groups}, output_padding={listed(more)}, "
                    f'data_layout="{layouts[0]}", kernel_layout="{layouts[1]}")')
            arrays = [arranged(x, base, layouts[0]), arranged(w, plain, layouts[1])]
            cases.append(case(text, arrays, lambda *_, to=layouts[0], r=result, b=base: arranged(r, b, to), factor=5, terms=20))
    return cases


def pooled(x, size, strides, padding, dilation, ceil, include, lowest):
    """The maximum (include None) or the average over windows; include: whether the padding counts, ceil: whether a last incomplete window does.

    A window that ceil_mode puts wholly into the padding has the lowest finite value of the dtype as its maximum, and the average 0.
    """
    rank, extents = x.ndim - 2, []
    for i in range(rank):
        room = x.shape[2 + i] + padding[i] + padding[rank + i] - (size[i] - 1) * dilation[i] - 1
        extents.append((room + (strides[i] - 1 if ceil else 0)) // strides[i] + 1)
    y = np.zeros([*x.shape[:2], *extents], object if x.dtype.kind in "iu" else x.dtype)
    for place in np.ndindex(*extents):
        taps, count = [], 0
        for tap in np.ndindex(*size):
            at = [place[i] * strides[i] - padding[i] + tap[i] * dilation[i] for i in range(rank)]
            if all(0 <= at[i] < x.shape[2 + i] for i in range(rank)):
                taps.append(x[everywhere(at)].astype(y.dtype))
                count += 1
            elif include and all(-padding[i] <= at[i] < x.shape[2 + i] + padding[rank + i] for i in range(rank)):
                count += 1
        total = sum(taps, start=np.zeros(x.shape[:2], y.dtype))
        if include is None:
            y[everywhere(place)] = np.max(taps, axis=0) if taps else lowest
        elif y.dtype == object:
            y[everywhere(place)] = abs(total) // max(count, 1) * np.where(total < 0, -1, 1)
        else:
            y[everywhere(place)] = total / max(count, 1)
    return y


# data, size, strides, padding, dilation, ceil_mode
POOLS = [
    ((1, 4, 5, 6), (3, 2), (2, 2), (1, 0, 1, 1), (1, 1), True),
    ((2, 4, 7, 5), (3, 3), (2, 1), (1, 1, 1, 1), (1, 1), False),
    ((1, 4, 7, 8), (2, 3), (1, 2), (0, 1, 1, 0), (2, 1), False),
    ((0, 4, 4, 4), (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False),
    ((1, 4, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), False),
    ((1, 2, 10), (3,), (3,), (1, 1), (1,), True),
    ((1, 2, 9), (3,), (2,), (0, 2), (2,), False),
    ((1, 2, 4, 5, 6), (2, 3, 2), (2, 1, 2), (1, 1, 1, 1, 1, 1), (1, 1, 1), False),
]
POOL_LAYOUTS = {1: ["NCW", "NWC"], 2: ["NCHW", "NHWC", "NCHW4c"], 3: ["NCDHW", "NDHWC"]}


def pool_cases(dtype):
    """Everything in float32, of the other dtypes each third shape in one layout."""
    cases = []
    for place, (shape, size, strides, padding, dilation, ceil) in enumerate(POOLS):
        rank = len(shape) - 2
        everything = dtype == "float32"
        if not everything and place % 3 != NUMBERS.index(dtype) % 3:
            continue
        x = values(shape, dtype, 1, -100, 100)
        lowest = float(ml_dtypes.finfo(x.dtype).min) if dtype in FLOATS else np.iinfo(dtype).min
        layouts = POOL_LAYOUTS[rank] if everything else [POOL_LAYOUTS[rank][(place + 1) % len(POOL_LAYOUTS[rank])]]
        for name, include in [("max", None), ("avg", False), ("avg", True)]:
            result = pooled(wide(x), size, strides, padding, dilation, ceil, include, lowest)
            for layout in layouts:
                text = (f"nn.{name}_pool{rank}d({{0}}, pool_size={listed(size)}, strides={listed(strides)}, padding={listed(padding)}, "
                        f'dilation={listed(dilation)}, layout="{layout}", ceil_mode={ceil}')
                text += ")" if include is None else f", count_include_pad={include})"
                cases.append(case(text, [arranged(x, BASE[rank], layout)], lambda _, r=result, b=BASE[rank], to=layout: arranged(r, b, to), terms=20))
    return cases + (part_cases(dtype) if dtype in ("int16", "bfloat16", "float32") else [])


def parts(x, extents, reduce):
    """Adaptive pooling: each axis is cut into this many parts, which may overlap."""
    y = np.zeros([*x.shape[:2], *extents], x.dtype)
    for place in np.ndindex(*extents):
        window = [slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(place, x.shape[2:], extents)]
        y[everywhere(place)] = reduce(x[everywhere(window)], axis=tuple(range(2, x.ndim)))
    return y


def part_cases(dtype):
    """Global and adaptive pooling."""
    cases = []
    for shape, extents in [((1, 4, 7, 5), (3, 2)), ((2, 4, 3, 3), (1, 1)), ((2, 3, 7), (4,)), ((1, 2, 4, 5, 3), (2, 5, 2))]:
        rank = len(shape) - 2
        x, layouts = values(shape, dtype, 3, -9, 9), POOL_LAYOUTS[rank] if dtype == "float32" and shape[1] == 4 else POOL_LAYOUTS[rank][:1]
        for name, reduce in [("max", np.max)] + ([("avg", np.mean)] if dtype in FLOATS else []):
            result = parts(wide(x), extents, reduce)
            for layout in layouts:
                text = f'nn.adaptive_{name}_pool{rank}d({{0}}, output_size={listed(extents)}, layout="{layout}")'
                cases.append(case(text, [arranged(x, BASE[rank], layout)], lambda _, r=result, b=BASE[rank], to=layout: arranged(r, b, to), factor=2))
                if rank == 2:
                    whole = reduce(wide(x), axis=(2, 3), keepdims=True)
                    text = f'nn.global_{name}_pool2d({{0}}, layout="{layout}")'
                    cases.append(case(text, [arranged(x, "NCHW", layout)], lambda _, r=whole, to=layout: arranged(r, "NCHW", to), factor=2))
    return cases


FAMILIES = {"convolution": (convolution_cases, NUMBERS), "transposed": (transposed_cases, ("int32", *FLOATS)), "pool": (pool_cases, NUMBERS)}


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("family, dtype", [(family, dtype) for family, (_, dtypes) in FAMILIES.items() for dtype in dtypes])
def test_windows(family, dtype, level):
    check(FAMILIES[family][0](dtype), level)
