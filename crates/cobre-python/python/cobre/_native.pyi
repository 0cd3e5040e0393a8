"""The native part of `cobre`."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, final, overload

import numpy as np
import numpy.typing as npt

__all__ = [
    "Communicator",
    "check",
    "job_backend",
    "leave_jobs",
    "train",
    "simulate",
    "is_cost_kind",
    "read_table",
    "write_report",
    "load_policy",
    "save_policy",
    "SharedArray",
    "describe",
    "usable_processors",
    "arrow_stream",
    "run_workers",
]

_Array = TypeVar("_Array", bound=npt.NDArray[Any])
_Operator = Literal["sum", "min", "max"]

@final
class Communicator:
    def __new__(cls) -> Communicator: ...
    @staticmethod
    def join(
        rank: int,
        size: int,
        *,
        name: str | None = None,
        tracker: str | None = None,
        secret: bytes | None = None,
        coordinator: str | None = None,
        port: int | None = None,
        bind: str | None = None,
        secret_file: str | os.PathLike[str] | None = None,
        timeout_secs: float | None = None,
    ) -> Communicator: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def backend(self) -> str: ...
    @overload
    def allreduce(self, send: _Array, recv: _Array | None = None, op: _Operator = "sum") -> _Array: ...
    @overload
    def allreduce(self, send: int, recv: None = None, op: _Operator = "sum") -> int: ...
    @overload
    def allreduce(self, send: float, recv: None = None, op: _Operator = "sum") -> float: ...
    @overload
    def allreduce(self, send: Sequence[Any], recv: None = None, op: _Operator = "sum") -> npt.NDArray[Any]: ...
    def allgatherv(
        self,
        send: npt.NDArray[Any],
        recv: npt.NDArray[Any] | None = None,
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
    ) -> npt.NDArray[Any]: ...
    def gatherv(
        self,
        send: npt.NDArray[Any],
        recv: npt.NDArray[Any] | None = None,
        counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        root: int = 0,
    ) -> npt.NDArray[Any] | None: ...
    def broadcast(self, buf: _Array, root: int = 0) -> _Array: ...
    def barrier(self) -> None: ...
    def abort(self, reason: str) -> None: ...
    def shared_array(self, shape: int | Sequence[int], dtype: npt.DTypeLike | None = None) -> SharedArray: ...
    def partitioned_array(self, counts: Sequence[int], dtype: npt.DTypeLike | None = None) -> SharedArray: ...

@final
class SharedArray:
    @property
    def array(self) -> npt.NDArray[Any]: ...
    @property
    def writing(self) -> bool: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    def fence(self) -> None: ...

def check(given: dict[str, Any], request: dict[str, Any]) -> None: ...
def job_backend(chosen: bool) -> str | None: ...
def leave_jobs() -> None: ...
def train(
    given: dict[str, Any],
    request: dict[str, Any],
    policy: dict[str, Any] | None,
    comm: Communicator | None,
    progress: Callable[[dict[str, Any]], Any] | None,
) -> dict[str, Any]: ...
def simulate(
    given: dict[str, Any],
    request: dict[str, Any],
    policy: dict[str, Any],
    comm: Communicator | None,
    progress: Callable[[dict[str, Any]], Any] | None,
) -> dict[str, Any]: ...
def read_table(source: bytes | str) -> list[tuple[str, npt.NDArray[np.int64] | npt.NDArray[np.float64] | list[str]]]: ...
def is_cost_kind(column: str) -> bool: ...
def write_report(output: str, page: str, pictures: str | None) -> list[str]: ...
def load_policy(path: str) -> dict[str, Any]: ...
def save_policy(policy: dict[str, Any], path: str) -> None: ...
def describe(given: dict[str, Any]) -> dict[str, Any]: ...
def usable_processors() -> int: ...
def arrow_stream(columns: list[tuple[str, npt.NDArray[np.int64] | npt.NDArray[np.float64] | list[str]]]) -> object: ...
def run_workers(job: dict[str, Any], hear: Callable[[int, bytes], Any]) -> dict[str, Any]: ...
