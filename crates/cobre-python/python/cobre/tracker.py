"""Ranks that another system starts: a tracker tells them where they meet."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import math
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
STRANGERS = 64
"""Connections beside those of all ranks that may be in their first message; a further one takes the place of the oldest."""
LONGEST_WAIT_SECS = 86_400.0
"""The longest time that one call of the system waits, which sets a limit itself."""
RANK, TRACKER = b"rank", b"tracker"
"""Who has sent a message."""


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
        refusal = "give a name or address of this machine that all ranks reach"
        if _is_unspecified(host):
            raise ValidationError(f"host={host!r}: no rank can reach a tracker by this address; {refusal}")
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            families = [family for family, *_ in found if family in (socket.AF_INET, socket.AF_INET6)]
            family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6
            self._listener = socket.create_server(
                (host, count("port", port, least=0, most=65_535)), family=family, backlog=self.size + 8
            )
        except OSError as error:
            raise ValidationError(f"host={host!r}: a tracker cannot listen there ({error}); {refusal}") from None
        self._host = f"[{host}]" if ":" in host else host
        self._port: int = self._listener.getsockname()[1]
        self._strangers: list[socket.socket] = []
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
                if self._closed:
                    return
                # No descriptor is free, and perhaps strangers have them: theirs end soon.
                time.sleep(0.05)
                continue
            with self._known:
                self._strangers.append(connection)
                oldest = self._strangers.pop(0) if len(self._strangers) > self.size + STRANGERS else None
            if oldest is not None:
                _end(oldest)
            try:
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
            except RuntimeError:
                # The system has no more threads.
                self._admit(connection)
                connection.close()

    def _admit(self, connection: socket.socket) -> None:
        """Takes a connection off the list of strangers."""
        with self._known:
            if connection in self._strangers:
                self._strangers.remove(connection)

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                until = time.monotonic() + DIALOGUE_SECS
                connection.settimeout(DIALOGUE_SECS)
                challenge = secrets.token_bytes(NONCE)
                connection.sendall(challenge)
                asked = _receive(connection, self.secret, RANK, challenge, until)
                self._admit(connection)
                if asked.get("size") != self.size:
                    _send(connection, self.secret, TRACKER, challenge, {"error": f"the job has {self.size} ranks"})
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
                told = {"place": place} if place else {"error": "the tracker was closed"}
                _send(connection, self.secret, TRACKER, challenge, told)
            except (OSError, ValueError):
                # A stranger, or a rank that is gone.
                return
            finally:
                self._admit(connection)


def _is_unspecified(host: str) -> bool:
    try:
        return host == "" or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _end(connection: socket.socket) -> None:
    """Ends a connection that another thread reads from."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _is_gone(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    finally:
        connection.settimeout(DIALOGUE_SECS)


def _mark(secret: bytes, sender: bytes, challenge: bytes, message: bytes) -> bytes:
    whole = b"cobre tracker, from the " + sender + challenge + message
    return hmac.new(secret, whole, hashlib.sha256).hexdigest().encode()


def _send(connection: socket.socket, secret: bytes, sender: bytes, challenge: bytes, message: dict[str, Any]) -> None:
    text = json.dumps(message).encode()
    connection.sendall(_mark(secret, sender, challenge, text) + b" " + text + b"\n")


def _piece(connection: socket.socket, most: int, until: float) -> bytes:
    """What has arrived, at most so many bytes; nothing arrives after ``until``."""
    connection.settimeout(min(max(until - time.monotonic(), 0.001), LONGEST_WAIT_SECS))
    piece = connection.recv(most)
    if not piece:
        raise ValueError("it closed the connection")
    return piece


def _receive(connection: socket.socket, secret: bytes, sender: bytes, challenge: bytes, until: float) -> dict[str, Any]:
    line = b""
    while not line.endswith(b"\n"):
        line += _piece(connection, LONGEST, until)
        if len(line) > LONGEST:
            raise ValueError("it says too much")
    mark, _, text = line[:-1].partition(b" ")
    if not hmac.compare_digest(mark, _mark(secret, sender, challenge, text)):
        raise ValueError("its secret is another one")
    message = json.loads(text)
    if not isinstance(message, dict):
        raise ValueError("its message makes no sense")
    return message


def meet(rank: int, size: int, tracker: str, secret: bytes, timeout_secs: float | None) -> dict[str, Any]:
    """Where this rank meets the others: arguments of the native ``join``."""
    host, colon, port = tracker.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535 or len(secret) < 16:
        raise ValidationError("tracker is host:port, and secret its bytes, at least 16: pass what worker_args() gives")
    if rank >= size:
        raise ValidationError(f"rank={rank}: a rank from 0 to {size - 1} is expected")
    if timeout_secs is not None and not (0.0 < timeout_secs and math.isfinite(timeout_secs)):
        raise ValidationError(f"timeout_secs={timeout_secs}: a positive number of seconds is expected")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    until = time.monotonic() + (60.0 if timeout_secs is None else timeout_secs)
    try:
        connection = socket.create_connection((host, int(port)), timeout=min(until - time.monotonic(), LONGEST_WAIT_SECS))
    except OSError as error:
        raise CommunicationError(f"rank {rank}: the tracker at {tracker} cannot be reached: {error}") from None
    listener = None
    with connection:
        asked: dict[str, Any] = {"rank": rank, "size": size}
        if rank == 0:
            # The address by which this machine reaches the tracker is one that others know it by.
            own = connection.getsockname()[0]
            listener = socket.create_server((own, 0), family=connection.family, backlog=size + 8)
            asked["place"] = f"{own} {listener.getsockname()[1]}"
        try:
            challenge = b""
            while len(challenge) < NONCE:
                challenge += _piece(connection, NONCE - len(challenge), until)
            _send(connection, secret, RANK, challenge, asked)
            told = _receive(connection, secret, TRACKER, challenge, until)
            if "error" in told:
                raise CommunicationError(f"rank {rank}: the tracker at {tracker}: {told['error']}")
            coordinator, _, number = str(told.get("place", "")).rpartition(" ")
            place: dict[str, Any] = {"coordinator": coordinator, "port": int(number), "listener": None}
        except (OSError, ValueError) as error:
            if listener is not None:
                listener.close()
            raise CommunicationError(
                f"rank {rank}: the tracker at {tracker} tells no place to meet ({error}); has it the same secret, and "
                "does rank 0 run?"
            ) from None
        except CommunicationError:
            if listener is not None:
                listener.close()
            raise
    if listener is not None:
        descriptor = listener.detach()
        status = os.fstat(descriptor)
        place["listener"] = f"{descriptor}:{status.st_dev}:{status.st_ino}"
    return place
