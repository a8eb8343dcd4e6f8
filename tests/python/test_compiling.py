# SPDX-License-Identifier: Apache-2.0
"""What the package promises of time and memory: inputs are not copied, other threads go on while it compiles, Ctrl-C ends compiling,
and initialisers may be larger than a protobuf message."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import treadle

GIB = 2**30


def model(nodes, inputs, outputs, initializers=()):
    """The bytes of a model; inputs and outputs are (name, shape) of float32 or (name, shape, element type)."""
    infos = [[helper.make_tensor_value_info(name, *(more or [TensorProto.FLOAT]), shape) for name, shape, *more in part] for part in (inputs, outputs)]
    graph = helper.make_graph(nodes, "net", *infos, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def products(count):
    """The bytes of a model of `count` (at most 1000) products of matrices, no two of which have the same extents: a kernel for each, of
    about 10 ms of compiling."""
    nodes, inputs, outputs, weights = [], [], [], []
    for i in range(count):
        rows, inner, columns = 4 + i % 10, 8 + i // 10 % 10, 8 + i // 100
        nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"y{i}"]))
        inputs.append((f"x{i}", [rows, inner]))
        outputs.append((f"y{i}", [rows, columns]))
        weights.append(numpy_helper.from_array(np.ones((inner, columns), np.float32), f"w{i}"))
    return model(nodes, inputs, outputs, weights)


def run_python(program, *arguments, data=b""):
    return subprocess.run([sys.executable, "-c", program, *arguments], input=data, capture_output=True, timeout=300)


PEAK = """
import re, sys
import numpy as np
import treadle

class OnlyDlpack:
    def __init__(self, array):
        self.array = array
    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)
    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

def peak():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s*(\\d+) kB", status.read())[1])

session = treadle.InferenceSession(sys.stdin.buffer.read(), cache=False)
session.run(None, {"x": np.ones((8, 8192), np.float32)})
data = np.ones((8192, 8192), np.float32)  # 256 MiB
given = {"numpy": data, "dlpack": OnlyDlpack(data), "fortran": data.T}[sys.argv[1]]
before = peak()
(result,) = session.run(None, {"x": given})
assert result == 8192 * 8192, result
print((peak() - before) // 1024)
"""


@pytest.mark.parametrize("form, at_most", [("numpy", 32), ("dlpack", 32), ("fortran", 512)])
def test_inputs_are_not_copied(form, at_most):
    """The peak of memory grows by a few MiB where the input has 256; a column-major one is copied, which shows that a copy would be seen."""
    total = model([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], [("x", ["N", 8192])], [("y", [])])
    done = run_python(PEAK, form, data=total)
    assert done.returncode == 0, done.stderr.decode()
    grown = int(done.stdout)
    assert grown < at_most and (form != "fortran" or grown > 200), f"{grown} MiB"


COUNTING = """
import sys, threading, time
import treadle
net = sys.stdin.buffer.read()
begin, end, ticks = [], [], []

def compile_net():
    begin.append(time.monotonic())
    treadle.InferenceSession(net, threads=1, cache=False)
    end.append(time.monotonic())

def count():
    while not end:
        ticks.append(time.monotonic())
        time.sleep(0.001)

first, second = (compile_net, count) if sys.argv[1] == "main" else (count, compile_net)
other = threading.Thread(target=second)
other.start()
first()
other.join()
print(sum(begin[0] < tick < end[0] for tick in ticks))
"""


@pytest.mark.parametrize("place", ["main", "thread"])
def test_other_threads_go_on_while_one_compiles(place):
    """Whether the main thread or another one compiles. With the interpreter lock held, the counter would be stuck at 1 or 2."""
    done = run_python(COUNTING, place, data=products(60))
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) >= 10


INTERRUPTED = """
import os, signal, sys, threading, time
import treadle
net = sys.stdin.buffer.read()
sent = []
def interrupt():
    time.sleep(0.5)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    treadle.InferenceSession(net, threads=1, cache=False)
except KeyboardInterrupt:
    print(time.monotonic() - sent[0], flush=True)
    sys.exit(3)
"""


def test_ctrl_c_ends_compiling():
    """The model takes 10 s to compile, more on a busy machine. The process can end though the work still runs."""
    done = run_python(INTERRUPTED, data=products(1000))
    assert done.returncode == 3, done.stderr.decode()
    assert float(done.stdout) < 3


def memory_available():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def external(folder, name, rows, marks):
    """An initialiser (rows, 65536) in a sparse file of its own, 0 but for the rows of `marks`, which have its values."""
    columns = 65536
    with open(folder / f"{name}.data", "wb") as file:
        file.truncate(rows * columns * 4)
        for row, value in marks.items():
            file.seek(row * columns * 4)
            file.write(np.full(columns, value, np.float32).tobytes())
    tensor = TensorProto(name=name, dims=[rows, columns], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=f"{name}.data")
    return tensor


def test_initialisers_above_two_gib(tmp_path):
    """2.25 GiB in one and 0.5 GiB in another, read at their ends."""
    if memory_available() < 8 * GIB:
        pytest.skip(f"needs 8 GiB of memory, {memory_available() / GIB:.1f} GiB are available")
    if shutil.disk_usage(tmp_path).free < 4 * GIB:
        pytest.skip(f"needs 4 GiB of disk, {shutil.disk_usage(tmp_path).free / GIB:.1f} GiB are free in {tmp_path}")
    weights = [external(tmp_path, "a", 9216, {0: 2, 9215: 3}), external(tmp_path, "b", 2048, {0: 4, 2047: 5})]
    nodes = [helper.make_node("Gather", ["a", "i"], ["p"]), helper.make_node("Gather", ["b", "j"], ["q"]), helper.make_node("Add", ["p", "q"], ["y"])]
    (tmp_path / "large.onnx").write_bytes(model(nodes, [("i", [1], TensorProto.INT64), ("j", [1], TensorProto.INT64)], [("y", [1, 65536])], weights))
    session = treadle.InferenceSession(tmp_path / "large.onnx", cache=False)
    for i, j, value in [(9215, 2047, 8), (0, 0, 6), (9214, 2046, 0), (9215, 0, 7)]:
        (result,) = session.run(None, {"i": np.array([i]), "j": np.array([j])})
        assert (result == value).all() and result.shape == (1, 65536)
