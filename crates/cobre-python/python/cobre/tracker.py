"""Ranks that another system starts: a tracker tells them where they meet."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import socket
import threading
import time
from typing import Any

from cobre.errors import CommunicationError, ValidationError
from cobre.settings import count

NONCE = 16
"""Bytes of a challenge."""
LONGEST = 4096
"""Bytes of the longest message."""
DIALOGUE_SECS = 10.0
"""The time that a connected process has for its part."""


class Tracker:
    """The meeting point of ``size`` ranks that another system starts: Dask, Ray, MPI, batch jobs.

    It lives in one process, such as the client of a scheduler; each rank gets its part of :meth:`worker_args` and calls
    ``cobre.Communicator.join(**part)``. Rank 0 listens at a port that is free on its host, and the tracker tells the others
    of it. ``host`` is a name or address of this machine that all ranks reach; the default is for ranks on this machine.

    Whoever has the secret can join: pass the arguments over a channel that you trust. Use one tracker per job::

        with cobre.Tracker(4) as tracker:
            parts = tracker.worker_args()
    """

    def __init__(self, size: int, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.size = count("size", size)
        self.secret = secrets.token_bytes(32)
        try:
            self._listener = socket.create_server((host, port), backlog=self.size + 8)
        except OSError as error:
            raise ValidationError(
                f"host={host!r}: a tracker cannot listen there ({error}); give a name or address of this machine"
            ) from None
        self._host = host
        self._port: int = self._listener.getsockname()[1]
        self._place: str | None = None
        self._known = threading.Condition()
        self._closed = False
        threading.Thread(target=self._serve, name="cobre tracker", daemon=True).start()

    @property
    def address(self) -> str:
        """``host:port`` of this tracker."""
        return f"{self._host}:{self._port}"

    def worker_args(self) -> list[dict[str, Any]]:
        """The arguments of ``Communicator.join`` for each rank. They have the secret."""
        return [
            {"rank": rank, "size": self.size, "tracker": self.address, "secret": self.secret}
            for rank in range(self.size)
        ]

    def close(self) -> None:
        """Ends the tracker; ranks that have met do not need it."""
        with self._known:
            self._closed = True
            self._known.notify_all()
        try:
            # Closing alone would leave the thread that accepts, and the port.
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cobre.Tracker of {self.size} ranks at {self.address}>"

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.settimeout(DIALOGUE_SECS)
                challenge = secrets.token_bytes(NONCE)
                connection.sendall(challenge)
                asked = _receive(connection, self.secret, challenge)
                if asked.get("size") != self.size:
                    _send(connection, self.secret, challenge, {"error": f"the job has {self.size} ranks"})
                    return
                with self._known:
                    if "place" in asked:
                        self._place = str(asked["place"])
                        self._known.notify_all()
                    while self._place is None and not self._closed:
                        self._known.wait(1.0)
                        # A rank that has given up is not waited for.
                        if _is_gone(connection):
                            return
                    place = self._place
                _send(connection, self.secret, challenge, {"place": place} if place else {"error": "the tracker was closed"})
            except (OSError, ValueError):
                # A stranger, or a rank that is gone.
                return


def _is_gone(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    finally:
        connection.settimeout(DIALOGUE_SECS)


def _mark(secret: bytes, challenge: bytes, message: bytes) -> bytes:
    return hmac.new(secret, b"cobre tracker" + challenge + message, hashlib.sha256).hexdigest().encode()


def _send(connection: socket.socket, secret: bytes, challenge: bytes, message: dict[str, Any]) -> None:
    text = json.dumps(message).encode()
    connection.sendall(_mark(secret, challenge, text) + b" " + text + b"\n")


def _receive(connection: socket.socket, secret: bytes, challenge: bytes) -> dict[str, Any]:
    line = b""
    while not line.endswith(b"\n"):
        piece = connection.recv(LONGEST)
        line += piece
        if not piece or len(line) > LONGEST:
            raise ValueError("no message")
    mark, _, text = line[:-1].partition(b" ")
    if not hmac.compare_digest(mark, _mark(secret, challenge, text)):
        raise ValueError("another secret")
    message = json.loads(text)
    if not isinstance(message, dict):
        raise ValueError("no message")
    return message


def meet(rank: int, size: int, tracker: str, secret: bytes, timeout_secs: float | None) -> dict[str, Any]:
    """Where this rank meets the others: arguments of the native ``join``."""
    host, colon, port = tracker.rpartition(":")
    if not colon or not port.isdigit() or len(secret) < 16:
        raise ValidationError("tracker is host:port, and secret its bytes, at least 16: pass what worker_args() gives")
    until = time.monotonic() + (60.0 if timeout_secs is None else timeout_secs)
    try:
        connection = socket.create_connection((host, int(port)), timeout=max(until - time.monotonic(), 0.001))
    except OSError as error:
        raise CommunicationError(f"rank {rank}: the tracker at {tracker} cannot be reached: {error}") from None
    with connection:
        listener = None
        asked: dict[str, Any] = {"rank": rank, "size": size}
        if rank == 0:
            # The address by which this machine reaches the tracker is one that others know it by.
            own = connection.getsockname()[0]
            listener = socket.create_server((own, 0), family=connection.family, backlog=size + 8)
            asked["place"] = f"{own} {listener.getsockname()[1]}"
        try:
            challenge = b""
            while len(challenge) < NONCE:
                piece = connection.recv(NONCE - len(challenge))
                if not piece:
                    raise ValueError("it closed the connection")
                challenge += piece
            _send(connection, secret, challenge, asked)
            connection.settimeout(max(until - time.monotonic(), 0.001))
            told = _receive(connection, secret, challenge)
        except (OSError, ValueError) as error:
            if listener is not None:
                listener.close()
            raise CommunicationError(
                f"rank {rank}: the tracker at {tracker} tells no place to meet ({error}); has it the same secret, and "
                "does rank 0 run?"
            ) from None
    if "error" in told:
        if listener is not None:
            listener.close()
        raise CommunicationError(f"rank {rank}: the tracker at {tracker}: {told['error']}")
    coordinator, _, number = str(told["place"]).rpartition(" ")
    place: dict[str, Any] = {"coordinator": coordinator, "port": int(number), "listener": None}
    if listener is not None:
        descriptor = listener.detach()
        status = os.fstat(descriptor)
        place["listener"] = f"{descriptor}:{status.st_dev}:{status.st_ino}"
    return place
