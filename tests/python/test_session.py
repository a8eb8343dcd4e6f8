# SPDX-License-Identifier: Apache-2.0
"""The package's interface: sessions, errors, options, threads, signals."""

import gc
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import onnx
import pytest
from comparison import ROOT
from onnx import TensorProto, helper

import treadle
from treadle import _treadle

DTYPES = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


def model(nodes, inputs, outputs, initializers=(), **metadata):
    """The bytes of a model; inputs and outputs are (name, dtype, shape)."""
    infos = [[helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape) for name, dtype, shape in part] for part in (inputs, outputs)]
    proto = helper.make_model(helper.make_graph(nodes, "net", *infos, list(initializers)), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for key, value in metadata.items():
        if isinstance(value, dict):
            helper.set_model_props(proto, value)
        else:
            setattr(proto, key, value)
    return proto.SerializeToString()


def identity(dtype, shape):
    return model([helper.make_node("Identity", ["x"], ["y"])], [("x", dtype, shape)], [("y", dtype, shape)])


@pytest.fixture(scope="module")
def scale():
    """y = x + w with w = 0 … 5 of shape (2, 3), x (N, 2, 3)."""
    weight = onnx.numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w")
    return treadle.InferenceSession(model([helper.make_node("Add", ["x", "w"], ["y"])], [("x", np.float32, ["N", 2, 3])], [("y", np.float32, ["N", 2, 3])], [weight],
                                          producer_name="someone", model_version=7, doc_string="adds", props={"key": "value"}))


def test_describes_inputs_outputs_and_metadata(scale):
    (x,), (y,) = scale.get_inputs(), scale.get_outputs()
    assert (x.name, x.shape, x.type) == ("x", ["N", 2, 3], "tensor(float)")
    assert (y.name, y.shape, y.type) == ("y", ["N", 2, 3], "tensor(float)")
    meta = scale.get_modelmeta()
    assert (meta.producer_name, meta.version, meta.description, meta.graph_name, meta.custom_metadata_map) == ("someone", 7, "adds", "net", {"key": "value"})
    assert scale.get_providers() == treadle.get_available_providers() == ["CPUExecutionProvider"]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_dtypes_come_back(dtype):
    data = np.arange(6).reshape(2, 3).astype(dtype)
    session = treadle.InferenceSession(identity(dtype, [2, 3]))
    (result,) = session.run(None, {"x": data})
    assert type(result) is np.ndarray and result.dtype == data.dtype and result.flags.writeable
    np.testing.assert_array_equal(result, data)
    if dtype is ml_dtypes.bfloat16:
        np.testing.assert_array_equal(session.run(None, {"x": data.view(np.uint16)})[0], data)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,)], ids=str)
def test_scalars_and_empty_arrays(shape):
    data = np.ones(shape, np.float32)
    (result,) = treadle.InferenceSession(identity(np.float32, list(shape))).run(["y"], {"x": data})
    assert result.shape == shape and (result == data).all()


def test_outputs_own_their_memory(scale):
    data = np.zeros((4, 2, 3), np.float32)
    first = scale.run(None, {"x": data})[0]
    second = scale.run(None, {"x": data + 1})[0]
    data[:] = 99
    gc.collect()
    np.testing.assert_array_equal(first[0].ravel(), np.arange(6))
    np.testing.assert_array_equal(second[3].ravel(), np.arange(6) + 1)


def unaligned(data):
    memory = np.empty(data.nbytes + 1, np.uint8)
    view = memory[1:].view(data.dtype).reshape(data.shape)
    view[...] = data
    return view


def read_only(data):
    data = data.copy()
    data.flags.writeable = False
    return data


class OnlyDlpack:
    """A tensor of a framework other than NumPy."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("form", [np.asfortranarray, unaligned, read_only, OnlyDlpack, lambda a: OnlyDlpack(np.asfortranarray(a)), lambda a: np.repeat(a, 2, axis=0)[::2],
                                  lambda a: a[:, ::-1][:, ::-1], lambda a: a.astype(">f4"), lambda a: a.tolist(), lambda a: np.broadcast_to(a[:1], a.shape)],
                         ids=["fortran", "unaligned", "read_only", "dlpack", "dlpack_fortran", "strided", "reversed", "big_endian", "lists", "broadcast"])
def test_forms_of_inputs(scale, form):
    data = np.arange(18, dtype=np.float32).reshape(3, 2, 3)
    given = form(data)
    expected = np.asarray(given.array if isinstance(given, OnlyDlpack) else given, np.float32) + np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(scale.run(None, {"x": given})[0], expected)


GOOD = np.zeros((1, 2, 3), np.float32)


@pytest.mark.parametrize("feed, message", [
    ({}, "input 'x' is missing"),
    ({"x": GOOD, "z": GOOD}, "no input 'z'"),
    ({"z": GOOD}, "input 'x' is missing"),
    ({"x": GOOD.astype(np.float64)}, "float64"),
    ({"x": GOOD.astype(np.int32)}, "int32"),
    ({"x": GOOD[0]}, "(2, 3)"),
    ({"x": GOOD[:, :, :2]}, "(1, 2, 2)"),
    ({"x": np.array(["a"])}, "float32"),
    ({"x": np.zeros((1, 2, 3), np.complex64)}, "complex64"),
    ({"x": None}, "float32"),
    ({"x": "text"}, "float32"),
    ({"x": [[1.0], [2.0, 3.0]]}, "float32"),
], ids=lambda value: value if isinstance(value, str) else None)
def test_refuses_wrong_inputs(scale, feed, message):
    with pytest.raises(treadle.RunError) as caught:
        scale.run(None, feed)
    assert caught.value.code == "TRD-RUN-001" and message in str(caught.value) and isinstance(caught.value, ValueError)


def test_refuses_unknown_outputs(scale):
    with pytest.raises(treadle.ArgumentError, match="no output 'z'"):
        scale.run(["z"], {"x": GOOD})


def test_every_code_has_a_class():
    for code, _ in _treadle.error_codes():
        error = treadle.errors._make(code, "text", "message", ["node"], ["note"], "hint")
        assert type(error) is not treadle.Error and isinstance(error, treadle.Error), code
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.code, copy.context, copy.notes, copy.hint, str(copy)) == (type(error), code, ["node"], ["note"], "hint", "text")


def test_errors_of_models(tmp_path):
    with pytest.raises(treadle.FileError, match="nowhere"):
        treadle.InferenceSession(tmp_path / "nowhere.onnx")
    with pytest.raises(treadle.ModelError):
        treadle.InferenceSession(b"\x08garbage")
    bad = model([helper.make_node("Add", ["x", "x"], ["h"], name="first"), helper.make_node("Nonsense", ["h"], ["y"], name="second")], [("x", np.float32, [2])], [("y", np.float32, [2])])
    with pytest.raises(treadle.ModelError) as caught:
        treadle.InferenceSession(bad)
    assert caught.value.code == "TRD-IMP-002" and "second" in str(caught.value) and any("second" in place for place in caught.value.context)
    with pytest.raises(treadle.ArgumentError):
        treadle.InferenceSession(3)
    with pytest.raises(treadle.TargetError):
        treadle.InferenceSession(identity(np.float32, [2]), target="abacus")
    with pytest.raises(TypeError, match="colour"):
        treadle.InferenceSession(identity(np.float32, [2]), colour=1)


# The extents of NonZero have names that nobody chose; twelve, so that "?9" and "?10" occur.
def test_the_same_model_gives_the_same_bytes_whatever_was_built_before(tmp_path):
    nodes = []
    for i in range(12):
        nodes += [helper.make_node("NonZero", [f"x{i}"], [f"n{i}"]), helper.make_node("Transpose", [f"n{i}"], [f"t{i}"], perm=[1, 0])]
    nodes.append(helper.make_node("Concat", [f"t{i}" for i in range(12)], ["y"], axis=0))
    net = model(nodes, [(f"x{i}", np.float32, ["A", 3]) for i in range(12)], [("y", np.int64, [None, 2])])
    for emit in ["so", "loop", "relay"]:
        paths = [tmp_path / f"{emit}{i}" for i in range(3)]
        for path in paths:
            treadle.compile(net, path, emit)
            treadle.InferenceSession(identity(np.float32, [None, len(path.name)]), cache=False)
        assert len({path.read_bytes() for path in paths}) == 1


def test_wrong_arguments_of_run(scale):
    x = np.zeros((1, 2, 3), np.float32)
    for feed in ([x], None, x):
        with pytest.raises(treadle.RunError, match="dict"):
            scale.run(None, feed)
    with pytest.raises(treadle.ArgumentError, match="list"):
        scale.run("y", {"x": x})
    with pytest.raises(TypeError, match="SessionOptions"):
        treadle.InferenceSession(identity(np.float32, [2]), {"threads": 1})


@pytest.mark.parametrize("arguments, text", [({"target": 5}, "target"), ({"opt_level": 1.5}, "integer"), ({"threads": "2"}, "integer"),
                                             ({"input_shapes": {"x": [2.5]}}, "integer")])
def test_arguments_of_wrong_types(arguments, text):
    with pytest.raises(TypeError, match=text):
        treadle.InferenceSession(identity(np.float32, [2]), **arguments)


def test_options_act():
    options = treadle.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = treadle.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.add_session_config_entry("key", "value")
    options.add_free_dimension_override_by_name("N", 4)
    shape = ["N", 2]
    session = treadle.InferenceSession(identity(np.float32, shape), options, ["CPUExecutionProvider", ("CUDAExecutionProvider", {"device_id": 0})])
    assert session.get_inputs()[0].shape == [4, 2] and options.get_session_config_entry("key") == "value"
    assert treadle.InferenceSession(identity(np.float32, shape), input_shapes={"x": ["M", 2]}).get_outputs()[0].shape == ["M", 2]


def test_names_of_any_bytes_and_several_outputs():
    nodes = [helper.make_node("Relu", ["größe/π:0"], ["a b"]), helper.make_node("Neg", ["größe/π:0"], ["-"])]
    session = treadle.InferenceSession(model(nodes, [("größe/π:0", np.float32, [2])], [("a b", np.float32, [2]), ("-", np.float32, [2])]))
    negative, relu = session.run(["-", "a b"], {"größe/π:0": np.array([-1, 2], np.float32)})
    assert negative.tolist() == [1, -2] and relu.tolist() == [0, 2]


def test_compiles_to_a_file_that_loads(tmp_path):
    digits = ROOT / "examples/digits/digits.onnx"
    treadle.compile(digits, tmp_path / "digits.so")
    data = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    results = [treadle.InferenceSession(path).run(None, {"image": data})[0] for path in (digits, tmp_path / "digits.so", digits.read_bytes())]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    treadle.compile(digits, tmp_path / "digits.relay", "relay")
    assert "def @main" in (tmp_path / "digits.relay").read_text()
    with pytest.raises(treadle.ArgumentError, match="emit"):
        treadle.compile(digits, tmp_path / "digits.x", "tapestry")


def test_many_threads_share_a_session(scale):
    def work(seed):
        data = np.random.default_rng(seed).random((seed % 7, 2, 3), np.float32)
        for _ in range(20):
            np.testing.assert_array_equal(scale.run(None, {"x": data})[0], data + np.arange(6, dtype=np.float32).reshape(2, 3))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(32)))


def long_running():
    """The bytes of a model that runs for minutes, unless x is 0: 2**40 passes of a loop."""
    body = helper.make_graph([helper.make_node("Add", ["h", "h"], ["h2"]), helper.make_node("Identity", ["c"], ["c2"])], "body",
                             [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("h", TensorProto.FLOAT, [4])],
                             [helper.make_tensor_value_info("c2", TensorProto.BOOL, []), helper.make_tensor_value_info("h2", TensorProto.FLOAT, [4])])
    return model([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], [("n", np.int64, []), ("x", np.float32, [4])], [("y", np.float32, [4])])


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import treadle
session = treadle.InferenceSession(sys.stdin.buffer.read())
ticks = []
def tick():
    for _ in range(5):
        time.sleep(0.1)
        ticks.append(1)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=tick).start()
try:
    session.run(None, {"n": np.array(2**40), "x": np.ones(4, np.float32)})
except KeyboardInterrupt:
    print("interrupted", len(ticks))
    sys.exit(3)
"""


def test_ctrl_c_ends_a_long_run():
    """Also: other Python threads go on meanwhile, and the process can end though the work still runs."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], input=long_running(), capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (3, b"interrupted 5\n"), done.stderr.decode()


def test_signals_are_left_alone_elsewhere(scale):
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    results = []
    thread = threading.Thread(target=lambda: results.append(scale.run(None, {"x": GOOD})[0]))
    thread.start()
    thread.join()
    assert results[0].ravel().tolist() == list(range(6))


def test_lists_operators():
    ops = treadle.ops()
    assert len(ops) > 100 and {"name", "family", "summary", "inputs", "attributes"} <= set(ops[0])
    assert treadle.ops("nn.conv2d")["name"] == "nn.conv2d"
    with pytest.raises(treadle.ArgumentError):
        treadle.ops("nn.conv")
    assert "llvm" in treadle.targets()


def test_names_of_onnx_runtime_programs():
    treadle.set_default_logger_severity(3)
    treadle.disable_telemetry_events()
    assert treadle.get_device() == "CPU" and treadle.ExecutionMode.ORT_SEQUENTIAL == 0
    assert treadle.__version__ == treadle.get_version_string()
    for name in treadle.__all__:
        assert hasattr(treadle, name), name


def test_disabled_passes_are_known():
    treadle.InferenceSession(ROOT / "examples/digits/digits.onnx", disabled_passes=["FoldConstant"], cache=False)
    for names in (["Foo"], "FoldConstant"):
        with pytest.raises(treadle.ArgumentError, match="Foo|FoldConstant"):
            treadle.InferenceSession(ROOT / "examples/digits/digits.onnx", disabled_passes=names, cache=False)
