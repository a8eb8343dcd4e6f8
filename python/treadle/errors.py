# SPDX-License-Identifier: Apache-2.0
"""The exceptions of Treadle: one class for each group of error codes.

Every error has a stable code (`TRD-GROUP-NUMBER`), a message, the places where it happened from the inside out, notes and at
most one hint. `str(error)` is the whole as one readable paragraph.
"""

from __future__ import annotations

__all__ = [
    "ArgumentError", "ArtifactError", "CodegenError", "Error", "FileError", "InternalError", "LimitError", "LoopError", "ModelError",
    "ParseError", "RunError", "ScheduleError", "TargetError", "TypeCheckError", "VerifyError",
]


class Error(Exception):
    """An error of Treadle."""

    code: str
    """The stable code, for example "TRD-TYPE-002"."""
    message: str
    """What was wrong, without code and places."""
    context: list[str]
    """Where it happened, from the inside out: argument, node, file."""
    notes: list[str]
    """Facts that the reader needs, for example an argument's type."""
    hint: str
    """What may help; empty when nothing is known."""

    def __init__(self, text: str, code: str = "TRD-ARG-001", message: str | None = None, context: list[str] | None = None,
                 notes: list[str] | None = None, hint: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.message = text if message is None else message
        self.context = context or []
        self.notes = notes or []
        self.hint = hint

    def __reduce__(self):
        return type(self), (str(self), self.code, self.message, self.context, self.notes, self.hint)


class ArgumentError(Error, ValueError):
    """An argument of the caller is wrong (TRD-ARG)."""


class ArtifactError(Error):
    """A file is no compiled model, or of another version (TRD-ART)."""


class CodegenError(Error):
    """Code cannot be generated for the target (TRD-CG)."""


class FileError(Error, OSError):
    """A file cannot be read or written (TRD-IO)."""

    def __str__(self) -> str:
        return str(self.args[0])


class InternalError(Error):
    """A defect of Treadle itself (TRD-INT)."""


class LimitError(Error):
    """More memory, time or nesting is asked for than allowed (TRD-LIM)."""


class LoopError(Error):
    """Loop IR breaks a rule (TRD-LOOP)."""


class ModelError(Error):
    """A model file is broken, or uses what Treadle does not support (TRD-IMP)."""


class ParseError(Error, ValueError):
    """A text does not follow its grammar (TRD-PARSE)."""


class RunError(Error, ValueError):
    """An input does not fit the model, or a kernel failed on it (TRD-RUN)."""


class ScheduleError(Error):
    """A schedule primitive cannot be applied (TRD-SCH)."""


class TargetError(Error, ValueError):
    """A target names an unknown kind, processor or option (TRD-TGT)."""


class TypeCheckError(Error):
    """A model is ill-typed (TRD-TYPE)."""


class VerifyError(Error):
    """The graph IR breaks an invariant (TRD-VER)."""


_CLASSES = {
    "ARG": ArgumentError, "ART": ArtifactError, "CG": CodegenError, "IMP": ModelError, "INT": InternalError, "IO": FileError,
    "LIM": LimitError, "LOOP": LoopError, "PARSE": ParseError, "RUN": RunError, "SCH": ScheduleError, "TGT": TargetError,
    "TYPE": TypeCheckError, "VER": VerifyError,
}  # by the middle part of the code


def _make(code: str, text: str, message: str, context: list[str], notes: list[str], hint: str) -> Error:
    """The exception that the extension module raises."""
    return _CLASSES.get(code.split("-")[1], Error)(text, code, message, context, notes, hint)
