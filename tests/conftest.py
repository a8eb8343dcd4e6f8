# SPDX-License-Identifier: Apache-2.0
"""Finds the built package, and what the Python tests share."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def package_folder():
    """TREADLE_PYTHON_PACKAGE, or the build of the preset release; None when an installed package is on the path already."""
    if folder := os.environ.get("TREADLE_PYTHON_PACKAGE"):
        return folder
    folder = ROOT / "build/release/python"
    return str(folder) if folder.exists() else None


if folder := package_folder():
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))  # for subprocesses


@pytest.fixture(scope="session")
def as_onnxruntime():
    """A context in which `import onnxruntime` gives Treadle: as_onnxruntime("package") gives the package freshly imported so."""
    import importlib

    import treadle

    def load(name):
        saved = {key: module for key, module in sys.modules.items() if key == "onnxruntime" or key.split(".")[0] == name}
        for key in saved:
            del sys.modules[key]
        sys.modules["onnxruntime"] = treadle
        try:
            return importlib.import_module(name)
        finally:
            for key in [key for key in sys.modules if key == "onnxruntime" or key.split(".")[0] == name]:
                del sys.modules[key]
            sys.modules.update(saved)

    return load
