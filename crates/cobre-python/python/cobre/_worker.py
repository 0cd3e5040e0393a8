"""A worker: ``python …/cobre/_worker.py TASK PIPE…``, started by :class:`cobre.workers.Team`.

TASK is the number of a descriptor to read what is to be done from, and the PIPEs those to write to
the parent, one per worker. The user's script is not imported again. Started by its path, it imports
nothing from the directory that the user works in before the parent's ``sys.path`` is known.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import struct
import sys
import threading
import traceback
from collections import deque
from types import FrameType
from typing import Any, NoReturn


class Parent:
    """The way back to the process that started this one. All threads may use it."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.turn = threading.RLock()
        self.waiting: deque[bytes] = deque()
        self.writing = False

    def tell(self, kind: str, content: Any) -> None:
        self.send(pickle.dumps((kind, content)))

    def send(self, message: bytes) -> None:
        self.waiting.append(struct.pack("<Q", len(message)) + message)
        with self.turn:
            # Else a finalizer or a handler speaks in the middle of a message: it comes after that.
            if not self.writing:
                self.write_waiting()

    def write_waiting(self) -> None:
        self.writing = True
        try:
            while self.waiting:
                rest = memoryview(self.waiting.popleft())
                while rest:
                    rest = rest[os.write(self.pipe, rest) :]
        finally:
            self.writing = False

    def tell_joined(self) -> None:
        """The first message: from now on a wish to end is heard."""
        self.tell("joined", None)

    def tell_raised(self, error: BaseException) -> None:
        from cobre.errors import CobreError
        from cobre.spawning import by_value

        # An error of ours says all there is to say.
        trace = "" if isinstance(error, CobreError) else traceback.format_exc()
        told = words(error)
        try:
            message = by_value(("raised", (error, told, trace)))
            pickle.loads(message)
        except Exception:
            message = pickle.dumps(("raised", (RuntimeError(told), told, trace)))
        self.send(message)


def words(error: BaseException) -> str:
    """What an exception says, even if it cannot say it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


class Text(io.TextIOBase):
    """Standard output whose text the parent writes to its own: a notebook shows it in the cell."""

    encoding = "utf-8"

    def __init__(self, parent: Parent) -> None:
        self.parent = parent
        self.turn = threading.RLock()
        self.line = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self.turn:
            self.line += text
            whole, newline, self.line = self.line.rpartition("\n")
            if newline:
                self.parent.tell("text", whole + newline)
        return len(text)

    def flush(self) -> None:
        with self.turn:
            if self.line:
                self.parent.tell("text", self.line)
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
    whole = os.pread(task_file, size, 0)
    while len(whole) < size:
        whole += os.pread(task_file, size - len(whole), len(whole))
    os.close(task_file)
    comm = None
    try:
        sys.path[:], task, payload = pickle.loads(whole)
        what, *details = pickle.loads(task)
        from cobre._native import Communicator

        if what != "spawn":
            joined = Communicator()
            parent.tell_joined()
            parent.tell("result", run(parent, joined, what, *details))
        else:
            from cobre.spawning import by_value

            sys.stdout = Text(parent)
            comm = Communicator()
            parent.tell_joined()
            function, args, kwargs = pickle.loads(payload)
            result = function(comm, *args, **kwargs)
            sys.stdout.flush()
            parent.send(by_value(("result", result)))
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        if comm is not None:
            comm.abort(words(error))
        parent.tell_raised(error)
        return 1
    return 0


def run(parent: Parent, comm: Any, what: str, *details: Any) -> Any:
    from cobre import _native

    def tell(step: dict[str, Any]) -> None:
        parent.tell("step", step)

    *arguments, tells = details
    found = getattr(_native, what)(*arguments, comm, tell if tells else None)
    # All ranks have found the same.
    return found if comm.rank == 0 else None


def interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Interrupts once: a second wish to end is not this process's to hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def to_the_end(descriptors: list[int]) -> int:
    try:
        signal.signal(signal.SIGINT, interrupt)
        code = main(descriptors)
        # What comes too late to change anything is not told.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return code
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(to_the_end([int(word) for word in sys.argv[1:]]))
