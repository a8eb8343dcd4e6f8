# SPDX-License-Identifier: Apache-2.0
"""What the tests of reported kinds of fault share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def treadle_command():
    """The command: TREADLE_COMMAND, or that of the preset release."""
    return Path(os.environ.get("TREADLE_COMMAND", ROOT / "build" / "release" / "bin" / "treadle"))
