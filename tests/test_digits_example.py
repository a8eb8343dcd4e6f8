# SPDX-License-Identifier: Apache-2.0
"""The example of the README: the command classifies the ten held-out scans, from the model and from the shared object."""

import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "digits"
TREADLE = ROOT / "build" / "release" / "bin" / "treadle"


def treadle(*arguments):
    result = subprocess.run([TREADLE, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module", params=["model", "shared object"])
def program(request, tmp_path_factory):
    if request.param == "model":
        return EXAMPLE / "digits.onnx"
    path = tmp_path_factory.mktemp("digits") / "digits.so"
    treadle("compile", EXAMPLE / "digits.onnx", "-o", path)
    return path


@pytest.mark.parametrize("digit", range(10))
def test_digit(program, digit, tmp_path):
    picture = EXAMPLE / "pictures" / f"{digit}.png"
    treadle("run", program, "--input", f"image={picture}", "--output", tmp_path / "out.npz")
    result = np.load(tmp_path / "out.npz")["result"]
    assert result.argmax() == digit
    session = onnxruntime.InferenceSession(EXAMPLE / "digits.onnx", providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"image": np.asarray(Image.open(picture), np.float32)[None, None]})
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-5)


def test_labels_are_printed(program):
    labels = EXAMPLE / "labels.txt"
    text = treadle("run", program, "--input", f"image={EXAMPLE / 'pictures' / '7.png'}", "--labels", labels, "--top", 1)
    assert "seven" in text


def test_example_is_small():
    assert sum(path.stat().st_size for path in EXAMPLE.rglob("*") if path.is_file()) < 300 * 1024
