# SPDX-License-Identifier: Apache-2.0
"""What `treadle compile -o` writes to: files as a whole, devices directly, never the model; nothing stays behind on errors."""

import os
import shutil
import stat
import subprocess
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREADLE = Path(os.environ.get("TREADLE_COMMAND", ROOT / "build" / "release" / "bin" / "treadle"))
DIGITS = ROOT / "examples/digits/digits.onnx"


def treadle(*arguments, **options):
    return subprocess.run([TREADLE, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("name, code", [("", "TRD-IO-001"), ("folder", "TRD-IO-001"), ("no/such/folder/x.so", "TRD-IO-001")])
@pytest.mark.parametrize("kind", ["so", "relay"])
def test_impossible(tmp_path, name, code, kind):
    (tmp_path / "folder").mkdir()
    done = treadle("compile", DIGITS, "-o", name, "--emit", kind, cwd=tmp_path)
    assert done.returncode == 1 and code in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


def test_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    assert treadle("compile", DIGITS, "-o", tmp_path / "pipe").returncode == 0
    reader.join(60)
    assert received[0][:4] == b"\x7fELF" and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_link_and_mode_stay(tmp_path):
    (tmp_path / "real.so").write_bytes(b"old")
    (tmp_path / "real.so").chmod(0o640)
    (tmp_path / "link.so").symlink_to("real.so")
    assert treadle("compile", DIGITS, "-o", tmp_path / "link.so").returncode == 0
    assert (tmp_path / "link.so").is_symlink() and (tmp_path / "real.so").read_bytes()[:4] == b"\x7fELF"
    assert (tmp_path / "real.so").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.so", "real.so"]


def test_model_is_not_overwritten(tmp_path):
    model = shutil.copy(DIGITS, tmp_path / "m.onnx")
    done = treadle("compile", model, "-o", tmp_path / "." / "m.onnx")
    assert done.returncode == 1 and "TRD-ARG-001" in done.stderr
    assert model.read_bytes() == DIGITS.read_bytes()


def test_run_overwrites_nothing_that_it_reads(tmp_path):
    model = shutil.copy(DIGITS, tmp_path / "m.onnx")
    picture = shutil.copy(DIGITS.parent / "pictures" / "3.png", tmp_path / "p.png")
    labels = shutil.copy(DIGITS.parent / "labels.txt", tmp_path / "labels.txt")
    for path in (model, picture, labels):
        before = path.read_bytes()
        done = treadle("run", model, "--input", f"image={picture}", "--labels", labels, "-o", path)
        assert done.returncode == 1 and "TRD-ARG-001" in done.stderr
        assert path.read_bytes() == before


def test_the_reason_is_told(tmp_path):
    assert "No such file" in treadle("compile", DIGITS, "-o", tmp_path / "nowhere" / "m.so").stderr
    assert "No space left" in treadle("compile", DIGITS, "-o", "/dev/full").stderr
    assert "No such file" in treadle("run", tmp_path / "nowhere.onnx").stderr


def test_full_standard_output():
    with open("/dev/full", "w") as full:
        done = subprocess.run([TREADLE, "print", DIGITS], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 1 and "TRD-IO-001" in done.stderr


def test_damaged_cache_entry_is_not_used(tmp_path):
    environment = {**os.environ, "TREADLE_CACHE": str(tmp_path / "cache")}

    def run():
        done = treadle("run", DIGITS, "--seed", "1", env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    first, second = run(), run()
    assert "cache" not in first[0] and "from the cache" in second[0] and first[1:] == second[1:]
    (entry,) = (tmp_path / "cache").glob("*.so")
    data = bytearray(entry.read_bytes())
    for at in range(4096, len(data) - 64, 997):
        data[at] ^= 0x55
    entry.write_bytes(data)
    damaged, again = run(), run()
    assert "from the cache" not in damaged[0] and damaged[1:] == first[1:]
    assert "from the cache" in again[0]
