"""What can go wrong, as exceptions. All of them can be pickled."""

from __future__ import annotations

from collections.abc import Sequence


class CobreError(Exception):
    """Something that Cobre could not do; ``kind`` says in one word what it is about."""

    kind: str = "Cobre"

    def __init__(self, message: str, *, kind: str | None = None) -> None:
        super().__init__(message)
        if kind is not None:
            self.kind = kind


class ValidationError(CobreError):
    """A problem or a setting makes no sense; ``findings`` has everything that is wrong."""

    kind = "Validation"

    def __init__(self, message: str, *, findings: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.findings: tuple[str, ...] = tuple(findings) or (message,)


class SolverError(CobreError):
    """A linear program could not be solved."""

    kind = "Solver"

    def __init__(
        self,
        message: str,
        *,
        node: str | None = None,
        opening: int | None = None,
        file: str | None = None,
    ) -> None:
        super().__init__(message)
        self.node = node
        self.opening = opening
        self.file = file


class CommunicationError(CobreError):
    """Ranks could not communicate, or one of them is gone."""

    kind = "Communication"


class IOError(CobreError):  # noqa: A001
    """A file could not be read or written, or the system refused something else."""

    kind = "IO"


class WorkerError(CobreError):
    """A worker failed: ``rank``, its ``exit_code`` (negative for a signal), and the exception it
    raised as ``inner``, if it got to raise one."""

    kind = "Worker"

    def __init__(
        self,
        message: str,
        *,
        rank: int = 0,
        exit_code: int = 1,
        inner: BaseException | None = None,
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.exit_code = exit_code
        self.inner = inner

    @property
    def lost(self) -> bool:
        """Whether the worker was lost: killed, or cut off from the others. Another try may go well."""
        return self.inner is None or isinstance(self.inner, CommunicationError)
