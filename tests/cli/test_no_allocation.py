# SPDX-License-Identifier: Apache-2.0
"""A compiled model of fixed shapes allocates nothing while it runs, whichever threads do its loops."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREADLE = Path(os.environ.get("TREADLE_COMMAND", ROOT / "build" / "release" / "bin" / "treadle"))
LIBRARIES = TREADLE.parents[1] / "lib"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("c") / "count_allocations"
    subprocess.run(["gcc", "-O1", "-I", ROOT / "include", ROOT / "tests/cli/count_allocations.c", "-o", path, "-L", LIBRARIES, f"-Wl,-rpath,{LIBRARIES}",
                    "-ltreadle_runtime"], check=True)
    return path


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "squeezenet.so"
    subprocess.run([TREADLE, "compile", ROOT / "build/models/squeezenet1_1.onnx", "-o", path], check=True, stdout=subprocess.DEVNULL)
    return path


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_runs_allocate_nothing(program, artifact, threads):
    environment = {**os.environ, "TREADLE_NUM_THREADS": str(threads)}
    done = subprocess.run([program, artifact, "200"], env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "0\n"
