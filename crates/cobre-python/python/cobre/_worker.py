"""A worker: ``python -m cobre._worker TASK PIPE…``, started by :class:`cobre.workers.Team`.

TASK is the number of a descriptor to read what is to be done from, and the PIPEs those to write to
the parent, one per worker. The user's script is not imported again.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import struct
import sys
import traceback
from typing import Any


class Parent:
    """The way back to the process that started this one."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def tell(self, kind: str, content: Any) -> None:
        message = pickle.dumps((kind, content))
        rest = memoryview(struct.pack("<Q", len(message)) + message)
        while rest:
            rest = rest[os.write(self.pipe, rest) :]

    def tell_joined(self) -> None:
        """The first message: from now on a wish to end is heard."""
        self.tell("joined", None)

    def tell_raised(self, error: BaseException) -> None:
        from cobre.errors import CobreError

        # An error of ours says all there is to say.
        trace = "" if isinstance(error, CobreError) else traceback.format_exc()
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError("".join(traceback.format_exception_only(type(error), error)).strip())
        self.tell("raised", (error, trace))


class Text(io.TextIOBase):
    """A stream whose text the parent writes to its own: a notebook shows it in the cell."""

    def __init__(self, parent: Parent, name: str) -> None:
        self.parent = parent
        self.name = name
        self.line = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.line += text
        whole, newline, self.line = self.line.rpartition("\n")
        if newline:
            self.parent.tell("text", (self.name, whole + newline))
        return len(text)

    def flush(self) -> None:
        if self.line:
            self.parent.tell("text", (self.name, self.line))
            self.line = ""


def main(descriptors: list[int]) -> int:
    rank = int(os.environ["COBRE_LAUNCH_RANK"])
    task_file, *pipes = descriptors
    for number, pipe in enumerate(pipes):
        if number != rank:
            os.close(pipe)
    os.set_inheritable(pipes[rank], False)
    parent = Parent(pipes[rank])
    size = os.fstat(task_file).st_size
    task = os.pread(task_file, size, 0)
    while len(task) < size:
        task += os.pread(task_file, size - len(task), len(task))
    os.close(task_file)
    comm = None
    try:
        sys.path[:], (what, *details), payload = pickle.loads(task)
        if what != "spawn":
            result = run(parent, rank, what, *details)
        else:
            from cobre._native import Communicator

            sys.stdout = Text(parent, "stdout")
            comm = Communicator()
            parent.tell_joined()
            function, args, kwargs = pickle.loads(payload)
            result = function(comm, *args, **kwargs)
            sys.stdout.flush()
        parent.tell("result", result)
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        if comm is not None:
            comm.abort(f"{type(error).__name__}: {error}")
        parent.tell_raised(error)
        return 1
    return 0


def run(parent: Parent, rank: int, what: str, *details: Any) -> Any:
    from cobre import _native

    def tell(step: dict[str, Any]) -> None:
        parent.tell("step", step)

    *arguments, tells = details
    found = getattr(_native, what)(*arguments, parent.tell_joined, tell if tells else None)
    # All ranks have found the same.
    return found if rank == 0 else None


def to_the_end(descriptors: list[int]) -> int:
    try:
        return main(descriptors)
    finally:
        # What comes too late to change anything is not told.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(to_the_end([int(word) for word in sys.argv[1:]]))
