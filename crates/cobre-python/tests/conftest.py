"""What the tests share: a case, the `cobre` program, and the check that nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MARK = f"cobre-pytest-{uuid.uuid4().hex}"

# A script's `&` hands down that SIGINT is ignored; what is handled here is the default in what these tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Whatever these tests start, and what that starts, carries this in its environment.
os.environ["COBRE_PYTEST_MARK"] = MARK


@pytest.fixture
def case() -> str:
    return str(ROOT / "examples/two_reservoirs.sof.json")


@pytest.fixture(scope="session")
def program() -> str:
    """The command that results are compared with: the one that the wheel has installed."""
    path = os.path.join(sysconfig.get_path("scripts"), "cobre")
    assert os.path.exists(path), "install the wheel first"
    return path


def started() -> dict[int, dict[str, str]]:
    """Processes of these tests other than this one, with their environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if MARK in text:
            pairs = (word.partition("=") for word in text.split("\0") if word)
            found[int(entry.name)] = {name: value for name, _, value in pairs}
    return found


def worker_pids(rank: int) -> list[int]:
    """The processes of a worker that run now: none between two tries."""
    found = started().items()
    return [pid for pid, environment in found if environment.get("COBRE_LAUNCH_RANK") == str(rank)]


def worker_pid(rank: int) -> int:
    """The process of a worker that runs now."""
    for pid in worker_pids(rank):
        return pid
    raise AssertionError(f"no worker {rank}")


def eventually(condition, seconds: float = 60.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def segments() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if name.startswith("cobre-")}


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    """No process, descriptor or shared-memory object outlives a test."""
    shared = segments()
    descriptors = len(os.listdir("/proc/self/fd"))
    yield
    assert eventually(lambda: not started()), f"processes left: {started()}"
    # Other jobs of this machine come and go: only a name that stays was left.
    left = segments() - shared
    assert eventually(lambda: not left & segments()), f"segments left: {left & segments()}"
    # Threads of pyarrow close the files that it has read.
    closed = eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
    assert closed, f"descriptors left open: {os.listdir('/proc/self/fd')}"


def script(text: str, *args: str, **options) -> subprocess.Popen:
    """Runs a script of its own, unguarded, as users write them."""
    return subprocess.Popen(
        [sys.executable, "-u", "-c", text, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
