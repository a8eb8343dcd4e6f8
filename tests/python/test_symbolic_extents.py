# SPDX-License-Identifier: Apache-2.0
"""Extents that are symbols: inputs whose extents do not fit together are refused by name, never read beyond their end."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import treadle


def session(nodes, inputs, constants=None, dtypes=None, **options):
    """Inputs by name with their shapes; the last node's output y."""
    dtypes = dtypes or {}
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, dtypes.get(name, TensorProto.FLOAT), shape) for name, shape in inputs.items()],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return treadle.InferenceSession(model.SerializeToString(), **options)


def values(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1


def check(engine, feed, reference):
    """Equal to the reference, or refused where the reference refuses."""
    try:
        expected = reference(**feed)
    except ValueError:
        with pytest.raises(treadle.Error, match="TRD-RUN"):
            engine.run(None, feed)
    else:
        np.testing.assert_allclose(engine.run(None, feed)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("op, reference", [("Add", np.add), ("Where", None)])
def test_broadcast(op, reference, level):
    names = ["a", "b"] if op == "Add" else ["c", "a", "b"]
    inputs = {"a": ["N", "K"], "b": ["M"], **({"c": ["L", 1]} if op == "Where" else {})}
    engine = session([helper.make_node(op, names, ["y"])], inputs, dtypes={"c": TensorProto.BOOL}, opt_level=level, cache=False)
    for a, b, c in [((2, 3), 3, 2), ((2, 3), 1, 1), ((2, 1), 3, 2), ((2, 3), 2, 1), ((2, 2), 3, 1), ((2, 3), 3, 3), ((1, 3), 3, 4), ((0, 3), 3, 0), ((3, 3), 4, 3)]:
        feed = {"a": values(*a), "b": values(b)}
        if op == "Where":
            feed["c"] = (np.arange(c) % 2 == 0).reshape(c, 1)
        check(engine, feed, (lambda a, b: np.add(a, b)) if op == "Add" else lambda a, b, c: np.where(c, a, b))


def test_no_element_beside_one():
    """NumPy would give no element; two symbols of which one is 0 and the other 1 are refused."""
    engine = session([helper.make_node("Add", ["a", "b"], ["y"])], {"a": ["N"], "b": ["M"]})
    with pytest.raises(treadle.Error, match="TRD-RUN-002"):
        engine.run(None, {"a": values(0), "b": values(1)})


@pytest.mark.parametrize("level", [0, 3])
def test_against_constant_extents(level):
    engine = session([helper.make_node("Mul", ["a", "w"], ["y"])], {"a": ["N", "C"]}, {"w": values(3)}, opt_level=level, cache=False)
    for shape in [(2, 3), (2, 1), (2, 2), (2, 4), (0, 3)]:
        check(engine, {"a": values(*shape)}, lambda a: a * values(3))


@pytest.mark.parametrize("level", [0, 3])
def test_matrices(level):
    engine = session([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": ["B", "M", "K"], "b": ["C", "L", "N"]}, opt_level=level, cache=False)
    for a, b in [((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 3, 4), (3, 4, 5)), ((2, 3, 4), (2, 5, 4)), ((2, 3, 5), (2, 4, 5)), ((2, 0, 4), (2, 4, 5))]:
        check(engine, {"a": values(*a), "b": values(*b)}, lambda a, b: np.matmul(a, b))


@pytest.mark.parametrize("level", [0, 3])
def test_concatenate(level):
    engine = session([helper.make_node("Concat", ["a", "b"], ["y"], axis=0)], {"a": ["N", "K"], "b": ["M", "L"]}, opt_level=level, cache=False)
    for a, b in [((2, 3), (1, 3)), ((2, 3), (1, 4)), ((2, 3), (0, 3)), ((2, 4), (5, 3))]:
        check(engine, {"a": values(*a), "b": values(*b)}, lambda a, b: np.concatenate([a, b]))


@pytest.mark.parametrize("level", [0, 3])
def test_convolution(level):
    """Channels that do not fit, and pictures smaller than the kernel."""
    engine = session([helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("GlobalAveragePool", ["a"], ["y"])], {"x": ["N", "C", "H", "W"]},
                     {"w": values(2, 3, 3, 3)}, opt_level=level, cache=False)
    assert engine.run(None, {"x": values(1, 3, 5, 6)})[0].shape == (1, 2, 1, 1)
    for shape in [(1, 2, 5, 6), (1, 4, 5, 6), (1, 3, 1, 1), (1, 3, 5, 1)]:
        with pytest.raises(treadle.Error, match="TRD-RUN"):
            engine.run(None, {"x": values(*shape)})


@pytest.mark.parametrize("level", [0, 3])
def test_reshape(level):
    """Element counts that differ, a part that does not divide, and a part of extent 0."""
    nodes = [helper.make_node("Shape", ["b"], ["s"], start=0, end=1), helper.make_node("Concat", ["s", "minus"], ["t"], axis=0), helper.make_node("Reshape", ["a", "t"], ["y"])]
    engine = session(nodes, {"a": ["N", 4], "b": ["M"]}, {"minus": np.array([-1], np.int64)}, opt_level=level, cache=False)
    for a, b in [((3, 4), 6), ((3, 4), 5), ((3, 4), 1), ((0, 4), 2), ((3, 4), 0), ((3, 4), 24)]:
        feed = {"a": values(*a), "b": values(b)}
        if b and np.prod(a) % b == 0:
            np.testing.assert_array_equal(engine.run(None, feed)[0], feed["a"].reshape(b, -1))
        else:
            with pytest.raises(treadle.Error, match="TRD-"):
                engine.run(None, feed)


def ints(*shape):
    return np.zeros(shape, np.int64)


# Operator, its inputs behind x with their shapes and values, constants, attributes.
READERS = [
    ("Gather", {"i": (["M"], ints(2))}, {}, {"axis": 1}),
    ("GatherElements", {"i": (["N", "M"], ints(2, 2))}, {}, {"axis": 1}),
    ("GatherND", {"i": (["M", 2], ints(2, 2))}, {}, {}),
    ("NegativeLogLikelihoodLoss", {"i": (["N"], ints(2))}, {}, {}),
    ("Pad", {}, {"pads": np.array([0, 1, 0, 1], np.int64)}, {"mode": "edge"}),
    ("ArgMax", {}, {}, {"axis": 1}),
    ("Resize", {}, {"": None, " ": None, "sizes": np.array([2, 2], np.int64)}, {}),
]


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("op, others, constants, attributes", READERS, ids=[reader[0] for reader in READERS])
def test_reading_from_an_empty_axis(op, others, constants, attributes, level):
    names = ["x", *others, *(name.strip() for name in constants)]
    nodes = [helper.make_node(op, names, ["a"], **attributes), helper.make_node("Cast", ["a"], ["y"], to=TensorProto.FLOAT)]
    inputs = {"x": ["N", "C"], **{name: shape for name, (shape, _) in others.items()}}
    constants = {name: value for name, value in constants.items() if value is not None}
    engine = session(nodes, inputs, constants, dtypes={name: TensorProto.INT64 for name in others}, opt_level=level, cache=False)
    feed = {"x": values(2, 3), **{name: value for name, (_, value) in others.items()}}
    assert engine.run(None, feed)[0].size > 0
    with pytest.raises(treadle.Error, match="TRD-RUN"):
        engine.run(None, {**feed, "x": values(2, 0)})


@pytest.mark.parametrize("level", [0, 3])
def test_split_into_equal_parts(level):
    nodes = [helper.make_node("Split", ["a"], ["p", "q", "r"], axis=1), helper.make_node("Concat", ["r", "p", "q"], ["y"], axis=0)]
    engine = session(nodes, {"a": ["N", "L"]}, opt_level=level, cache=False)
    for length in [0, 3, 4, 5, 9]:
        check(engine, {"a": values(2, length)}, lambda a: np.concatenate(np.split(a, 3, axis=1)[2:] + np.split(a, 3, axis=1)[:2]))


# Twice an extent divides by two, whatever name a kernel gives it.
@pytest.mark.parametrize("level", [0, 3])
def test_split_of_a_multiple(level):
    nodes = [helper.make_node("Concat", ["a", "a"], ["c"], axis=1), helper.make_node("Split", ["c"], ["p", "q"], axis=1), helper.make_node("Mul", ["p", "q"], ["y"])]
    engine = session(nodes, {"a": ["N", "L"]}, opt_level=level, cache=False)
    for length in [0, 1, 5]:
        check(engine, {"a": values(3, length)}, lambda a: a * a)


@pytest.mark.parametrize("level", [0, 3])
def test_split_into_parts_of_given_sizes(level):
    nodes = [helper.make_node("Split", ["a", "sizes"], ["p", "q"], axis=0), helper.make_node("MatMul", ["p", "q"], ["y"])]
    engine = session(nodes, {"a": ["N", 3]}, {"sizes": np.array([2, 3], np.int64)}, opt_level=level, cache=False)
    for rows in [0, 1, 4, 5, 6]:
        check(engine, {"a": values(rows, 3)}, lambda a: a[:2] @ a[2:])
