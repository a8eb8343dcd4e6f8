# SPDX-License-Identifier: Apache-2.0
# Made by tests/python/test_stubs.py --update.
"""
The compiler and the runtime of Treadle, as the package treadle uses them.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Annotated, Any

from numpy.typing import NDArray


class BuildOptions:
    """How a model is compiled."""

    def __init__(self) -> None: ...

    @property
    def target(self) -> str:
        """What to generate code for, as `treadle targets` lists."""

    @target.setter
    def target(self, arg: str, /) -> None: ...

    @property
    def opt_level(self) -> int:
        """0 to 4."""

    @opt_level.setter
    def opt_level(self, arg: int, /) -> None: ...

    @property
    def threads(self) -> int:
        """Threads of the compiler; 0: one per core."""

    @threads.setter
    def threads(self, arg: int, /) -> None: ...

    @property
    def cache(self) -> bool:
        """Whether to use and fill the compile cache on disk."""

    @cache.setter
    def cache(self, arg: bool, /) -> None: ...

    @property
    def disabled_passes(self) -> set[str]:
        """Names of passes to leave out."""

    @disabled_passes.setter
    def disabled_passes(self, arg: Set[str], /) -> None: ...

class Session:
    """A compiled model, ready to run."""

    def __init__(self, model: str | bytes, options: BuildOptions, input_shapes: Mapping[str, Sequence[int | str]], dimensions: Mapping[str, int]) -> None: ...

    @property
    def inputs(self) -> list[tuple]:
        """
        Name, dtype and extents of each input; an extent that is not fixed is a text.
        """

    @property
    def outputs(self) -> list[tuple]:
        """Name, dtype and extents of each output."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What the model says of itself."""

    def run(self, inputs: Sequence[Annotated[NDArray, dict(writable=False)]], wanted: Sequence[int], threads: int) -> list[Any]:
        """
        Runs with the inputs in order; gives the outputs at the places `wanted`.
        """

def compile(model: str | bytes, path: str, emit: str, options: BuildOptions, input_shapes: Mapping[str, Sequence[int | str]]) -> None:
    """Writes what `emit` names to `path`."""

def operators_json(name: str = '') -> str:
    """All operators, or one, as JSON."""

def targets_text() -> str:
    """What code can be generated for, and what this machine is."""

def error_codes() -> list[tuple[str, str]]:
    """Every error code with its meaning."""

def onnx_operators() -> list[tuple[str, str, int]]:
    """Domain, name and first operator set of each rule of the ONNX importer."""

def version() -> str:
    """The version of the library."""
