# SPDX-License-Identifier: Apache-2.0
"""Reductions, running sums, sorting, softmax and normalisation against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.special
from operator_table import DTYPES, FLOATS, INTEGERS, Case, case, check, dtype_of, values, wide

# shape, the text of the attributes, the axes that are reduced, keepdims
REDUCTIONS = [
    ((3, 4, 5), "axis=[1]", (1,), False),
    ((3, 4, 5), "axis=[0, -1], keepdims=True", (0, 2), True),
    ((3, 4, 5), "axis=[1], exclude=True", (0, 2), False),
    ((3, 4, 5), "axis=[-1], keepdims=True, exclude=True", (0, 1), True),
    ((7,), "", (0,), False),
    ((), "", (), False),
    ((2, 3), "keepdims=True", (0, 1), True),
    ((3, 0, 5), "axis=[2]", (2,), False),
    ((3, 0, 5), "axis=[1]", (1,), False),
    ((3, 301), "axis=[1]", (1,), False),
    ((301, 3), "axis=[0]", (0,), False),
]


def exact_mean(x, axis, keepdims):
    """Mean of integers: the exact one, truncated toward zero, computed with Python's integers."""
    if x.dtype.kind not in "iu":
        return np.mean(x, axis=axis, keepdims=keepdims)
    count = int(np.prod([x.shape[i] for i in axis]))
    total = np.asarray(np.sum(x.astype(object), axis=axis, keepdims=keepdims), dtype=object)
    return np.array([int(abs(t)) // count * (1 if t >= 0 else -1) for t in total.ravel()], dtype=object).reshape(total.shape)


def arg(find, last):
    """argmax or argmin over several axes, which count as one flattened axis; of equal values the first or the last."""

    def compute(x, axis, keepdims):
        others = [i for i in range(x.ndim) if i not in axis]
        flat = np.transpose(x, others + list(axis)).reshape([x.shape[i] for i in others] + [-1])
        found = flat.shape[-1] - 1 - find(flat[..., ::-1], axis=-1) if last else find(flat, axis=-1)
        return np.expand_dims(found, axis) if keepdims else found

    return compute


def logsumexp(x, axis, keepdims):
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


def arithmetic(f):
    """A sum or product in the dtype itself, so that integers wrap."""
    return lambda x, axis, keepdims: f(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def reduction_cases(dtype):
    names = {"all": lambda x, axis, keepdims: np.all(x, axis=axis, keepdims=keepdims), "any": lambda x, axis, keepdims: np.any(x, axis=axis, keepdims=keepdims)}
    if dtype != "bool":
        names = {"sum": arithmetic(np.sum), "prod": arithmetic(np.prod), "max": np.max, "min": np.min, "mean": exact_mean}
    cases = []
    for shape, attributes, axis, keepdims in REDUCTIONS:
        empty = 0 in [shape[i] for i in axis]
        limits = (0.7, 1.4) if dtype in FLOATS else (None, None)
        for place, (name, reference) in enumerate(names.items()):
            if empty and name in ("max", "min", "mean"):
                continue  # no value by the definition
            call = f"{name}({{0}}{', ' if attributes else ''}{attributes})"
            if name == "mean" and dtype in ("int64", "uint64"):
                limits = (-(2**50), 2**50)  # the sum fits into 64 bits
            x = values(shape, dtype, place, *limits)
            if name in ("all", "any") and len(shape) == 2:
                x[...] = name == "all"
                x[0, 0] = name != "all"
            cases.append(case(call, [x], lambda x, reference=reference, axis=axis, keepdims=keepdims: reference(x, axis=axis, keepdims=keepdims), factor=5))
        if dtype == "bool" or empty or 0 in shape:
            continue
        for name, find in (("argmax", np.argmax), ("argmin", np.argmin)):
            for last in (False, True):
                call = f"{name}({{0}}{', ' if attributes else ''}{attributes}, select_last_index={last})".replace("({0}, ,", "({0},")
                x = np.rint(wide(values(shape, dtype, 9, -3, 3))).astype(dtype_of(dtype))
                cases.append(case(call, [x], lambda x, find=find, last=last, axis=axis, keepdims=keepdims: arg(find, last)(x, axis, keepdims), "int32"))
    return cases + (spread_cases(dtype) if dtype in FLOATS else [])


def spread_cases(dtype):
    """variance, standard deviation and logsumexp."""
    cases = []
    for shape, attributes, axis, keepdims in REDUCTIONS:
        if 0 in shape:
            continue
        attributes = ", " + attributes if attributes else ""
        x = values(shape, dtype, 3)
        mean = wide(x).mean(axis=axis, keepdims=True).astype(x.dtype)
        count = int(np.prod([shape[i] for i in axis]))

        def variance(x, m, axis=axis, keepdims=keepdims, less=0):
            total = np.sum((x - m) ** 2, axis=axis, keepdims=keepdims)
            return total / (np.prod([x.shape[i] for i in axis]) - less)

        cases.append(case(f"variance({{0}}, {{1}}{attributes})", [x, mean], variance, factor=5))
        cases.append(case(f"sqrt(variance({{0}}, {{1}}{attributes}))", [x, mean], lambda x, m, f=variance: np.sqrt(f(x, m)), factor=5))
        if count > 1:
            cases.append(case(f"variance({{0}}, {{1}}{attributes}, unbiased=True)", [x, mean], lambda x, m, f=variance: f(x, m, less=1), factor=5))
        if "exclude" not in attributes:
            # Relay's wrapper: the maximum is taken out first.
            text = f"add(log(sum(exp(subtract({{0}}, {{1}})){attributes})), {{2}})"
            top = wide(x).max(axis=axis, keepdims=True).astype(x.dtype)
            cases.append(case(text, [x, top, top if keepdims else np.squeeze(top, axis)], lambda x, *_, a=axis, k=keepdims: logsumexp(x, a, k), factor=5))
    return cases


def scan(f, axis, exclusive=False, reverse=False):
    """Running f along an axis (None: flattened); integers wrap in the dtype of x."""

    def compute(x):
        x, along = (x.ravel(), 0) if axis is None else (x, axis)
        x = np.flip(x, along) if reverse else x
        result = f(x, axis=along, dtype=x.dtype)
        if exclusive and x.shape[along]:
            first = np.full_like(np.take(x, [0], along), 0 if f is np.cumsum else 1)
            result = np.concatenate([first, np.take(result, range(x.shape[along] - 1), along)], along)
        return np.flip(result, along) if reverse else result

    return compute


def scan_cases(dtype):
    cases = []
    for shape, axis in [((3, 4, 5), 1), ((3, 4, 5), -1), ((7,), 0), ((2, 3), None), ((0,), 0), ((3, 0, 2), 0), ((1, 67), 1)]:
        for name, f in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
            for exclusive, reverse in [(False, False), (True, False), (False, True), (True, True)]:
                place = "" if axis is None else f", axis={axis}"
                x = values(shape, dtype, 1, *((0.8, 1.2) if dtype in FLOATS else (None, None)))
                cases.append(case(f"{name}({{0}}{place}, exclusive={exclusive}, reverse={reverse})", [x], scan(f, axis, exclusive, reverse), factor=20))
    if dtype in INTEGERS:
        cases.append(Case('cumsum({0}, axis=0, dtype="int64")', [np.full((3,), 127, dtype)], np.array([127, 254, 381])))
    return cases


def order(x, axis, ascending):
    """Stable order; NaN is last when ascending and its place is not asked otherwise. Descending keeps equal elements in order too."""
    if ascending:
        return np.argsort(x, axis=axis, kind="stable")
    size = x.shape[axis]
    return size - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)


def sort_cases(dtype):
    cases = []
    for shape, axis in [((3, 4, 5), 1), ((3, 70), -1), ((7,), 0), ((1,), 0), ((0,), 0), ((3, 0, 2), 0), ((2, 0), 1)]:
        x = np.rint(wide(values(shape, dtype, 2, -9, 9))).astype(dtype_of(dtype)) if dtype != "bool" else values(shape, dtype, 2)
        for ascending in (True, False):
            places = order(wide(x), axis, ascending)
            cases.append(Case(f"sort({{0}}, axis={axis}, is_ascend={ascending})", [x], np.take_along_axis(x, places, axis)))
            for index in ("int32", "int64"):
                cases.append(Case(f'argsort({{0}}, axis={axis}, is_ascend={ascending}, dtype="{index}")', [x], places.astype(index)))
            for k in (0, 1, 3):
                if x.size == 0 or k > shape[axis]:
                    continue
                best = np.take(places, range(k or shape[axis]), axis)
                top = np.take_along_axis(x, best, axis)
                attributes = f"{{0}}, k={k}, axis={axis}, is_ascend={ascending}"
                cases.append(Case(f'topk({attributes}, dtype="int64")', [x], (top, best.astype("int64"))))
                cases.append(Case(f'topk({attributes}, ret_type="values")', [x], top))
                cases.append(Case(f'topk({attributes}, ret_type="indices", dtype="int32")', [x], best.astype("int32")))
    if dtype in FLOATS:
        x = np.array([1, np.nan, -np.inf, np.inf, 0, -3]).astype(dtype_of(dtype))
        cases.append(Case("sort({0})", [x], x[[2, 5, 4, 0, 3, 1]]))
        cases.append(Case("argsort({0})", [x], np.array([2, 5, 4, 0, 3, 1], "int32")))
    return cases


def along(vector, axis, rank):
    return np.reshape(vector, [-1 if i == axis % rank else 1 for i in range(rank)])


def normalised(x, axes, epsilon):
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)


def response(x, size, axis, bias, alpha, beta):
    """lrn by its definition."""
    x = np.moveaxis(x, axis, 0)
    squares = np.stack([np.sum(x[max(0, c - (size - 1) // 2):c + size // 2 + 1] ** 2, axis=0) for c in range(len(x))])
    return np.moveaxis(x / (bias + alpha / size * squares) ** beta, 0, axis)


def grouped(x, groups, axis, epsilon):
    moved = np.moveaxis(x, axis, 1)
    parts = moved.reshape(x.shape[0], groups, -1)
    return np.moveaxis(normalised(parts, 2, epsilon).reshape(moved.shape), 1, axis)


def norm_cases(dtype):
    cases = []
    for shape, axis in [((3, 5, 17), -1), ((3, 5, 17), 1), ((7,), 0), ((2, 33), 0), ((0, 4), 1), ((4, 1), 1), ((2, 300), 1)]:
        x = values(shape, dtype, 4)
        for name in ("nn.softmax", "nn.fast_softmax"):
            cases.append(case(f"{name}({{0}}, axis={axis})", [x], lambda x, axis=axis: scipy.special.softmax(x, axis=axis)))
        cases.append(case(f"nn.log_softmax({{0}}, axis={axis})", [x], lambda x, axis=axis: scipy.special.log_softmax(x, axis=axis), terms=5))
    for shape, axis in [((3, 5, 17), 1), ((3, 17, 5), 2), ((2, 5, 3, 3), 1), ((2, 3, 3, 5), 3), ((2, 5), -1), ((0, 5, 3), 1)]:
        x, rank, size = values(shape, dtype, 5), len(shape), shape[axis]
        gamma, beta, mean, var = (values((size,), dtype, 6 + i, 0.5, 2) for i in range(4))

        def affine(y, g, b, axis=axis, rank=rank):
            return y * along(g, axis, rank) + along(b, axis, rank)

        def batch(x, g, b, m, v, axis=axis, rank=rank, scale=affine):
            return scale((x - along(m, axis, rank)) / np.sqrt(along(v, axis, rank) + 1e-3), g, b)

        cases.append(case(f"nn.batch_norm({{0}}, {{1}}, {{2}}, {{3}}, {{4}}, axis={axis}, epsilon=0.001f).0", [x, gamma, beta, mean, var], batch, factor=2, terms=4))
        plain = f"nn.batch_norm({{0}}, {{1}}, {{2}}, {{3}}, {{4}}, axis={axis}, epsilon=0.001f, center=False, scale=False).0"
        cases.append(case(plain, [x, gamma, beta, mean, var], lambda x, g, b, m, v, f=batch: f(x, np.ones_like(g), np.zeros_like(b), m, v), factor=2, terms=4))
        cases.append(Case("nn.dropout({0}, rate=0.5f)", [x], (x, np.ones_like(x))))
        cases.append(case(f"nn.bias_add({{0}}, {{1}}, axis={axis})", [x, beta], lambda x, b, axis=axis, rank=rank: x + along(b, axis, rank)))
        cases.append(case(f"nn.layer_norm({{0}}, {{1}}, {{2}}, axis={axis}, epsilon=0.01f)", [x, gamma, beta],
                          lambda x, g, b, axis=axis, scale=affine: scale(normalised(x, axis, 0.01), g, b), factor=2, terms=4))
        cases.append(case(f"nn.l2_normalize({{0}}, eps=0.001f, axis=[{axis}])", [x],
                          lambda x, axis=axis: x / np.sqrt(np.maximum(np.sum(x**2, axis=axis, keepdims=True), 0.001)), factor=3))
        for width in (3, 4):
            cases.append(case(f"nn.lrn({{0}}, size={width}, axis={axis}, bias=1.5f, alpha=0.25f, beta=0.75f)", [x],
                              lambda x, axis=axis, width=width: response(x, width, axis, 1.5, 0.25, 0.75), factor=5))
        if rank > 2:
            others = tuple(i for i in range(1, rank) if i != axis)
            cases.append(case(f"nn.instance_norm({{0}}, {{1}}, {{2}}, axis={axis}, epsilon=0.01f)", [x, gamma, beta],
                              lambda x, g, b, axes=others, scale=affine: scale(normalised(x, axes, 0.01), g, b), factor=2, terms=4))
    for shape, axis, groups in [((2, 6, 5), 1, 3), ((2, 3, 3, 6), 3, 2), ((1, 4), 1, 4), ((3, 4, 5), 1, 1)]:
        x, (gamma, beta) = values(shape, dtype, 7), (values((shape[axis],), dtype, 8 + i) for i in range(2))
        cases.append(case(f"nn.group_norm({{0}}, {{1}}, {{2}}, num_groups={groups}, axis={axis}, epsilon=0.01f)", [x, gamma, beta],
                          lambda x, g, b, axis=axis, groups=groups: grouped(x, groups, axis, 0.01) * along(g, axis, x.ndim) + along(b, axis, x.ndim), factor=2, terms=4))
    return cases


FAMILIES = {"reduction": (reduction_cases, DTYPES), "scan": (scan_cases, INTEGERS + FLOATS), "sort": (sort_cases, DTYPES[1:]), "norm": (norm_cases, FLOATS)}


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("family, dtype", [(family, dtype) for family, (_, dtypes) in FAMILIES.items() for dtype in dtypes])
def test_reductions(family, dtype, level):
    check(FAMILIES[family][0](dtype), level)
