"""A process that is a rank of a job: it trains with the others, or is refused."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import cobre
import numpy as np
import pytest

OPTIONS = {"bound": 0.0, "iterations": 25, "seed": 7, "forward_passes": 3}

# Each rank leaves what it found in a file of its own: output of several processes may mix.
TRAIN = """
import json, os, sys, cobre
case, place = sys.argv[1:]
result = cobre.train(case, bound=0.0, iterations=25, seed=7, forward_passes=3, simulate=50, output=place + "/out")
tried = cobre.simulate(case, result, bound=0.0, paths=50, threads=1)
comm = cobre.Communicator()
with open(f"{place}/{comm.rank}.json", "w") as file:
    json.dump({
        "sha256": result.policy_sha256,
        "cuts": result.policy.cuts["intercept"].sum(),
        "estimate": result.estimate.mean,
        "tried": tried.estimate.mean,
        "size": comm.size,
        "pids": [worker.pid for worker in result.workers],
        "backends": [worker.backend for worker in result.workers],
        "pid": os.getpid(),
        "hosts": [worker.host for worker in result.workers],
    }, file)
"""


@pytest.fixture(scope="module")
def alone():
    root = Path(__file__).resolve().parents[3]
    return cobre.train(root / "examples/two_reservoirs.sof.json", **OPTIONS, simulate=50)


def check_ranks(place: Path, size: int, backend: str, alone) -> None:
    found = [json.loads((place / f"{rank}.json").read_text()) for rank in range(size)]
    for rank, one in enumerate(found):
        assert one["sha256"] == alone.policy_sha256
        assert one["cuts"] == alone.policy.cuts["intercept"].sum()
        assert one["estimate"] == one["tried"] == alone.estimate.mean
        assert (one["size"], one["backends"]) == (size, [backend] * size)
        assert one["pids"] == [other["pid"] for other in found]
        assert one["hosts"] == [socket.gethostname()] * size
    run = json.loads((place / "out/run.json").read_text())
    assert len(run["hosts"]) == size, run


def launched(program, text, *args, ranks=2, backend="shm", **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [program, "launch", f"-n{ranks}", f"--backend={backend}", "--", sys.executable, "-c", text, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


@pytest.mark.parametrize("backend", ["shm", "tcp"])
def test_ranks_of_the_launcher_train_together(case, program, tmp_path, alone, backend):
    done = launched(program, TRAIN, case, tmp_path, backend=backend)
    assert (done.returncode, done.stderr) == (0, "")
    check_ranks(tmp_path, 2, backend, alone)


def by_hand(text, variables: dict[int, dict[str, str]], *args) -> list[tuple[int, str, str]]:
    """Runs ranks that nobody watches, with these variables."""
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", text, *map(str, args)],
            env={**os.environ, **variables[rank]},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in variables
    ]
    heard = [run.communicate(timeout=120) for run in runs]
    return [(run.returncode, *words) for run, words in zip(runs, heard)]


def free_port() -> int:
    """A port that nobody listens on, and none of those that the system chooses: no other process gets it meanwhile."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    count = first - 10_000
    for number in range(count):
        port = 10_000 + (os.getpid() * 257 + number) % count
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def tcp_variables(size: int, tmp_path: Path) -> dict[int, dict[str, str]]:
    secret = tmp_path / "secret"
    secret.write_text(uuid.uuid4().hex * 2)
    secret.chmod(0o600)
    common = {
        "COBRE_TCP_COORDINATOR": "127.0.0.1",
        "COBRE_TCP_PORT": str(free_port()),
        "COBRE_TCP_SIZE": str(size),
        "COBRE_TCP_SECRET_FILE": str(secret),
    }
    return {rank: {**common, "COBRE_TCP_RANK": str(rank)} for rank in range(size)}


def test_auto_means_the_coordinator_that_the_environment_names(case, tmp_path, alone):
    assert by_hand(TRAIN, tcp_variables(2, tmp_path), case, tmp_path) == [(0, "", "")] * 2
    check_ranks(tmp_path, 2, "tcp", alone)


def test_ranks_of_a_named_segment_train_together(case, tmp_path, alone):
    name = f"/cobre-test-{uuid.uuid4().hex[:12]}"
    common = {"COBRE_SHM_NAME": name, "COBRE_SHM_SIZE": "2"}
    variables = {rank: {**common, "COBRE_SHM_RANK": str(rank)} for rank in range(2)}
    assert by_hand(TRAIN, variables, case, tmp_path) == [(0, "", "")] * 2
    check_ranks(tmp_path, 2, "shm", alone)


def test_ranks_of_mpiexec_train_together_without_mpi(case, tmp_path, alone):
    launcher = shutil.which("mpiexec.mpich")
    if launcher is None:
        assert "CI" not in os.environ, "mpiexec.mpich is not installed"
        pytest.skip("mpiexec.mpich is not installed")
    words = [launcher, "-n", "4", sys.executable, "-c", TRAIN, case, tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    check_ranks(tmp_path, 4, "shm", alone)


@pytest.mark.parametrize("workers", [1, 2])
def test_half_of_a_job_is_refused(case, monkeypatch, workers):
    monkeypatch.setenv("COBRE_TCP_COORDINATOR", "127.0.0.1")
    with pytest.raises(cobre.CommunicationError, match="COBRE_TCP_SIZE"):
        cobre.train(case, **OPTIONS, num_workers=workers)


def test_a_rank_starts_no_workers_and_takes_no_other_backend(case, program, tmp_path):
    text = """
import sys, cobre
for options in [{"num_workers": 2}, {"backend": "local"}, {"backend": "tcp"}]:
    for call in [cobre.train, lambda case, **more: cobre.simulate(case, sys.argv[2], **more)]:
        try: call(sys.argv[1], bound=0.0, **options)
        except cobre.ValidationError as error: assert "this process is" in str(error), error
        else: raise SystemExit(f"{options} was taken")
"""
    cobre.train(case, bound=0.0, iterations=2, output=tmp_path / "out")
    done = launched(program, text, case, tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")


def test_mpi_that_the_launcher_asks_for_is_refused(case, monkeypatch):
    monkeypatch.setenv("COBRE_COMM_BACKEND", "mpi")
    with pytest.raises(cobre.CommunicationError, match="mpi"):
        cobre.train(case, **OPTIONS)


def test_what_one_rank_cannot_load_the_others_hear_of_and_all_go_on(case, program, tmp_path):
    text = """
import sys, cobre
comm = cobre.Communicator()
try: cobre.train("/nowhere.sof.json" if comm.rank == 1 else sys.argv[1], bound=0.0, iterations=2)
except cobre.IOError as error: assert comm.rank == 1 and "nowhere" in str(error), error
except cobre.CommunicationError as error: assert comm.rank == 0 and "rank 1 cannot load" in str(error), error
else: raise SystemExit("trained")
assert cobre.train(sys.argv[1], bound=0.0, iterations=2).iterations == 2
"""
    done = launched(program, text, case)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_rank_whose_callback_raises_ends_the_run_of_all(case, program):
    text = """
import sys, cobre
comm = cobre.Communicator()
def tell(progress):
    assert progress.worker_id == comm.rank
    if comm.rank == 1 and progress.iteration == 3: raise LookupError
try: cobre.train(sys.argv[1], bound=0.0, iterations=10**6, progress=tell)
except LookupError: assert comm.rank == 1
except cobre.CommunicationError as error: assert comm.rank == 0 and "rank 1 has ended" in str(error), error
assert cobre.train(sys.argv[1], bound=0.0, iterations=2).iterations == 2
"""
    done = launched(program, text, case)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_rank_that_ends_before_the_others_ends_the_job(case, program):
    text = """
import sys, cobre
comm = cobre.Communicator()
if comm.rank == 1: raise SystemExit(3)
cobre.train(sys.argv[1], bound=0.0, iterations=10**6)
"""
    done = launched(program, text, case)
    assert done.returncode not in (0, None)
    assert "rank 1" in done.stderr


def spawned(comm, case):
    result = cobre.train(case, **OPTIONS)
    return result.policy_sha256, len(result.workers), comm.allreduce(1)


def test_functions_on_spawned_ranks_train_together(case, alone):
    import test_jobs

    assert cobre.spawn(test_jobs.spawned, 2, args=(case,)) == [(alone.policy_sha256, 2, 2)] * 2


def test_threads_of_a_rank_train_one_after_the_other(case, program):
    text = """
import sys, threading, cobre
cobre.Communicator().barrier()
once, heard = threading.Event(), []
def other():
    once.wait()
    try: cobre.train(sys.argv[1], bound=0.0, iterations=2)
    except cobre.ValidationError as error: heard.append(str(error))
def tell(progress):
    once.set()
    if progress.iteration > 3: thread.join()
thread = threading.Thread(target=other)
thread.start()
assert cobre.train(sys.argv[1], bound=0.0, iterations=10, progress=tell).iterations == 10
assert len(heard) == 1 and "one run at a time" in heard[0], heard
"""
    done = launched(program, text, case)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("kind", ["shm", "tcp"])
def test_code_names_the_job_to_join(tmp_path, kind):
    secret = tmp_path / "secret"
    secret.write_text(uuid.uuid4().hex * 2)
    secret.chmod(0o600)
    if kind == "shm":
        place = {"name": f"/cobre-test-{uuid.uuid4().hex[:12]}"}
    else:
        place = {"coordinator": "127.0.0.1", "port": free_port(), "secret_file": secret}
    found = {}

    def take_part(rank):
        comm = cobre.Communicator.join(rank, 2, timeout_secs=60.0, **place)
        found[rank] = (comm.rank, comm.size, comm.backend, comm.allreduce(float(rank + 1)))

    ranks = [threading.Thread(target=take_part, args=(rank,)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert found == {rank: (rank, 2, kind, 3.0) for rank in range(2)}


def test_a_job_that_cannot_be_is_refused():
    join = cobre.Communicator.join
    for place in [{}, {"name": "/cobre-x", "port": 1}]:
        with pytest.raises(ValueError, match="either name"):
            join(0, 2, **place)
    with pytest.raises(cobre.CommunicationError, match="0 to 1"):
        join(2, 2, name="/cobre-x")
    with pytest.raises(cobre.CommunicationError, match="host name of rank 0"):
        join(1, 2, port=5000)
    with pytest.raises(cobre.CommunicationError, match="seconds"):
        join(1, 2, name="/cobre-x", timeout_secs=-1.0)


def test_numbers_and_lists_are_reduced():
    comm = cobre.Communicator()
    for number in [2.5, 3, np.float64(2.5), np.int64(7)]:
        found = comm.allreduce(number)
        assert found == number and isinstance(found, (float, int))
    assert isinstance(comm.allreduce(3), int)
    total = comm.allreduce([1.0, 2.0], op="max")
    assert isinstance(total, np.ndarray) and total.tolist() == [1.0, 2.0]
    assert comm.allreduce([[1, 2], [3, 4]]).shape == (2, 2)
    assert comm.allreduce(np.array(2.0)).shape == ()
    recv = np.zeros(2)
    assert comm.allreduce([1.0, 2.0], recv) is recv
    for wrong in ["text", True, None, ["a"]]:
        with pytest.raises(TypeError, match="allreduce: send"):
            comm.allreduce(wrong)
