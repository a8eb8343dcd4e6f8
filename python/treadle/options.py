# SPDX-License-Identifier: Apache-2.0
"""Options of sessions, with the names that programs written for ONNX Runtime use.

What has a meaning here acts; the docstrings say so. Other attributes are kept, so that programs can set and read them, and do nothing.
"""

from __future__ import annotations

import enum

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "RunOptions", "SessionOptions"]


class GraphOptimizationLevel(enum.IntEnum):
    """How much is optimised."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Whether operators run at the same time. Treadle runs one after the other, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """The order of operators. Treadle plans its own."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


_OPT_LEVELS = {
    GraphOptimizationLevel.ORT_DISABLE_ALL: 0,
    GraphOptimizationLevel.ORT_ENABLE_BASIC: 1,
    GraphOptimizationLevel.ORT_ENABLE_EXTENDED: 2,
}  # all others: the session's own level


class SessionOptions:
    """How a session compiles and runs."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        """Acts: the most threads of a run; 0: one for each core that the process may use."""
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        """Acts: ORT_DISABLE_ALL, ORT_ENABLE_BASIC and ORT_ENABLE_EXTENDED are the optimisation levels 0, 1 and 2."""
        self.inter_op_num_threads = 0
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.profile_file_prefix = "treadle_profile"
        self.optimized_model_filepath = ""
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.use_deterministic_compute = True
        self._entries: dict[str, str] = {}
        self._dimensions: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry; none has a meaning here."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """The entry's value. Errors: KeyError."""
        return self._entries[key]

    def has_session_config_entry(self, key: str) -> bool:
        """Whether the entry was set."""
        return key in self._entries

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Acts: fixes a symbolic extent of the inputs."""
        self._dimensions[name] = int(value)

    def register_custom_ops_library(self, path: str) -> None:
        """Refused: libraries of other engines' operators cannot be compiled."""
        raise NotImplementedError(f"{path}: operators of other engines cannot be loaded")

    def _opt_level(self, default: int) -> int:
        return _OPT_LEVELS.get(self.graph_optimization_level, default)


class RunOptions:
    """Options of one run; kept, without effect."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.terminate = False
        self.only_execute_path_to_fetches = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry; none has a meaning here."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """The entry's value. Errors: KeyError."""
        return self._entries[key]
