# SPDX-License-Identifier: Apache-2.0
"""Loops and branches: when a scan output is taken, and what a branch sees of the graphs around it."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_models import close, declared, f32, i64, model_of, numbers, run, session


def body_of(nodes, inputs, outputs, constants=None):
    """A subgraph; inputs: (name, dtype, shape), outputs: (name, dtype)."""
    return helper.make_graph(nodes, "body", [declared(name, dtype, shape) for name, dtype, shape in inputs],
                             [declared(name, dtype) for name, dtype in outputs],
                             [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()])


def counting_body(before):
    """v + 1, with a scan of v before or after that."""
    nodes = [helper.make_node("Identity", ["c"], ["c_out"]), helper.make_node("Add", ["v", "step"], ["v_out"]),
             helper.make_node("Identity", ["v" if before else "v_out"], ["scan"])]
    return body_of(nodes, [("i", i64, []), ("c", np.bool_, []), ("v", f32, [])], [("c_out", np.bool_), ("v_out", f32), ("scan", f32)],
                   {"step": np.array(1, f32)})


# ---- Loop ----


@pytest.mark.parametrize("before, expected", [(True, [0, 1, 2]), (False, [1, 2, 3])])
@pytest.mark.parametrize("opset", [11, 13, 16, 21])
def test_scan_output_beside_the_carried_value(before, expected, opset):
    loop = helper.make_node("Loop", ["n", "go", "v0"], ["v", "scan"], body=counting_body(before))
    known = {"n": np.array(3, i64), "go": np.array(True), "v0": np.array(0, f32)}
    outputs = {"v": f32, "scan": f32}
    for model, feed in [(model_of([loop], {}, outputs, opset, known), {}),
                        (model_of([loop], {"v0": known["v0"]}, outputs, opset, {"n": known["n"], "go": known["go"]}), {"v0": known["v0"]})]:
        got = run(model, feed)
        close(got["v"], np.array(3, f32))
        close(got["scan"], f32(expected))


@pytest.mark.parametrize("trips", [0, 1, 5, 40])
def test_number_of_iterations(trips):
    loop = helper.make_node("Loop", ["n", "", "v0"], ["v", "scan"], body=counting_body(True))
    n, v0 = np.array(trips, i64), np.array(2, f32)
    got = run(model_of([loop], {"v0": v0}, {"v": f32, "scan": f32}, constants={"n": n}), {"v0": v0})
    close(got["v"], np.array(2 + trips, f32))
    close(got["scan"], np.arange(2, 2 + trips, dtype=f32))
    # The number as an input.
    got = run(model_of([loop], {"n": n, "v0": v0}, {"v": f32, "scan": f32}), {"n": n, "v0": v0})
    close(got["v"], np.array(2 + trips, f32))
    close(got["scan"], np.arange(2, 2 + trips, dtype=f32))


# The condition that the body gives counts for the next iteration; the first one is given from outside.
@pytest.mark.parametrize("limit, start", [(0, True), (1, True), (3, True), (100, True), (3, False)])
def test_condition_of_a_loop(limit, start):
    nodes = [helper.make_node("Add", ["v", "step"], ["v_out"]), helper.make_node("Less", ["v_out", "limit"], ["c_out"]),
             helper.make_node("Mul", ["v", "v"], ["scan"])]
    body = body_of(nodes, [("i", i64, []), ("c", np.bool_, []), ("v", f32, [])], [("c_out", np.bool_), ("v_out", f32), ("scan", f32)],
                   {"step": np.array(1, f32)})
    loop = helper.make_node("Loop", ["n", "go", "v0"], ["v", "scan"], body=body)
    feed = {"go": np.array(start), "v0": np.array(0, f32), "limit": np.array(limit, f32)}
    got = run(model_of([loop], feed, {"v": f32, "scan": f32}, constants={"n": np.array(7, i64)}), feed)
    count = min(max(limit, 1), 7) if start else 0
    close(got["v"], np.array(count, f32))
    close(got["scan"], np.arange(count, dtype=f32) ** 2)


# Two carried values that change places: each iteration reads the old ones.
def test_carried_values_that_change_places():
    nodes = [helper.make_node("Identity", ["c"], ["c_out"]), helper.make_node("Identity", ["b"], ["a_out"]),
             helper.make_node("Add", ["a", "b"], ["b_out"]), helper.make_node("Concat", ["a", "b"], ["scan"], axis=0)]
    body = body_of(nodes, [("i", i64, []), ("c", np.bool_, []), ("a", f32, [1]), ("b", f32, [1])],
                   [("c_out", np.bool_), ("a_out", f32), ("b_out", f32), ("scan", f32)])
    loop = helper.make_node("Loop", ["n", "", "a0", "b0"], ["a", "b", "scan"], body=body)
    feed = {"a0": f32([0]), "b0": f32([1])}
    got = run(model_of([loop], feed, {"a": f32, "b": f32, "scan": f32}, constants={"n": np.array(6, i64)}), feed)
    fibonacci = f32([0, 1, 1, 2, 3, 5, 8, 13])
    close(got["a"], fibonacci[6:7])
    close(got["b"], fibonacci[7:])
    close(got["scan"], np.stack([fibonacci[:6], fibonacci[1:7]], 1))


# A body that uses the iteration and values of the graph around it, one of which is made by a node.
def test_loop_that_uses_outer_values():
    nodes = [helper.make_node("Identity", ["c"], ["c_out"]), helper.make_node("Gather", ["rows", "i"], ["row"], axis=0),
             helper.make_node("Mul", ["v", "twice"], ["scaled"]), helper.make_node("Add", ["scaled", "row"], ["v_out"]),
             helper.make_node("Identity", ["row"], ["scan"])]
    body = body_of(nodes, [("i", i64, []), ("c", np.bool_, []), ("v", f32, [3])], [("c_out", np.bool_), ("v_out", f32), ("scan", f32)])
    outer = [helper.make_node("Add", ["x", "x"], ["twice"]), helper.make_node("Loop", ["n", "", "x"], ["v", "scan"], body=body),
             helper.make_node("Add", ["v", "twice"], ["y"])]
    feed = {"x": numbers(3), "rows": numbers(4, 3, seed=1)}
    got = run(model_of(outer, feed, {"y": f32, "scan": f32}, constants={"n": np.array(4, i64)}), feed)
    v = feed["x"]
    for row in feed["rows"]:
        v = v * 2 * feed["x"] + row
    close(got["y"], v + 2 * feed["x"], 1e-4)
    close(got["scan"], feed["rows"])


@pytest.mark.parametrize("axis, direction", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_scan(axis, direction):
    nodes = [helper.make_node("Add", ["s", "x"], ["s_out"]), helper.make_node("Identity", ["s"], ["y"])]
    body = body_of(nodes, [("s", f32, [2]), ("x", f32, [2])], [("s_out", f32), ("y", f32)])
    node = helper.make_node("Scan", ["s0", "xs"], ["s", "ys"], body=body, num_scan_inputs=1, scan_input_axes=[axis],
                            scan_input_directions=[direction])
    rows = numbers(4, 2)
    feed = {"s0": f32([1, 2]), "xs": rows if axis == 0 else rows.T.copy()}
    got = run(model_of([node], feed, {"s": f32, "ys": f32}), feed)
    order = rows[::-1] if direction else rows
    close(got["s"], feed["s0"] + rows.sum(0))
    close(got["ys"], feed["s0"] + np.concatenate([np.zeros((1, 2), f32), np.cumsum(order, 0)[:-1]]))


# ---- If ----


def branch(nodes, output, dtype=f32, constants=None):
    return body_of(nodes, [], [(output, dtype)], constants)


def if_node():
    then = branch([helper.make_node("Add", ["x", "one"], ["t"])], "t", constants={"one": np.array(1, f32)})
    other = branch([helper.make_node("Mul", ["x", "two"], ["e"])], "e", constants={"two": np.array(2, f32)})
    return helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)


@pytest.mark.parametrize("opset", [11, 13, 16, 21])
@pytest.mark.parametrize("condition", [np.array(True), np.array(False), np.array([True]), np.array([False])])
def test_branches_that_use_outer_inputs(opset, condition):
    x = numbers(2, 3)
    model = model_of([if_node()], {"c": condition, "x": x}, {"y": f32}, opset)
    assert [info.name for info in session(model).get_inputs()] == ["c", "x"]
    expected = x + 1 if condition.all() else x * 2
    close(run(model, {"c": condition, "x": x})["y"], expected)
    close(run(model_of([if_node()], {"x": x}, {"y": f32}, opset, {"c": condition}), {"x": x})["y"], expected)


# A branch that gives back an outer value as it is, an initialiser or a value made by a node.
@pytest.mark.parametrize("name", ["x", "w", "made"])
def test_branches_that_only_name_an_outer_value(name):
    then = branch([helper.make_node("Identity", [name], ["t"])], "t")
    bare = branch([], name)
    other = branch([helper.make_node("Neg", ["x"], ["e"])], "e")
    x, w = numbers(3), numbers(3, seed=1)
    for first in [then, bare]:
        nodes = [helper.make_node("Exp", ["x"], ["made"]), helper.make_node("If", ["c"], ["y"], then_branch=first, else_branch=other)]
        for condition in [True, False]:
            feed = {"c": np.array(condition), "x": x}
            got = run(model_of(nodes, feed, {"y": f32}, constants={"w": w}), feed)["y"]
            close(got, {"x": x, "w": w, "made": np.exp(x)}[name] if condition else -x)


def test_nested_branches():
    inner = helper.make_node("If", ["d"], ["t"], then_branch=branch([helper.make_node("Add", ["x", "outer"], ["tt"])], "tt"),
                             else_branch=branch([helper.make_node("Sub", ["x", "local"], ["te"])], "te"))
    then = branch([helper.make_node("Mul", ["x", "x"], ["local"]), inner], "t")
    other = branch([helper.make_node("Identity", ["outer"], ["e"])], "e")
    nodes = [helper.make_node("Exp", ["x"], ["outer"]), helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    x = numbers(4)
    for c in [True, False]:
        for d in [True, False]:
            feed = {"c": np.array(c), "d": np.array(d), "x": x}
            close(run(model_of(nodes, feed, {"y": f32}), feed)["y"], (x + np.exp(x) if d else x - x * x) if c else np.exp(x))


# Names of one branch may be used again in the other one.
def test_branches_with_the_same_names():
    then = branch([helper.make_node("Add", ["x", "x"], ["v"]), helper.make_node("Mul", ["v", "x"], ["r"])], "r")
    other = branch([helper.make_node("Mul", ["x", "x"], ["v"]), helper.make_node("Sub", ["v", "x"], ["r"])], "r")
    x = numbers(3)
    for condition in [True, False]:
        feed = {"c": np.array(condition), "x": x}
        close(run(model_of([helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)], feed, {"y": f32}), feed)["y"],
              2 * x * x if condition else x * x - x)


# Several results, and extents that differ between the branches.
def test_branches_of_other_extents():
    then = body_of([helper.make_node("Concat", ["x", "x"], ["t"], axis=0), helper.make_node("Neg", ["x"], ["t2"])], [], [("t", f32), ("t2", f32)])
    other = body_of([helper.make_node("Identity", ["x"], ["e"]), helper.make_node("Exp", ["x"], ["e2"])], [], [("e", f32), ("e2", f32)])
    node = helper.make_node("If", ["c"], ["y", "z"], then_branch=then, else_branch=other)
    x = numbers(3)
    for condition in [True, False]:
        feed = {"c": np.array(condition), "x": x}
        got = run(model_of([node], feed, {"y": f32, "z": f32}), feed)
        close(got["y"], np.concatenate([x, x]) if condition else x)
        close(got["z"], -x if condition else np.exp(x))


# A branch inside a loop that uses the loop's own values.
def test_branch_in_a_loop():
    then = branch([helper.make_node("Add", ["v", "x"], ["t"])], "t")
    other = branch([helper.make_node("Mul", ["v", "x"], ["e"])], "e")
    nodes = [helper.make_node("Identity", ["c"], ["c_out"]), helper.make_node("Mod", ["i", "two"], ["odd"]),
             helper.make_node("Cast", ["odd"], ["is_odd"], to=TensorProto.BOOL),
             helper.make_node("If", ["is_odd"], ["v_out"], then_branch=then, else_branch=other)]
    body = body_of(nodes, [("i", i64, []), ("c", np.bool_, []), ("v", f32, [2])], [("c_out", np.bool_), ("v_out", f32)], {"two": np.array(2, i64)})
    feed = {"x": f32([2, 3])}
    got = run(model_of([helper.make_node("Loop", ["n", "", "x"], ["v"], body=body)], feed, {"v": f32}, constants={"n": np.array(4, i64)}), feed)["v"]
    v = feed["x"]
    for i in range(4):
        v = v + feed["x"] if i % 2 else v * feed["x"]
    close(got, v)


# A number of iterations that follows from an extent bounds what is stacked.
@pytest.mark.parametrize("extents", [[0], [1], [5], [30]])
def test_iterations_over_an_unknown_extent(extents):
    nodes = [helper.make_node("Identity", ["c"], ["c_out"]), helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
             helper.make_node("Add", ["v", "row"], ["v_out"]), helper.make_node("Identity", ["v"], ["scan"])]
    body = body_of(nodes, [("i", i64, []), ("c", np.bool_, []), ("v", f32, [2])], [("c_out", np.bool_), ("v_out", f32), ("scan", f32)])
    outer = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "zero"], ["n"], axis=0),
             helper.make_node("Loop", ["n", "", "v0"], ["v", "rows"], body=body)]
    given = {"zero": np.array(0, i64), "v0": f32([1, 2])}
    scan_body = body_of([helper.make_node("Add", ["s", "e"], ["s_out"]), helper.make_node("Identity", ["s"], ["before"])],
                        [("s", f32, [2]), ("e", f32, [2])], [("s_out", f32), ("before", f32)])
    scan = helper.make_node("Scan", ["v0", "x"], ["v", "rows"], body=scan_body, num_scan_inputs=1)
    for chain in [outer, [scan]]:
        model = model_of(chain, [declared("x", f32, ["n", 2])], {"v": f32, "rows": f32}, constants=given)
        x = numbers(*extents, 2)
        got = run(model, {"x": x})
        sums = given["v0"] + np.concatenate([np.zeros((1, 2), f32), np.cumsum(x, 0)])
        close(got["v"], sums[-1], 1e-4)
        close(got["rows"], sums[:-1], 1e-4)
