# SPDX-License-Identifier: Apache-2.0
"""Treadle compiles neural networks to machine code and runs them.

    session = treadle.InferenceSession("model.onnx")
    outputs = session.run(None, {"input": array})

The names are those of ONNX Runtime, so that `sys.modules["onnxruntime"] = treadle` makes a program that was written for it use Treadle.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from . import _treadle, errors
from .errors import *  # noqa: F403
from .options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .session import InferenceSession, ModelMetadata, NodeArg, compile

__version__: str = _treadle.version()

__all__ = [
    *errors.__all__,
    "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "InferenceSession", "ModelMetadata", "NodeArg", "RunOptions", "SessionOptions",
    "compile", "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info",
    "get_device", "get_version_string", "ops", "set_default_logger_severity", "set_default_logger_verbosity", "set_seed", "targets",
]

# ONNX Runtime's levels: 0 verbose … 4 fatal.
_LOG_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


def ops(name: str = "") -> Any:
    """All operators, a list of dicts with name, family, summary, inputs, attributes and more; or the dict of one.

    Errors: ArgumentError naming the nearest names.
    """
    return json.loads(_treadle.operators_json(name))


def targets() -> str:
    """What code can be generated for, and what this machine is."""
    return _treadle.targets_text()


def get_available_providers() -> list[str]:
    """Where models can run."""
    return ["CPUExecutionProvider"]


def get_all_providers() -> list[str]:
    """Where models can run."""
    return get_available_providers()


def get_device() -> str:
    """The kind of machine."""
    return "CPU"


def get_version_string() -> str:
    """The version."""
    return __version__


def get_build_info() -> str:
    """The version and what it was built for."""
    return f"treadle {__version__}"


def set_default_logger_severity(severity: int) -> None:
    """Sets the level of the logger "treadle": 0 verbose, 1 information, 2 warnings, 3 errors, 4 fatal errors."""
    if not 0 <= severity <= 4:
        raise errors.ArgumentError(f"severity is {severity}, it must lie in 0 to 4")
    logging.getLogger("treadle").setLevel(_LOG_LEVELS[severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted, without effect."""


def set_seed(seed: int) -> None:
    """Accepted: answers do not depend on chance."""


def disable_telemetry_events() -> None:
    """Accepted: there is no telemetry."""


def enable_telemetry_events() -> None:
    """Accepted: there is no telemetry."""
