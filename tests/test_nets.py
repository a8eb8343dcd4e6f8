# SPDX-License-Identifier: Apache-2.0
"""The nets of bench/models.py: Treadle gives what ONNX Runtime gives, at O0 and O3; one and two threads give the same bits."""

import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

ROOT = Path(__file__).resolve().parent.parent
TREADLE = ROOT / "build" / "release" / "bin" / "treadle"
MODELS = ROOT / "build" / "models"
IMAGE_NETS = ["resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1", "vgg16", "efficientnet_b0", "densenet121", "vit_b_16"]
BERT_SIZES = [(1, 1), (1, 7), (3, 33), (2, 128)]  # batch, length: one compiled model serves all


def image_feed():
    return {"input": np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)}


def bert_feed(batch, length):
    random = np.random.default_rng(batch * 1000 + length)
    mask = np.ones((batch, length), np.int64)
    mask[-1, length // 2 + 1 :] = 0
    return {"input_ids": random.integers(0, 8192, (batch, length)), "attention_mask": mask}


def treadle(model, feed, folder, level, threads):
    """The outputs by name of one run of the command."""
    arguments = [TREADLE, "run", model, "-O", str(level), "--threads", str(threads), "--output", folder / "out.npz"]
    for name, value in feed.items():
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    result = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    return dict(np.load(folder / "out.npz"))


def check(name, feed, folder):
    model = MODELS / f"{name}.onnx"
    assert model.exists(), f"run bench/models.py {name}"
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    expected = dict(zip([output.name for output in session.get_outputs()], session.run(None, feed)))
    for level in (0, 3):
        one, two = treadle(model, feed, folder, level, 1), treadle(model, feed, folder, level, 2)
        assert list(one) == list(expected)
        for output, value in expected.items():
            tolerance = {"rtol": 1e-3, "atol": 1e-4 * float(value.max() - value.min())}
            np.testing.assert_allclose(one[output], value, **tolerance, err_msg=f"{output} at O{level}")
            assert one[output].tobytes() == two[output].tobytes(), f"{output} at O{level} depends on the threads"


@pytest.mark.parametrize("name", IMAGE_NETS)
def test_image_net(name, tmp_path):
    check(name, image_feed(), tmp_path)


@pytest.mark.parametrize("batch, length", BERT_SIZES)
def test_encoder(batch, length, tmp_path):
    check("bert", bert_feed(batch, length), tmp_path)
