#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small models that ask a compiler for much: `cases()` yields (name, bytes), each of at most 100 kB. They are well formed, so
the compiler may accept or refuse them; either must cost little. `make_hostile.py FOLDER` writes them there.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from make_broken import field

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
LARGEST = 100_000  # bytes


def value(name, shape=None, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def ints(name, *numbers):
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def floats(name, shape, number=1.0):
    return numpy_helper.from_array(np.full(shape, number, np.float32), name)


def model(nodes, initializers=(), inputs=None, outputs=None, opset=17):
    inputs = [value("x", [4])] if inputs is None else inputs
    outputs = [value("y")] if outputs is None else outputs
    graph = helper.make_graph(list(nodes), "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def node(op, inputs, outputs="y", **attributes):
    split = lambda names: names.split(",") if isinstance(names, str) else list(names)
    return helper.make_node(op, split(inputs), split(outputs), **attributes)


def reduced(op_nodes, name, opset=17):
    """The nodes, then a sum of all elements of `name`: small, though its operand is not, and made of constants only."""
    return [*op_nodes, node("ReduceSum", name, "s", keepdims=0), node("Add", "x,s", "y")]


def filled(name, shape):
    return [node("Constant", "", f"{name}_shape", value=ints("v", *shape)),
            node("ConstantOfShape", f"{name}_shape", name, value=floats("v", [1]))]


def giant_values():
    """Operators that make much from little; a sum makes it small again, so that folding would be tempting."""
    side = 1 << 18
    big = filled("c", [side, side])  # 2^36 elements
    yield "constant of shape", model(reduced(big, "c"))
    yield "constant of shape, plain", model([*big, node("Add", "x,c0", "y")][:-1] + [node("Identity", "c", "y")], inputs=[])
    yield "expand", model(reduced([node("Expand", "w,sh", "c")], "c"), [floats("w", [1]), ints("sh", side, side)])
    yield "tile", model(reduced([node("Tile", "w,sh", "c")], "c"), [floats("w", [2, 2]), ints("sh", side, side)])
    yield "range", model(reduced([node("Range", "a,b,d", "r"), node("Cast", "r", "c", to=FLOAT)], "c"),
                         [ints("a"), ints("b"), ints("d")] and
                         [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("a", 0), ("b", 1 << 36), ("d", 1))])
    yield "one hot", model(reduced([node("OneHot", "i,d,v", "c")], "c"),
                           [ints("i", *range(2048)), ints("d", 1 << 26), floats("v", [2])])
    yield "pad", model(reduced([node("Pad", "w,p", "c")], "c"), [floats("w", [1, 1]), ints("p", side, side, 0, 0)])
    yield "resize", model(reduced([node("Resize", ["w", "", "sc"], "c")], "c"),
                          [floats("w", [1, 1, 2, 2]), floats("sc", [4], 1e5)])
    yield "upsample", model([node("Upsample", "w,sc", "c"), node("ReduceSum", "c", "s", keepdims=0), node("Add", "x,s")],
                            [floats("w", [1, 1, 2, 2]), numpy_helper.from_array(np.array([1, 1, 1e5, 1e5], np.float32), "sc")], opset=9)
    yield "eye like", model(reduced([*big, node("EyeLike", "c", "e")], "e"))
    yield "matrix product", model(reduced([*filled("c", [100_000, 100_000]), node("MatMul", "c,c", "m")], "m"))
    yield "outer product", model(reduced([*filled("a", [side, 1]), *filled("b", [1, side]), node("MatMul", "a,b", "m")], "m"))
    yield "outer product of weights", model(reduced([node("MatMul", "a,b", "m"), node("MatMul", "m,m", "n")], "n"),
                                            [floats("a", [10_000, 1]), floats("b", [1, 10_000])])
    yield "convolution", model(reduced([*filled("c", [1, 64, 4096, 4096]), *filled("k", [64, 64, 7, 7]), node("Conv", "c,k", "m")], "m"))
    yield "giant kernel", model(reduced([*filled("c", [1, 1, 4096, 4096]), *filled("k", [1, 1, 2048, 2048]), node("Conv", "c,k", "m")], "m"))
    yield "transposed convolution", model(reduced([node("ConvTranspose", "w,k", "m", strides=[100_000, 100_000])], "m"),
                                          [floats("w", [1, 1, 8, 8]), floats("k", [1, 1, 3, 3])])
    yield "giant pool", model([node("MaxPool", "x", kernel_shape=[1 << 20, 1 << 20], pads=[1 << 19] * 4)],
                              inputs=[value("x", [1, 1, 8, 8])])
    yield "giant pads", model([node("Conv", "x,k", pads=[1 << 28] * 4)], [floats("k", [1, 1, 3, 3])], inputs=[value("x", [1, 1, 8, 8])])
    yield "giant stride", model([node("Conv", "x,k", strides=[1 << 60] * 2)], [floats("k", [1, 1, 3, 3])], inputs=[value("x", [1, 1, 8, 8])])
    yield "giant dilation", model([node("Conv", "x,k", dilations=[1 << 60] * 2, pads=[1 << 61] * 4)], [floats("k", [1, 1, 3, 3])],
                                  inputs=[value("x", [1, 1, 8, 8])])
    yield "gather", model(reduced([*filled("i", [side, side]), node("Cast", "i", "j", to=INT64), node("Gather", "w,j", "c")], "c"),
                          [floats("w", [2])])
    yield "sort", model(reduced([*filled("c", [1 << 28]), node("TopK", "c,k", "t,u")], "t"), [ints("k", 1 << 20)])
    yield "arg max", model([*filled("c", [1 << 30]), node("ArgMax", "c", "a"), node("Cast", "a", "f", to=FLOAT), node("Add", "x,f")])
    yield "cumulative sums", model(reduced([*filled("c", [1 << 12, 1 << 12]), *[
        node("CumSum", "c,ax" if i == 0 else f"d{i - 1},ax", f"d{i}") for i in range(200)]], "d199"),
        [numpy_helper.from_array(np.array(0, np.int64), "ax")])
    yield "einsum", model(reduced([node("Einsum", ["w"] * 8, "c", equation=",".join("abcdefgh") + "->abcdefgh")], "c"), [floats("w", [64])])
    yield "einsum to a scalar", model([node("Einsum", ["w"] * 8, "c", equation=",".join("abcdefgh") + "->"), node("Add", "x,c")], [floats("w", [64])])
    yield "not a zero", model([*filled("c", [1 << 20]), node("NonZero", "c", "n"), node("Cast", "n", "f", to=FLOAT),
                               node("ReduceSum", "f", "s", keepdims=0), node("Add", "x,s")])
    yield "long small work", model(reduced([*filled("c", [512, 512]), *[
        node("MatMul", ["c", "c"] if i == 0 else [f"m{i - 1}", "c"], f"m{i}") for i in range(1000)]], "m999"))
    yield "work of weights", model(reduced([node("MatMul", "w,w", "m0"), *[
        node("MatMul", f"m{i},m{i}", f"m{i + 1}") for i in range(1200)]], "m1200"), [floats("w", [96, 96], 0.01)])
    yield "run of all weights", model(reduced([node("Tile", "w,r", "t"), node("MatMul", "t,t", "m")], "m"),
                                      [floats("w", [128, 128]), ints("r", 64, 64)])


def growth():
    """Values, or expressions of extents, that double with each node."""
    n = 40
    join = lambda i, name="c": node("Concat", [f"{name}{i}", f"{name}{i}"], f"{name}{i + 1}", axis=0)
    yield "concat x x", model([node("Identity", "x", "c0"), *[join(i) for i in range(n)], node("ReduceSum", f"c{n}", "y", keepdims=0)])
    yield "concat w w", model([*[join(i) for i in range(n)], node("ReduceSum", f"c{n}", "s", keepdims=0), node("Add", "x,s")], [floats("c0", [64])])
    yield "concat w w, far", model([*[join(i) for i in range(60)], node("ReduceSum", "c60", "s", keepdims=0), node("Add", "x,s")], [floats("c0", [64])])
    yield "expand by twos", model(reduced([node("Unsqueeze", f"c{i},z", f"u{i}") if k == 0 else node("Expand", f"u{i},sh", f"e{i}") if k == 1 else
                                          node("Reshape", f"e{i},flat", f"c{i + 1}") for i in range(32) for k in range(3)], "c32"),
                                  [floats("c0", [1]), ints("z", 0), ints("sh", 2, 1), ints("flat", -1)])
    symbolic = [value("x", ["N", "M"])]
    yield "extents double", model([node("Identity", "x", "c0"), *[join(i) for i in range(60)]], inputs=symbolic, outputs=[value("c60")])
    square = lambda i: node("Mul", f"s{i},s{i}", f"s{i + 1}")
    start = [node("Shape", "x", "s"), node("ReduceSum", "s", "s0", keepdims=1)]
    yield "powers of extents", model([*start, *[square(i) for i in range(40)], node("Expand", "one,s40")], [floats("one", [1])], symbolic)
    many = [value("x", [f"n{i}" for i in range(60)])]
    yield "powers of a sum of extents", model([*start, *[square(i) for i in range(8)], node("Expand", "one,s8")], [floats("one", [1])], many)
    yield "minima of extents", model(
        [*start, *[n for i in range(60) for n in (node("Div", f"s{i},three", f"d{i}"), node("Max", [f"s{i}", f"d{i}", "five"], f"e{i}"),
                                                  node("Add", [f"e{i}", f"d{i}"], f"s{i + 1}"))], node("Expand", "one,s60")],
        [floats("one", [1]), ints("three", 3), ints("five", 5)], symbolic)
    yield "quotients of extents", model(
        [*start, *[n for i in range(100) for n in (node("Div", f"s{i},p{i}", f"d{i}"), node("Add", [f"s{i}", f"d{i}"], f"s{i + 1}"))], node("Expand", "one,s100")],
        [floats("one", [1]), *[ints(f"p{i}", 2 * i + 3) for i in range(100)]], symbolic)
    vector = [node("Shape", "x", "s"), node("Tile", "s,k", "t0")]
    yield "vectors of extents", model(
        [*vector, *[node("Mul", [f"t{i}", "t0"], f"t{i + 1}") for i in range(300)], node("ReduceProd", "t300", "p", keepdims=1), node("Expand", "one,p")],
        [ints("k", 4096 // 60), floats("one", [1])], many)
    yield "sums of vectors of extents", model(
        [node("Shape", "x", "s"), node("CumSum", "s,zero", "c"), node("Expand", "c,k", "t0"),
         *[n for i in range(300) for n in (node("Transpose", f"t{i}", f"r{i}", perm=[1, 0]), node("Mul", [f"t{i}", f"r{i}"], f"t{i + 1}"))],
         node("ReduceSum", "t300", "p", keepdims=0), node("Expand", "one,p")],
        [ints("k", 60, 60), numpy_helper.from_array(np.array(0, np.int64), "zero"), floats("one", [1])], many)
    yield "tile by extents", model([node("Shape", "x", "s"), node("Tile", "x,s", "t0"),
                                    *[n for i in range(50) for n in (node("Shape", f"t{i}", f"h{i}"), node("Tile", f"t{i},h{i}", f"t{i + 1}"))]],
                                   inputs=symbolic, outputs=[value("t50")])
    yield "reshape to extents", model(
        [node("Identity", "x", "t0"), *[n for i in range(300) for n in (
            node("Shape", f"t{i}", f"h{i}"), node("Concat", [f"h{i}", "one"], f"k{i}", axis=0) if i % 2 == 0 else node("Slice", [f"h{i}", "zero", "two"], f"k{i}"),
            node("Reshape", [f"t{i}", f"k{i}"], f"r{i}"), node("Add", [f"r{i}", f"r{i}"], f"t{i + 1}"))]],
        [ints("one", 1), ints("zero", 0), ints("two", 2)], symbolic, outputs=[value("t300")])
    yield "shared sums", model([node("Add", "x,x", "c0"), *[node("Add", f"c{i},c{i}", f"c{i + 1}") for i in range(2400)]], outputs=[value("c2400")])
    yield "shared products", model([node("MatMul", "x,x", "c0"), *[node("MatMul", f"c{i},c{i}", f"c{i + 1}") for i in range(2000)]],
                                   inputs=[value("x", [8, 8])], outputs=[value("c2000")])
    yield "long sums of all", model([node("Identity", "x", "c0"), *[node("Sum", [f"c{k}" for k in range(max(0, i - 8), i + 1)], f"c{i + 1}") for i in range(1000)]],
                                    outputs=[value("c1000")])


def many_things():
    yield "inputs", model([node("Sum", [f"x{i}" for i in range(2000)])], inputs=[value(f"x{i}", [4]) for i in range(2000)])
    yield "outputs", model([node("Relu", "x", f"y{i}") for i in range(1500)], outputs=[value(f"y{i}") for i in range(1500)])
    yield "split", model([node("Split", "x", [f"y{i}" for i in range(2000)]), node("Sum", [f"y{i}" for i in range(2000)])], inputs=[value("x", [2000 * 64])])
    yield "split, many outputs", model([node("Split", "x", [f"y{i}" for i in range(2000)])], inputs=[value("x", [2000])],
                                       outputs=[value(f"y{i}") for i in range(2000)])
    yield "concat of thousands", model([node("Concat", ["x"] * 20_000, axis=0)])
    yield "einsum of thousands", model([node("Einsum", ["x"] * 10_000, equation=",".join("a" * 10_000) + "->a")])
    matrix = [value("x", [2, 2])]
    yield "concat of thousands of columns", model([node("Concat", ["x"] * 32_000, axis=1)], inputs=matrix)
    yield "stack of thousands", model([node("Unsqueeze", "x,one", "u"), node("Concat", ["u"] * 32_000, axis=1)], [ints("one", 1)], matrix)
    many = [f"{i:x}_" for i in range(7000)]
    split = lambda axis: node("Split", "x", many, axis=axis, num_outputs=len(many))
    columns, rows = [value("x", [2, len(many)])], [value("x", [len(many), 2])]
    yield "split to columns", model([split(1), node("Relu", many[-1])], inputs=columns, opset=18)
    yield "split to columns and back", model([split(1), node("Concat", many, axis=1)], inputs=columns, opset=18)
    yield "split to rows and back", model([split(0), node("Concat", many, axis=1)], inputs=rows, opset=18)
    for op in ["Sum", "Max", "Mean"]:
        yield f"{op.lower()} of thousands", model([split(0), node(op, many)], inputs=rows, opset=18)
    many = many[:5000]
    yield "einsum of thousands of rows", model([split(0), node("Einsum", many, equation=",".join(["ab"] * len(many)) + "->b")],
                                               inputs=[value("x", [len(many), 2])], opset=18)
    yield "long names", model([node("Relu", "x" * 16_000, "y" * 16_000, name="n" * 16_000)], inputs=[value("x" * 16_000, [4])], outputs=[value("y" * 16_000)])
    yield "attributes", model([node("Relu", "x", **{f"a{i}": i for i in range(4000)})])
    yield "giant attribute list", model([node("Transpose", "x", perm=list(range(25_000)))])
    yield "slices", model([node("Slice", "x,a,b,c")], [ints("a", *[0] * 3000), ints("b", *[1] * 3000), ints("c", *[0] * 3000)])
    yield "integers", model([node("Slice", "x,a,b,c,d")], [ints("a", 2**63 - 1), ints("b", -2**63), ints("c", 0), ints("d", -2**63)])
    rank = 64
    yield "transpose of rank 64", model([node("Transpose", "x", perm=list(range(rank))[::-1])], inputs=[value("x", [1] * (rank - 20) + [2] * 20)])
    yield "sums of rank 64", model([node("Identity", "x", "c0"), *[node("Transpose" if i % 2 else "Exp", f"c{i}", f"c{i + 1}") for i in range(200)],
                                    node("ReduceSum", "c200", "y")], inputs=[value("x", [2] * 20 + [1] * (rank - 20))])
    yield "add of rank 64", model([node("Transpose", "x", "t", perm=list(range(rank))[::-1]), node("Add", "x,t", "a"), node("Softmax", "a,".rstrip(","), "y", axis=31)],
                                  inputs=[value("x", [2] * 22 + [1] * 20 + [2] * 22)][:1])
    yield "symbolic rank 64", model([node("Transpose", "x", "t", perm=list(range(rank))[::-1]), node("Exp", "t", "e"), node("ReduceMax", "e", "y", axes=list(range(0, rank, 2)))],
                                    inputs=[value("x", [f"n{i}" for i in range(rank)])])
    yield "rank 1000", model([node("Relu", "x")], inputs=[value("x", [1] * 1000)])
    yield "reshape to rank 1000", model([node("Reshape", "x,s")], [ints("s", 4, *[1] * 999)])
    yield "pad of rank 64", model([node("Pad", "x,p")], [ints("p", *[1] * (2 * rank))], inputs=[value("x", [1] * rank)])


def distinct_kernels():
    """Every node another shape: nothing is compiled once for two."""
    def each(count, make, initial=()):
        nodes, weights = [], list(initial)
        for i in range(count):
            made, own = make(i)
            nodes += made
            weights += own
        return nodes, weights

    def conv(i):
        a, b = 1 + (i * 7) % 23, 3 + (i * 5) % 29
        return ([node("Slice", ["x", "zero", f"e{i}", "ax"], f"s{i}"), node("Conv", [f"s{i}", f"k{i}"], f"c{i}", pads=[i % 3] * 4, strides=[1 + i % 2, 1 + i % 3]),
                 node("ReduceSum", f"c{i}", f"r{i}", keepdims=0)],
                [ints(f"e{i}", 1, 1, a + 3, b + 3), floats(f"k{i}", [1 + i % 5, 1, 1 + i % 3, 1 + i % 2])])
    nodes, weights = each(150, conv, [ints("zero", 0, 0, 0, 0), ints("ax", 0, 1, 2, 3)])
    yield "convolutions", model([*nodes, node("Sum", [f"r{i}" for i in range(150)])], weights, [value("x", [1, 1, 64, 64])])

    def slice_exp(i):
        return [node("Slice", ["x", "zero", f"e{i}"], f"s{i}"), node("Softmax", f"s{i}", f"m{i}", axis=0), node("ReduceMax", f"m{i}", f"r{i}", keepdims=0)], [ints(f"e{i}", i + 1)]
    nodes, weights = each(500, slice_exp, [ints("zero", 0)])
    yield "softmaxes", model([*nodes, node("Sum", [f"r{i}" for i in range(500)])], weights, [value("x", [1000])])

    def product(i):
        return [node("Slice", ["x", "zero", f"e{i}"], f"s{i}"), node("MatMul", [f"s{i}", "x"], f"m{i}"), node("ReduceSum", f"m{i}", f"r{i}", keepdims=0)], [ints(f"e{i}", i + 1, 40)]
    nodes, weights = each(600, product, [ints("zero", 0, 0)])
    yield "products", model([*nodes, node("Sum", [f"r{i}" for i in range(600)])], weights, [value("x", [1000, 40])][:0] + [value("x", [40, 40])])

    chains = ["Exp", "Sin", "Tanh", "Erf", "Sqrt", "Log", "Sigmoid", "Cos", "Abs", "Neg", "Atan", "Asinh"]
    def chain(i):
        made, last = [node("Slice", ["x", "zero", f"e{i}"], f"s{i}")], f"s{i}"
        for k in range(5):
            made.append(node(chains[(i * (k + 1) + k) % len(chains)], last, f"c{i}_{k}"))
            last = f"c{i}_{k}"
        return [*made, node("ReduceSum", last, f"r{i}", keepdims=0)], [ints(f"e{i}", i + 1)]
    nodes, weights = each(220, chain, [ints("zero", 0)])
    yield "elementwise chains", model([*nodes, node("Sum", [f"r{i}" for i in range(220)])], weights, [value("x", [1000])])
    yield "one long chain", model([node("Identity", "x", "c0"), *[node(chains[i % len(chains)], f"c{i}", f"c{i + 1}") for i in range(3000)]], outputs=[value("c3000")])
    yield "symbolic chain", model([node("Identity", "x", "c0"), *[node(["Add", "Mul"][i % 2], [f"c{i}", "x"], f"c{i + 1}") for i in range(2500)]],
                                  inputs=[value("x", ["N", "M"])], outputs=[value("c2500")])
    pools = [node("MaxPool", "x", f"p{i}", kernel_shape=[1 + i % 40, 1 + i // 40 % 40], pads=[0, 0, i % 40, i // 40 % 40]) for i in range(600)]
    yield "pools", model([*pools, *[node("ReduceMax", f"p{i}", f"r{i}", keepdims=0) for i in range(600)], node("Sum", [f"r{i}" for i in range(600)])],
                         inputs=[value("x", [1, 1, 50, 50])])
    resizes = [n for i in range(250) for n in (node("Resize", ["x", "", "", f"z{i}"], f"p{i}", mode="cubic" if i % 2 else "linear"), node("ReduceMax", f"p{i}", f"r{i}", keepdims=0))]
    yield "resizes", model([*resizes, node("Sum", [f"r{i}" for i in range(250)])], [ints(f"z{i}", 1, 1, 5 + i, 6 + i // 2) for i in range(250)],
                           [value("x", [1, 1, 33, 35])])
    yield "wide pads", model([node("Pad", "x,p", "c0"), *[node("Pad", f"c{i},p", f"c{i + 1}", mode="reflect") for i in range(20)]], [ints("p", *[1] * 16)],
                             [value("x", [3] * 8)], [value("c20")])
    yield "padded convolution chain", model([node("Identity", "x", "c0"), *[n for i in range(150) for n in (
        node("Pad", [f"c{i}", f"p{i}"], f"q{i}", mode=["constant", "reflect", "edge"][i % 3]),
        node("Conv", [f"q{i}", "k"], f"c{i + 1}"))]],
        [floats("k", [1, 1, 2, 2]), *[ints(f"p{i}", 0, 0, i % 2, (i + 1) % 3, 0, 0, i % 3, i % 2) for i in range(150)]],
        [value("x", [1, 1, 30, 30])], [value("c150")])


def body(nodes, inputs, outputs, name="b"):
    return helper.make_graph(nodes, name, inputs, outputs)


def nested(kind, depth):
    """Each level stands in a subgraph of the one around it; an If has the same level in both branches while that is short."""
    inner = None
    for level in range(depth):
        if inner is None:
            last = node("Relu", "x", "r")
        elif kind == "If":
            last = node("If", "t", "r", then_branch=inner, else_branch=inner if depth < 12 else body([node("Neg", "x", "r")], [], [value("r")]))
        else:
            last = node("Loop", "n,t,x", "r", body=inner)
        if kind == "If":
            inner = body([last], [], [value("r")])
        else:
            inner = body([node("Identity", f"c{level}", f"d{level}"), last],
                         [value(f"i{level}", [], INT64), value(f"c{level}", [], BOOL), value(f"v{level}", [4])], [value(f"d{level}", [], BOOL), value("r")])
    top = node("If", "t", "y", then_branch=inner, else_branch=inner) if kind == "If" else node("Loop", "n,t,x", "y", body=inner)
    return model([top], [numpy_helper.from_array(np.array(3, np.int64), "n")], [value("x", [4]), value("t", [], BOOL)])


def nested_raw(depth):
    """An If in an If ..., deeper than onnx's own protobuf writes."""
    output = field(12, field(1, b"r"))
    graph = field(1, node("Relu", "x", "r").SerializeToString()) + field(2, b"g") + output
    plain = field(5, field(1, b"else_branch") + field(6, graph) + b"\xa0\x01\x05")
    for _ in range(depth):
        branch = field(5, field(1, b"then_branch") + field(6, graph) + b"\xa0\x01\x05")
        graph = field(1, field(1, b"t") + field(2, b"r") + field(4, b"If") + branch + plain) + field(2, b"g") + output
    graph += field(11, value("x", [4]).SerializeToString()) + field(11, value("t", [], BOOL).SerializeToString())
    return b"\x08\x08" + field(7, graph) + field(8, helper.make_opsetid("", 17).SerializeToString())


def control():
    count = numpy_helper.from_array(np.array(2**62, np.int64), "n")
    yes = numpy_helper.from_array(np.array(True), "t")
    step = body([node("Identity", "c", "d"), node("Add", "v,v", "w")],
                [value("i", [], INT64), value("c", [], BOOL), value("v", [1])], [value("d", [], BOOL), value("w", [1])])
    yield "endless loop over constants", model([node("Loop", "n,t,one", "f", body=step), node("Add", "x,f")], [count, yes, floats("one", [1])])
    stacked = body([node("Identity", "c", "d"), node("Add", "v,v", "w"), node("Identity", "v", "o")],
                   [value("i", [], INT64), value("c", [], BOOL), value("v", [1])], [value("d", [], BOOL), value("w", [1]), value("o", [1])])
    yield "endless stack", model([node("Loop", "n,t,one", "f,o", body=stacked), node("ReduceSum", "o", "s", keepdims=0), node("Add", "x,s")], [count, yes, floats("one", [1])])
    growing = body([node("Identity", "c", "d"), node("Concat", "v,v", "w", axis=0)],
                   [value("i", [], INT64), value("c", [], BOOL), value("v", [None])], [value("d", [], BOOL), value("w", [None])])
    yield "growing loop", model([node("Loop", "n,t,one", "f", body=growing), node("ReduceSum", "f", "s", keepdims=0), node("Add", "x,s")], [count, yes, floats("one", [1])])
    scan = body([node("Add", "s,e", "t"), node("Identity", "t", "o")], [value("s", [4]), value("e", [4])], [value("t", [4]), value("o", [4])])
    yield "long scan", model([node("Expand", "w,sh", "c"), node("Scan", "x,c", "y,o", body=scan, num_scan_inputs=1)],
                             [floats("w", [1, 4]), ints("sh", 1 << 36, 4)])

    for depth in (8, 30):
        for kind in ("If", "Loop"):
            yield f"{kind} nested {depth} deep", nested(kind, depth)
    for depth in (200, 1000):
        yield f"If nested {depth} deep", nested_raw(depth)

    functions = []
    for level in range(30):
        callee = "Relu" if level == 0 else f"f{level - 1}"
        domain = "" if level == 0 else "own"
        nodes = [helper.make_node(callee, ["a"], ["b"], domain=domain), helper.make_node(callee, ["b"], ["c"], domain=domain)]
        functions.append(helper.make_function("own", f"f{level}", ["a"], ["c"], nodes, [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]))
    graph = helper.make_graph([helper.make_node("f29", ["x"], ["y"], domain="own")], "g", [value("x", [4])], [value("y")])
    yield "functions that double", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)], ir_version=8,
                                                     functions=functions).SerializeToString()
    ten = lambda level: [helper.make_node(f"f{level - 1}" if level else "Exp", [f"a{i}" if i else "a"], [f"a{i + 1}"], domain="own" if level else "") for i in range(15)]
    functions = [helper.make_function("own", f"f{level}", ["a"], ["a15"], ten(level), [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]) for level in range(4)]
    graph = helper.make_graph([helper.make_node("f3", ["x"], ["y"], domain="own")], "g", [value("x", [4])], [value("y")])
    yield "functions of 50625 nodes", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)], ir_version=8,
                                                        functions=functions).SerializeToString()
    branches = []
    for i in range(300):
        then = body([node("Add", f"c{i},x", f"p{i}")], [], [value(f"p{i}")])
        other = body([node("Mul", f"c{i},x", f"q{i}")], [], [value(f"q{i}")])
        branches.append(node("If", f"t", f"c{i + 1}", then_branch=then, else_branch=other))
    yield "a chain of conditions", model([node("Identity", "x", "c0"), *branches], inputs=[value("x", [4]), value("t", [], BOOL)], outputs=[value("c300")])


def strings():
    tensor = TensorProto(name="w", data_type=TensorProto.STRING, dims=[9000], string_data=[b"string"] * 9000)
    yield "strings", model([node("Constant", "", "w", value=tensor), node("Relu", "x")])
    yield "tiny initialisers", model([node("Sum", [f"w{i}" for i in range(3000)] + ["x"])], [floats(f"w{i}", [1]) for i in range(3000)])


def relay_texts():
    head = '#[version = "0.0.5"]\n'
    main = lambda body, params="%x: Tensor[(4), float32]": f"{head}def @main({params}) {{\n{body}\n}}\n"
    yield "parentheses", main("(" * 10_000 + "%x" + ")" * 10_000)
    yield "open parentheses", main("(" * 50_000)
    yield "nested calls", main("nn.relu(" * 8_000 + "%x" + ")" * 8_000)
    yield "nested tuples", main("(" * 10_000 + "%x" + ",)" * 10_000)
    yield "nested tuple types", main("%x", "%x: " + "(" * 20_000 + "Tensor[(4), float32]" + ",)" * 20_000)
    yield "nested functions", main("fn () { " * 8_000 + "%x" + " }" * 8_000)
    yield "nested lets", main("let %a = " * 5_000 + "%x" + "; %a" * 5_000)
    yield "lets", main("".join(f"let %a{i} = add(%{'x' if i == 0 else f'a{i - 1}'}, %x);\n" for i in range(2500)) + "%a2499")
    yield "nested ifs", main("if (%c) { " * 3_000 + "%x" + " } else { %x }" * 3_000, "%x: Tensor[(4), float32], %c: bool")
    yield "shared tuples", main("".join(f"%{i + 1} = (%{i}, %{i});\n" for i in range(40)).replace("%0,", "%x,").replace("%0)", "%x)") + "%40")
    yield "many shared tuples", main("%0 = (%x, %x);\n" + "".join(f"%{i + 1} = (%{i}, %{i});\n" for i in range(3000)) + "%3000")
    yield "shared sums in text", main("%0 = add(%x, %x);\n" + "".join(f"%{i + 1} = add(%{i}, %{i});\n" for i in range(3000)) + "%3000")
    yield "shared tuple of a constant", main("%0 = (ones(shape=[4], dtype=\"float32\"), %x);\n" + "".join(f"%{i + 1} = (%{i}, %{i});\n" for i in range(18)) + "%18")
    yield "giant integer", main("add(%x, " + "9" * 50_000 + "f)")
    yield "giant integer literal", main("add(%x, " + "9" * 50_000 + ")")
    yield "giant exponent", main("add(%x, 1e999999999f)")
    yield "giant shape", main("%x", f"%x: Tensor[({', '.join(['1'] * 20_000)}), float32]")
    yield "giant extents", main("%x", "%x: Tensor[(9223372036854775807, 9223372036854775807), float32]")
    yield "giant attribute", main(f"transpose(%x, axes=[{', '.join(['0'] * 30_000)}])")
    yield "nested attribute", main("transpose(%x, axes=" + "[" * 30_000 + "]" * 30_000 + ")")
    yield "giant ones", main("%0 = ones(shape=[262144, 262144], dtype=\"float32\");\n%1 = sum(%0);\nadd(%x, %1)")
    yield "giant ones, the product", main("%0 = ones(shape=[65536, 65536], dtype=\"float32\");\n%1 = nn.dense(%0, %0, units=None);\n%2 = sum(%1);\nadd(%x, %2)")
    yield "constants repeat", main("%0 = ones(shape=[64], dtype=\"float32\");\n" + "".join(f"%{i + 1} = repeat(%{i}, repeats=2, axis=0);\n" for i in range(40)) + "%41 = sum(%40);\nadd(%x, %41)")
    yield "nested extents", main("%x", "%x: Tensor[(" + "(" * 20_000 + "N" + ")" * 20_000 + "), float32]")
    yield "nested quotients", main("%x", "%x: Tensor[(" + "floordiv(" * 4_000 + "N" + ", 2)" * 4_000 + "), float32]")
    yield "nested minima", main("%x", "%x: Tensor[(" + "min(" * 5_000 + "N" + ", M)" * 5_000 + "), float32]")
    yield "nested minima of many", main("%x", "%x: Tensor[(" + "min(" * 1_000 + "N" + "".join(f", M{i})" for i in range(1000)) + "), float32]")
    yield "powers of a sum", main("%x", "%x: Tensor[(" + "*".join(["(a+b+c+d+e+f+g+h)"] * 40) + "), float32]")
    yield "recursion", f"{head}def @main(%x: Tensor[(4), float32]) {{\n@main(%x)\n}}\n"
    yield "functions that double, in text", head + "def @f0(%x: Tensor[(4), float32]) { exp(%x) }\n" + "".join(
        f"def @f{i + 1}(%x: Tensor[(4), float32]) {{ @f{i}(@f{i}(%x)) }}\n" for i in range(40)) + "def @main(%x: Tensor[(4), float32]) { @f40(%x) }\n"
    yield "local functions that double", main("let %f0 = fn (%a: Tensor[(4), float32]) { exp(%a) };\n" + "".join(
        f"let %f{i + 1} = fn (%a: Tensor[(4), float32]) {{ %f{i}(%f{i}(%a)) }};\n" for i in range(40)) + "%f40(%x)")
    yield "comments", head + "/*" * 30_000
    yield "string", head + '"' + "\\" * 60_000
    yield "no end", main("")[:-3]


def cases():
    for group in (giant_values, growth, many_things, distinct_kernels, control, strings):
        for name, data in group():
            if len(data) > LARGEST:
                print(f"{name}: {len(data)} bytes", file=sys.stderr)
            yield name, "onnx", data
    for name, text in relay_texts():
        if len(text) > LARGEST:
            print(f"{name}: {len(text)} bytes", file=sys.stderr)
        yield name, "relay", text.encode()


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, kind, data in cases():
        (folder / f"{name.replace(' ', '_').replace(',', '')}.{kind}").write_bytes(data)
