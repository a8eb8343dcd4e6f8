# SPDX-License-Identifier: Apache-2.0
"""Reshapes, splits and joins: parts of unequal size, extents of 0 and -1, operands without elements, blocks of channels."""

import itertools
import math

import numpy as np
import pytest
from onnx import helper
from small_models import close, declared, everywhere, f32, folded, i64, model_of, node_model, numbers, one, refused, run, session

# ---- Split ----


def part_sizes(extent, count):
    size = math.ceil(extent / count)
    return [size] * (count - 1) + [extent - size * (count - 1)]


def split(x, sizes, axis):
    return np.split(x, np.cumsum(sizes)[:-1], axis)


@pytest.mark.parametrize("extent, count", [(10, 3), (7, 4), (6, 3), (5, 5), (9, 2), (1, 1), (7, 1)])
@pytest.mark.parametrize("opset", [18, 23])
def test_unequal_parts(extent, count, opset):
    x = np.arange(extent, dtype=f32)
    got = one("Split", {"x": x}, opset, outputs=count, num_outputs=count)
    for actual, wanted in zip(got if count > 1 else [got], split(x, part_sizes(extent, count), 0), strict=True):
        close(actual, wanted)


@pytest.mark.parametrize("shape, axis", [((2, 7), 1), ((2, 7), -1), ((7, 2, 3), 0), ((2, 3, 7), -1)])
def test_unequal_parts_of_each_axis(shape, axis):
    x = numbers(*shape)
    for got in [one("Split", {"x": x}, 18, outputs=4, axis=axis, num_outputs=4), folded("Split", {"x": x}, 18, outputs=4, axis=axis, num_outputs=4)]:
        for actual, wanted in zip(got, split(x, [2, 2, 2, 1], axis), strict=True):
            close(actual, wanted)


@pytest.mark.parametrize("sizes", [[1, 4, 2], [7, 0, 0], [0, 7], [3, 4]])
def test_given_sizes(sizes):
    x = numbers(7, 2)
    for opset in [7, 11, 13, 18]:
        given = {"split": sizes} if opset < 13 else {"constants": {"s": np.array(sizes, i64)}}
        for actual, wanted in zip(one("Split", {"x": x}, opset, outputs=len(sizes), axis=-2, **given), split(x, sizes, 0), strict=True):
            close(actual, wanted)


def test_sizes_that_do_not_fit():
    for sizes in [[1, 4], [8, -1], [3, 5], [7]]:
        refused(node_model("Split", {"x": numbers(7)}, 13, constants={"s": np.array(sizes, i64)}, outputs=2))
    refused(node_model("Split", {"x": numbers(7)}, 13, outputs=2))  # equal parts until opset 17
    refused(node_model("Split", {"x": numbers(7)}, 18, outputs=3, num_outputs=2))
    # Five elements in four parts of ceil(5 / 4) leave less than nothing for the last one.
    refused(node_model("Split", {"x": numbers(5)}, 18, outputs=4, num_outputs=4))


# The parts are used in another order, once and more than once.
def test_use_of_parts():
    x = numbers(2, 7)
    nodes = [helper.make_node("Split", ["x"], ["a", "b", "c"], axis=1, num_outputs=3),
             helper.make_node("Concat", ["c", "a", "c", "b"], ["y"], axis=1)]
    parts = split(x, [3, 3, 1], 1)
    close(run(model_of(nodes, {"x": x}, {"y": f32}, 18), {"x": x})["y"], np.concatenate([parts[2], parts[0], parts[2], parts[1]], 1))


# ---- Reshape ----


def reshape_chain(shape, steps, dtype=f32):
    """A model of Reshapes in a row, each (shape, allowzero)."""
    names = ["x", *[f"v{i}" for i in range(len(steps) - 1)], "y"]
    nodes = [helper.make_node("Reshape", [names[i], f"s{i}"], [names[i + 1]], **({"allowzero": 1} if allowzero else {})) for i,
             (_, allowzero) in enumerate(steps)]
    return model_of(nodes, [declared("x", dtype, shape)], {"y": dtype}, 14, {f"s{i}": np.array(target, i64) for i, (target, _) in enumerate(steps)})


@pytest.mark.parametrize("shape, steps, expected", [
    ((0, 6), [([2, 3, -1], 0), ([0, 0, 5], 1)], (0, 0, 5)),
    ((0, 6), [([0, 3, 2], 0)], (0, 3, 2)),
    ((0, 6), [([0, 3, 2], 1)], (0, 3, 2)),
    ((0, 6), [([6, 0], 1), ([0, -1], 0)], None),  # -1 of no elements is not defined: 6 x n = 0 has n = 0
    ((2, 0, 3), [([0, 0, -1], 0)], None),
    ((3, 4), [([0, 2, 2], 0), ([-1], 0)], (12,)),
    ((3, 4), [([-1, 0], 0)], (3, 4)),
    ((3, 4), [([2, -1], 0), ([0, 0, 1], 0), ([1, 0, -1, 1], 0)], (1, 6, 2, 1)),
    ((4, 3), [([0, -1], 0), ([0, 0], 0)], (4, 3)),
    ((0,), [([0, 7], 1), ([3, 0], 1), ([5, 0, 9], 1)], (5, 0, 9)),
    ((1,), [([], 0)], ()),
    ((), [([1, -1], 0), ([-1], 0)], (1,)),
])
def test_chains_of_reshapes(shape, steps, expected):
    x = numbers(*shape)
    if expected is None:
        # Either reading of -1 gives no elements.
        try:
            y = run(reshape_chain(shape, steps), {"x": x})["y"]
        except Exception as error:
            assert "TRD-" in str(error) and "TRD-INT" not in str(error)
            return
        assert y.size == 0
        return
    close(run(reshape_chain(shape, steps), {"x": x})["y"], np.reshape(x, expected))


def test_reshapes_that_do_not_fit():
    for shape, target, allowzero in [((3, 4), [5, -1], 0), ((3, 4), [0, 5], 0), ((3, 4), [0, 4], 1), ((3, 4), [-1, -1], 0), ((3,), [0, 0, 0], 0),
                                     ((0, 6), [0, -1], 1), ((3, 4), [-2, 6], 0)]:
        refused(reshape_chain(shape, [(target, allowzero)]))


# The target as data.
@pytest.mark.parametrize("target, allowzero, expected", [([2, -1], 0, (2, 6)), ([0, 2, 2], 0, (3, 2, 2)), ([-1], 0, (12,)), ([12, 1], 1, (12, 1))])
def test_target_that_is_computed(target, allowzero, expected):
    x = numbers(3, 4)
    attributes = {"allowzero": 1} if allowzero else {}
    node = helper.make_node("Reshape", ["x", "s"], ["y"], **attributes)
    s = np.array(target, i64)
    close(run(model_of([node], {"x": x, "s": s}, {"y": f32}, 14), {"x": x, "s": s})["y"], x.reshape(expected))


def test_unknown_batch():
    weights = {"s1": np.array([-1, 3, 4], i64), "s2": np.array([-1, 12], i64), "w": numbers(12, 2, seed=1)}
    nodes = [helper.make_node("Reshape", ["x", "s1"], ["a"]), helper.make_node("Reshape", ["a", "s2"], ["b"]),
             helper.make_node("MatMul", ["b", "w"], ["y"])]
    for level in (0, 3):
        compiled = session(model_of(nodes, [declared("x", f32, ["n", 3, 1, 4])], {"y": f32}, constants=weights), level)
        for n in [1, 5, 0, 17]:
            x = numbers(n, 3, 1, 4, seed=n)
            close(compiled.run(None, {"x": x})[0], x.reshape(-1, 12) @ weights["w"], 1e-4, 1e-5)


@pytest.mark.parametrize("shape, target, extents", [
    (["n", 4, "w"], [0, -1], {"n": 2, "w": 3}),
    (["n", 4, "w"], [-1, 2], {"n": 3, "w": 5}),
    (["n", "n"], [-1], {"n": 4}),
    (["n", 6], [0, 2, 3, 1], {"n": 5}),
    (["n", "c", 4], [0, 0, 2, -1], {"n": 2, "c": 3}),
    (["n", 2, 8], [-1, 4], {"n": 3}),
])
def test_unknown_extents(shape, target, extents):
    model = model_of([helper.make_node("Reshape", ["x", "s"], ["y"])], [declared("x", f32, shape)], {"y": f32},
                     constants={"s": np.array(target, i64)})
    x = numbers(*[extents.get(extent, extent) for extent in shape])
    close(run(model, {"x": x})["y"], x.reshape([x.shape[i] if t == 0 else t for i, t in enumerate(target)]))


# The target made from the input's own shape, as exporters write it.
def test_target_from_the_shape():
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
             helper.make_node("Unsqueeze", ["n", "front"], ["nv"]),
             helper.make_node("Concat", ["nv", "rest"], ["t"], axis=0), helper.make_node("Reshape", ["x", "t"], ["y"])]
    given = {"zero": np.array(0, i64), "front": np.array([0], i64), "rest": np.array([-1], i64)}
    for shape in [["n", 3, "w"], ["n", "c", "h", "w"], [2, 3, 4]]:
        model = model_of(nodes, [declared("x", f32, shape)], {"y": f32}, constants=given)
        x = numbers(*[extent if isinstance(extent, int) else i + 2 for i, extent in enumerate(shape)])
        close(run(model, {"x": x})["y"], x.reshape(x.shape[0], -1))


def test_reshape_across_axes():
    x = np.arange(64, dtype=f32).reshape(1, 2, 4, 8)
    close(everywhere("Reshape", {"x": x}, constants={"s": np.array([8, 8], i64)}), x.reshape(8, 8))


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2, 3])
def test_flatten(axis):
    x = numbers(2, 3, 4)
    expected = x.reshape(int(np.prod(x.shape[:axis])) if axis else 1, -1)
    close(everywhere("Flatten", {"x": x}, 11, axis=axis), expected)
    empty = numbers(2, 0, 4)
    close(one("Flatten", {"x": empty}, 11, axis=axis), empty.reshape(math.prod(empty.shape[:axis]) if axis else 1, math.prod(empty.shape[axis:])))


# ---- Concat ----


@pytest.mark.parametrize("shapes, axis", [([(0,), (2,)], 0), ([(2,), (0,)], 0), ([(2, 0), (2, 3)], 1), ([(2, 3), (2, 0), (2, 1)], -1),
                                          ([(0, 3), (0, 3)], 0), ([(0, 3), (0, 2)], 1), ([(1, 0, 2), (1, 4, 2), (1, 0, 2)], 1)])
def test_empty_operands(shapes, axis):
    inputs = {f"x{i}": numbers(*shape, seed=i) for i, shape in enumerate(shapes)}
    expected = np.concatenate(list(inputs.values()), axis)
    close(everywhere("Concat", inputs, axis=axis), expected)
    # One operand is known, the other not.
    names = list(inputs)
    close(one("Concat", {names[0]: inputs[names[0]]}, constants={name: inputs[name] for name in names[1:]}, axis=axis), expected)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_single_operand(axis):
    x = numbers(2, 3)
    close(everywhere("Concat", {"x": x}, axis=axis), x)
    nodes = [helper.make_node("Concat", ["x"], ["a"], axis=axis), helper.make_node("Add", ["a", "a"], ["y"])]
    got = run(model_of(nodes, {"x": x}, {"y": f32, "a": f32}), {"x": x})
    close(got["y"], x + x)
    close(got["a"], x)


def test_the_same_operand_twice():
    x = numbers(2, 3)
    node = helper.make_node("Concat", ["x", "x", "x"], ["y"], axis=1)
    close(run(model_of([node], {"x": x}, {"y": f32}), {"x": x})["y"], np.concatenate([x, x, x], 1))


def test_operands_that_do_not_fit():
    for shapes, axis in [([(0,), (2, 1)], 0), ([(2, 0), (3, 3)], 1), ([(2, 3), (2, 3)], 2)]:
        refused(node_model("Concat", {f"x{i}": numbers(*shape) for i, shape in enumerate(shapes)}, axis=axis))


# ---- DepthToSpace and back ----


def depth_to_space(x, block, mode):
    n, c, h, w = x.shape
    c //= block * block
    if mode == "DCR":
        return x.reshape(n, block, block, c, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c, h * block, w * block)
    return x.reshape(n, c, block, block, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c, h * block, w * block)


def test_golden_blocks():
    x = np.arange(18, dtype=f32).reshape(1, 18, 1, 1)
    crd, dcr = (everywhere("DepthToSpace", {"x": x}, blocksize=3, mode=mode) for mode in ["CRD", "DCR"])
    np.testing.assert_array_equal(crd[0, 0].ravel(), range(9))
    np.testing.assert_array_equal(crd[0, 1].ravel(), range(9, 18))
    np.testing.assert_array_equal(dcr[0, 0].ravel(), range(0, 18, 2))
    np.testing.assert_array_equal(dcr[0, 1].ravel(), range(1, 18, 2))
    # SpaceToDepth undoes DCR.
    close(one("SpaceToDepth", {"x": dcr}, blocksize=3), x)


@pytest.mark.parametrize("block, mode, dtype", [(1, "DCR", f32), *itertools.product([2, 3, 4], ["DCR", "CRD"], [f32]), (2, "CRD", np.float16),
                                                (2, "DCR", np.int8), (3, "CRD", np.float64)])
def test_blocks(block, mode, dtype):
    x = np.arange(2 * 2 * block**2 * 3 * 2).reshape(2, 2 * block**2, 3, 2).astype(dtype)
    y = depth_to_space(x, block, mode)
    close(one("DepthToSpace", {"x": x}, blocksize=block, mode=mode), y)
    if mode == "DCR":
        close(one("SpaceToDepth", {"x": y}, blocksize=block), x)
        close(one("DepthToSpace", {"x": x}, 11, blocksize=block), y)


def test_blocks_that_do_not_fit():
    refused(node_model("DepthToSpace", {"x": numbers(1, 6, 2, 2)}, blocksize=2))
    refused(node_model("SpaceToDepth", {"x": numbers(1, 6, 3, 2)}, blocksize=2))
    refused(node_model("DepthToSpace", {"x": numbers(1, 4, 2, 2)}, blocksize=0))


# Behind a convolution, whose layout is blocked.
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_between_convolutions(mode):
    x, w, v = numbers(1, 8, 4, 5), numbers(36, 8, 1, 1, seed=1), numbers(8, 4, 1, 1, seed=2)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("DepthToSpace", ["a"], ["b"], blocksize=3, mode=mode),
             helper.make_node("Conv", ["b", "v"], ["y"])]
    a = np.einsum("nchw,mc->nmhw", x, w[..., 0, 0])
    expected = np.einsum("nchw,mc->nmhw", depth_to_space(a, 3, mode), v[..., 0, 0])
    close(run(model_of(nodes, {"x": x}, {"y": f32}, constants={"w": w, "v": v}), {"x": x})["y"], expected.astype(f32), 1e-4, 1e-4)


# ---- Expand, Tile, Squeeze ----


@pytest.mark.parametrize("shape, target", [((3, 1), [2, 1, 6]), ((3, 1), [3, 1]), ((1, 3), [4, 1]), ((3, 4), [1]), ((), [2, 3]), ((1,), [0]),
                                           ((2, 1), [1, 0])])
def test_expand(shape, target):
    x = numbers(*shape)
    close(everywhere("Expand", {"x": x}, constants={"s": np.array(target, i64)}), np.broadcast_to(x, np.broadcast_shapes(shape, target)).copy())


@pytest.mark.parametrize("shape, reps", [((2, 3), [1, 2]), ((2, 3), [2, 0]), ((3,), [1]), ((1, 2, 1), [3, 1, 2]), ((0, 2), [2, 2])])
def test_tile(shape, reps):
    x = numbers(*shape)
    close(everywhere("Tile", {"x": x}, constants={"r": np.array(reps, i64)}), np.tile(x, reps))


def test_squeeze_and_unsqueeze():
    x = numbers(1, 3, 1, 2)
    for opset in [11, 13]:
        axes = lambda values: {"axes": values} if opset < 13 else {"constants": {"a": np.array(values, i64)}}
        close(one("Squeeze", {"x": x}, opset), x.squeeze())
        close(one("Squeeze", {"x": x}, opset, **axes([-2])), x.squeeze(2))
        close(one("Squeeze", {"x": x}, opset, **axes([0, 2])), x.squeeze((0, 2)))
        close(one("Unsqueeze", {"x": x}, opset, **axes([-1, 0])), x[None, ..., None])
        close(one("Unsqueeze", {"x": x}, opset, **axes([4, 1])), np.expand_dims(x, (1, 4)))
    refused(node_model("Squeeze", {"x": x}, constants={"a": np.array([1], i64)}))
    refused(node_model("Unsqueeze", {"x": x}, constants={"a": np.array([0, -6], i64)}))
