#!/usr/bin/env python3
"""Ends training runs in every way, at random instants, resumes them, and compares the bits.

    ci/chaos_run.py KILLS [SEED [BACKEND,...]]

Each study is one training run. It is started on some backend, ranks and threads, and something is done
to it at a random instant: a signal to a rank, to rank 0, to all ranks, or to the launcher, or strangers call at
every port it listens at. Ranks of tcp also run on two hosts, which are network namespaces, one to three on each,
numbered in a row or in turn; leaders and followers among them are killed and stopped, and the hosts lose sight of
each other. Then it is resumed on another backend, ranks and threads, and so on, until it gets through. Its results must
be the bytes of a run that nothing was done to. Then surroundings in which it cannot work: a full disk, a full
/dev/shm, few descriptors. Backends are those of the build and "hosts", if none are named; mpi is there if cobre was
built with it. Prints a table; the exit code is 0 if nothing hung, nothing was left behind and nothing differed.
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
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COBRE = ROOT / "target/release/cobre"
PROBLEM = ROOT / "examples/two_reservoirs.sof.json"
LIMIT = 120.0  # seconds until a job counts as hung
TIMES = {"run.json", "training/timings.parquet"}
STUDY = "CHAOS_STUDY"  # a variable that all processes of a study inherit
SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGABRT, signal.SIGSTOP]


def command(output, seed, layout, resume):
    backend, ranks, threads = layout
    words = [COBRE, "run", PROBLEM, "--bound=0", "--iterations=80", "--forward-passes=4", "--simulate=64",
             "--cut-selection=lml1", "--checkpoint=iterations:1", "--quiet", "--json", f"--seed={seed}",
             f"--threads={threads}", "--output", output]
    if backend not in ("local", "hosts"):
        words += ["-n", str(ranks), "--backend", backend]
    return [str(word) for word in words + (["--resume"] if resume else [])]


def results(output):
    files = {}
    for path in sorted(output.rglob("*")):
        name = str(path.relative_to(output))
        hidden = name.startswith("checkpoint/") or name in TIMES or name in (".lock", ".cobre-files")
        if path.is_file() and not hidden:
            files[name] = path.read_bytes()
    return files


def start(output, seed, layout, resume, hosts):
    """The processes that are to be waited for: the launcher, or the ranks of the hosts."""
    words, environment = command(output, seed, layout, resume), {**os.environ, STUDY: str(seed)}
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    if layout[0] != "hosts":
        return [subprocess.Popen(words, env=environment, **piped)]
    hosts.build()
    hosts.place(layout[1])
    return [subprocess.Popen(["ip", "netns", "exec", hosts.host(number), *words],
                             env=environment | hosts.environment(rank), **piped) for rank, number in enumerate(hosts.places)]


def wait(jobs, seed):
    """Waits for the end of all; returns what they complained of, or None if they hung."""
    complaints, threads = [], []
    for job in jobs:
        threads.append(threading.Thread(target=lambda job=job: complaints.append(job.communicate()[1])))
        threads[-1].start()
    deadline = time.monotonic() + LIMIT
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    hung = any(thread.is_alive() for thread in threads)
    if hung:
        for pid in processes(seed):
            send(pid, signal.SIGKILL)
        for thread in threads:
            thread.join()
    return None if hung else "".join(complaints)


class Hosts:
    """Two hosts and a router between them."""

    def __init__(self, scratch):
        self.name = f"chaos{os.getpid()}"
        self.secret = scratch / "secret"
        self.secret.write_text("a secret that only these hosts have")
        self.secret.chmod(0o600)
        self.there = False
        self.places = [0, 1]

    def place(self, ranks):
        """Puts so many ranks on the hosts: in turn, or an even number of them in a row."""
        half = ranks // 2
        self.places = [rank % 2 for rank in range(ranks)] if ranks % 2 else [0] * half + [1] * half

    def leaders(self):
        return {self.places.index(number) for number in (0, 1)}

    def ip(self, words):
        return subprocess.run(["ip", *words.split()], capture_output=True).returncode == 0

    def host(self, number):
        return f"{self.name}h{number}"

    def build(self):
        """Builds them anew; says whether that is permitted here."""
        self.remove()
        self.there = True
        router = f"{self.name}r"
        done = self.ip(f"netns add {router}")
        done = done and self.ip(f"netns exec {router} sysctl -qw net.ipv4.ip_forward=1")
        for number in (0, 1):
            host = self.host(number)
            done = done and all(map(self.ip, (
                f"netns add {host}",
                f"link add outside netns {host} type veth peer name down{number} netns {router}",
                f"-n {host} link set lo up",
                f"-n {host} addr add 10.77.{number}.2/24 dev outside",
                f"-n {host} link set outside up",
                f"-n {router} addr add 10.77.{number}.1/24 dev down{number}",
                f"-n {router} link set down{number} up",
                f"-n {host} route add default via 10.77.{number}.1")))
        return done

    def environment(self, rank):
        return {"COBRE_COMM_BACKEND": "tcp", "COBRE_TCP_RANK": str(rank), "COBRE_TCP_SIZE": str(len(self.places)),
                "COBRE_TCP_COORDINATOR": "10.77.0.2", "COBRE_TCP_BIND": "10.77.0.2", "COBRE_TCP_PORT": "29400",
                "COBRE_TCP_SECRET_FILE": str(self.secret), "COBRE_TCP_TIMEOUT_SECS": "20",
                "COBRE_TCP_HOST": self.host(self.places[rank]), "COBRE_TCP_SHARED_MEMORY": "on"}

    def part(self, chance):
        """The hosts lose sight of each other, with and without a word from the network."""
        number = chance.choice((0, 1))
        self.ip(chance.choice((f"-n {self.host(number)} link set outside down",
                               f"-n {self.name}r route add blackhole 10.77.{number}.2/32",
                               f"-n {self.name}r rule add from 10.77.{number}.2 blackhole")))

    def remove(self):
        if self.there:
            for name in (self.host(0), self.host(1), f"{self.name}r"):
                self.ip(f"netns del {name}")
        self.there = False


def processes(seed):
    """The processes of the study: by pid, which rank it is, if it is one."""
    found = {}
    names = (b"COBRE_LAUNCH_RANK=", b"PMI_RANK=", b"COBRE_TCP_RANK=")
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"{STUDY}={seed}".encode() in environment:
            ranks = [int(e.split(b"=")[1]) for e in environment if e.startswith(names)]
            found[int(entry)] = ranks[0] if ranks else None
    return found


def shared_memory():
    return {name for name in os.listdir("/dev/shm") if name.startswith("cobre")}


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def strike(pids, number):
    """Sends the signal to all of them; who is stopped goes on after a moment."""
    for pid in pids:
        send(pid, number)
    if number == signal.SIGSTOP:
        time.sleep(0.3)
        for pid in pids:
            send(pid, signal.SIGCONT)


def disturb_hosts(chance, hosts, seed, number):
    """Sends the signal to leaders or followers of the hosts, or parts the hosts; says to whom."""
    ranks = {pid: rank for pid, rank in processes(seed).items() if rank is not None}
    leaders = [pid for pid, rank in sorted(ranks.items()) if rank in hosts.leaders()]
    followers = [pid for pid in sorted(ranks) if pid not in leaders]
    targets = {"a leader": leaders[:1], "a leader and a follower": leaders[-1:] + followers[:1],
               "both leaders": leaders, "a follower": followers[-1:], "a partition": []}
    who = chance.choice([who for who, pids in targets.items() if pids or who == "a partition"])
    if who == "a partition":
        hosts.part(chance)
    strike(targets[who], number)
    return who


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
    strike(targets, number)
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
                               env={**os.environ, STUDY: str(seed)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
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


def backends_asked():
    """The backends of this build and hosts, or those that are named."""
    if len(sys.argv) > 3:
        return sys.argv[3].split(",")
    facts = subprocess.run([COBRE, "doctor"], capture_output=True, text=True).stdout.splitlines()
    known = next(line for line in facts if line.startswith("backends")).removeprefix("backends")
    return [name.strip() for name in known.split(",")] + ["hosts"]


def main():
    kills, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**31)
    print(f"{kills} disturbances of training runs, seed {seed}", flush=True)
    chance = random.Random(seed)
    backends = backends_asked()
    # MPICH's ranks spin while they wait: more of them than cores would take minutes.
    ranks = {"local": (1,), "hosts": (2, 3, 4, 5, 6), "mpi": (2,)}
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="cobre-chaos-"))
    before = shared_memory()
    counts = {"disturbed": 0, "hung": 0, "resumed": 0, "studies": 0, "differing": 0, "left": 0, "refused": 0}
    slowest, by_target, by_backend = {}, {}, {}
    study_seed = 3_000_000_000 + os.getpid() * 10_000
    hosts = Hosts(scratch)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of `finally`
    # A script's `&` hands down that it is ignored; what is handled here is the default in what this starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if "hosts" in backends and not hosts.build():
            print("hosts         left out: network namespaces are not permitted here, or there is no ip command")
            backends.remove("hosts")
        # All studies are the same one, so that one reference is enough.
        study = scratch / "reference"
        begun = time.monotonic()
        subprocess.run(command(study, study_seed, ("local", 1, 2), False), check=True, stdout=subprocess.DEVNULL)
        length = time.monotonic() - begun
        reference = results(study)
        bag = []
        while counts["disturbed"] < kills and counts["refused"] < 3:
            study = scratch / f"study-{counts['studies']}"
            resume, done, rounds = False, False, 0
            while not done:
                # Every backend once before any comes again.
                bag = bag or chance.sample(backends, len(backends))
                backend = bag.pop()
                layout = (backend, chance.choice(ranks.get(backend, (2, 3, 4))), chance.choice((1, 2)))
                jobs = start(study, study_seed, layout, resume, hosts)
                who = None
                if rounds < 5 and counts["disturbed"] < kills:
                    try:
                        jobs[0].wait(timeout=chance.uniform(0.0, 1.5 * length))
                    except subprocess.TimeoutExpired:
                        if backend == "hosts":
                            who = disturb_hosts(chance, hosts, study_seed, chance.choice(SIGNALS))
                        elif backend == "tcp" and chance.random() < 0.3:
                            call(chance, study_seed)
                            who = "strangers"
                        else:
                            who = disturb(chance, jobs[0], study_seed, chance.choice(SIGNALS))
                        counts["disturbed"] += 1
                        by_target[who] = by_target.get(who, 0) + 1
                        by_backend[backend] = by_backend.get(backend, 0) + 1
                sent = time.monotonic()
                complained = wait(jobs, study_seed)
                taken = time.monotonic() - sent
                words = " ".join(command(study, study_seed, layout, resume))
                done = all(job.returncode == 0 for job in jobs)
                if complained is None:
                    counts["hung"] += 1
                    print(f"HUNG: {words}", flush=True)
                elif not done and who in (None, "strangers"):
                    counts["refused"] += 1
                    print(f"REFUSED: {words}\n{complained}", flush=True)
                    break
                elif not done:
                    slowest[who] = max(slowest.get(who, 0.0), taken)
                # The supervisor may need a moment after a launcher that was killed.
                deadline = time.monotonic() + 30.0
                while processes(study_seed) and time.monotonic() < deadline:
                    time.sleep(0.01)
                for pid in processes(study_seed):
                    counts["left"] += 1
                    send(pid, signal.SIGKILL)
                if not done:
                    # Killed before there was anything to keep: there is nothing to resume from, and that is said.
                    resume = True
                    counts["resumed"] += 1
                rounds += 1
            counts["studies"] += 1
            found = results(study)
            if done and found != reference:
                counts["differing"] += 1
                names = [n for n in reference.keys() | found.keys() if reference.get(n) != found.get(n)]
                print(f"DIFFERS: {sorted(names)}", flush=True)
            shutil.rmtree(study, ignore_errors=True)
        if "shm" in backends:
            counts["wrong surroundings"] = surroundings(scratch, study_seed + 1)
    finally:
        for pid in processes(study_seed):
            send(pid, signal.SIGKILL)
        hosts.remove()
        shutil.rmtree(scratch, ignore_errors=True)
    # Other jobs of this machine come and go: only a name that stays was left.
    left, deadline = shared_memory() - before, time.monotonic() + 30.0
    while left & shared_memory() and time.monotonic() < deadline:
        time.sleep(0.1)
    counts["left"] += len(left & shared_memory())
    told = lambda counted: ", ".join(f"{name} {count}" for name, count in sorted(counted.items()))
    print(f"on            {told(by_backend)}")
    print(f"disturbed     {told(by_target)}")
    for name, count in counts.items():
        print(f"{name:19}{count}")
    for who, seconds in sorted(slowest.items()):
        print(f"slowest end   {seconds:.2f} s after {who}, the iteration and its files included")
    wrong = ("hung", "differing", "left", "refused", "wrong surroundings")
    sys.exit(1 if any(counts.get(name) for name in wrong) else 0)


if __name__ == "__main__":
    main()
