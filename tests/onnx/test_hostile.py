# SPDX-License-Identifier: Apache-2.0
"""Small models that ask for much (make_hostile.py) cost the compiler at most 1 GiB and 30 s, and end with an artifact or a coded
error; a run that cannot have its memory ends with a coded error too. Weights are held once."""
import concurrent.futures
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import make_hostile

ROOT = make_hostile.pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("TREADLE_COMMAND", str(ROOT / "build/release/bin/treadle"))
MEGABYTES, SECONDS = 1024, 30
BASE = 150  # megabytes that a process takes for any model, most of it LLVM's code


# Starts the command from a small process: what a process has had at most includes what its parent had when it forked.
LAUNCH = """
import json, resource, subprocess, sys
status = subprocess.call(sys.argv[2:], stdout=subprocess.DEVNULL, timeout=float(sys.argv[1]))
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
"""


class Ended:
    """A command that ran: status, seconds (of the clock or of all its threads, whichever is less), peak memory in MB, error text."""

    def __init__(self, *arguments):
        begin = time.monotonic()
        # A busy machine makes the clock run faster than the command: time for four.
        done = subprocess.run([sys.executable, "-I", "-S", "-c", LAUNCH, str(4 * SECONDS), COMMAND, *map(str, arguments)],
                              capture_output=True, env={**os.environ, "TREADLE_CACHE": "off"})
        self.text = done.stderr.decode(errors="replace")
        assert done.returncode == 0, f"{arguments}: {self.text}"
        self.status, seconds, self.megabytes = json.loads(done.stdout)
        self.seconds = min(time.monotonic() - begin, seconds)

    def faults(self, coded=True):
        if self.status not in (0, 1):
            yield f"status {self.status}"
        if self.status == 1 and coded and "TRD-" not in self.text:
            yield "no code"
        if "TRD-INT" in self.text:
            yield "internal error"
        if self.seconds > SECONDS:
            yield f"{self.seconds:.0f} s"
        if self.megabytes > MEGABYTES:
            yield f"{self.megabytes:.0f} MB"


def jobs(folder):
    for name, kind, data in make_hostile.cases():
        assert len(data) <= make_hostile.LARGEST, f"{name}: {len(data)} bytes"
        path = folder / f"{len(list(folder.iterdir()))}.{kind}"
        path.write_bytes(data)
        yield name, ["compile", "-O3", path, "-o", f"{path}.so"]
        yield name, ["compile", "-O0", path, "-o", f"{path}.0.so"]
        yield name, ["print", path]


def test_compiling_is_bounded(tmp_path):
    def run(job):
        name, arguments = job
        done = Ended(*arguments)
        return [f"{name} ({arguments[0]} {arguments[1]}): {fault}: {done.text[-300:]}" for fault in done.faults()]

    all_jobs = list(jobs(tmp_path))
    assert len(all_jobs) > 300
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [fault for faults in pool.map(run, all_jobs) for fault in faults]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["constant of shape, plain", "giant pads", "concat x x"])
def test_running_what_needs_more_memory_than_there_is(name, tmp_path):
    """2^36 elements and more: refused before they are allocated, by the compiler or by the runtime."""
    kind, data = next((kind, data) for found, kind, data in make_hostile.cases() if found == name)
    path = tmp_path / f"model.{kind}"
    path.write_bytes(data)
    done = Ended("run", "-O3", "--no-cache", path)
    assert not list(done.faults())
    assert done.status == 1 and "TRD-LIM-001" in done.text, done.text[-500:]


def saved(path, nodes, initializers, inputs, opset=17, more=b""):
    """Writes a model; `more` are fields of its graph."""
    graph = helper.make_graph(nodes, "g", inputs, [make_hostile.value("y")], initializers).SerializeToString()
    opsets = helper.make_opsetid("", opset).SerializeToString()
    path.write_bytes(b"\x08\x08" + make_hostile.field(8, opsets) + make_hostile.field(7, graph + more))
    return path


@pytest.mark.parametrize("place", ["initialiser", "constant", "float_data"])
def test_a_large_weight_is_held_once(place, tmp_path):
    """300 MB: as an initialiser, in a Constant node, and in the typed field, of which protobuf makes a copy."""
    rows, columns = 3000, 25_000
    weights = rows * columns * 4 / 2**20
    tensor = TensorProto(name="w", dims=[rows, columns], data_type=TensorProto.FLOAT).SerializeToString()
    tensor += make_hostile.field(4 if place == "float_data" else 9, bytes(rows * columns * 4))
    nodes = [helper.make_node("Gather", ["w", "x"], ["y"])]
    if place == "constant":
        attribute = b"\x0a\x05value" + make_hostile.field(5, tensor) + b"\xa0\x01\x04"
        more = make_hostile.field(1, b"\x12\x01w\x22\x08Constant" + make_hostile.field(5, attribute))
    else:
        more = make_hostile.field(5, tensor)
    path = saved(tmp_path / "large.onnx", nodes, [], [make_hostile.value("x", [2], TensorProto.INT64)], more=more)
    done = Ended("check", path)
    assert done.status == 0, done.text
    copies = 3 if place == "float_data" else 1
    assert done.megabytes < copies * weights + BASE, f"{done.megabytes:.0f} MB for {weights:.0f} MB of weights"
    assert done.seconds < 10
    if place == "initialiser":
        done = Ended("run", "--no-cache", "--fill", "zeros", path)
        assert done.status == 0, done.text
        assert done.megabytes < 2 * weights + BASE, f"{done.megabytes:.0f} MB for {weights:.0f} MB of weights"


def test_a_hundred_thousand_initialisers(tmp_path):
    names = [f"w{i}" for i in range(100_000)]
    weights = [numpy_helper.from_array(np.ones(1, np.float32), name) for name in names]
    nodes = [helper.make_node("Add", ["x" if i == 0 else f"s{i - 1}", name], [f"s{i}" if i < 99_999 else "y"]) for i, name in enumerate(names)]
    path = saved(tmp_path / "many.onnx", nodes, weights, [make_hostile.value("x", [1])])
    done = Ended("check", path)
    assert done.status == 0, done.text
    assert done.megabytes < 500 and done.seconds < 20, (done.megabytes, done.seconds)


def test_a_hundred_thousand_strings(tmp_path):
    strings = TensorProto(dims=[100_000], data_type=TensorProto.STRING, string_data=[b"text"] * 100_000)
    nodes = [helper.make_node("Constant", [], ["w"], value=strings), helper.make_node("Identity", ["w"], ["y"])]
    path = saved(tmp_path / "strings.onnx", nodes, [], [make_hostile.value("x", [1])])
    done = Ended("compile", path, "-o", tmp_path / "out.so")
    assert done.status == 1 and "TRD-IMP-002" in done.text and "STRING" in done.text, done.text
    assert done.megabytes < BASE
