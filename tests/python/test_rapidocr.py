# SPDX-License-Identifier: Apache-2.0
"""The three models of rapidocr-onnxruntime equal ONNX Runtime on a real picture, and the package reads text with Treadle in its place."""

from pathlib import Path

import numpy as np
import pytest
from comparison import assert_equal
from PIL import Image, ImageDraw, ImageFont

ort = pytest.importorskip("onnxruntime")
rapidocr = pytest.importorskip("rapidocr_onnxruntime")
import treadle  # noqa: E402

MODELS = Path(rapidocr.__file__).parent / "models"
DETECTION = MODELS / "ch_PP-OCRv4_det_infer.onnx"
CLASSIFICATION = MODELS / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
RECOGNITION = MODELS / "ch_PP-OCRv4_rec_infer.onnx"
LINES = ["Treadle weaves", "neural networks", "into machine code", "since 1804"]


@pytest.fixture(scope="module")
def picture():
    """A page with LINES in black on white, RGB."""
    image = Image.new("RGB", (480, 320), "white")
    draw = ImageDraw.Draw(image)
    for i, line in enumerate(LINES):
        draw.text((30, 25 + 70 * i), line, fill="black", font=ImageFont.load_default(36))
    return np.asarray(image)


def prepared(picture, height, width):
    """(1, 3, height, width) float32 in -1 to 1."""
    image = Image.fromarray(picture).resize((width, height), Image.BILINEAR)
    return np.ascontiguousarray(np.asarray(image, np.float32).transpose(2, 0, 1)[None] / 127.5 - 1)


def check(model, inputs):
    """Treadle, compiled once, equals ONNX Runtime for every input."""
    session, reference = treadle.InferenceSession(model), ort.InferenceSession(str(model))
    (name,) = [info.name for info in session.get_inputs()]
    assert name == reference.get_inputs()[0].name
    for data in inputs:
        for actual, expected in zip(session.run(None, {name: data}), reference.run(None, {name: data}), strict=True):
            assert_equal(actual, expected)


def test_detection_at_several_sizes(picture):
    check(DETECTION, [prepared(picture, height, width) for height, width in [(320, 480), (96, 160), (640, 416)]])


def test_classification_at_several_batches(picture):
    lines = [prepared(picture[20 + 70 * i : 70 + 70 * i], 48, 192) for i in range(4)]
    check(CLASSIFICATION, [lines[0], np.concatenate(lines)])


def test_recognition_at_several_widths(picture):
    lines = [picture[20 + 70 * i : 70 + 70 * i] for i in range(4)]
    check(RECOGNITION, [prepared(lines[0], 48, 320), prepared(lines[1], 48, 417), np.concatenate([prepared(line, 48, 256) for line in lines])])


def test_program_reads_the_same_text(picture, as_onnxruntime):
    theirs = rapidocr.RapidOCR()(picture)[0]
    program = as_onnxruntime("rapidocr_onnxruntime")
    engine = program.RapidOCR()
    assert isinstance(engine.text_det.infer.session, treadle.InferenceSession)
    ours = engine(picture)[0]
    assert [text for _, text, _ in ours] == [text for _, text, _ in theirs]
    # The recogniser itself drops narrow spaces, with any engine.
    assert [text.replace(" ", "") for _, text, _ in ours] == [line.replace(" ", "") for line in LINES]
    for (box, _, score), (expected_box, _, expected_score) in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(box, expected_box, atol=1.5)
        assert float(score) == pytest.approx(float(expected_score), abs=1e-3)
