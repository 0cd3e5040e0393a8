"""Ranks that other systems start: the tracker, and the recipes of the book as they are printed there."""

from __future__ import annotations

import importlib.util
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time

import pytest

import cobre
from conftest import ROOT

RECIPE = re.compile(r"<!-- recipe: (\w+) -->\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
RECIPES = dict(RECIPE.findall((ROOT / "book/src/guide/schedulers.md").read_text()))


def in_threads(parts, work):
    """What each rank found, or raised."""
    found = {}

    def take_part(part):
        try:
            found[part["rank"]] = work(cobre.Communicator.join(**part))
        except Exception as error:
            found[part["rank"]] = error

    threads = [threading.Thread(target=take_part, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_ranks_meet_through_a_tracker():
    with cobre.Tracker(3) as tracker:
        parts = tracker.worker_args()
        assert [part["rank"] for part in parts] == [0, 1, 2]
        assert repr(tracker).startswith("<cobre.Tracker of 3 ranks at 127.0.0.1:")
        assert tracker.secret not in repr(tracker).encode()
        found = in_threads(reversed(parts), lambda comm: (comm.rank, comm.backend, comm.allreduce(comm.rank + 1.0)))
    assert found == {rank: (rank, "tcp", 6.0) for rank in range(3)}


def test_a_tracker_hears_those_with_its_secret_only():
    with cobre.Tracker(2) as tracker:
        part = tracker.worker_args()[1]
        with pytest.raises(cobre.CommunicationError, match="same secret"):
            cobre.Communicator.join(**{**part, "secret": b"x" * 32})
        with pytest.raises(cobre.CommunicationError, match="the job has 2 ranks"):
            cobre.Communicator.join(**{**part, "size": 3})
        host, _, port = tracker.address.partition(":")
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 1000)
        # It goes on after all of them.
        assert len(in_threads(tracker.worker_args(), lambda comm: comm.size)) == 2


STRANGERS = """
import socket, sys
strangers = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(200)]
print("connected", flush=True)
sys.stdin.read()
"""


def test_strangers_do_not_keep_ranks_out():
    with cobre.Tracker(2) as tracker:
        port = tracker.address.rpartition(":")[2]
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", STRANGERS, port], **pipes) as strangers:
            try:
                # The tracker's process has no descriptor left for most of them, and none for a rank.
                resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, limits[1]))
                assert strangers.stdout.readline()
                time.sleep(0.5)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            # They say nothing, and are still there.
            found = in_threads(tracker.worker_args(), lambda comm: comm.allreduce(1.0))
            strangers.stdin.close()
    assert found == {0: 2.0, 1: 2.0}


def test_a_tracker_has_an_address_that_ranks_reach():
    for host in ["::1", "localhost"]:
        with cobre.Tracker(2, host=host) as tracker:
            assert len(in_threads(tracker.worker_args(), lambda comm: comm.allreduce(1.0))) == 2
    for host in ["0.0.0.0", "::", ""]:
        with pytest.raises(cobre.ValidationError, match="no rank can reach"):
            cobre.Tracker(2, host=host)
    for port in [-1, 70_000]:
        with pytest.raises(cobre.ValidationError, match="port="):
            cobre.Tracker(2, port=port)


def test_what_cannot_be_meant_is_refused_before_anybody_waits():
    with cobre.Tracker(2) as tracker:
        part = tracker.worker_args()[1]
        for wrong in [{"rank": 2}, {"timeout_secs": 0.0}, {"timeout_secs": float("inf")}, {"tracker": "127.0.0.1:99999"}]:
            start = time.monotonic()
            with pytest.raises(cobre.ValidationError):
                cobre.Communicator.join(**{**part, **wrong})
            assert time.monotonic() - start < 5.0


def test_a_message_that_comes_back_is_no_answer():
    with socket.create_server(("127.0.0.1", 0)) as mirror:

        def reflect():
            with mirror.accept()[0] as connection:
                connection.sendall(b"0" * 16)
                connection.sendall(connection.recv(4096))

        thread = threading.Thread(target=reflect)
        thread.start()
        address = f"127.0.0.1:{mirror.getsockname()[1]}"
        with pytest.raises(cobre.CommunicationError, match="no place to meet"):
            cobre.Communicator.join(1, 2, tracker=address, secret=b"x" * 32, timeout_secs=5.0)
        thread.join()


def test_a_rank_without_the_others_says_so():
    with cobre.Tracker(2) as tracker:
        part = tracker.worker_args()[1]
        with pytest.raises(cobre.CommunicationError, match="does rank 0 run"):
            cobre.Communicator.join(**part, timeout_secs=3.0)
    with pytest.raises(cobre.CommunicationError, match="cannot be reached|no place to meet"):
        cobre.Communicator.join(**part, timeout_secs=3.0)
    with pytest.raises(ValueError, match="belong together"):
        cobre.Communicator.join(0, 2, tracker="127.0.0.1:1")
    with pytest.raises(cobre.ValidationError, match="worker_args"):
        cobre.Communicator.join(0, 2, tracker="nowhere", secret=b"x" * 32)


def test_a_communicator_is_not_mixed_with_workers(case):
    comm = cobre.Communicator()
    with pytest.raises(cobre.ValidationError, match="leave out num_workers"):
        cobre.train(case, bound=0.0, iterations=1, num_workers=2, communicator=comm)
    with pytest.raises(cobre.ValidationError, match="a cobre.Communicator is expected"):
        cobre.train(case, bound=0.0, iterations=1, communicator=3)


@pytest.mark.parametrize("name", ["dask", "mpi4py", "ray"])
def test_the_recipe_trains_to_the_policy_of_one_process(tmp_path, case, name):
    launcher = ["mpiexec.mpich", "-n", "2"] if name == "mpi4py" else []
    missing = importlib.util.find_spec(name) is None or (launcher and shutil.which(launcher[0]) is None)
    if missing:
        # Ray is large: it is tried where it is installed.
        assert name == "ray" or "CI" not in os.environ, f"skipped in CI: {name} is not installed"
        pytest.skip(f"{name} is not installed")
    if launcher:
        # An mpi4py for another MPI than the launcher's would make every process a job of its own.
        size = [sys.executable, "-c", "from mpi4py import MPI; assert MPI.COMM_WORLD.size == 2"]
        said = subprocess.run([*launcher, *size], capture_output=True, text=True, timeout=300)
        assert said.returncode == 0, said.stderr
    script = tmp_path / f"{name}_recipe.py"
    script.write_text(RECIPES[name])
    done = subprocess.run(
        [*launcher, sys.executable, str(script), case], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    alone = cobre.train(case, bound=0.0, iterations=5, threads=1)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [alone.policy_sha256] * 2, done.stderr
