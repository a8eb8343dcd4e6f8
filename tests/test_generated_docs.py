# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/ that the command prints from the registries are current."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TREADLE = ROOT / "build" / "release" / "bin" / "treadle"
PAGES = {"operators.md": "ops", "passes.md": "passes", "errors.md": "errors"}


@pytest.mark.parametrize("page, command", PAGES.items())
def test_page_is_current(page, command):
    printed = subprocess.run([TREADLE, command, "--markdown"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert (ROOT / "docs" / page).read_text() == printed, f"write it anew: treadle {command} --markdown > docs/{page}"
