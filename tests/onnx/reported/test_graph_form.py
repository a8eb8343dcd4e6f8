# SPDX-License-Identifier: Apache-2.0
"""The form of a graph: where weights are listed, which values are outputs, and very long chains."""

import resource
import subprocess

import numpy as np
import onnx
import pytest
from onnx import helper
from small_models import close, declared, f32, i64, model_of, numbers, run, session, treadle

# ---- Initialisers that are inputs too ----


@pytest.mark.parametrize("ir_version", [3, 4, 8, 10])
@pytest.mark.parametrize("listed", [True, False])
def test_weights_among_the_inputs(ir_version, listed):
    x, w, b = numbers(2, 3), numbers(3, 4, seed=1), numbers(4, seed=2)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["y"])]
    inputs = {"w": w, "x": x, "b": b} if listed else {"x": x}
    if ir_version == 3 and not listed:
        return  # such a model is not valid; it is read like the later ones
    model = model_of(nodes, inputs, {"y": f32}, 8, {"w": w, "b": b}, ir_version=ir_version)
    compiled = session(model)
    assert [info.name for info in compiled.get_inputs()] == ["x"]
    assert compiled.get_overridable_initializers() == []
    close(compiled.run(None, {"x": x})[0], x @ w + b, 1e-4)
    # Weights are compiled in: one that is fed is refused by name, not ignored.
    with pytest.raises(treadle.RunError, match="'w'"):
        compiled.run(None, {"x": x, "w": w})


def test_weights_without_inputs_of_version_3():
    x, w = numbers(2, 3), numbers(3, 4, seed=1)
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x}, {"y": f32}, 8, {"w": w}, ir_version=3)
    close(run(model, {"x": x})["y"], x @ w, 1e-4)


def test_weight_that_is_an_output():
    x, w = numbers(2, 3), numbers(3, seed=1)
    got = run(model_of([helper.make_node("Add", ["x", "w"], ["y"])], {"x": x, "w": w}, {"w": f32, "y": f32}, constants={"w": w}), {"x": x})
    close(got["w"], w)
    close(got["y"], x + w)


def test_weight_that_nobody_uses():
    x = numbers(2)
    close(run(model_of([helper.make_node("Neg", ["x"], ["y"])], {"x": x}, {"y": f32}, constants={"w": numbers(3), "v": numbers(0)}), {"x": x})["y"],
          -x)


# ---- Values that are outputs and go on inside ----


def check_outputs(nodes, feed, expected, constants=None, opset=17):
    """All values in the order given, and in the reverse order."""
    for names in [list(expected), list(expected)[::-1]]:
        got = run(model_of(nodes, feed, {name: expected[name].dtype for name in names}, opset, constants), feed)
        assert list(got) == names
        for name in names:
            close(got[name], expected[name], 1e-4, 1e-5)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("channels", [2, 16])
def test_outputs_inside_of_a_convolution_block(kernel, channels):
    x, w = numbers(1, channels, 5, 5), numbers(channels, channels, kernel, kernel, seed=1)
    s, b, m, v = numbers(channels, seed=2), numbers(channels, seed=3), numbers(channels, seed=4), np.abs(numbers(channels, seed=5)) + 0.5
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[kernel // 2] * 4),
             helper.make_node("BatchNormalization", ["a", "s", "b", "m", "v"], ["n"], epsilon=0.0), helper.make_node("Relu", ["n"], ["r"])]
    padded = np.pad(x, [(0, 0), (0, 0), (kernel // 2,) * 2, (kernel // 2,) * 2])
    a = np.einsum("nchwij,mcij->nmhw", np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3)), w).astype(f32)
    n = ((a - m.reshape(-1, 1, 1)) / np.sqrt(v).reshape(-1, 1, 1) * s.reshape(-1, 1, 1) + b.reshape(-1, 1, 1)).astype(f32)
    for names in [["a", "n", "r"], ["r", "n", "a"], ["n"], ["a", "r"]]:
        got = run(model_of(nodes, {"x": x}, dict.fromkeys(names, f32), constants={"w": w, "s": s, "b": b, "m": m, "v": v}), {"x": x})
        assert list(got) == names
        for name in names:
            close(got[name], {"a": a, "n": n, "r": np.maximum(n, 0)}[name], 1e-3, 1e-3)


def test_outputs_inside_of_a_product_block():
    x, w, b = numbers(3, 4), numbers(4, 8, seed=1), numbers(8, seed=2)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["s"]), helper.make_node("Relu", ["s"], ["r"]),
             helper.make_node("Softmax", ["s"], ["q"])]
    p = x @ w
    e = np.exp(p + b - (p + b).max(1, keepdims=True))
    check_outputs(nodes, {"x": x}, {"p": p, "s": p + b, "r": np.maximum(p + b, 0), "q": e / e.sum(1, keepdims=True)}, {"w": w, "b": b})


def test_outputs_that_are_folded_or_trivial():
    x, c = numbers(3), f32([4, 9, 16])
    nodes = [helper.make_node("Sqrt", ["c"], ["root"]), helper.make_node("Add", ["root", "root"], ["twice"]),
             helper.make_node("Mul", ["x", "twice"], ["y"]), helper.make_node("Identity", ["y"], ["same"]),
             helper.make_node("Identity", ["x"], ["copy"]), helper.make_node("Add", ["x", "zero"], ["plus"]),
             helper.make_node("Shape", ["y"], ["extent"])]
    root = np.sqrt(c)
    check_outputs(nodes, {"x": x}, {"root": root, "twice": 2 * root, "y": 2 * root * x, "same": 2 * root * x, "copy": x, "plus": x,
                                    "extent": np.array([3], i64)}, {"c": c, "zero": np.zeros(3, f32)})


def test_input_that_is_an_output():
    x = numbers(3)
    check_outputs([helper.make_node("Neg", ["x"], ["y"])], {"x": x}, {"x": x, "y": -x})


# Two nodes of the same value, which become one inside.
def test_equal_values_with_two_names():
    x = numbers(3)
    nodes = [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Exp", ["x"], ["b"]), helper.make_node("Mul", ["a", "b"], ["c"])]
    check_outputs(nodes, {"x": x}, {"a": np.exp(x), "b": np.exp(x), "c": np.exp(x) ** 2})


def test_parts_as_outputs():
    x = numbers(4, 3)
    nodes = [helper.make_node("Split", ["x"], ["a", "b"], axis=0), helper.make_node("Add", ["a", "b"], ["s"]),
             helper.make_node("Concat", ["b", "s"], ["c"], axis=1), helper.make_node("Reshape", ["c", "flat"], ["r"])]
    s = x[:2] + x[2:]
    check_outputs(nodes, {"x": x}, {"a": x[:2], "b": x[2:], "s": s, "c": np.concatenate([x[2:], s], 1), "r": np.concatenate([x[2:], s], 1).ravel()},
                  {"flat": np.array([-1], i64)}, 13)


def test_nodes_out_of_order():
    x = numbers(3)
    nodes = [helper.make_node("Add", ["b", "a"], ["y"]), helper.make_node("Neg", ["a"], ["b"]), helper.make_node("Exp", ["x"], ["a"])]
    close(run(model_of(nodes, {"x": x}, {"y": f32}), {"x": x})["y"], np.zeros(3, f32))


# ---- Long chains ----


def chain(count, op="Add"):
    """x + 1 + 1 + …, which folding may not join: the ones are an input."""
    nodes = [helper.make_node(op, [f"v{i - 1}" if i else "x", "one"], [f"v{i}" if i < count - 1 else "y"]) for i in range(count)]
    return model_of(nodes, [declared("x", i64, [2]), declared("one", i64, [2])], {"y": i64})


STACK = 512 * 1024  # bytes


def with_small_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))


def treadle_with_small_stack(command, *arguments):
    done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=120, preexec_fn=with_small_stack)
    assert done.returncode == 0, done.stderr[-500:]


@pytest.fixture
def chain_inputs(tmp_path):
    """Options that give the inputs of a chain."""
    np.save(tmp_path / "x.npy", np.array([5, -3], i64))
    np.save(tmp_path / "one.npy", np.ones(2, i64))
    return ["--input", f"x={tmp_path}/x.npy", "--input", f"one={tmp_path}/one.npy", "--no-cache", "--output", tmp_path / "out.npz"]


# Under a stack of 512 KiB: every walk over the graph is iterative, that of destruction too.
@pytest.mark.parametrize("level", ["0", "3"])
def test_long_chain(level, tmp_path, treadle_command, chain_inputs):
    count = 20_000  # a frame of 27 bytes for each node would be too much
    onnx.save(chain(count), tmp_path / "chain.onnx")
    treadle_with_small_stack(treadle_command, "run", tmp_path / "chain.onnx", "-O", level, *chain_inputs)
    close(np.load(tmp_path / "out.npz")["y"], np.array([5 + count, count - 3], i64))


# Printed, parsed and compiled from the text.
def test_long_chain_as_text(tmp_path, treadle_command, chain_inputs):
    count = 10_000
    onnx.save(chain(count), tmp_path / "chain.onnx")
    treadle_with_small_stack(treadle_command, "compile", tmp_path / "chain.onnx", "--emit", "relay", "-O", "3", "--disable-pass", "FuseOps", "-o",
                             tmp_path / "chain.relay")
    assert (tmp_path / "chain.relay").read_text().count("add(") == count
    treadle_with_small_stack(treadle_command, "run", tmp_path / "chain.relay", "-O", "3", *chain_inputs)
    close(next(iter(np.load(tmp_path / "out.npz").values())), np.array([5 + count, count - 3], i64))


# Known operands: the chain folds to a number, without recursion.
def test_long_chain_of_constants():
    count = 20_000
    nodes = [helper.make_node("Add", [f"v{i - 1}" if i else "one", "one"], [f"v{i}" if i < count - 1 else "y"]) for i in range(count)]
    close(run(model_of(nodes, {}, {"y": i64}, constants={"one": np.array([1], i64)}), {}, (3,))["y"], np.array([count + 1], i64))


# Each value is used twice: as many paths as 2 to the number of nodes, all of which a walk without memory would take.
def test_chain_of_doublings():
    count = 60
    nodes = [helper.make_node("Add", [f"v{i - 1}" if i else "x"] * 2, [f"v{i}" if i < count - 1 else "y"]) for i in range(count)]
    x = np.array([1, -3], i64)
    close(run(model_of(nodes, {"x": x}, {"y": i64}), {"x": x})["y"], x * 2**count)
