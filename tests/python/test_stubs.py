# SPDX-License-Identifier: Apache-2.0
"""The stub of the extension module says what the module holds.

  PYTHONPATH=build/release/python build/venv/bin/python tests/python/test_stubs.py --update    writes it anew
"""

import sys
from pathlib import Path

import pytest

STUB = Path(__file__).resolve().parent.parent.parent / "python/treadle/_treadle.pyi"
HEAD = "# SPDX-License-Identifier: Apache-2.0\n# Made by tests/python/test_stubs.py --update.\n"


def stub():
    stubgen = pytest.importorskip("nanobind.stubgen")
    from treadle import _treadle

    generator = stubgen.StubGen(_treadle)
    generator.put(_treadle)
    return HEAD + generator.get()


def test_stub_is_current():
    assert STUB.read_text() == stub(), "run this file with --update"


def test_package_is_marked_as_typed():
    assert (STUB.parent / "py.typed").exists()


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit(__doc__)
    STUB.write_text(stub())
