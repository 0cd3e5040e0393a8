"""Strangers that call at the port of a job."""
import socket
import struct
import threading
import time

from hostility import mutants
from hostility.kind import Kind
from hostility.process import COBRE, SOF, Job, judge, same

PROBLEM = ["run", str(SOF), "--bound=0", "--threads=1", "--iterations=20", "--simulate=20", "--quiet", "--json"]
HELLO = "hello.bin"


def rank(place, number, port, secret=None, user=None, cobre=COBRE, problem=SOF, timeout=45):
    """A rank of a job of two on loopback."""
    settings = {"COBRE_COMM_BACKEND": "tcp", "COBRE_TCP_SIZE": "2", "COBRE_TCP_RANK": str(number),
                "COBRE_TCP_COORDINATOR": "127.0.0.1", "COBRE_TCP_PORT": str(port), "COBRE_TCP_TIMEOUT_SECS": str(timeout)}
    if secret:
        settings["COBRE_TCP_SECRET_FILE"] = str(secret)
    words = [str(problem) if word == str(SOF) else word for word in PROBLEM]
    return Job(place, [cobre, *words], environment=settings, wall=90.0, user=user, name=f"rank{number}")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def keep_secret(place, text):
    file = place / "secret"
    file.write_text(text)
    file.chmod(0o600)
    return file


def prepare(base):
    """Keeps the first words that a rank says to the first one, for others to repeat."""
    place = base / "hello"
    place.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        job = rank(place, 1, server.getsockname()[1], keep_secret(place, "a secret of the kit, not the job's"), timeout=1)
        caller, _ = server.accept()
        with caller:
            caller.settimeout(20)
            (base / HELLO).write_bytes(caller.recv(4096))
        job.wait()


def wait_for(port, job):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and job.runs():
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            time.sleep(0.02)
    return False


class Strangers:
    """Connections that are made, and perhaps held, while a job runs."""

    def __init__(self, chance, port, hello):
        self.chance, self.port, self.hello = chance, port, hello
        self.held, self.calls, self.over = [], 0, threading.Event()

    def call(self):
        """One call; False if nobody listens."""
        try:
            line = socket.create_connection(("127.0.0.1", self.port), 1)
        except OSError:
            return False
        self.calls += 1
        line.settimeout(0.5)
        way = self.chance.choice(["noise", "http", "half", "held", "replay", "mutant", "proof", "reset", "silent", "large"])
        hello = self.hello
        try:
            if way == "noise":
                line.sendall(self.chance.randbytes(self.chance.choice([1, 8, 63, 64, 65, 96, 5000])))
            elif way == "http":
                line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            elif way in ("half", "held"):
                line.sendall(hello[:self.chance.randrange(1, len(hello))])
            elif way == "replay":
                line.sendall(hello)
                line.recv(200)
            elif way == "mutant":
                line.sendall(mutants.of_bytes(self.chance, hello)[:5000])
            elif way == "proof":
                line.sendall(hello + self.chance.randbytes(32))
                line.recv(200)
            elif way == "reset":
                line.sendall(hello)
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif way == "large":
                line.sendall(self.chance.randbytes(1 << 20))
        except OSError:
            pass
        if way in ("held", "silent") and len(self.held) < 200:
            self.held.append(line)
        else:
            line.close()
        return True

    def drip(self):
        """Sends a hello byte by byte."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as line:
                self.calls += 1
                for byte in self.hello:
                    if self.over.wait(0.1):
                        return
                    line.sendall(bytes([byte]))
        except OSError:
            pass

    def go_on(self):
        while not self.over.is_set() and self.call():
            pass

    def end(self):
        self.over.set()
        for line in self.held:
            line.close()


class Tcp(Kind):
    def attempt(self, chance, base, place):
        port, secret = free_port(), keep_secret(place, f"secret of the job {chance.random()}")
        first = rank(place, 0, port, secret)
        strangers, threads, jobs = Strangers(chance, port, (base / HELLO).read_bytes()), [], [first]
        try:
            if wait_for(port, first):
                for _ in range(chance.choice([1, 20, 100, 300])):
                    strangers.call()
                threads = [threading.Thread(target=strangers.drip) for _ in range(chance.choice([0, 1, 8]))]
                if chance.random() < 0.5:
                    threads.append(threading.Thread(target=strangers.go_on))
                for thread in threads:
                    thread.start()
            jobs.append(rank(place, 1, port, secret))
            ends = [job.wait() for job in jobs]
        finally:
            strangers.end()
            for thread in threads:
                thread.join()
        wrong = [f"rank {number}: {one}" for number, end in enumerate(ends) for one in judge(end, {0}, number == 0)]
        if not wrong and not same(ends[0].line(), base / "job.json"):
            wrong.append("another result than without strangers")
        return wrong, "\n".join(end.told() for end in ends), strangers.calls
