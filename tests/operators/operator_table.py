# SPDX-License-Identifier: Apache-2.0
"""Cases of operators and how they are checked: many calls are compiled as one program, and every result is compared with its reference."""

import itertools
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import treadle

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "bfloat16", "float32", "float64")
NUMBERS = INTEGERS + FLOATS
DTYPES = ("bool", *NUMBERS)

# The error allowed of a float result, as a part of the reference's value (and of the case's `terms`, beside 0). Integers and bool are exact.
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "float64": 1e-10}

SHAPES = ((3, 5, 17), (), (0,), (7,), (3, 0, 2), (1, 1), (2, 33))
"""Shapes that every operator meets: odd extents, a scalar, empty ones, one element."""


def dtype_of(name):
    """The NumPy dtype of Treadle's name."""
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def values(shape, dtype, seed=0, low=None, high=None):
    """Random values: of integers the whole range of the dtype unless low and high (which is reached) say less; floats -6 … 6 or so."""
    random, kind = np.random.default_rng([seed, *shape]), dtype_of(dtype)
    if dtype == "bool":
        return np.asarray(random.integers(0, 2, shape)).astype(bool)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        low, high = max(info.min, info.min if low is None else low), min(info.max, info.max if high is None else high)
        return np.asarray(random.integers(low, high, shape, dtype=kind, endpoint=True))
    drawn = random.standard_normal(shape) * 2 if low is None else random.uniform(low, high, shape)
    return np.asarray(drawn).astype(kind)


def wide(array):
    """Floats as float64, in which references compute; others as they are."""
    array = np.asarray(array)
    return array.astype(np.float64) if array.dtype == BFLOAT16 or array.dtype.kind == "f" else array


@dataclass
class Case:
    """A call of an operator: `text` with {0}, {1} … for the inputs, and the results that it must give.

    `factor` widens the tolerance where rounding adds up, as in long sums; `terms` is how large the terms are that may cancel in the result.
    """

    text: str
    inputs: list
    expected: Any
    factor: float = 1.0
    terms: float = 0.01

    def __post_init__(self):
        self.inputs = [np.asarray(array) for array in self.inputs]
        self.results = [np.asarray(array) for array in (self.expected if isinstance(self.expected, (list, tuple)) else [self.expected])]

    def __str__(self):
        return self.text.format(*(f"{array.dtype}{list(array.shape)}" for array in self.inputs))


def case(text, inputs, reference, dtype=None, factor=1.0, terms=0.01):
    """A case whose reference is a function of the inputs, floats as float64; `dtype` of the result is that of the first input unless told."""
    inputs = [np.asarray(array) for array in inputs]
    with np.errstate(all="ignore"):
        results = reference(*map(wide, inputs))
        results = results if isinstance(results, (list, tuple)) else [results]
        kind = dtype_of(dtype) if dtype else inputs[0].dtype
        results = [np.asarray(result).astype(kind) for result in results]
    return Case(text, inputs, tuple(results) if len(results) > 1 else results, factor, terms)


def tensor_type(array):
    """A type as the text writes it."""
    return f"Tensor[({''.join(f'{extent}, ' for extent in array.shape).rstrip(' ')}), {array.dtype}]"


def program(cases):
    """One program that makes every call, and what to feed it."""
    feed, lines, results = {}, [], []
    for place, one in enumerate(cases):
        names = [f"x{len(feed) + i}" for i in range(len(one.inputs))]
        feed.update(zip(names, one.inputs))
        lines.append(f"  %{place} = {one.text.format(*('%' + name for name in names))};")
        results += [f"%{place}"] if not isinstance(one.expected, tuple) else [f"%{place}.{i}" for i in range(len(one.results))]
    parameters = ", ".join(f"%{name}: {tensor_type(array)}" for name, array in feed.items())
    body = f"({', '.join(results)}{',' if len(results) == 1 else ''})"
    return '#[version = "0.0.5"]\ndef @main(' + parameters + ") {\n" + "\n".join(lines) + f"\n  {body}\n}}\n", feed


def answers(cases, level):
    """What the compiled program gives: a list of results for each case."""
    text, feed = program(cases)
    results = iter(treadle.InferenceSession(text.encode(), opt_level=level, cache=False).run(None, feed))
    return [list(itertools.islice(results, len(one.results))) for one in cases]


def difference(actual, expected, one):
    """What is wrong with a result, or None."""
    if actual.dtype != expected.dtype:
        return f"dtype {actual.dtype}, not {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, not {expected.shape}"
    got, want = wide(actual), wide(expected)
    wrong = got != want
    if expected.dtype.name in TOLERANCE:
        bound = TOLERANCE[expected.dtype.name] * (one.factor * np.abs(want) + one.terms)
        with np.errstate(all="ignore"):
            wrong &= ~((np.isnan(got) & np.isnan(want)) | (np.isfinite(want) & (np.abs(got - want) <= bound)))
    if not np.any(wrong):
        return None
    first = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
    return f"{np.count_nonzero(wrong)} of {wrong.size} wrong, first at {first}: {got[first]!r}, not {want[first]!r}"


def check(cases, level):
    """Fails with a line for each wrong case: its operator, dtypes, shapes and what differs."""
    try:
        found = answers(cases, level)
    except treadle.Error:
        found = [_alone(one, level) for one in cases]
    faults = []
    for one, results in zip(cases, found):
        if isinstance(results, str):
            faults.append(f"{one}: {results}")
            continue
        parts = [difference(actual, expected, one) for actual, expected in zip(results, one.results)]
        faults += [f"{one}{f' result {i}' if len(parts) > 1 else ''}: {part}" for i, part in enumerate(parts) if part]
    if faults:
        pytest.fail(f"{len(faults)} faults in {len(cases)} cases at O{level}\n" + "\n".join(faults), pytrace=False)


def _alone(one, level):
    """The results of a case that is compiled alone, or the error that this gives."""
    try:
        return answers([one], level)[0]
    except treadle.Error as error:
        return f"refused: {str(error).splitlines()[0]}"
