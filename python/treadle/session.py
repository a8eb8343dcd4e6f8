# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs models, with the interface of ONNX Runtime's `InferenceSession`."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from . import _treadle
from .errors import ArgumentError, RunError
from .options import RunOptions, SessionOptions

try:
    from ml_dtypes import bfloat16 as _bfloat16
except ImportError:  # then bfloat16 is the uint16 of its bits
    _bfloat16 = None

__all__ = ["InferenceSession", "ModelMetadata", "NodeArg", "compile"]

_PROVIDER = "CPUExecutionProvider"
_ONNX_TYPES = {"float32": "float", "float64": "double"}  # others have the same name

Model: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview
InputShapes: TypeAlias = Mapping[str, Sequence[int | str]]


@dataclass(frozen=True)
class NodeArg:
    """An input or an output of a model."""

    name: str
    shape: list[int | str]
    """Extents; one that is not fixed is the name of its symbol, or an expression over symbols."""
    type: str
    """As ONNX writes it: "tensor(float)"."""
    dtype: str = ""
    """Treadle's own name of the element type: "float32"."""


@dataclass(frozen=True)
class ModelMetadata:
    """What a model says of itself; empty where it does not."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


def _source(model: Model) -> str | bytes:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if isinstance(model, (str, os.PathLike)):
        return os.fsdecode(model)
    raise ArgumentError(f"a model is a path or bytes, not {type(model).__name__}")


def _build_options(target: str | None, opt_level: int, threads: int, cache: bool, disabled_passes: Iterable[str]) -> _treadle.BuildOptions:
    options = _treadle.BuildOptions()
    opt_level, threads = operator.index(opt_level), operator.index(threads)
    if target is not None:
        if not isinstance(target, str):
            raise TypeError(f"target is a str such as 'llvm -mcpu=native', not {type(target).__name__}")
        options.target = target
    if isinstance(disabled_passes, str):
        raise ArgumentError(f"disabled_passes is a list of names, not the one text {disabled_passes!r}")
    if not 0 <= opt_level <= 4:
        raise ArgumentError(f"opt_level is {opt_level}, it must lie in 0 to 4")
    if threads < 0:
        raise ArgumentError(f"threads is {threads}, it must not be negative")
    options.opt_level = opt_level
    options.threads = threads
    options.cache = bool(cache)
    options.disabled_passes = set(disabled_passes)
    return options


def _shapes(input_shapes: InputShapes | None) -> dict[str, list[int | str]]:
    return {name: [extent if isinstance(extent, str) else operator.index(extent) for extent in shape] for name, shape in (input_shapes or {}).items()}


def _node_args(infos: list[tuple[str, str, list[int | str]]]) -> list[NodeArg]:
    return [NodeArg(name, shape, f"tensor({_ONNX_TYPES.get(dtype, dtype)})", dtype) for name, dtype, shape in infos]


class InferenceSession:
    """A model that was compiled for this machine, or loaded from `treadle.compile`'s shared object.

    Thread safe: several threads may run it at the same time. While compiling and running other Python threads go on, and
    Ctrl-C is heeded.

    path_or_bytes    an ONNX model, a Relay text or a shared object of `treadle.compile`; the latter only as a path
    sess_options     options as programs for ONNX Runtime set them
    providers        accepted; everything runs on the CPU
    target           what to generate code for, as `treadle targets` lists; None: this machine
    opt_level        0 to 4; `sess_options` may lower it
    threads          the most threads to compile and to run with; 0: one for each core that the process may use
    input_shapes     extents of inputs by name, instead of what an ONNX model declares
    cache            whether to use and fill the compile cache on disk
    disabled_passes  names of graph passes to leave out

    Errors: subclasses of `treadle.Error`.
    """

    def __init__(self, path_or_bytes: Model, sess_options: SessionOptions | None = None, providers: Sequence[Any] | None = None,
                 provider_options: Sequence[Mapping[str, Any]] | None = None, *, target: str | None = None, opt_level: int = 3,
                 threads: int = 0, input_shapes: InputShapes | None = None, cache: bool = True, disabled_passes: Iterable[str] = (),
                 **ignored: Any) -> None:
        del providers, provider_options
        unknown = set(ignored) - {"disabled_optimizers", "enable_fallback", "path_or_bytes_external"}
        if unknown:
            raise TypeError(f"InferenceSession() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options is a SessionOptions, not {type(sess_options).__name__}")
        self._options = sess_options or SessionOptions()
        self._threads = threads or max(0, int(self._options.intra_op_num_threads))
        options = _build_options(target, self._options._opt_level(opt_level), self._threads, cache, disabled_passes)
        # A symbol's name has '_' for characters that are not allowed in one.
        dimensions = {re.sub(r"[^A-Za-z0-9_]", "_", name): value for name, value in self._options._dimensions.items()}
        self._session = _treadle.Session(_source(path_or_bytes), options, _shapes(input_shapes), dimensions)
        self._inputs = _node_args(self._session.inputs)
        self._outputs = _node_args(self._session.outputs)
        self._places = {output.name: place for place, output in enumerate(self._outputs)}

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None) -> list[np.ndarray]:
        """The outputs of these names (None or empty: all) for these inputs.

        An input is a NumPy array, anything with `__dlpack__` in the CPU's memory, or a number or nested lists. Its memory is used as it is
        when it is row-major and aligned, and copied otherwise. Every output is a NumPy array that owns its memory; bfloat16 has
        the dtype of the package ml_dtypes, or is the uint16 of its bits without that package.

        Errors: RunError for a missing or unknown input, a wrong dtype or shape, and when a kernel fails; ArgumentError for an
        unknown output.
        """
        del run_options
        if isinstance(output_names, str):
            raise ArgumentError(f"output names are a list, not the one text {output_names!r}")
        if not isinstance(input_feed, Mapping):
            raise RunError(f"inputs are a dict from names to arrays, not {type(input_feed).__name__}", "TRD-RUN-001")
        wanted = [self._place(name) for name in output_names] if output_names else range(len(self._outputs))
        if len(input_feed) != len(self._inputs) or any(info.name not in input_feed for info in self._inputs):
            self._refuse_names(input_feed)
        arrays = [_as_array(info, input_feed[info.name]) for info in self._inputs]
        results = self._session.run(arrays, list(wanted), self._threads)
        if _bfloat16 is not None:
            for i, place in enumerate(wanted):
                if self._outputs[place].dtype == "bfloat16":
                    results[i] = results[i].view(_bfloat16)
        return results

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in the model's order."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: weights are compiled in."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        return ModelMetadata(**self._session.metadata)

    def get_providers(self) -> list[str]:
        """Where the model runs."""
        return [_PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options by provider: there are none."""
        return {_PROVIDER: {}}

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._options

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Accepted; everything runs on the CPU."""

    def disable_fallback(self) -> None:
        """Accepted: there is nothing to fall back to."""

    def enable_fallback(self) -> None:
        """Accepted: there is nothing to fall back to."""

    def _place(self, name: str) -> int:
        try:
            return self._places[name]
        except KeyError:
            known = ", ".join(repr(output.name) for output in self._outputs)
            raise ArgumentError(f"the model has no output {name!r}; it has {known}") from None

    def _refuse_names(self, feed: Mapping[str, Any]) -> None:
        names = [info.name for info in self._inputs]
        missing = [name for name in names if name not in feed]
        unknown = [name for name in feed if name not in names]
        parts = [f"input {name!r} is missing" for name in missing] + [f"the model has no input {name!r}" for name in unknown]
        raise RunError("; ".join(parts) + f"; it takes {', '.join(map(repr, names)) or 'none'}"
                       + (" (initialisers are compiled in and cannot be fed)" if unknown else ""), "TRD-RUN-001")


def _as_array(info: NodeArg, value: Any) -> Any:
    """What the extension module takes: an array in native byte order, dense and aligned, or a DLPack tensor."""
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
            return value
        value = _from_numbers(info, value)
    if _bfloat16 is not None and value.dtype == _bfloat16:
        if info.dtype != "bfloat16":
            raise RunError(f"input {info.name!r} is {info.dtype}, not bfloat16", "TRD-RUN-001")
        value = value.view(np.uint16)
    if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        raise RunError(f"input {info.name!r} is {info.dtype}, not {value.dtype}", "TRD-RUN-001")
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    if not (value.flags.c_contiguous and value.flags.aligned):
        value = value.copy(order="C")
    return value


def _from_numbers(info: NodeArg, value: Any) -> np.ndarray:
    """Numbers and nested lists become the dtype that the model wants, NumPy's own scalars keep theirs."""
    if isinstance(value, np.generic):
        return np.asarray(value)
    try:
        array = np.asarray(value)
        if info.dtype == "bfloat16":
            if _bfloat16 is None:
                return array
            return array.astype(_bfloat16)
        if array.dtype.kind in "biuf":
            return array.astype(info.dtype, casting="unsafe" if array.size == 0 else "same_kind")
    except (TypeError, ValueError) as error:
        raise RunError(f"input {info.name!r} cannot be made {info.dtype}: {error}", "TRD-RUN-001") from None
    return array


def compile(model: Model, output: str | os.PathLike[str], emit: str = "so", *, target: str | None = None, opt_level: int = 3, threads: int = 0,
            input_shapes: InputShapes | None = None, disabled_passes: Iterable[str] = ()) -> None:
    """Compiles a model to the file `output`.

    emit    "so": a shared object that `InferenceSession`, the command and the C runtime load without a compiler; or a stage on the
            way: "obj", "llvm", "asm", "loop", "relay"

    The other arguments are those of `InferenceSession`. Errors: subclasses of `treadle.Error`.
    """
    options = _build_options(target, opt_level, threads, True, disabled_passes)
    _treadle.compile(_source(model), os.fsdecode(output), emit, options, _shapes(input_shapes))
