#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes broken ONNX models, each with the error that the importer must give: `cases(folder)` yields (name, path, code, words), where
`words` must stand in the error's text. `make_broken.py FOLDER` writes the models there.
"""
import os
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FORMAT, UNSUPPORTED, PATH = "TRD-IMP-001", "TRD-IMP-002", "TRD-IMP-003"
TYPE, ATTRIBUTE, LIMIT, IO = "TRD-TYPE-002", "TRD-TYPE-001", "TRD-LIM-001", "TRD-IO-001"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def value(name, shape=(2, 3), dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs=None, outputs=None, initializers=(), opset=13, ir_version=8, **more):
    graph = helper.make_graph(nodes, "g", inputs or [value("x")], outputs or [value("y", None)], list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version, **more)


def node(op="Relu", inputs=("x",), outputs=("y",), name="the_node", **attributes):
    return helper.make_node(op, list(inputs), list(outputs), name=name, **attributes)


def weight(name="w", shape=(2, 3), dtype=np.float32):
    return numpy_helper.from_array(np.ones(shape, dtype), name)


def external(location, offset=None, length=None, shape=(2, 3)):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        if text is not None:
            tensor.external_data.add(key=key, value=text)
    return model([node("Add", ("x", "w"))], initializers=[tensor])


def tagged(message, data):
    """The message's bytes with `data` behind them."""
    return message.SerializeToString() + data


def field(number, payload):
    """A field of the wire format that holds bytes or a message."""
    length, encoded = len(payload), b""
    while length >= 128:
        encoded += bytes([length % 128 + 128])
        length //= 128
    return bytes([number * 8 + 2]) + encoded + bytes([length]) + payload


def changed(proto, change):
    change(proto)
    return proto


def graph_of(*nodes, outputs=("t",)):
    return helper.make_graph(list(nodes), "inner", [], [value(name, None) for name in outputs])


def structure_cases():
    good = model([node()])
    data = good.SerializeToString()
    yield "empty file", b"", FORMAT, "no graph"
    yield "no protobuf", b"\xff" * 64, FORMAT, "no ONNX model"
    yield "text file", b"This is not a model, it is a sentence.\n", FORMAT, ""
    yield "truncated", data[:-7], FORMAT, "truncated"
    yield "truncated in the middle", data[:len(data) // 2], FORMAT, ""
    yield "huge length prefix", b"\x3a\xff\xff\xff\xff\x07" + data, FORMAT, "truncated"
    yield "unknown field of the model", tagged(good, b"\xf8\x07\x01"), FORMAT, "field 127"
    yield "unknown field of a node", changed(model([node()]), lambda m: m.graph.node[0].MergeFromString(b"\xf8\x07\x01")), FORMAT, "NodeProto"
    yield "no graph", onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 13)]), FORMAT, "no graph"
    yield "no operator set", changed(model([node()]), lambda m: m.ClearField("opset_import")), FORMAT, "operator set"
    yield "operator set too new", model([node()], opset=1000), UNSUPPORTED, "1000"
    yield "operator set too old", model([node()], opset=6), UNSUPPORTED, "oldest"
    yield "operator set twice", changed(model([node()]), lambda m: m.opset_import.add(domain="ai.onnx", version=14)), FORMAT, "twice"
    yield "domain not imported", model([node(domain="com.example")]), FORMAT, '"the_node"'
    yield "IR version too new", model([node()], ir_version=99), UNSUPPORTED, "99"
    # By hand: the package itself nests no deeper than the importer.
    deep = graph_of(node("Identity", ("x",), ("t",))).SerializeToString()
    for _ in range(200):
        branch = field(1, b"then_branch") + field(6, deep) + b"\xa0\x01\x05"
        deep = field(1, field(1, b"c") + field(2, b"t") + field(4, b"If") + field(5, branch)) + field(12, field(1, b"t"))
    yield "nested too deep", field(7, deep), FORMAT, "nests deeper"


def graph_cases():
    yield "cycle", model([node("Add", ("x", "b"), ("a",), "first"), node("Relu", ("a",), ("b",), "second")], outputs=[value("b")]), FORMAT, "cycle"
    yield "node that uses its own result", model([node("Add", ("x", "y"))]), FORMAT, '"the_node"'
    yield "missing input", model([node("Add", ("x", "nowhere"))]), FORMAT, '"nowhere"'
    yield "missing input names the node", model([node("Add", ("x", "nowhere"))]), FORMAT, '"the_node" (Add, opset 13)'
    yield "value made twice", model([node(), node("Exp", name="other")]), FORMAT, '"other"'
    yield "value has the name of an input", model([node(outputs=("x",))], outputs=[value("x")]), FORMAT, '"the_node"'
    yield "input twice", model([node()], [value("x"), value("x")]), FORMAT, "twice"
    yield "initialiser twice", model([node("Add", ("x", "w"))], initializers=[weight(), weight()]), FORMAT, '"w"'
    yield "undefined output", model([node()], outputs=[value("z")]), FORMAT, '"z"'
    yield "output twice", model([node()], outputs=[value("y"), value("y")]), FORMAT, "twice"
    yield "no output", changed(model([node()]), lambda m: m.graph.ClearField("output")), FORMAT, "no output"
    yield "input without a type", changed(model([node()]), lambda m: m.graph.input[0].ClearField("type")), FORMAT, '"x"'
    yield "input of strings", model([node()], [value("x", (2,), TensorProto.STRING)]), UNSUPPORTED, "STRING"
    yield "input of an unknown element type", changed(model([node()]), lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 99)), FORMAT, "99"
    yield "negative extent", model([node()], [value("x", (2, -3))]), FORMAT, "-3"
    yield "giant extents", model([node()], [value("x", (2**40, 2**40))]), LIMIT, '"x"'
    yield "giant rank", model([node()], [value("x", (1,) * 1000)]), LIMIT, "1000"
    yield "wrong type of an output", model([node()], outputs=[value("y", (2, 3), INT64)]), TYPE, '"y"'
    yield "empty name of an input", model([node(inputs=("",))], [value("")]), FORMAT, ""


def tensor_cases():
    def with_tensor(change):
        tensor = weight()
        change(tensor)
        return model([node("Add", ("x", "w"))], initializers=[tensor])

    yield "too few bytes", with_tensor(lambda t: setattr(t, "raw_data", b"\0" * 20)), FORMAT, '"w"'
    yield "bytes that are no whole element", with_tensor(lambda t: setattr(t, "raw_data", b"\0" * 23)), FORMAT, "23 bytes"
    yield "too many values", with_tensor(lambda t: (t.ClearField("raw_data"), t.float_data.extend([1.0] * 7))), FORMAT, "7 values"
    yield "values in two fields", with_tensor(lambda t: t.float_data.extend([1.0] * 6)), FORMAT, "several fields"
    yield "values in the wrong field", with_tensor(lambda t: (t.ClearField("raw_data"), t.int64_data.extend([1] * 6))), FORMAT, ""
    yield "giant dims of an initialiser", with_tensor(lambda t: t.dims.extend([2**40])), FORMAT, '"w"'
    yield "overflowing dims", with_tensor(lambda t: t.dims.extend([2**40, 2**40])), LIMIT, '"w"'
    yield "negative dims", with_tensor(lambda t: t.dims.__setitem__(0, -2)), FORMAT, "-2"
    yield "element type not set", with_tensor(lambda t: setattr(t, "data_type", 0)), FORMAT, '"w"'
    yield "strings", with_tensor(lambda t: setattr(t, "data_type", TensorProto.STRING)), UNSUPPORTED, "STRING"
    yield "float8", with_tensor(lambda t: setattr(t, "data_type", TensorProto.FLOAT8E4M3FN)), UNSUPPORTED, "FLOAT8E4M3FN"
    yield "segment", with_tensor(lambda t: setattr(t.segment, "begin", 1)), UNSUPPORTED, "segments"
    sparse = model([node()])
    sparse.graph.sparse_initializer.add()
    yield "sparse initialiser", sparse, UNSUPPORTED, "sparse"


def external_cases(folder):
    (folder / "weights.bin").write_bytes(b"\0" * 64)
    outside = folder.parent / "outside.bin"
    outside.write_bytes(b"\0" * 64)
    (folder / "sub").mkdir(exist_ok=True)
    for name, target in (("link.bin", outside), ("loop.bin", folder / "loop.bin")):
        if not (folder / name).is_symlink():
            os.symlink(target, folder / name)
    if not (folder / "pipe.bin").exists():
        os.mkfifo(folder / "pipe.bin")
    yield "external data above the folder", external("../outside.bin"), PATH, "../outside.bin"
    yield "absolute path", external("/etc/hostname"), PATH, "/etc/hostname"
    yield "path that comes back", external("sub/../../outside.bin"), PATH, ""
    yield "link that leaves the folder", external("link.bin"), PATH, "link.bin"
    yield "link to itself", external("loop.bin"), PATH, "loop.bin"
    yield "external data in a folder", external("sub"), PATH, "no regular file"
    yield "external data in a pipe", external("pipe.bin"), PATH, "no regular file"
    yield "external data without a name", external(""), PATH, ""
    yield "external data without location", external(None), FORMAT, "location"
    yield "external data that are missing", external("missing.bin"), PATH, "missing.bin"
    yield "external data too short", external("weights.bin", "60"), FORMAT, "weights.bin"
    yield "offset beyond the end", external("weights.bin", "1000"), FORMAT, "weights.bin"
    yield "negative offset", external("weights.bin", "-8"), FORMAT, "offset"
    yield "offset that is no number", external("weights.bin", "0x10"), FORMAT, "offset"
    yield "wrong length", external("weights.bin", "0", "8"), FORMAT, "length"


def node_cases():
    image = [value("x", (1, 3, 8, 8))]
    yield "unknown operator", model([node("NoSuchThing")]), UNSUPPORTED, '"the_node" (NoSuchThing, opset 13)'
    yield "operator of a newer operator set", model([node("Gelu")]), UNSUPPORTED, "Gelu"
    yield "unknown attribute", model([node(slope=1.0)]), UNSUPPORTED, '"slope"'
    yield "attribute of another type", model([node("LeakyRelu", alpha="much")]), FORMAT, '"alpha"'
    yield "attribute twice", changed(model([node("LeakyRelu", alpha=1.0)]), lambda m: m.graph.node[0].attribute.append(m.graph.node[0].attribute[0])), FORMAT, '"alpha"'
    yield "attribute of a function", changed(model([node("LeakyRelu", alpha=1.0)]), lambda m: setattr(m.graph.node[0].attribute[0], "ref_attr_name", "a")), FORMAT, '"alpha"'
    yield "too few inputs", model([node("Add", ("x",))]), FORMAT, "input 1 is missing"
    yield "too many inputs", model([node("Relu", ("x", "x"))]), UNSUPPORTED, "input 1"
    yield "too many outputs", model([node(outputs=("y", "z"))]), UNSUPPORTED, '"z"'
    yield "dtypes that do not fit", model([node("Add", ("x", "w"))], initializers=[weight(dtype=np.int64)]), TYPE, '"the_node"'
    yield "shapes that do not fit", model([node("Add", ("x", "w"))], initializers=[weight(shape=(2, 4))]), TYPE, '"the_node"'
    yield "channels that do not fit", model([node("Conv", ("x", "w"))], image, initializers=[weight(shape=(8, 4, 3, 3))]), TYPE, '"the_node" (Conv, opset 13)'
    yield "strides of the wrong length", model([node("Conv", ("x", "w"), strides=[1])], image, initializers=[weight(shape=(8, 3, 3, 3))]), FORMAT, "strides"
    yield "stride 0", model([node("MaxPool", kernel_shape=[2, 2], strides=[0, 1])], image), FORMAT, "strides"
    yield "window larger than the data", model([node("MaxPool", kernel_shape=[20, 20])], image), TYPE, '"the_node"'
    yield "kernel of 2^62", model([node("MaxPool", kernel_shape=[2**62, 2])], image), FORMAT, "kernel_shape"
    yield "auto_pad", model([node("MaxPool", kernel_shape=[2, 2], auto_pad="SOME")], image), FORMAT, "auto_pad"
    yield "axis out of range", model([node("Concat", ("x", "x"), axis=5)]), FORMAT, "axis 5"
    yield "axis twice", model([node("ReduceMean", axes=[1, 1])]), FORMAT, "twice"
    yield "perm of the wrong length", model([node("Transpose", perm=[0])]), FORMAT, "perm"
    yield "reshape to another count", model([node("Reshape", ("x", "s"))], initializers=[numpy_helper.from_array(np.array([4, 5]), "s")]), TYPE, '"the_node"'
    yield "reshape with two unknowns", model([node("Reshape", ("x", "s"))], initializers=[numpy_helper.from_array(np.array([-1, -1]), "s")]), ATTRIBUTE, '"the_node"'
    yield "reshape to -5", model([node("Reshape", ("x", "s"))], initializers=[numpy_helper.from_array(np.array([-5, 2]), "s")]), FORMAT, "-5"
    yield "constant index out of range", model([node("Gather", ("x", "i"))], initializers=[numpy_helper.from_array(np.array([7]), "i")]), FORMAT, "index 7"
    yield "split into sizes that do not fit", model([node("Split", ("x", "s"), ("y", "z"), axis=1)], initializers=[numpy_helper.from_array(np.array([1, 5]), "s")]), FORMAT, "the_node"
    yield "constant of two values", model([node("Constant", (), value_int=1, value_float=2.0)]), FORMAT, "exactly one"
    yield "giant constant of shape", model([node("ConstantOfShape", ("s",))], initializers=[numpy_helper.from_array(np.array([2**40, 2**20]), "s")]), LIMIT, '"the_node"'
    yield "giant tile", model([node("Tile", ("x", "s"))], initializers=[numpy_helper.from_array(np.array([2**50, 2**10]), "s")]), LIMIT, '"the_node"'
    yield "giant padding", model([node("Pad", ("x", "s"))], initializers=[numpy_helper.from_array(np.array([0, 0, 2**60, 2**60]), "s")]), FORMAT, '"the_node"'
    yield "training", model([node("BatchNormalization", ("x", "s", "s", "s", "s"), training_mode=1)], opset=15, initializers=[weight("s", (3,))]), UNSUPPORTED, "training_mode"
    yield "name with quotes and line breaks", model([node("NoSuchThing", name='a"b\nc\x00')]), UNSUPPORTED, "\\x0a"
    for op, count in [("Where", 2), ("Equal", 1), ("And", 1), ("Add", 1), ("Mod", 1)]:  # of constants, which are folded while importing
        kind = bool if op == "And" else np.int64
        yield f"{op} of {count} constants", model([node(op, ("k",) * count)], initializers=[numpy_helper.from_array(np.ones(2, kind), "k")], opset=13), FORMAT, '"the_node"'
    branch = graph_of(node("Relu", ("nowhere",), ("t",), "inner_node"))
    yield "error in a branch", model([node("If", ("c",), then_branch=branch, else_branch=branch)], [value("x"), value("c", (), TensorProto.BOOL)]), FORMAT, '"inner_node"'
    yield "condition that is no bool", model([node("If", ("x",), then_branch=graph_of(node("Identity", ("x",), ("t",))), else_branch=graph_of(node("Identity", ("x",), ("t",))))]), FORMAT, "bool"
    yield "branch without graph", model([node("If", ("c",))], [value("c", (), TensorProto.BOOL)]), FORMAT, "then_branch"


def function_cases():
    def with_functions(*functions):
        result = model([node("F", domain="own")], functions=list(functions))
        result.opset_import.add(domain="own", version=1)
        return result

    sets = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    recursive = helper.make_function("own", "F", ["a"], ["b"], [node("F", ("a",), ("b",), "again", domain="own")], sets)
    yield "function that calls itself", with_functions(recursive), LIMIT, "deep"
    doubling = [helper.make_function("own", "F" * (i + 1), ["a"], ["b"], [
        node("F" * (i + 2), ("a",), ("c",), "one", domain="own"), node("F" * (i + 2), ("c",), ("b",), "two", domain="own")], sets) for i in range(31)]
    doubling.append(helper.make_function("own", "F" * 32, ["a"], ["b"], [node("Relu", ("a",), ("b",))], sets))
    yield "functions that double", with_functions(*doubling), LIMIT, ""
    yield "function twice", with_functions(recursive, recursive), FORMAT, "twice"
    missing = helper.make_function("own", "F", ["a"], ["b"], [node("Relu", ("a",), ("c",))], sets)
    yield "function without its output", with_functions(missing), FORMAT, '"b"'


def cases(folder):
    """Writes the models into `folder` and yields (name, path, code, words)."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    groups = (structure_cases(), graph_cases(), tensor_cases(), external_cases(folder), node_cases(), function_cases())
    for group in groups:
        for name, content, code, words in group:
            path = folder / (name.replace(" ", "_").replace("/", "_") + ".onnx")
            path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
            yield name, path, code, words
    yield "missing file", folder / "not_there.onnx", IO, "not_there"
    yield "folder", folder, IO, "regular file"


if __name__ == "__main__":
    for name, path, code, _ in cases(sys.argv[1]):
        print(f"{code} {path.name}: {name}")
