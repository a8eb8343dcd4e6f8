# SPDX-License-Identifier: Apache-2.0
"""Linux perf finds the operators' names: of code in memory by its map, of a shared object by its symbols."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREADLE = Path(os.environ.get("TREADLE_COMMAND", ROOT / "build" / "release" / "bin" / "treadle"))
DIGITS = ROOT / "examples/digits/digits.onnx"


def test_map_of_code_in_memory():
    with subprocess.Popen([TREADLE, "run", DIGITS, "--no-cache"], env={**os.environ, "TREADLE_PERF": "1"}, stdout=subprocess.PIPE) as process:
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and b"ready" in output
    path = Path(f"/tmp/perf-{process.pid}.map")
    lines = [line.split(" ", 2) for line in path.read_text().splitlines()]
    path.unlink()
    spans = sorted((int(start, 16), int(size, 16), name) for start, size, name in lines)
    assert all(size > 0 for _, size, _ in spans)
    names = {name for _, _, name in spans}
    convolutions = [name for name in names if name.startswith("conv2d")]
    assert any(".parallel" not in name for name in convolutions)
    assert any(".parallel" in name for name in convolutions), names  # where the time goes


def test_symbols_of_a_shared_object(tmp_path):
    subprocess.run([TREADLE, "compile", DIGITS, "-o", tmp_path / "digits.so"], check=True, stdout=subprocess.DEVNULL)
    symbols = subprocess.run(["nm", tmp_path / "digits.so"], capture_output=True, text=True, check=True).stdout
    assert any("conv2d" in line and ".parallel" in line for line in symbols.splitlines())
