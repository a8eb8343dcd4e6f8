# SPDX-License-Identifier: Apache-2.0
"""Every broken model of make_broken.py gives its coded error, quickly and without a crash; so do models damaged at random."""
import os
import pathlib
import random
import subprocess

import pytest

import make_broken

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 60  # for one model, with sanitizers


def tool_path():
    """The test program of the build in TREADLE_BUILD; else that of build/debug, which has sanitizers; else that of build/release."""
    given = os.environ.get("TREADLE_BUILD")
    folders = [pathlib.Path(given)] if given else [ROOT / "build" / "debug", ROOT / "build" / "release"]
    found = [path for folder in folders if (path := folder / "tests" / "treadle_onnx_tool").exists()]
    assert found, "treadle_onnx_tool is not built"
    return found[0]


@pytest.fixture(scope="module")
def tool():
    return tool_path()


def run(tool, path):
    return subprocess.run([tool, "import", path], capture_output=True, timeout=SECONDS)


def test_sanitizers_watch(tool):
    """The program of the preset debug calls into both sanitizers, so that what follows finds their faults."""
    if tool.parent.parent.name != "debug":
        pytest.skip(f"{tool} is not of the preset debug, which is not built")
    data = tool.read_bytes()
    assert b"__asan_init" in data and b"__ubsan_handle" in data, f"{tool} has no sanitizers"


def test_broken_models(tool, tmp_path):
    wrong = []
    count = 0
    for name, path, code, words in make_broken.cases(tmp_path / "models"):
        done = run(tool, path)
        text = done.stderr.decode(errors="replace")
        count += 1
        if done.returncode != 1 or code not in text or words not in text:
            wrong.append(f"{name}: status {done.returncode}, expected {code} with {words!r}: {text[-600:]}")
    assert count >= 40
    assert not wrong, "\n".join(wrong)


def test_damaged_models(tool, tmp_path):
    """Bytes of a good model changed, cut out or repeated: imported or refused, never a crash."""
    generator = random.Random(7)
    good = next(iter((ROOT / "examples").rglob("*.onnx"))).read_bytes()
    path = tmp_path / "damaged.onnx"
    for _ in range(150):
        data = bytearray(good)
        for _ in range(generator.randint(1, 8)):
            at = generator.randrange(min(len(data), 4000))
            kind = generator.randrange(3)
            if kind == 0:
                data[at] = generator.randrange(256)
            elif kind == 1:
                del data[at:at + generator.randint(1, 16)]
            else:
                data[at:at] = data[at:at + generator.randint(1, 16)]
        path.write_bytes(data)
        done = run(tool, path)
        assert done.returncode in (0, 1), done.stderr[-1000:]
        assert done.returncode == 0 or b"TRD-" in done.stderr
        assert b"TRD-INT" not in done.stderr, done.stderr[-1000:]
