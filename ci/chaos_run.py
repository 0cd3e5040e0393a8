#!/usr/bin/env python3
"""Ends training runs in every way, at random instants, resumes them, and compares the bits.

    ci/chaos_run.py KILLS [SEED]

Each study is one training run. It is started on some backend, ranks and threads, and something is done
to it at a random instant: a signal to a rank, to rank 0, to all ranks, or to the launcher, or strangers call at
every port it listens at. Then it is resumed on another backend, ranks and threads, and so on, until it gets
through. Its results must be the bytes of a run that nothing was done to. Then surroundings in which it cannot
work: a full disk, a full /dev/shm, few descriptors. Prints a table; the exit code is 0 if nothing hung, nothing
was left behind and nothing differed.
"""
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COBRE = ROOT / "target/release/cobre"
PROBLEM = ROOT / "examples/two_reservoirs.sof.json"
LIMIT = 30.0  # seconds until a job counts as hung
TIMES = {"run.json", "training/timings.parquet"}
SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGABRT, signal.SIGSTOP]


def command(output, seed, layout, resume):
    backend, ranks, threads = layout
    words = [COBRE, "run", PROBLEM, "--bound=0", "--iterations=80", "--forward-passes=4", "--simulate=64",
             "--cut-selection=lml1", "--checkpoint=iterations:1", "--quiet", "--json", f"--seed={seed}",
             f"--threads={threads}", "--output", output]
    if backend != "local":
        words += ["-n", str(ranks), "--backend", backend]
    return [str(word) for word in words + (["--resume"] if resume else [])]


def results(output):
    files = {}
    for path in sorted(output.rglob("*")):
        name = str(path.relative_to(output))
        hidden = name.startswith("checkpoint/") or name in TIMES or name == ".lock"
        if path.is_file() and not hidden:
            files[name] = path.read_bytes()
    return files


def processes(seed):
    """The processes of the study: by pid, whether it is a rank, and which."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            line = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            if entry.isdigit() and f"--seed={seed}".encode() in line:
                environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
                names = (b"COBRE_LAUNCH_RANK=", b"PMI_RANK=")
                ranks = [int(e.split(b"=")[1]) for e in environment if e.startswith(names)]
                found[int(entry)] = ranks[0] if ranks else None
        except OSError:
            pass
    return found


def shared_memory():
    return {name for name in os.listdir("/dev/shm") if name.startswith("cobre")}


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def disturb(chance, job, seed, number):
    """Sends the signal to a rank, to rank 0, to all ranks or to the launcher; says to whom."""
    ranks = {pid: rank for pid, rank in processes(seed).items() if rank is not None}
    who = chance.choice(["a rank", "rank 0", "all ranks", "the launcher"]) if ranks else "the launcher"
    if who == "a rank":
        targets = [chance.choice(sorted(ranks))]
    elif who == "rank 0":
        targets = [pid for pid, rank in ranks.items() if rank == 0]
    elif who == "all ranks":
        targets = list(ranks)
    else:
        targets = [job.pid]
    for pid in targets:
        send(pid, number)
    if number == signal.SIGSTOP:
        time.sleep(0.3)
        for pid in targets:
            send(pid, signal.SIGCONT)
    return who


def ports(pid):
    """The ports of this machine that a process listens at."""
    try:
        sockets = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        return []
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]


def call(chance, seed):
    """Strangers call at every port of the study: some say nothing, some say anything."""
    called = [port for pid in processes(seed) for port in ports(pid)]
    for port in called:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as stranger:
                stranger.sendall(chance.randbytes(chance.choice([0, 1, 64, 4096])))
        except OSError:
            pass
    return len(called)


SURROUNDINGS = {
    "a full disk": "mount -t tmpfs -o size=24k tmpfs {scratch} && {cobre}",
    "a full /dev/shm": "mount -t tmpfs -o size=8k tmpfs /dev/shm && {cobre}",
    "few descriptors": "ulimit -n 16 && {cobre}",
}


def surroundings(scratch, seed):
    """Runs where something is missing: each must end by itself, with an error that names what. Returns the
    number of those that do not."""
    bad = 0
    for name, script in SURROUNDINGS.items():
        place = scratch / name.replace(" ", "-").replace("/", "-")
        place.mkdir()
        words = " ".join(command(place / "study", seed, ("shm", 2, 1), False))
        script = script.format(scratch=place, cobre=f"exec {words}")
        job = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            complained = job.communicate(timeout=LIMIT)[1]
        except subprocess.TimeoutExpired:
            for pid in processes(seed):
                send(pid, signal.SIGKILL)
            complained = "HUNG " + job.communicate()[1]
        if "unshare" in complained:
            print(f"{name:13} left out: {complained.strip()}")
            continue
        left = processes(seed)
        wrong = job.returncode == 0 or "HUNG" in complained or "panicked" in complained or not complained or left
        bad += bool(wrong)
        first = complained.strip().splitlines()[0] if complained.strip() else "nothing said"
        print(f"{name}: exit code {job.returncode}: {first[:150]}{'  WRONG' if wrong else ''}", flush=True)
    return bad


def main():
    kills, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**31)
    print(f"{kills} disturbances of training runs, seed {seed}", flush=True)
    chance = random.Random(seed)
    facts = subprocess.run([COBRE, "doctor"], capture_output=True, text=True).stdout.splitlines()
    known = next(line for line in facts if line.startswith("backends")).removeprefix("backends")
    backends = [name.strip() for name in known.split(",")]
    layouts = [(b, r, t) for b in backends for r in ((1,) if b == "local" else (2, 3, 4)) for t in (1, 2)]
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="cobre-chaos-"))
    before = shared_memory()
    counts = {"disturbed": 0, "hung": 0, "resumed": 0, "studies": 0, "differing": 0, "left": 0, "refused": 0}
    worst, by_target = 0.0, {}
    marker = 3_000_000_000 + os.getpid() * 10_000
    try:
        reference = None
        while counts["disturbed"] < kills:
            study = scratch / f"study-{counts['studies']}"
            number = marker  # all studies are the same one, so that one reference is enough
            if reference is None:
                start = time.monotonic()
                subprocess.run(command(study, number, ("local", 1, 2), False), check=True, stdout=subprocess.DEVNULL)
                length = time.monotonic() - start
                reference = results(study)
                shutil.rmtree(study)
            resume, done, rounds = False, False, 0
            while not done:
                layout = chance.choice(layouts)
                job = subprocess.Popen(command(study, number, layout, resume), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
                disturbed = None
                if rounds < 5 and counts["disturbed"] < kills:
                    try:
                        job.wait(timeout=chance.uniform(0.0, 1.5 * length))
                    except subprocess.TimeoutExpired:
                        if layout[0] == "tcp" and chance.random() < 0.3:
                            call(chance, number)
                            who = "strangers"
                        else:
                            disturbed = chance.choice(SIGNALS)
                            who = disturb(chance, job, number, disturbed)
                        counts["disturbed"] += 1
                        by_target[who] = by_target.get(who, 0) + 1
                sent = time.monotonic()
                try:
                    said, complained = job.communicate(timeout=LIMIT)
                except subprocess.TimeoutExpired:
                    counts["hung"] += 1
                    print(f"HUNG: {' '.join(command(study, number, layout, resume))}", flush=True)
                    for pid in processes(number):
                        send(pid, signal.SIGKILL)
                    job.communicate()
                if disturbed and job.returncode != 0:
                    worst = max(worst, time.monotonic() - sent)
                if job.returncode == 0:
                    done = True
                elif not disturbed:
                    counts["refused"] += 1
                    print(f"REFUSED: {' '.join(command(study, number, layout, resume))}\n{complained}", flush=True)
                    break
                # The keeper may need a moment after a launcher that was killed.
                deadline = time.monotonic() + 5.0
                while processes(number) and time.monotonic() < deadline:
                    time.sleep(0.01)
                for pid in processes(number):
                    counts["left"] += 1
                    send(pid, signal.SIGKILL)
                if not done:
                    # Killed before there was anything to keep: there is nothing to resume from, and that is said.
                    resume = True
                    counts["resumed"] += 1
                rounds += 1
            counts["studies"] += 1
            if done:
                found = results(study)
                if found != reference:
                    counts["differing"] += 1
                    names = [n for n in reference.keys() | found.keys() if reference.get(n) != found.get(n)]
                    print(f"DIFFERS: {sorted(names)}", flush=True)
            shutil.rmtree(study, ignore_errors=True)
        counts["wrong surroundings"] = surroundings(scratch, marker + 1)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    counts["left"] += len(shared_memory() - before)
    print(f"backends      {', '.join(backends)}")
    print("disturbed     " + ", ".join(f"{who} {count}" for who, count in sorted(by_target.items())))
    for name, count in counts.items():
        print(f"{name:19}{count}")
    print(f"slowest end   {worst:.2f} s after the signal, the iteration and its files included")
    bad = counts["hung"] + counts["differing"] + counts["left"] + counts["refused"] + counts["wrong surroundings"]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
