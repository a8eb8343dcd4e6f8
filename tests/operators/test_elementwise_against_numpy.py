# SPDX-License-Identifier: Apache-2.0
"""Unary, binary, comparing, logical, bitwise operators, where, cast, reinterpret and activations against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.special
from operator_table import DTYPES, FLOATS, INTEGERS, NUMBERS, SHAPES, SIGNED, UNSIGNED, Case, case, check, dtype_of, values, wide


def away_from_zero(x):
    """Nearest integer, halves away from zero."""
    return x if x.dtype.kind in "iu" else np.copysign(np.floor(np.abs(x) + 0.5), x)


def same_kind(f):
    """A rounding function, that leaves integers alone."""
    return lambda x: x if x.dtype.kind in "iu" else f(x)


# name: (dtypes, the range of floats, reference)
UNARY = {
    "abs": (NUMBERS, None, np.abs),
    "negative": (NUMBERS, None, np.negative),
    "sign": (NUMBERS, None, np.sign),
    "floor": (NUMBERS, None, same_kind(np.floor)),
    "ceil": (NUMBERS, None, same_kind(np.ceil)),
    "trunc": (NUMBERS, None, same_kind(np.trunc)),
    "round": (NUMBERS, None, away_from_zero),
    "round_even": (NUMBERS, None, same_kind(np.rint)),
    "copy": (DTYPES, None, lambda x: x),
    "zeros_like": (DTYPES, None, np.zeros_like),
    "ones_like": (DTYPES, None, np.ones_like),
    "bitwise_not": (("bool", *INTEGERS), None, np.invert),
    "logical_not": (("bool",), None, np.logical_not),
    "nn.relu": (NUMBERS, None, lambda x: np.maximum(x, 0)),
    "exp": (FLOATS, None, np.exp),
    "log": (FLOATS, (0.01, 50), np.log),
    "log2": (FLOATS, (0.01, 50), np.log2),
    "log10": (FLOATS, (0.01, 50), np.log10),
    "sqrt": (FLOATS, (0, 50), np.sqrt),
    "rsqrt": (FLOATS, (0.01, 50), lambda x: 1 / np.sqrt(x)),
    "sigmoid": (FLOATS, None, scipy.special.expit),
    "tanh": (FLOATS, None, np.tanh),
    "sin": (FLOATS, (-9, 9), np.sin),
    "cos": (FLOATS, (-9, 9), np.cos),
    "tan": (FLOATS, (-1.4, 1.4), np.tan),
    "sinh": (FLOATS, None, np.sinh),
    "cosh": (FLOATS, None, np.cosh),
    "asin": (FLOATS, (-1, 1), np.arcsin),
    "acos": (FLOATS, (-1, 0.9), np.arccos),
    "atan": (FLOATS, None, np.arctan),
    "asinh": (FLOATS, None, np.arcsinh),
    "acosh": (FLOATS, (1.1, 50), np.arccosh),
    "atanh": (FLOATS, (-0.95, 0.95), np.arctanh),
    "erf": (FLOATS, None, scipy.special.erf),
    "fast_exp": (FLOATS, None, np.exp),
    "fast_tanh": (FLOATS, None, np.tanh),
    "fast_erf": (FLOATS, None, scipy.special.erf),
}
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 1.0, -1.0]
TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


def shapes_of(place):
    """The large shape, and one of the others in turn."""
    return SHAPES[0], SHAPES[1 + place % (len(SHAPES) - 1)]


def unary_cases(dtype):
    cases = []
    for place, (name, (dtypes, limits, reference)) in enumerate(UNARY.items()):
        if dtype not in dtypes:
            continue
        low, high = limits or (None, None)
        cases += [case(f"{name}({{0}})", [values(shape, dtype, place, low, high)], reference) for shape in shapes_of(place + DTYPES.index(dtype))]
        if dtype in FLOATS:
            cases.append(case(f"{name}({{0}})", [np.array(SPECIAL).astype(dtype_of(dtype))], reference))
    for name, reference in TESTS.items():
        data = values((5, 3), dtype) if dtype not in FLOATS else np.array(SPECIAL).astype(dtype_of(dtype))
        cases.append(case(f"{name}({{0}})", [data], reference, "bool"))
    return cases


def truncated(divide):
    """Integer division toward zero, or its remainder, by the definition; 0 is never the divisor."""

    def compute(a, b):
        if a.dtype.kind == "f":
            return np.trunc(a / b) if divide else np.fmod(a, b)
        remainder = np.fmod(a, b)
        return (a - remainder) // b if divide else remainder

    return compute


def quotient(a, b):
    return a / b if a.dtype.kind == "f" else truncated(True)(a, b)


ARITHMETIC = {
    "add": (NUMBERS, np.add),
    "subtract": (NUMBERS, np.subtract),
    "multiply": (NUMBERS, np.multiply),
    "maximum": (NUMBERS, np.maximum),
    "minimum": (NUMBERS, np.minimum),
    "bitwise_and": (("bool", *INTEGERS), np.bitwise_and),
    "bitwise_or": (("bool", *INTEGERS), np.bitwise_or),
    "bitwise_xor": (("bool", *INTEGERS), np.bitwise_xor),
    "logical_and": (("bool",), np.logical_and),
    "logical_or": (("bool",), np.logical_or),
    "logical_xor": (("bool",), np.logical_xor),
}
DIVISIONS = {
    "divide": quotient,
    "trunc_divide": truncated(True),
    "trunc_mod": truncated(False),
    "mod": truncated(False),
    "floor_divide": lambda a, b: np.floor(a / b) if a.dtype.kind == "f" else np.floor_divide(a, b),
    "floor_mod": np.mod,
}
COMPARISONS = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
}
PAIRS = [((3, 5, 17), (3, 5, 17)), ((3, 5, 17), (5, 1)), ((4, 1, 3), (2, 1)), ((), (7,)), ((), ()), ((0,), (1,)), ((3, 0, 2), (2,)), ((1,), (2, 9))]


def broadcast_pairs(place):
    """Two pairs of shapes that broadcast, in turn."""
    return PAIRS[place % len(PAIRS)], PAIRS[(place + 3) % len(PAIRS)]


def binary_cases(dtype):
    cases, start = [], DTYPES.index(dtype)
    for place, (name, (dtypes, reference)) in enumerate(ARITHMETIC.items()):
        if dtype in dtypes:
            cases += [case(f"{name}({{0}}, {{1}})", [values(a, dtype, place), values(b, dtype, place + 50)], reference) for a, b in broadcast_pairs(place + start)]
    for place, (name, reference) in enumerate(COMPARISONS.items()):
        for a, b in broadcast_pairs(place + start):
            cases.append(case(f"{name}({{0}}, {{1}})", [values(a, dtype, place, -2, 2), values(b, dtype, place + 50, -2, 2)], reference, "bool"))
    if dtype == "bool":
        return cases
    for place, (name, reference) in enumerate(DIVISIONS.items()):
        for a, b in broadcast_pairs(place + start):
            divisor = values(b, dtype, place + 50, -9, 9)
            divisor = np.where(wide(divisor) == 0, dtype_of(dtype).type(3), divisor)
            cases.append(case(f"{name}({{0}}, {{1}})", [values(a, dtype, place), divisor], reference))
    if dtype in FLOATS:
        for a, b in broadcast_pairs(start):
            cases.append(case("power({0}, {1})", [values(a, dtype, 1, 0.1, 4), values(b, dtype, 2, -3, 3)], np.power))
    else:
        count = np.iinfo(dtype).bits - 1
        for a, b in broadcast_pairs(start):
            cases.append(case("left_shift({0}, {1})", [values(a, dtype, 1), values(b, dtype, 2, 0, count)], np.left_shift))
            cases.append(case("right_shift({0}, {1})", [values(a, dtype, 1), values(b, dtype, 2, 0, count)], np.right_shift))
    return cases


def edge_cases(dtype):
    """NaN, infinities and both ends of the integers."""
    if dtype in FLOATS:
        special = np.array(SPECIAL).astype(dtype_of(dtype))
        a, b = np.repeat(special, special.size), np.tile(special, special.size)
        names = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "divide": np.divide, "power": np.power, "mod": np.fmod}
        cases = [case(f"{name}({{0}}, {{1}})", [a, b], reference) for name, reference in names.items()]
        cases += [case(f"{name}({{0}}, {{1}})", [a, b], reference, "bool") for name, reference in COMPARISONS.items()]
        ratios = np.array([1e4, 123.4, -7.5, 5e-3, -5e-3, 7.5, 6, -6]).astype(dtype_of(dtype)), np.array([0.1, 0.7, 2, -3, 3, -2, 3, 3]).astype(dtype_of(dtype))
        exact = [np.mod(*ratios), np.fmod(*ratios)]
        return cases + [Case("floor_mod({0}, {1})", ratios, exact[0], 1e-6, 1e-8), Case("trunc_mod({0}, {1})", ratios, exact[1], 1e-6, 1e-8)]
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max], dtype)
    a, b = np.repeat(ends, ends.size), np.tile(ends, ends.size)
    keep = (b != 0) & ~((a == info.min) & (b == -1 if info.min else False))
    names = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
    cases = [case(f"{name}({{0}}, {{1}})", [a, b], reference) for name, reference in names.items()]
    cases += [case(f"{name}({{0}}, {{1}})", [a[keep], b[keep]], reference) for name, reference in DIVISIONS.items()]
    return cases + [case(f"{name}({{0}}, {{1}})", [a, b], reference, "bool") for name, reference in COMPARISONS.items()]


def select_cases(dtype):
    shapes = [((3, 5, 17),) * 3, ((5, 1), (3, 1, 4), (4,)), ((), (3,), ()), ((0,), (1,), (1,)), ((), (), ())]
    cases = [case("where({0}, {1}, {2})", [values(c, "bool", 1), values(a, dtype, 2), values(b, dtype, 3)], np.where, dtype) for c, a, b in shapes]
    condition = values((3, 5), dtype, 4, 0, 1)
    cases.append(case("where({0}, {1}, {2})", [condition, values((5,), "int16", 5), values((3, 1), "int16", 6)], lambda c, a, b: np.where(c != 0, a, b), "int16"))
    size = dtype_of(dtype).itemsize
    for to in DTYPES:
        # Values that both dtypes hold, and of integers all.
        source = values((3, 7), dtype, 7, *((-100, 100) if dtype in FLOATS and to in SIGNED else (0, 100) if dtype in FLOATS and to in UNSIGNED else (None, None)))
        with np.errstate(all="ignore"):
            cases.append(Case(f'cast({{0}}, dtype="{to}")', [source], source != 0 if to == "bool" else source.astype(dtype_of(to))))
        if dtype_of(to).itemsize == size and "bool" not in (to, dtype):
            bits = values((3, 5), f"uint{8 * size}", 8, 0, (1 << (8 * size - 2)) - 1 if size > 1 else None).view(dtype_of(dtype))
            cases.append(Case(f'reinterpret({{0}}, dtype="{to}")', [bits], bits.view(dtype_of(to))))
    other = "int32" if dtype != "int32" else "float32"
    cases.append(Case("cast_like({0}, {1})", [values((2, 3), "bool"), values((1,), dtype)], values((2, 3), "bool").astype(dtype_of(dtype))))
    cases.append(Case("cast_like({0}, {1})", [values((), dtype, 9, 0, 1), values((1,), other)], values((), dtype, 9, 0, 1).astype(other)))
    return cases


def activation_cases(dtype):
    half = dtype_of(dtype).type(0.5)
    cases = [case("clip({0}, a_min=-1.5f, a_max=2f)", [values(shape, dtype, i)], lambda x: np.clip(x, -1.5, 2)) for i, shape in enumerate(SHAPES)]
    cases += [case("nn.leaky_relu({0}, alpha=0.125f)", [values(shape, dtype, i)], lambda x: np.where(x > 0, x, 0.125 * x)) for i, shape in enumerate(SHAPES)]
    for shape, axis in [((2, 5, 3), 1), ((2, 3, 5), 2), ((2, 3, 5), -1), ((0, 5), 1), ((5,), 0)]:
        cases.append(case(f"nn.prelu({{0}}, {{1}}, axis={axis})", [values(shape, dtype, 1), values((5,), dtype, 2)],
                          lambda x, a, axis=axis: np.where(x > 0, x, x * np.expand_dims(a, tuple(i for i in range(x.ndim) if i != axis % x.ndim)))))
    x = values((3, 17), dtype, 5)
    one, three, six, root, cubic = (np.asarray(v).astype(dtype_of(dtype)) for v in (1, 3, 6, 0.5**0.5, 0.044715))
    cases.append(case("multiply({0}, sigmoid({0}))", [x], lambda x: x * scipy.special.expit(x), factor=2))
    cases.append(case("divide(multiply({0}, clip(add({0}, {1}), a_min=0f, a_max=6f)), {2})", [x, three, six], lambda x, *_: x * np.clip(x + 3, 0, 6) / 6, factor=2))
    cases.append(case("multiply(multiply({0}, {1}), add({2}, erf(multiply({0}, {3}))))", [x, half, one, root],
                      lambda x, *_: 0.5 * x * (1 + scipy.special.erf(x * np.sqrt(0.5))), terms=4))
    slope = np.asarray(np.sqrt(2 / np.pi)).astype(dtype_of(dtype))
    cases.append(case("multiply(multiply({0}, {1}), add({2}, tanh(multiply({3}, add({0}, multiply({4}, multiply({0}, multiply({0}, {0}))))))))", [x, half, one, slope, cubic],
                      lambda x, *_: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), terms=4))
    return cases


FAMILIES = {
    "unary": (unary_cases, DTYPES),
    "binary": (binary_cases, DTYPES),
    "edges": (edge_cases, NUMBERS),
    "select": (select_cases, DTYPES),
    "activation": (activation_cases, FLOATS),
}


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("family, dtype", [(family, dtype) for family, (_, dtypes) in FAMILIES.items() for dtype in dtypes])
def test_elementwise(family, dtype, level):
    check(FAMILIES[family][0](dtype), level)
