# SPDX-License-Identifier: Apache-2.0
"""Matrix products: every form of C and of the transposes, and scales of other dtypes."""

import itertools

import numpy as np
import pytest
from onnx import helper
from small_models import close, everywhere, f32, folded, i32, model_of, node_model, numbers, one, refused, run


def integers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-5, 6, shape)


FORMS_OF_C = [None, (), (1,), (4,), (1, 4), (2, 1), (2, 4), (1, 1)]


@pytest.mark.parametrize("trans_a, trans_b, dtype", [(0, 0, f32), (0, 1, f32), (1, 0, f32), (1, 1, f32), (0, 1, np.float64), (1, 0, np.float16)])
def test_gemm(trans_a, trans_b, dtype):
    a, b = integers(2, 3).astype(dtype), integers(3, 4, seed=1).astype(dtype)
    given = {"a": a.T.copy() if trans_a else a, "b": b.T.copy() if trans_b else b}
    for shape in FORMS_OF_C:
        c = {} if shape is None else {"c": integers(*shape, seed=2).astype(dtype)}
        expected = (0.5 * (a @ b) + (0 if shape is None else 2 * c["c"])).astype(dtype)
        attributes = {"transA": trans_a, "transB": trans_b, "alpha": 0.5, "beta": 2.0}
        close(one("Gemm", {**given, **c}, 13, levels=(3,), **attributes), expected)
        # Weights that are known, as models have them.
        close(one("Gemm", {"a": given["a"]}, 13, constants={"b": given["b"], **c}, **attributes), expected)
        close(folded("Gemm", {**given, **c}, 13, **attributes), expected)


@pytest.mark.parametrize("opset", [7, 9, 11, 13])
def test_gemm_opsets(opset):
    a, b, c = numbers(2, 3), numbers(3, 4, seed=1), numbers(4, seed=2)
    close(one("Gemm", {"a": a}, opset, constants={"b": b, "c": c}), a @ b + c)
    if opset >= 11:  # C may be left out
        close(one("Gemm", {"a": a}, opset, constants={"b": b}), a @ b)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_gemm_of_integers(dtype):
    a, b = np.abs(integers(2, 3)).astype(dtype), np.abs(integers(3, 4, seed=1)).astype(dtype)
    for shape in FORMS_OF_C:
        c = {} if shape is None else {"c": np.abs(integers(*shape, seed=2)).astype(dtype)}
        expected = a @ b + (c["c"] if c else 0)
        close(everywhere("Gemm", {"a": a, "b": b, **c}, 13), expected.astype(dtype))
    close(one("Gemm", {"a": a, "b": b, "c": np.array([1], dtype)}, 13, alpha=2.0, beta=3.0), (2 * (a @ b) + 3).astype(dtype))


# The bias is as long as the rows of the product, whichever side is transposed.
@pytest.mark.parametrize("trans_b", [0, 1])
def test_gemm_bias_of_a_square_weight(trans_b):
    a, b, c = numbers(5, 4), numbers(4, 4, seed=1), numbers(4, seed=2)
    close(one("Gemm", {"a": a}, constants={"b": b, "c": c}, transB=trans_b), a @ (b.T if trans_b else b) + c)


# All extents are equal: only the axes can say which operand goes where.
@pytest.mark.parametrize("shape", [(), (1,), (4,), (1, 4), (4, 1), (4, 4)])
@pytest.mark.parametrize("op", ["Add", "Mul", "Sub", "Div"])
def test_operands_behind_a_square_product(shape, op):
    a, w, v, c = numbers(4, 4), numbers(4, 4, seed=1), numbers(4, 4, seed=2), np.abs(np.asarray(numbers(*shape, seed=3))) + f32(0.5)
    function = {"Add": np.add, "Mul": np.multiply, "Sub": np.subtract, "Div": np.divide}[op]
    for order in [["p", "c"], ["c", "p"]]:
        if order[0] == "c" and op == "Div":
            continue  # a quotient by a product may be large
        nodes = [helper.make_node("MatMul", ["a", "w"], ["p"]), helper.make_node(op, order, ["q"]), helper.make_node("Relu", ["q"], ["r"]),
                 helper.make_node("MatMul", ["r", "v"], ["y"])]
        product = a @ w
        q = function(product, c) if order[0] == "p" else function(c, product)
        for known in [True, False]:
            constants = {"w": w, "v": v, **({"c": c} if known else {})}
            feed = {"a": a, **({} if known else {"c": c})}
            close(run(model_of(nodes, feed, {"y": f32}, constants=constants), feed, (3,))["y"], np.maximum(q, 0) @ v, 1e-4, 1e-4)


@pytest.mark.parametrize("alpha, beta", [(0.0, 1.0), (1.0, 0.0), (-1.0, -2.0)])
def test_gemm_scales(alpha, beta):
    a, b, c = numbers(2, 3), numbers(3, 4, seed=1), numbers(4, seed=2)
    close(everywhere("Gemm", {"a": a, "b": b, "c": c}, alpha=alpha, beta=beta), (alpha * (a @ b) + beta * c).astype(f32))


def test_gemm_of_empty_matrices():
    for m, k, n in [(0, 3, 4), (2, 0, 4), (2, 3, 0)]:
        a, b, c = numbers(m, k), numbers(k, n, seed=1), numbers(1, seed=2)
        close(one("Gemm", {"a": a, "b": b, "c": c}), a @ b + c)


def test_gemm_that_does_not_fit():
    a, b = numbers(2, 3), numbers(3, 4)
    for c in [numbers(3), numbers(3, 4), numbers(1, 2, 4), np.zeros(1, np.float64), np.zeros(1, np.float16), np.zeros(1, i32)]:
        refused(node_model("Gemm", {"a": a, "b": b, "c": c}))
    refused(node_model("Gemm", {"a": a, "b": numbers(4, 3)}))
    refused(node_model("Gemm", {"a": a, "b": b}, transA=1))
    refused(node_model("Gemm", {"a": numbers(2, 2, 3), "b": b}))
    refused(node_model("Gemm", {"a": a, "b": b.astype(np.float64)}))


RANKS = [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
         ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)),
         ((6, 1, 2, 3), (5, 3, 4)), ((0, 2, 3), (3, 4)), ((2, 0), (0, 4))]


@pytest.mark.parametrize("left, right", RANKS)
def test_matmul_ranks(left, right):
    a, b = integers(*left).astype(f32), integers(*right, seed=1).astype(f32)
    expected = np.asarray(np.matmul(a, b))
    close(everywhere("MatMul", {"a": a, "b": b}), expected)
    close(one("MatMul", {"a": a}, constants={"b": b}), expected)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64, np.float64])
def test_matmul_dtypes(dtype):
    for left, right in itertools.islice(RANKS, 0, 10, 3):
        a, b = np.abs(integers(*left)).astype(dtype), np.abs(integers(*right, seed=1)).astype(dtype)
        close(one("MatMul", {"a": a, "b": b}), np.asarray(np.matmul(a, b)))
