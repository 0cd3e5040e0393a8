#!/usr/bin/env python3
"""Kills ranks of shared-memory jobs at random instants and checks that the survivors notice.

ci/chaos.py [JOBS [SEED]]: each job has 2 to 8 ranks that repeat one kind of call; one or two of them
get a fatal signal. Survivors that still call must all return the same error, and none may crash, hang
or run into its deadline. Exits 1 if one did, or if anything is left in /dev/shm.
"""
import os
import random
import signal
import subprocess
import sys
import time
import uuid

CALLS = ["barrier", "allreduce", "large-allreduce", "allgatherv", "broadcast", "fence"]
SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS]
VICTIM = os.path.join(os.path.dirname(__file__), "..", "target", "release", "victim")
DEADLINE_SECS = "5"


def start(name, rank, size, calls):
    settings = {
        "COBRE_COMM_BACKEND": "shm",
        "COBRE_SHM_NAME": name,
        "COBRE_SHM_RANK": str(rank),
        "COBRE_SHM_SIZE": str(size),
        "COBRE_SHM_TIMEOUT_SECS": DEADLINE_SECS,
        "RUST_BACKTRACE": "0",
    }
    return subprocess.Popen(
        [VICTIM, calls, "nobody", str(size)],
        env=dict(os.environ, **settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def job(chance):
    """One job; what went wrong in it, and how it ended."""
    size, calls, fatal = chance.choice([2, 3, 4, 5, 8]), chance.choice(CALLS), chance.choice(SIGNALS)
    doomed = chance.sample(range(size), chance.choice([1, 1, 1, min(2, size - 1)]))
    name = "/cobre-" + uuid.uuid4().hex
    ranks = [start(name, rank, size, calls) for rank in range(size)]
    time.sleep(0.004 + chance.random() * chance.choice([0.003, 0.02, 0.05]))
    for rank in doomed:
        ranks[rank].send_signal(fatal)
    what = f"{calls}, {size} ranks, {fatal.name} to {doomed}"
    wrong, records, early = [], set(), False
    for rank, process in enumerate(ranks):
        try:
            out, _ = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            wrong.append(f"hang: {what}: rank {rank}")
        if rank in doomed:
            continue
        if process.returncode not in (0, 3):
            wrong.append(f"crashed: {what}: rank {rank} with {process.returncode}")
        early |= process.returncode == 3  # the ranks had not met when the signal came
        if "no answer within" in out:
            wrong.append(f"not noticed: {what}: rank {rank}")
        if out and "all well" not in out:
            records.add(out)
    if len(records) > 1:
        wrong.append(f"records differ: {what}: {records}")
    return wrong, "before the ranks met" if early else "noticed" if records else "after the last call"


def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"{jobs} jobs, seed {seed}")
    chance, ends, wrong = random.Random(seed), {}, []
    for _ in range(jobs):
        trouble, end = job(chance)
        wrong += trouble
        ends[end] = ends.get(end, 0) + 1
    for end, count in sorted(ends.items()):
        print(f"  signal came {end}: {count}" if end != "noticed" else f"  noticed by all survivors: {count}")
    # What was killed before its ranks met is swept by the next start of a job.
    start("/cobre-" + uuid.uuid4().hex, 0, 1, "barrier").communicate(timeout=20)
    wrong += [f"left behind: {name}" for name in os.listdir("/dev/shm") if name.startswith("cobre-")]
    print("\n".join(wrong) if wrong else "  hangs 0, deaths missed 0, differing records 0, leftovers 0")
    return 1 if wrong else 0


sys.exit(main())
