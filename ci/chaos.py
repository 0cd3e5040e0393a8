#!/usr/bin/env python3
"""Ends ranks of shared-memory jobs in every way and at any instant, and checks what the others do.

ci/chaos.py [KILLS [SEED]]: most kills go over every call x way x rank in turn, at random instants; the
rest into starting and ending jobs, large memory, core dumps and hostile surroundings. The survivors
must all return the same record, which names the rank and how it went; none may crash or hang; nothing
may be left. Prints a table, and exits 1 if anything was wrong.
"""
import ctypes
import itertools
import json
import os
import platform
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

VICTIM = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "target", "release", "victim"))
CALLS = ["barrier", "allreduce", "large-allreduce", "allgatherv", "gatherv", "broadcast", "small-broadcast", "fence", "split"]
# How a rank goes, and what the record says of it.
WAYS = {
    "KILL": "is gone",
    "TERM": "is gone",
    "SEGV": f"was killed by signal {int(signal.SIGSEGV)}",
    "ABRT": f"was killed by signal {int(signal.SIGABRT)}",
    "BUS": f"was killed by signal {int(signal.SIGBUS)}",
    "QUIT": f"was killed by signal {int(signal.SIGQUIT)}",
    "exit0": "is gone",
    "exit3": "is gone",
    "panic": "panicked: as asked",
}
# System calls that a sandbox may deny.
DENIED = [("futex_waitv",), ("futex_waitv", "set_robust_list"), ("futex_waitv", "set_robust_list", "pidfd_open")]
HANG_SECS = 60
# Bounds the rendezvous, where a rank that dies before it has signed in is only missed, not noticed.
DEADLINE_SECS = 6


class Row:
    """What came of one kind of trouble."""

    def __init__(self, name):
        self.name, self.jobs, self.noticed, self.times = name, 0, 0, []
        self.hangs, self.differing, self.wrong, self.left = [], [], [], []

    def faults(self):
        return self.hangs + self.differing + self.wrong + self.left

    def line(self):
        at = lambda share: f"{sorted(self.times)[min(len(self.times) - 1, int(share * len(self.times)))]:.1f}"
        times = [at(0.5), at(0.99), at(1.0)] if self.times else ["-"] * 3
        counts = [self.jobs, self.noticed, len(self.hangs), len(self.differing), len(self.wrong), len(self.left)]
        return [self.name] + [str(count) for count in counts] + times


HEADINGS = ["trouble", "jobs", "noticed", "hangs", "differing", "wrong", "left", "p50 ms", "p99 ms", "max ms"]


def forbid(*names):
    """Makes system calls fail with EPERM in this process and what it starts, as a sandbox would."""
    x86 = platform.machine() == "x86_64"
    known = {"futex_waitv": 449, "pidfd_open": 434, "set_robust_list": 273 if x86 else 99}
    numbers = [known[name] for name in names]
    steps = [(0x20, 0, 0, 0)]  # load the call's number
    for i, number in enumerate(numbers):
        steps.append((0x15, len(numbers) - i, 0, number))  # forbidden: to the end
    steps += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)]  # allow; EPERM
    code = b"".join(
        op.to_bytes(2, "little") + bytes([yes, no]) + value.to_bytes(4, "little") for op, yes, no, value in steps
    )
    held = ctypes.create_string_buffer(code)

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    program = Program(len(steps), ctypes.addressof(held))
    program.held = held
    libc, number = ctypes.CDLL(None), ctypes.c_ulong

    def apply():
        assert libc.prctl(38, number(1), number(0), number(0), number(0)) == 0
        assert libc.prctl(22, number(2), ctypes.byref(program), number(0), number(0)) == 0

    return apply


def start(name, rank, size, arguments, before=None):
    settings = {
        "COBRE_COMM_BACKEND": "shm",
        "COBRE_SHM_NAME": name,
        "COBRE_SHM_RANK": str(rank),
        "COBRE_SHM_SIZE": str(size),
        "COBRE_SHM_TIMEOUT_SECS": str(DEADLINE_SECS),
        "RUST_BACKTRACE": "0",
    }
    return subprocess.Popen(
        [VICTIM] + [str(argument) for argument in arguments],
        env=dict(os.environ, **settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,
    )


NAMES = set()


def fresh_name():
    name = "cobre-" + uuid.uuid4().hex
    NAMES.add(name)
    return "/" + name


def finish(ranks, row, what):
    """What every rank printed; ranks that do not end are a hang."""
    outputs = []
    for rank, process in enumerate(ranks):
        try:
            outputs.append(process.communicate(timeout=HANG_SECS))
        except subprocess.TimeoutExpired:
            process.kill()
            outputs.append(process.communicate())
            row.hangs.append(f"{what}: rank {rank} hangs")
    return outputs


def judge(row, what, ranks, outputs, victim, expected):
    """Whether all survivors returned, and with the same record, which says what happened."""
    records = set()
    for rank, (process, (out, err)) in enumerate(zip(ranks, outputs)):
        if rank == victim:
            continue
        if process.returncode != 0:
            row.wrong.append(f"{what}: rank {rank} ended with {process.returncode}: {err}")
        records.add(out.replace("met\n", ""))
    row.noticed += 1
    if len(records) > 1:
        row.differing.append(f"{what}: {records}")
    for record in records:
        lines = record.splitlines()
        named = f"rank {victim} (pid {ranks[victim].pid} on "
        if len(lines) != 2 or any(named not in line or expected not in line for line in lines):
            row.wrong.append(f"{what}: {record!r}")


def kill(row, chance, calls, way, size, victim, memory=0, before=None):
    """One job of which one rank goes while all are calling."""
    what = f"{row.name}, {calls}, {way} of {victim} in {size}"
    inside = way in ("exit0", "exit3", "panic")
    instant = chance.randrange(6000)
    name = fresh_name()
    arguments = [calls, way if inside else "outside", victim]
    ranks = [
        start(name, rank, size, arguments + [instant if inside else 10**9, memory if rank == victim else 0], before)
        for rank in range(size)
    ]
    sent = None
    if not inside:
        if ranks[victim].stdout.readline() != "met\n":
            row.wrong.append(f"{what}: the ranks did not meet")
        time.sleep(instant / 1e6)
        sent = time.time_ns()
        ranks[victim].send_signal(getattr(signal, "SIG" + way))
    outputs = finish(ranks, row, what)
    row.jobs += 1
    judge(row, what, ranks, outputs, victim, WAYS[way])
    if inside:
        went = re.search(r"going (\d+)", outputs[victim][1])
        sent = int(went[1]) if went else None
    noticed = [int(stamp) for _, err in outputs for stamp in re.findall(r"noticed (\d+)", err)]
    if noticed and sent:
        row.times.append((max(noticed) - sent) / 1e6)


def dump_cores(directory):
    """Core dumps in `directory`, or none at all."""

    def apply():
        if directory:
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            os.chdir(directory)
        else:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return apply


def edges(row, chance, jobs, late):
    """Kills while the ranks meet, or when they end: whoever fails must fail like the others."""
    for _ in range(jobs):
        size, calls = chance.choice([2, 3, 4]), chance.choice(CALLS)
        victim = chance.randrange(size)
        what = f"{row.name}, {calls}, {victim} of {size}"
        name = fresh_name()
        ranks = [start(name, rank, size, [calls, "nobody", size]) for rank in range(size)]
        if late:
            ranks[victim].stdout.readline()
        time.sleep(chance.random() * (0.03 if late else 0.012))
        ranks[victim].send_signal(chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV]))
        outputs = finish(ranks, row, what)
        row.jobs += 1
        records = set()
        for rank, (process, (out, err)) in enumerate(zip(ranks, outputs)):
            if rank != victim and process.returncode not in (0, 3):
                row.wrong.append(f"{what}: rank {rank} ended with {process.returncode}: {err}")
            if rank != victim and "all well" not in out and "(pid " in out:
                records.add(out.replace("met\n", ""))
        row.noticed += bool(records)
        if len(records) > 1:
            row.differing.append(f"{what}: {records}")


def must_fail_cleanly(row, jobs, size, before, may_work):
    """Jobs that cannot start, or hardly: an error on every rank, or none."""
    for _ in range(jobs):
        name = fresh_name()
        ranks = [start(name, rank, size, ["fence", "nobody", size], before) for rank in range(size)]
        outputs = finish(ranks, row, row.name)
        row.jobs += 1
        for rank, (process, (out, err)) in enumerate(zip(ranks, outputs)):
            well = process.returncode == 0 and "all well" in out
            told = process.returncode in (0, 3) and (err.startswith("victim: ") or "failed" in out or "cannot" in out)
            if not (well and may_work or told and not well):
                row.wrong.append(f"{row.name}: rank {rank} ended with {process.returncode}: {out} {err}")
        row.noticed += any(process.returncode == 3 for process in ranks)


def leftovers():
    """What this run left; others may be at work on the machine too."""
    return NAMES & set(os.listdir("/dev/shm"))


def two_at_once(row, chance, jobs):
    """A job that loses a rank beside one that does not."""
    for _ in range(jobs):
        name = fresh_name()
        beside = [start(name, rank, 2, ["allgatherv", "nobody", 2]) for rank in range(2)]
        kill(row, chance, chance.choice(CALLS), "KILL", 3, chance.randrange(3))
        for out, err in finish(beside, row, row.name):
            if "all well" not in out:
                row.wrong.append(f"{row.name}: the other job said {out} {err}")


def stale(row, count):
    """What killed jobs left is swept by the next start."""
    # Its own name: what an earlier row left may be there too, and go when this rank sweeps.
    name = fresh_name()
    origin = "/dev/shm" + name
    lone = start(name, 0, 2, ["barrier", "nobody", 2])
    deadline = time.time() + HANG_SECS
    while not os.path.exists(origin) and lone.poll() is None and time.time() < deadline:
        time.sleep(0.001)
    if not os.path.exists(origin):
        out, err = lone.communicate(timeout=HANG_SECS)
        row.wrong.append(f"{row.name}: a rank 0 that waits for the others has no segment: {out} {err}")
        return
    with tempfile.TemporaryDirectory() as directory:
        # Saved while its creator lives: afterwards the start of any other job on this machine may sweep it.
        saved = os.path.join(directory, "segment")
        subprocess.run(["cp", "--sparse=always", "-p", origin, saved], check=True)
        lone.kill()
        lone.communicate()
        for _ in range(count - 1):
            subprocess.run(["cp", "--sparse=always", "-p", saved, "/dev/shm" + fresh_name()], check=True)
    row.jobs, row.noticed = count, len(leftovers())
    begun = time.time()
    name = fresh_name()
    ranks = [start(name, rank, 2, ["barrier", "nobody", 2]) for rank in range(2)]
    for out, err in finish(ranks, row, row.name):
        if "all well" not in out:
            row.wrong.append(f"{row.name}: the next job said {out} {err}")
    row.times.append((time.time() - begun) * 1e3)


def inside(place, chance, row):
    """What runs where /dev/shm is small, or full."""
    if place == "64 MiB /dev/shm":
        for calls, victim in itertools.product(CALLS, range(2)):
            kill(row, chance, calls, "KILL", 4, victim)
    else:
        free = shutil.disk_usage("/dev/shm").free
        with open("/dev/shm/filler", "wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, free - (1 << 20))
        must_fail_cleanly(row, 10, 4, None, False)
        os.remove("/dev/shm/filler")


def in_namespace(row, seed):
    """Runs `inside` with a /dev/shm of its own; false where the kernel forbids it."""
    command = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$0" "$@"'
    arguments = [sys.executable, os.path.abspath(__file__), "--inside", row.name, str(seed)]
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        print(f"{row.name}: not tried, this machine forbids mount namespaces")
        return False
    found = subprocess.run(["unshare", "-m", "sh", "-c", command] + arguments, capture_output=True, text=True)
    if found.returncode != 0:
        row.wrong.append(f"{row.name}: {found.stdout}{found.stderr}")
        return True
    row.__dict__.update(json.loads(found.stdout))
    return True


def main():
    if sys.argv[1:2] == ["--inside"]:
        row = Row(sys.argv[2])
        inside(row.name, random.Random(int(sys.argv[3])), row)
        row.left = sorted(leftovers())
        print(json.dumps(row.__dict__))
        return 0
    # A script's `&` hands down that these are ignored; what is handled here is the default in what this starts.
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.default_int_handler)
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"{kills} kills, seed {seed}")
    chance, rows = random.Random(seed), []

    def row(name):
        rows.append(Row(name))
        return rows[-1]

    def part(share, least):
        return max(least, int(kills * share))

    everything = list(itertools.product(CALLS, WAYS, range(4)))
    chance.shuffle(everything)
    each = row("every call, way and rank")
    for calls, way, victim in itertools.islice(itertools.cycle(everything), part(0.78, 10)):
        kill(each, chance, calls, way, chance.choice([4, 4, 4, 5, 8]), victim, before=dump_cores(None))
    two = row("of two ranks")
    for _ in range(part(0.04, 2)):
        kill(two, chance, chance.choice(CALLS), chance.choice(list(WAYS)), 2, chance.randrange(2))
    fatal = ["SEGV", "ABRT", "BUS", "QUIT"]
    with tempfile.TemporaryDirectory() as directory:
        cored = row("with core dumps")
        for _ in range(part(0.04, 2)):
            kill(cored, chance, chance.choice(CALLS), chance.choice(fatal), 4, chance.randrange(4), 16, dump_cores(directory))
        large = row("1 GiB")
        for _ in range(part(0.02, 1)):
            kill(large, chance, chance.choice(CALLS), chance.choice(list(WAYS)), 4, chance.randrange(4), 1024, dump_cores(None))
        both = row("1 GiB, with core dumps")
        for _ in range(part(0.01, 1)):
            kill(both, chance, chance.choice(CALLS), chance.choice(fatal), 4, chance.randrange(4), 1024, dump_cores(directory))
            for core in os.listdir(directory):
                os.remove(os.path.join(directory, core))
    for names in DENIED:
        denied = row("without " + ", ".join(names))
        for _ in range(part(0.02, 2)):
            kill(denied, chance, chance.choice(CALLS), "KILL", 4, chance.randrange(4), before=forbid(*names))
    edges(row("while ranks meet"), chance, part(0.03, 2), late=False)
    edges(row("while ranks end"), chance, part(0.03, 2), late=True)
    two_at_once(row("beside another job"), chance, part(0.01, 1))
    few = row("few open files")
    for limit in (6, 8, 12, 16):
        files = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        must_fail_cleanly(few, 1, 3, files, True)
    stale(row("1,000 stale leftovers"), 1000 if kills >= 1000 else 50)
    for name in ("64 MiB /dev/shm", "full /dev/shm"):
        if not in_namespace(row(name), chance.randrange(1 << 32)):
            rows.pop()
    # What was killed before its ranks met is swept by the next start of a job.
    start(fresh_name(), 0, 1, ["barrier", "nobody", 1]).communicate(timeout=HANG_SECS)
    rows[-1].left += sorted(leftovers())

    lines = [HEADINGS] + [row.line() for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    for line in lines:
        print("  ".join([line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]))
    total = [sum(getattr(row, name) if name == "jobs" else len(getattr(row, name)) for row in rows)
             for name in ("jobs", "hangs", "differing", "wrong", "left")]
    print("in all: {} jobs, {} hangs, {} differing records, {} wrong, {} left behind".format(*total))
    faults = [fault for row in rows for fault in row.faults()]
    print("\n".join(faults[:20]), end="\n" if faults else "")
    return 1 if faults else 0


sys.exit(main())
