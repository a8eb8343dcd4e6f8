# SPDX-License-Identifier: Apache-2.0
"""examples/c/classify.c, built against the C interface, gives the classes and probabilities of `treadle run`.

TREADLE_COMMAND names another build of the command than build/release/bin/treadle; the runtime library is that build's.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
TREADLE = Path(os.environ.get("TREADLE_COMMAND", ROOT / "build" / "release" / "bin" / "treadle")).resolve()
DIGITS = ROOT / "examples" / "digits"


def run(*command):
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The paths of the program and of the compiled model."""
    folder = tmp_path_factory.mktemp("classify")
    library = TREADLE.parent.parent / "lib"
    run("gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", ROOT / "examples" / "c" / "classify.c", f"-L{library}",
        f"-Wl,-rpath,{library}", "-ltreadle_runtime", "-o", folder / "classify")
    run(TREADLE, "compile", DIGITS / "digits.onnx", "-o", folder / "digits.so")
    return folder / "classify", folder / "digits.so"


@pytest.mark.parametrize("digit", range(10))
def test_answers_are_those_of_the_command(built, digit, tmp_path):
    picture = DIGITS / "pictures" / f"{digit}.png"
    np.asarray(Image.open(picture), np.float32).tofile(tmp_path / "picture.f32")
    words = [line.split() for line in run(*built, tmp_path / "picture.f32").splitlines()]
    told = json.loads(run(TREADLE, "run", built[1], "--input", picture, "--top", 3, "--json"))["outputs"][0]["top"]
    assert [word[:2] for word in words] == [["class", str(entry["index"])] for entry in told]
    np.testing.assert_allclose([float(word[2]) for word in words], [entry["value"] for entry in told], rtol=1e-4)
    assert told[0]["index"] == digit and told[0]["value"] > 0.5


def test_without_a_picture_the_input_is_zeros(built):
    words = [line.split() for line in run(*built).splitlines()]
    told = json.loads(run(TREADLE, "run", built[1], "--fill", "zeros", "--top", 3, "--json"))["outputs"][0]["top"]
    assert [int(word[1]) for word in words] == [entry["index"] for entry in told]


def test_a_short_file_is_refused(built, tmp_path):
    (tmp_path / "short.f32").write_bytes(bytes(4 * 63))
    result = subprocess.run([*built, tmp_path / "short.f32"], capture_output=True, text=True, timeout=120)
    assert result.returncode == 1 and "cannot read 64 float32 numbers" in result.stderr
