"""The job that this process is a rank of, seen from a run."""

from __future__ import annotations

import os
import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cobre import _native
from cobre.errors import ValidationError
from cobre.results import Worker

RUN = threading.Lock()
"""Held by a run in a job: the collectives of two at once would mix."""

HOST_BYTES = 256
"""More than a host name can have."""


def job_of_process(workers: int, backend: str) -> _native.Communicator | None:
    """The communicator of the job that this process is a rank of, joined; none if it is alone.

    A rank that trained by itself would do the work of all ranks, over the results of the others: what asks for
    that is refused.
    """
    found = _native.job_backend(backend != "auto")
    if found is None:
        return None
    if workers > 1:
        raise ValidationError(
            f"num_workers={workers}, but this process is already one of the ranks of a job ({found}): the ranks are "
            "the workers. Leave out num_workers, or start the script by itself"
        )
    if backend not in ("auto", found):
        raise ValidationError(
            f'backend="{backend}", but this process is a rank of a job on {found}: leave out backend. For runs '
            "that do not know of each other, start each script with COBRE_COMM_BACKEND=local"
        )
    return _native.Communicator()


@contextmanager
def only_run() -> Iterator[None]:
    """Lets one thread at a time run in a job."""
    if not RUN.acquire(blocking=False):
        raise ValidationError("another thread of this process trains or simulates in this job: one run at a time")
    try:
        yield
    finally:
        RUN.release()


class Membership:
    """A rank of a job: who the others are, and results that all of them get. Making one is collective."""

    def __init__(self, comm: _native.Communicator) -> None:
        import numpy as np

        self.comm = comm
        own = np.zeros(HOST_BYTES, np.uint8)
        name = socket.gethostname().encode()[:HOST_BYTES]
        own[: len(name)] = np.frombuffer(name, np.uint8)
        hosts = comm.allgatherv(own).reshape(comm.size, HOST_BYTES)
        pids = comm.allgatherv(np.array([os.getpid()], np.int64))
        self.workers = tuple(
            Worker(
                rank=rank,
                pid=int(pids[rank]),
                host=hosts[rank].tobytes().rstrip(b"\0").decode(errors="replace"),
                backend=comm.backend,
            )
            for rank in range(comm.size)
        )

    @property
    def neighbours(self) -> int:
        """Number of ranks on this host, this one included."""
        own = self.workers[self.comm.rank].host
        return sum(worker.host == own for worker in self.workers)

    def from_first(self, found: dict[str, Any]) -> dict[str, Any]:
        """What the first rank found, on every rank. Collective."""
        import numpy as np

        first = self.comm.rank == 0
        content = np.frombuffer(pickle.dumps(found) if first else b"", np.uint8)
        length = self.comm.broadcast(np.array([len(content)], np.int64))
        whole = content.copy() if first else np.zeros(int(length[0]), np.uint8)
        self.comm.broadcast(whole)
        # Warnings and seconds are each rank's own.
        own = {name: value for name, value in found.items() if name == "warnings" or name.endswith("seconds")}
        return found if first else {**pickle.loads(whole.tobytes()), **own}
