# SPDX-License-Identifier: Apache-2.0
"""Targets other than this machine: code for them is made, unusable ones are refused, and foreign code is not run."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREADLE = Path(os.environ.get("TREADLE_COMMAND", ROOT / "build" / "release" / "bin" / "treadle"))
DIGITS = ROOT / "examples/digits/digits.onnx"


def treadle(*arguments):
    return subprocess.run([TREADLE, *map(str, arguments)], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("options", ["-mtriple=aarch64-linux-gnu", "-mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"])
@pytest.mark.parametrize("kind, start", [("so", b"\x7fELF"), ("obj", b"\x7fELF"), ("asm", b""), ("llvm", b""), ("loop", b"func")])
def test_arm(tmp_path, options, kind, start):
    done = treadle("compile", DIGITS, "-o", tmp_path / "out", "--emit", kind, "--target", "llvm " + options)
    assert done.returncode == 0, done.stderr
    data = (tmp_path / "out").read_bytes()
    assert data.startswith(start)
    if kind in ("so", "obj"):
        assert data[18] == 183  # EM_AARCH64
    if kind == "asm":
        assert b"fmla\t" in data  # vectors of NEON


@pytest.mark.parametrize("options", ["-keys=cpu -mcpu=x86-64-v3", "--mcpu=x86-64-v3", "-mcpu x86-64-v3 -num-cores=4", "-device=x -model=y -mattr -avx512f -mcpu x86-64-v3"])
def test_spellings_of_tvm(tmp_path, options):
    expected, got = tmp_path / "expected.s", tmp_path / "got.s"
    for path, target in [(expected, "-mcpu=x86-64-v3"), (got, options)]:
        done = treadle("compile", DIGITS, "-o", path, "--emit", "asm", "--target", "llvm " + target)
        assert done.returncode == 0, done.stderr
    assert got.read_bytes() == expected.read_bytes()


def test_foreign_code_is_not_run(tmp_path):
    assert treadle("compile", DIGITS, "-o", tmp_path / "arm.so", "--target", "llvm -mtriple=aarch64-linux-gnu").returncode == 0
    done = treadle("run", tmp_path / "arm.so")
    assert done.returncode == 1 and "TRD-ART-001" in done.stderr and "AArch64" in done.stderr
    done = treadle("run", DIGITS, "--no-cache", "--target", "llvm -mtriple=aarch64-linux-gnu")
    assert done.returncode == 1 and "TRD-CG-001" in done.stderr


# No processor has the extensions of both makers.
@pytest.mark.parametrize("cpu, feature", [("bdver2", "xop"), ("diamondrapids", "egpr")])
def test_missing_extensions(tmp_path, cpu, feature):
    assert treadle("compile", DIGITS, "-o", tmp_path / "x.so", "--target", f"llvm -mcpu={cpu}").returncode == 0
    for command in (["run", tmp_path / "x.so"], ["run", DIGITS, "--no-cache", "--target", f"llvm -mcpu={cpu}"]):
        done = treadle(*command)
        if feature in Path("/proc/cpuinfo").read_text():
            assert done.returncode == 0, done.stderr
        else:
            assert done.returncode == 1 and "TRD-ART-001" in done.stderr and feature in done.stderr


@pytest.mark.parametrize("options", ["-mtriple=x86_64-pc-windows-msvc", "-mtriple=x86_64-apple-darwin", "-mtriple=x86_64-linux-gnux32", "-mtriple=aarch64_be-linux-gnu",
                                     "-mcpu=i386", "-mattr=-64bit", "-mattr=-sse2", "-mattr=-sse", "-mattr=+soft-float", "-mcpu=nothing", "-mcpu", "-mcpu -mattr=+avx", "-keys=", "-libs=mkl"])
def test_unusable_targets(tmp_path, options):
    done = treadle("compile", DIGITS, "-o", tmp_path / "x.so", "--target", "llvm " + options)
    assert done.returncode == 1 and "TRD-TGT-001" in done.stderr
    assert not list(tmp_path.iterdir())
