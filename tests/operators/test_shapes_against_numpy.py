# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements without computing with them: reshapes, transposes, joins, slices, indexing, scatters, creation, against NumPy."""

import itertools

import numpy as np
import pytest
from operator_table import Case, check, dtype_of, values

# Elements of each width; the cases take the dtypes of a width in turn.
WIDTHS = {1: ("bool", "int8", "uint8"), 2: ("float16", "bfloat16", "int16", "uint16"), 4: ("float32", "int32", "uint32"), 8: ("int64", "uint64", "float64")}

# call, shapes of the inputs, the definition in NumPy
MOVES = [
    ("reshape({0}, newshape=[4, 15])", [(3, 4, 5)], lambda x: x.reshape(4, 15)),
    ("reshape({0}, newshape=[0, -1])", [(3, 4, 5)], lambda x: x.reshape(3, 20)),
    ("reshape({0}, newshape=[-2])", [(3, 4, 5)], lambda x: x),
    ("reshape({0}, newshape=[2, -1, -2])", [(4, 3, 5)], lambda x: x.reshape(2, 6, 5)),
    ("reshape({0}, newshape=[-3, 0])", [(3, 4, 5)], lambda x: x.reshape(12, 5)),
    ("reshape({0}, newshape=[0, -3])", [(3, 4, 5)], lambda x: x.reshape(3, 20)),
    ("reshape({0}, newshape=[-4, 2, -1, -2])", [(6, 4, 5)], lambda x: x.reshape(2, 3, 4, 5)),
    ("reshape({0}, newshape=[0, -4, -1, 2, 0])", [(3, 4, 5)], lambda x: x.reshape(3, 2, 2, 5)),
    ("reshape({0}, newshape=[-3, -3])", [(2, 3, 4, 5)], lambda x: x.reshape(6, 20)),
    ("reshape({0}, newshape=[-1])", [()], lambda x: x.reshape(1)),
    ("reshape({0}, newshape=[])", [(1, 1)], lambda x: x.reshape(())),
    ("reshape({0}, newshape=[0, 3, 2], allowzero=True)", [(2, 0)], lambda x: x.reshape(0, 3, 2)),
    ("reshape({0}, newshape=[0, 0, 7])", [(2, 0, 7)], lambda x: x),
    ("contrib_reverse_reshape({0}, newshape=[-1, 0])", [(3, 4, 5)], lambda x: x.reshape(12, 5)),
    ("contrib_reverse_reshape({0}, newshape=[-3, 0])", [(3, 4, 5)], lambda x: x.reshape(12, 5)),
    ("contrib_reverse_reshape({0}, newshape=[0, -3])", [(8, 3, 3, 4)[1:]], lambda x: x.reshape(3, 12)),
    ("contrib_reverse_reshape({0}, newshape=[-2, -1, 0, 0])", [(2, 3, 4, 5)], lambda x: x.reshape(2, 3, 4, 5)),
    ("reshape_like({0}, {1})", [(6, 4), (3, 8)], lambda x, y: x.reshape(3, 8)),
    ("reshape_like({0}, {1}, lhs_begin=1, lhs_end=3, rhs_begin=1, rhs_end=2)", [(2, 3, 4, 5), (7, 12, 9)], lambda x, y: x.reshape(2, 12, 5)),
    ("transpose({0})", [(3, 4, 5)], lambda x: x.T),
    ("transpose({0}, axes=[1, 0, 2])", [(3, 4, 5)], lambda x: x.transpose(1, 0, 2)),
    ("transpose({0}, axes=[0, -1, 1])", [(3, 17, 35)], lambda x: x.transpose(0, 2, 1)),
    ("transpose({0}, axes=[3, 1, 0, 2])", [(2, 3, 4, 5)], lambda x: x.transpose(3, 1, 0, 2)),
    ("transpose({0})", [()], lambda x: x),
    ("transpose({0})", [(0, 3)], lambda x: x.T),
    ("squeeze({0})", [(1, 3, 1, 5)], lambda x: x.squeeze()),
    ("squeeze({0}, axis=[0, -2])", [(1, 3, 1, 5)], lambda x: x.squeeze((0, 2))),
    ("squeeze({0}, axis=[])", [(1, 3)], lambda x: x),
    ("squeeze({0})", [(1, 0, 1)], lambda x: x.reshape(0)),
    ("expand_dims({0}, axis=1)", [(3, 5)], lambda x: x[:, None]),
    ("expand_dims({0}, axis=-1, num_newaxis=2)", [(3, 5)], lambda x: x[..., None, None]),
    ("expand_dims({0}, axis=0, num_newaxis=3)", [()], lambda x: x.reshape(1, 1, 1)),
    ("broadcast_to({0}, shape=[3, 4, 5])", [(4, 1)], lambda x: np.broadcast_to(x, (3, 4, 5))),
    ("broadcast_to({0}, shape=[3])", [()], lambda x: np.broadcast_to(x, (3,))),
    ("broadcast_to({0}, shape=[0, 2])", [(1, 2)], lambda x: np.broadcast_to(x, (0, 2))),
    ("broadcast_to_like({0}, {1})", [(5,), (3, 5)], lambda x, y: np.broadcast_to(x, y.shape)),
    ("broadcast_to_like({0}, {1})", [(3, 1, 1), (3, 2, 7)], lambda x, y: np.broadcast_to(x, y.shape)),
    ("broadcast_to_like({0}, {1})", [(), (2, 0)], lambda x, y: np.broadcast_to(x, y.shape)),
    ("concatenate(({0}, {1}, {2}), axis=1)", [(3, 4, 5), (3, 1, 5), (3, 7, 5)], lambda *x: np.concatenate(x, 1)),
    ("concatenate(({0}, {1}), axis=-1)", [(3, 4), (3, 0)], lambda *x: np.concatenate(x, -1)),
    ("concatenate(({0},), axis=0)", [(3,)], lambda x: x),
    ("concatenate(({0}, {0}, {1}))", [(3, 2), (0, 2)], lambda x, y: np.concatenate([x, x, y])),
    ("stack(({0}, {1}, {2}), axis=0)", [(3, 5)] * 3, lambda *x: np.stack(x)),
    ("stack(({0}, {1}), axis=-1)", [(3, 5)] * 2, lambda *x: np.stack(x, -1)),
    ("stack(({0}, {1}), axis=1)", [(3, 5)] * 2, lambda *x: np.stack(x, 1)),
    ("stack(({0}, {1}), axis=0)", [()] * 2, lambda *x: np.stack(x)),
    ("split({0}, indices_or_sections=3, axis=1)", [(2, 9, 5)], lambda x: np.split(x, 3, 1)),
    ("split({0}, indices_or_sections=[2, 3, 7], axis=-1)", [(3, 9)], lambda x: np.split(x, [2, 3, 7], -1)),
    ("split({0}, indices_or_sections=[0, 2], axis=0)", [(5,)], lambda x: np.split(x, [0, 2])),
    ("split({0}, indices_or_sections=1, axis=0)", [(5, 2)], lambda x: [x]),
    ("strided_slice({0}, begin=[1], end=[3], strides=[1])", [(5, 4)], lambda x: x[1:3]),
    ("strided_slice({0}, begin=[1, 0], end=[5, 9], strides=[2, 3])", [(7, 17)], lambda x: x[1:5:2, 0:9:3]),
    ("strided_slice({0}, begin=[-1, -2], end=[-8, -9], strides=[-2, -1])", [(7, 17)], lambda x: x[-1:-8:-2, -2:-9:-1]),
    ("strided_slice({0}, begin=[100, -100], end=[-100, 100], strides=[-1, 1])", [(3, 4)], lambda x: x[::-1]),
    ("strided_slice({0}, begin=[3], end=[2])", [(5, 4)], lambda x: x[3:2]),
    ("strided_slice({0}, begin=[1], end=[4], strides=[2], axes=[2])", [(3, 4, 5)], lambda x: x[:, :, 1:4:2]),
    ("strided_slice({0}, begin=[2, 1], end=[4, 3], axes=[-1, 0])", [(3, 4, 5)], lambda x: x[1:3, :, 2:4]),
    ('strided_slice({0}, begin=[1, 2], end=[2, -1], slice_mode="size")', [(5, 7)], lambda x: x[1:3, 2:]),
    ("slice_like({0}, {1})", [(5, 7), (3, 2)], lambda x, y: x[:3, :2]),
    ("slice_like({0}, {1}, axes=[-1])", [(5, 7), (3, 2)], lambda x, y: x[:, :2]),
    ("tile({0}, reps=[2, 3])", [(3, 5)], lambda x: np.tile(x, (2, 3))),
    ("tile({0}, reps=[2])", [(3, 5)], lambda x: np.tile(x, 2)),
    ("tile({0}, reps=[2, 1, 3])", [(5,)], lambda x: np.tile(x, (2, 1, 3))),
    ("tile({0}, reps=[2, 2])", [()], lambda x: np.tile(x, (2, 2))),
    ("repeat({0}, repeats=3, axis=1)", [(2, 4, 3)], lambda x: np.repeat(x, 3, 1)),
    ("repeat({0}, repeats=2, axis=-1)", [(2, 5)], lambda x: np.repeat(x, 2, -1)),
    ("repeat({0}, repeats=2)", [(2, 5)], lambda x: np.repeat(x, 2)),
    ("reverse({0}, axis=1)", [(2, 7, 3)], lambda x: x[:, ::-1]),
    ("reverse({0}, axis=-1)", [(2, 19)], lambda x: x[:, ::-1]),
    ("reverse({0}, axis=0)", [(0, 2)], lambda x: x),
    ("nn.batch_flatten({0})", [(2, 3, 5)], lambda x: x.reshape(2, 15)),
    ('layout_transform({0}, src_layout="NCHW", dst_layout="NHWC")', [(2, 3, 4, 5)], lambda x: x.transpose(0, 2, 3, 1)),
    ('layout_transform({0}, src_layout="NHWC", dst_layout="NCHW")', [(2, 3, 4, 5)], lambda x: x.transpose(0, 3, 1, 2)),
    ('layout_transform({0}, src_layout="NCHW", dst_layout="NCHW4c")', [(2, 8, 3, 5)], lambda x: x.reshape(2, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2)),
    ('layout_transform({0}, src_layout="NCHW4c", dst_layout="NCHW")', [(2, 2, 3, 5, 4)], lambda x: x.transpose(0, 1, 4, 2, 3).reshape(2, 8, 3, 5)),
    ('layout_transform({0}, src_layout="NCHW4c", dst_layout="NCHW2c")', [(2, 2, 3, 5, 4)],
     lambda x: x.transpose(0, 1, 4, 2, 3).reshape(2, 4, 2, 3, 5).transpose(0, 1, 3, 4, 2)),
    ('layout_transform({0}, src_layout="OIHW", dst_layout="OIHW2i4o")', [(8, 4, 3, 3)], lambda x: x.reshape(2, 4, 2, 2, 3, 3).transpose(0, 2, 4, 5, 3, 1)),
    ("full_like({0}, {1})", [(2, 5), ()], lambda x, y: np.broadcast_to(y, (2, 5))),
    ("full({0}, shape=[3, 2])", [()], lambda x: np.broadcast_to(x, (3, 2))),
    ("full({0}, shape=[])", [()], lambda x: x),
    ("full({0}, shape=[0, 4])", [()], lambda x: np.broadcast_to(x, (0, 4))),
]


def move_cases(width):
    """The table; split always gives a tuple."""
    cases = []
    for place, (text, shapes, reference) in enumerate(MOVES):
        dtype = WIDTHS[width][place % len(WIDTHS[width])]
        inputs = [values(shape, dtype, i) for i, shape in enumerate(shapes)]
        found = reference(*inputs)
        cases.append(Case(text, inputs, tuple(found) if isinstance(found, list) else np.array(found)))
    return cases


def taken(x, indices, axis, mode, batch=0):
    """take by its definition."""
    if axis is None:
        x, axis = x.ravel(), 0
    extent = x.shape[axis]
    indices = np.clip(indices, 0, extent - 1) if mode == "clip" else indices % extent
    if not batch:
        return np.take(x, indices, axis)
    lead = x.shape[:batch]
    rows = [taken(x[i], indices[i], axis - batch, mode) for i in np.ndindex(*lead)]
    return np.array(rows).reshape(lead + rows[0].shape)


def gathered(x, indices, batch):
    """gather_nd by its definition: the index tuple runs along axis 0."""
    rows = [x[at[:batch] + tuple(indices[(slice(None), *at)])] for at in np.ndindex(*indices.shape[1:])]
    return np.array(rows).reshape(indices.shape[1:] + np.shape(rows[0]))


COMBINE = {"update": lambda old, new: new, "add": lambda old, new: old + new, "mul": lambda old, new: old * new, "min": min, "max": max}


def scattered(x, places, updates, how):
    """x with each update combined at its place, one after the other in the dtype of x."""
    y = x.copy()
    for place, update in zip(places, updates):
        with np.errstate(all="ignore"):
            y[place] = COMBINE[how](y[place], update)
    return y


def index_cases(width):
    cases, dtypes, indexes = [], itertools.cycle(WIDTHS[width]), itertools.cycle(["int32", "int64", "uint8", "int16"])
    for shape, count, axis in [((5, 7), (3,), 0), ((5, 7), (2, 3), 1), ((5, 7, 3), (), 1), ((5, 7), (4,), None), ((5, 7), (0,), -1), ((3,), (2, 1, 2), 0)]:
        for mode in ("clip", "wrap"):
            kind = next(indexes)
            x, indices = values(shape, next(dtypes)), values(count, kind, 1, -9, 40)
            place = "" if axis is None else f", axis={axis}"
            cases.append(Case(f'take({{0}}, {{1}}{place}, mode="{mode}")', [x, indices], taken(x, indices.astype(int), axis, mode)))
    for shape, count, axis, batch in [((3, 5, 7), (3, 4), 1, 1), ((3, 5, 7), (3, 5, 2), 2, 2), ((2, 5, 3), (2, 2), 2, 1)]:
        x, indices = values(shape, next(dtypes)), values(count, "int32", 1, 0, 2)
        if axis > batch:
            reference = np.array([taken(x[i], indices[i], axis - batch, "clip") for i in range(shape[0])])
        else:
            reference = taken(x, indices, axis, "clip", batch)
        cases.append(Case(f"take({{0}}, {{1}}, axis={axis}, batch_dims={batch})", [x, indices], reference))
    for shape, count, axis in [((5, 7), (3, 7), 0), ((5, 7), (5, 2), 1), ((2, 5, 3), (2, 9, 3), 1), ((4,), (0,), 0), ((2, 5), (2, 3), -1)]:
        x, indices = values(shape, next(dtypes)), values(count, "int64", 2, 0, shape[axis] - 1)
        cases.append(Case(f"gather({{0}}, {{1}}, axis={axis})", [x, indices], np.take_along_axis(x, indices, axis)))
    for shape, count, batch in [((5, 7), (2, 3), 0), ((5, 7, 3), (1, 2, 2), 0), ((5, 7, 3), (3, 4), 0), ((3, 5, 7), (1, 3, 2), 1), ((3, 5, 7), (2, 3), 1), ((4,), (1,), 0)]:
        x, indices = values(shape, next(dtypes)), np.stack([values(count[1:], "int32", i, 0, shape[batch + i] - 1) for i in range(count[0])])
        cases.append(Case(f"gather_nd({{0}}, {{1}}, batch_dims={batch})", [x, indices], gathered(x, indices, batch)))
    for how in COMBINE:
        for shape, axis, count in [((5, 7), 0, (3, 7)), ((5, 7), 1, (4, 3)), ((2, 5, 3), -2, (2, 5, 1)), ((4,), 0, (0,)), ((5,), 0, (9,))]:
            dtype = next(dtypes)
            dtype = "uint32" if dtype == "bool" else dtype
            x, updates = values(shape, dtype, 1, 1, 3), values(count, dtype, 2, 1, 2)
            if how == "update":  # the order of equal places is not defined
                indices = np.argsort(np.random.default_rng(3).random([shape[axis] if i == axis % len(shape) else extent for i, extent in enumerate(count)]), axis)
                indices = indices[tuple(slice(extent) for extent in count)]
                updates = updates[tuple(slice(extent) for extent in indices.shape)]
            else:
                indices = values(count, "int64", 3, 0, shape[axis] - 1)
            places = [tuple(int(indices[at]) if i == axis % len(shape) else at[i] for i in range(len(shape))) for at in np.ndindex(*indices.shape)]
            expected = scattered(x, places, updates.ravel(), how)
            cases.append(Case(f'scatter_elements({{0}}, {{1}}, {{2}}, axis={axis}, reduction="{how}")', [x, indices.astype("int64"), updates], expected, 3))
        for shape, count in [((5, 7), (2, 6)), ((5, 7), (1, 2)), ((6, 2, 3), (1, 2, 2)), ((4,), (1, 1))]:
            dtype = next(dtypes)
            dtype = "uint32" if dtype == "bool" else dtype
            total = int(np.prod(count[1:]))
            flat = np.random.default_rng(4).permutation(int(np.prod(shape[:count[0]])))[:total]
            indices = np.stack(np.unravel_index(flat, shape[:count[0]])).reshape(count)
            x, updates = values(shape, dtype, 1, 1, 3), values(count[1:] + shape[count[0]:], dtype, 2, 1, 2)
            places = [tuple(int(i) for i in indices[(slice(None), *at)]) for at in np.ndindex(*count[1:])]
            expected = x.copy()
            for at, place in zip(np.ndindex(*count[1:]), places):
                for inner in np.ndindex(*shape[count[0]:]):
                    expected[place + inner] = COMBINE[how](expected[place + inner], updates[at + inner])
            cases.append(Case(f'scatter_nd({{0}}, {{1}}, {{2}}, mode="{how}")', [x, indices.astype("int32"), updates], expected, 3))
    return cases


def creation_cases(width):
    cases = []
    for dtype in WIDTHS[width]:
        for name, fill in (("zeros", np.zeros), ("ones", np.ones)):
            cases += [Case(f'{name}(shape={list(shape)}, dtype="{dtype}")', [], fill(shape, dtype_of(dtype))) for shape in [(3, 5), (), (0, 2)]]
        cases.append(Case("shape_of({0})", [values((3, 0, 5), dtype)], np.array([3, 0, 5], "int32")))
        cases.append(Case('ndarray_size({0}, dtype="int64")', [values((3, 5), dtype)], np.array(15)))
        for shape, depth, axis in [((3,), 4, -1), ((2, 3), 5, 0), ((2, 3), 5, 1), ((), 3, -1), ((0,), 3, -1)]:
            indices, (on, off) = values(shape, "int32", 1, -1, depth), (values((), dtype, i) for i in (2, 3))
            hot = np.expand_dims(indices, axis if axis >= 0 else len(shape)) == np.arange(depth).reshape([-1 if i == axis % (len(shape) + 1) else 1 for i in range(len(shape) + 1)])
            cases.append(Case(f'one_hot({{0}}, {{1}}, {{2}}, depth={depth}, axis={axis}, dtype="{dtype}")', [indices, on, off], np.where(hot, on, off)))
        if dtype == "bool":
            continue
        for start, stop, step in [(0, 7, 1), (2, 20, 3), (9, 9, 1), (1, 2, 5), (20, 3, -4)]:
            suffix = {"float16": "f16", "float32": "f", "float64": "f64", "bfloat16": "f"}.get(dtype, "")
            scalars = [f"{value}{suffix}" if suffix else f'{value}{"" if dtype == "int32" else "i64"}' for value in (start, stop, step)]
            text = f'arange({", ".join(scalars)}, start={scalars[0]}, stop={scalars[1]}, step={scalars[2]}, dtype="{dtype}")'
            cases.append(Case(text, [], np.arange(start, stop, step).astype(dtype_of(dtype))))
    return cases


FAMILIES = {"move": move_cases, "index": index_cases, "creation": creation_cases}


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("family, width", [(family, width) for family in FAMILIES for width in WIDTHS])
def test_shapes(family, width, level):
    check(FAMILIES[family](width), level)
