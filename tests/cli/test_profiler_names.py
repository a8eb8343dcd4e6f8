# SPDX-License-Identifier: Apache-2.0
"""Linux perf finds the operators' names: of code in memory by its map, of a shared object by its symbols."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREADLE = Path(os.environ.get("TREADLE_COMMAND", ROOT / "build" / "release" / "bin" / "treadle"))
# Large enough for several threads.
NET = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 32, 56, 56), float32], %w: Tensor[(64, 32, 3, 3), float32]) { nn.relu(nn.conv2d(%x, %w, padding=[1, 1])) }
"""


@pytest.fixture
def net(tmp_path):
    (tmp_path / "net.relay").write_text(NET)
    return tmp_path / "net.relay"


def test_map_of_code_in_memory(net):
    with subprocess.Popen([TREADLE, "run", net, "--no-cache"], env={**os.environ, "TREADLE_PERF": "1"}, stdout=subprocess.PIPE) as process:
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and b"ready" in output
    path = Path(f"/tmp/perf-{process.pid}.map")
    lines = [line.split(" ", 2) for line in path.read_text().splitlines()]
    path.unlink()
    spans = sorted((int(start, 16), int(size, 16), name) for start, size, name in lines)
    assert all(start > 0 and size > 0 for start, size, _ in spans)
    kernels = [span for span in spans if span[2].startswith("conv2d")]
    assert all(start + size <= after for (start, size, _), (after, _, _) in zip(kernels, kernels[1:])), kernels
    names = {name for _, _, name in spans}
    convolutions = [name for name in names if name.startswith("conv2d")]
    assert any(".parallel" not in name for name in convolutions)
    assert any(".parallel" in name for name in convolutions), names  # where the time goes


def test_symbols_of_a_shared_object(net, tmp_path):
    subprocess.run([TREADLE, "compile", net, "-o", tmp_path / "net.so"], check=True, stdout=subprocess.DEVNULL)
    symbols = subprocess.run(["nm", tmp_path / "net.so"], capture_output=True, text=True, check=True).stdout
    assert any("conv2d" in line and ".parallel" in line for line in symbols.splitlines())
