# SPDX-License-Identifier: Apache-2.0
"""pip install . gives a package that works from anywhere: built, installed into a folder of its own, and used there."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import treadle
assert Path(treadle.__file__).is_relative_to(sys.argv[1]), treadle.__file__
session = treadle.InferenceSession(sys.argv[2])
image = session.get_inputs()[0]
(result,) = session.run(None, {image.name: np.zeros(image.shape, np.float32)})
assert result.shape == (1, 10) and abs(result.sum() - 1) < 1e-5, result
print(treadle.__version__)
"""


def test_pip_install(tmp_path):
    # Without isolation: what builds the package is in the Python of the tests already.
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--target", str(tmp_path / "site"), str(ROOT)]
    # The compiler by the name that the release build uses, so that ccache knows its objects.
    environment = {"CC": "cc", "CXX": "c++", **os.environ}
    installed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500)
    assert installed.returncode == 0, installed.stdout[-3000:] + installed.stderr[-3000:]
    assert (tmp_path / "site" / "treadle" / "py.typed").exists() and list((tmp_path / "site" / "treadle").glob("*.pyi"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "TREADLE_CACHE": "off"}
    used = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "site"), str(ROOT / "examples/digits/digits.onnx")], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, timeout=120)
    assert used.returncode == 0, used.stderr
    assert used.stdout.strip() == subprocess.run([ROOT / "build/release/bin/treadle", "--version"], capture_output=True, text=True).stdout.split()[-1]
