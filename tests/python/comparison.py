# SPDX-License-Identifier: Apache-2.0
"""Compares arrays, for the tests of the Python package."""

from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent


def assert_equal(actual, expected, rtol=1e-3, atol=1e-4):
    """Equal dtype, shape and values; atol is a part of the range of the expected values."""
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    if expected.size:
        spread = float(expected.max()) - float(expected.min())
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol * max(spread, 1e-6))
