"""What can go wrong, as exceptions. All of them can be pickled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class CobreError(Exception):
    """Something that Cobre could not do.

    ``kind`` is that of the line of JSON of ``cobre run``; the other fields are None unless they are known. The
    book's page on errors lists kinds and fields.
    """

    kind: str = "program"
    backend: str | None = None
    variable: str | None = None
    key: str | None = None
    value: str | None = None
    expected: str | None = None
    file: str | None = None
    node: str | None = None
    opening: int | None = None
    rank: int | None = None
    ranks: Sequence[int] | None = None
    host: str | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    operation: str | None = None
    sequence: int | None = None
    bytes: int | None = None

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        for name, value in fields.items():
            if not hasattr(type(self), name):
                raise TypeError(f"{name} is no field of {type(self).__name__}")
            setattr(self, name, value)


class ValidationError(CobreError):
    """A problem or a setting makes no sense; ``findings`` has everything that is wrong."""

    kind = "input"
    findings: tuple[str, ...] = ()

    def __init__(self, message: str, *, findings: Sequence[str] = (), **fields: Any) -> None:
        super().__init__(message, **fields)
        self.findings = tuple(findings) or (message,)


class SolverError(CobreError):
    """A linear program could not be solved: that of ``node`` and ``opening``, written to ``file``."""

    kind = "solver"


class CommunicationError(CobreError):
    """Ranks could not communicate, or one of them is gone."""

    kind = "communication"


class IOError(CobreError):  # noqa: A001
    """A file could not be read or written, or the system refused something else."""

    kind = "io"


class WorkerError(CobreError):
    """A worker failed: ``rank``, its ``exit_code`` (negative for a signal), and the exception it
    raised as ``inner``, if it got to raise one."""

    kind = "rank"
    inner: BaseException | None = None
    rank: int = 0
    exit_code: int = 1

    @property
    def lost(self) -> bool:
        """Whether the worker was lost: killed, or cut off from the others. Another try may go well."""
        return self.inner is None or isinstance(self.inner, CommunicationError)
