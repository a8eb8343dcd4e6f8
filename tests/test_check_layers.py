# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers: the tree itself keeps to its layers, and each kind of fault is found."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "tools" / "check_layers"
TABLE = """\
base:  # errors
runtime: base  # tensors
codegen: base runtime  # machine code
schedule: base  # loops
< llvm/: codegen/llvm
"""


def run(*arguments):
    return subprocess.run([sys.executable, TOOL, *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def tree(tmp_path):
    """A small tree that keeps to TABLE; returns a function that writes one more file and gives the tool's answer."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "layers.txt").write_text(TABLE)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "map.md").write_text(
        "<!-- layers: written by tools/check_layers --write-docs -->\n<!-- /layers -->\n"
    )
    (tmp_path / "src" / "base").mkdir(parents=True)
    assert run("--root", tmp_path, "--write-docs").returncode == 0

    def answer(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return run("--root", tmp_path)

    return answer


def test_this_repository_keeps_to_its_layers():
    result = run()
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("src/base/a.cc", '\n#include "runtime/tensor.h"\n', "src/base/a.cc:2: base may not include runtime"),
        ("src/base/a_test.cc", '#include "runtime/tensor.h"\n', "src/base/a_test.cc:1: base may not include runtime"),
        ("src/schedule/a.h", "#  include <treadle/runtime.h>\n", "schedule may not include the public header"),
        ("src/codegen/cuda/a.cc", "#include <llvm/IR/Module.h>\n", "only in src/codegen/llvm/"),
        ("src/base/a.cc", '#include "error.h"\n', 'as in "base/error.h"'),
        ("src/extra/a.cc", "", "src/extra:1: the folder has no line"),
        ("src/base/CMakeLists.txt", "treadle_folder(base DEPS runtime PACKAGES fmt::fmt)\n", "base links runtime"),
        ("include/treadle/a.h", '#include "base/error.h"\n', "a public header may not include"),
        ("tools/layers.txt", "base: runtime\nruntime: base\n", "names runtime, which does not stand above it"),
        ("docs/map.md", "no table\n", "docs/map.md:1: no table"),
    ],
)
def test_fault_is_found(tree, name, text, message):
    result = tree(name, text)
    assert result.returncode == 1
    assert message in result.stdout


@pytest.mark.parametrize(
    "name, text",
    [
        ("src/runtime/a.cc", '#include "base/error.h"\n#include "runtime/tensor.h"\n#include <vector>\n'),
        ("src/codegen/llvm/a.cc", "#include <llvm/IR/Module.h>\n"),
        ("src/runtime/CMakeLists.txt", "treadle_folder(runtime DEPS base PACKAGES Threads::Threads)\n"),
    ],
)
def test_allowed(tree, name, text):
    result = tree(name, text)
    assert result.returncode == 0, result.stdout


def test_stale_table_in_docs_is_found(tree):
    result = tree("tools/layers.txt", TABLE.replace("# loops", "# loop nests"))
    assert "docs/map.md:1: the table is not that of tools/layers.txt" in result.stdout
