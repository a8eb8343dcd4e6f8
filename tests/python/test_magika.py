# SPDX-License-Identifier: Apache-2.0
"""The model of magika equals ONNX Runtime on the bytes of real files, and the package classifies files with Treadle in its place."""

import sys
from pathlib import Path

import numpy as np
import pytest
from comparison import ROOT, assert_equal

ort = pytest.importorskip("onnxruntime")
magika = pytest.importorskip("magika")
import treadle  # noqa: E402

MODEL = next((Path(magika.__file__).parent / "models").glob("*/model.onnx"))
FILES = [ROOT / name for name in ["README.md", "CMakeLists.txt", "LICENSE", "src/base/error.cc", "src/base/error.h", "tests/python/test_magika.py", "tools/test",
                                  "CMakePresets.json", "examples/digits/digits.onnx", "examples/digits/pictures/3.png"]] + [Path(sys.executable).resolve()]


@pytest.fixture(scope="module")
def features():
    """What magika feeds its model for FILES, captured from the package itself: (files, positions) int32."""
    program = magika.Magika()
    captured = []

    class Spy:
        def __init__(self, session):
            self.session = session

        def run(self, names, feed):
            captured.append(np.asarray(feed["bytes"]))
            return self.session.run(names, feed)

    program._onnx_session = Spy(program._onnx_session)
    program.identify_paths(FILES)
    return np.concatenate(captured).astype(np.int32)


def test_model_equals_onnx_runtime(features):
    session, reference = treadle.InferenceSession(MODEL), ort.InferenceSession(str(MODEL))
    for rows in (features[:1], features, np.tile(features, (3, 1))):
        (actual,), (expected,) = session.run(None, {"bytes": rows}), reference.run(None, {"bytes": rows})
        assert_equal(actual, expected)


def test_program_gives_the_same_answers(as_onnxruntime):
    theirs = magika.Magika()
    ours = as_onnxruntime("magika").Magika()
    assert isinstance(ours._onnx_session, treadle.InferenceSession)
    for a, b in zip(ours.identify_paths(FILES), theirs.identify_paths(FILES), strict=True):
        assert str(a.output.label) == str(b.output.label)
        assert a.score == pytest.approx(b.score, abs=1e-3)
    text = b"def main():\n    print('hello')\n\n\nif __name__ == '__main__':\n    main()\n" * 4
    assert str(ours.identify_bytes(text).output.label) == str(theirs.identify_bytes(text).output.label) == "python"
