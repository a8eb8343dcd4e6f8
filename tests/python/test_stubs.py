# SPDX-License-Identifier: Apache-2.0
"""The stub of the extension module says what the module holds, and type checkers can use the package.

  PYTHONPATH=build/release/python build/venv/bin/python tests/python/test_stubs.py --update    writes it anew
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

STUB = Path(__file__).resolve().parent.parent.parent / "python/treadle/_treadle.pyi"
HEAD = "# SPDX-License-Identifier: Apache-2.0\n# Made by tests/python/test_stubs.py --update.\n"


def stub():
    stubgen = pytest.importorskip("nanobind.stubgen")
    from treadle import _treadle

    generator = stubgen.StubGen(_treadle)
    generator.put(_treadle)
    return HEAD + generator.get()


def test_stub_is_current():
    assert STUB.read_text() == stub(), "run this file with --update"


def test_package_is_marked_as_typed():
    assert (STUB.parent / "py.typed").exists()


PROGRAM = """\
from pathlib import Path

import numpy as np

import treadle

session = treadle.InferenceSession("net.onnx", treadle.SessionOptions(), threads=1)
treadle.InferenceSession(Path("net.onnx"), providers=["CPUExecutionProvider"], input_shapes={"x": [1, "N"]}, disabled_passes=["FuseOps"])
treadle.InferenceSession(b"", input_shapes={"x": (1, 3)})
treadle.InferenceSession(memoryview(b""), None, target="llvm -mcpu=znver3", opt_level=2, cache=False)
treadle.compile(bytearray(), Path("net.so"), emit="so")
name: str = session.get_inputs()[0].name
extents: list[int | str] = session.get_outputs()[0].shape
result: np.ndarray = session.run(None, {name: np.zeros(3, np.float32)})[0]
session.run([name], {name: [[1.0]]}, treadle.RunOptions())
try:
    treadle.compile("net.onnx", "net.so")
except treadle.RunError as error:
    code: str = error.code
"""
WRONG = """\
import treadle

treadle.InferenceSession(3)
treadle.compile("net.onnx", 3)
treadle.InferenceSession("net.onnx", opt_level="3")
treadle.InferenceSession("net.onnx").run(None, [])
treadle.InferenceSession("net.onnx").run(None, {}).shape
"""


def mypy(folder, text):
    """The status of mypy for a program that uses the package's sources, and the lines of it with errors."""
    (folder / "program.py").write_text(text)
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), "program.py"], cwd=folder,
                          env={**os.environ, "MYPYPATH": str(STUB.parent.parent)}, capture_output=True, text=True, timeout=300)
    return done.returncode, [line for line in done.stdout.splitlines() if ": error: " in line]


def test_mypy_understands_a_program(tmp_path):
    assert mypy(tmp_path, PROGRAM) == (0, [])
    status, errors = mypy(tmp_path, WRONG)
    assert status == 1 and len(errors) == 5, errors
    for line, error in zip([3, 4, 5, 6, 7], errors, strict=True):
        assert error.startswith(f"program.py:{line}: "), error
    assert '"InferenceSession" has incompatible type "int"' in errors[0]


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit(__doc__)
    STUB.write_text(stub())
