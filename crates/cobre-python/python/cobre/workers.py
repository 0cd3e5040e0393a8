"""A team of fresh interpreters, seen from the process that starts them."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from cobre import _native
from cobre.errors import CobreError, ValidationError, WorkerError
from cobre.results import Worker

BACKENDS = ("auto", "shm", "tcp")
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_worker.py")


@dataclass(frozen=True)
class Ended:
    """What the workers of a team that succeeded returned."""

    results: dict[int, Any]
    workers: tuple[Worker, ...]


class Team:
    """Workers to be started. The parent computes nothing; it listens to them."""

    def __init__(self, workers: int, backend: str, *, grace_secs: float, bind: bool) -> None:
        if backend not in BACKENDS:
            expected = ", ".join(f'"{name}"' for name in BACKENDS)
            raise ValidationError(f'backend="{backend}" with {workers} workers: one of {expected} is expected')
        if not sys.executable:
            raise CobreError(
                "this interpreter does not know its own path (sys.executable), so it cannot start workers",
                kind="usage",
            )
        self.count = workers
        self.backend = "shm" if backend == "auto" else backend
        self.grace_secs = grace_secs
        self.bind = bind and workers <= _native.usable_processors()

    def run(
        self,
        task: tuple[Any, ...],
        *,
        step: Callable[[int, dict[str, Any]], None] | None = None,
        payload: bytes = b"",
    ) -> Ended:
        """Lets all workers do ``task``; raises what went wrong first if it did."""
        results: dict[int, Any] = {}
        raised: dict[int, tuple[BaseException, str, str]] = {}

        def hear(rank: int, message: bytes) -> None:
            try:
                kind, content = pickle.loads(message)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
                raise CobreError(f"what worker {rank} returned cannot be loaded here: {found}", kind="Worker") from error
            if kind == "step" and step is not None:
                step(rank, content)
            elif kind == "text":
                print(content, end="", flush=True)
            elif kind == "result":
                results[rank] = content
            elif kind == "raised":
                raised[rank] = content

        ended = _native.run_workers(
            {
                "program": sys.executable,
                # As this interpreter was started: isolated, with these warnings and so on.
                "arguments": [*subprocess._args_from_interpreter_flags(), WORKER],  # type: ignore[attr-defined]
                "workers": self.count,
                "backend": self.backend,
                "bind": self.bind,
                "grace_secs": self.grace_secs,
                "task": pickle.dumps((sys.path, pickle.dumps(task), payload)),
            },
            hear,
        )
        if ended["message"]:
            self._fail(ended, raised)
        for rank in range(self.count):
            if rank not in results:
                raise WorkerError(f"worker {rank} ended without a result", rank=rank, exit_code=0)
        host = socket.gethostname()
        workers = tuple(
            Worker(rank=rank, pid=pid, host=host, backend=self.backend) for rank, pid in enumerate(ended["pids"])
        )
        return Ended(results, workers)

    def _fail(self, ended: dict[str, Any], raised: dict[int, tuple[BaseException, str, str]]) -> NoReturn:
        rank = ended["failed"]
        if rank is None:
            raise CobreError(ended["message"], kind="Worker")
        code = ended["exit_codes"][rank]
        inner, words, trace = raised.get(rank, (None, "", ""))
        message = f"worker {rank} raised {words}\n{trace}".rstrip() if inner is not None else ended["message"]
        raise WorkerError(message, rank=rank, exit_code=code, inner=inner) from inner
