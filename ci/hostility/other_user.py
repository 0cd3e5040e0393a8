"""Another user of the machine, who tries to read, join and spoil the jobs of this one."""
import ctypes
import os
import pathlib
import shutil
import time

from hostility import network
from hostility.kind import Kind
from hostility.process import COBRE, SOF, Job, judge

NOBODY = 65534
TRAIN = ["run", str(SOF), "--bound=0", "--threads=1", "--iterations=1000000", "--stop=time:2", "--checkpoint=iterations:1000",
         "--quiet", "--json"]


def descendants(pid):
    """The processes below one."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, open_ends = [], [pid]
    while open_ends:
        below = children.get(open_ends.pop(), [])
        found += below
        open_ends += below
    return found


def as_nobody(act):
    """What another user could do: the lines that `act` returns, run in a process of that user."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(theirs, "\n".join(act()).encode()[:60_000])
            code = 0
        finally:
            os._exit(code)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        lines = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    return lines if status == 0 else ["the kit's other user failed"]


def own(entry):
    """Whether an object is this user's; it may be gone again."""
    try:
        return entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    except OSError:
        return False


def can(act):
    """Whether something is allowed."""
    try:
        act()
        return True
    except OSError:
        return False


def intrude(pids, objects, output):
    """Tries everything; returns what was possible, and how much was tried."""
    libc = ctypes.CDLL(None, use_errno=True)

    def act():
        tries = []
        for pid in pids:
            tries += [(f"read /proc/{pid}/{name}", lambda path=f"/proc/{pid}/{name}": open(path, "rb").read(1))
                      for name in ("mem", "environ", "maps")]
            tries.append((f"list the descriptors of {pid}", lambda pid=pid: os.listdir(f"/proc/{pid}/fd")))
            tries.append((f"signal {pid}", lambda pid=pid: os.kill(pid, 0)))
        for name in objects:
            tries += [(f"open {name} ({mode})", lambda name=name, mode=mode: os.open(name, mode))
                      for mode in (os.O_RDONLY, os.O_RDWR)]
            tries.append((f"remove {name}", lambda name=name: os.unlink(name)))
        lock = str(output / ".lock")
        # Whoever can open it can lock it, and keep all later runs out.
        tries += [(f"open {lock}", lambda: os.open(lock, os.O_RDONLY)),
                  (f"write {lock}", lambda: os.open(lock, os.O_WRONLY)),
                  (f"write into {output}", lambda: os.open(output / "mine", os.O_CREAT | os.O_WRONLY)),
                  (f"write into {output}/checkpoint", lambda: os.open(output / "checkpoint/1.json", os.O_CREAT | os.O_WRONLY))]
        done = [what for what, attempt in tries if can(attempt)]
        done += [f"trace {pid}" for pid in pids if libc.ptrace(16, pid, None, None) == 0]
        return done + [f"tried {len(tries) + len(pids)}"]

    lines = as_nobody(act)
    tried = sum(int(line.split()[1]) for line in lines if line.startswith("tried "))
    return [f"another user can {line}" for line in lines if not line.startswith("tried ")], tried


class OtherUser(Kind):
    def excuse(self):
        if os.geteuid() != 0:
            return "only root can become another user"
        return None

    def attempt(self, chance, base, place):
        # Others may look for what is here, as in most homes.
        place.chmod(0o755)
        way = chance.choice(["shm", "tcp", "by hand", "name"])
        return {"shm": self.launched, "tcp": self.launched, "by hand": self.by_hand, "name": self.by_name}[way](base, place, way)

    @staticmethod
    def launched(base, place, backend):
        """A job of the launcher, whose processes, memory, ports and files are there for others to try."""
        output = place / "out"
        job = Job(place, [COBRE, *TRAIN, "-n2", "--backend", backend, "--output", str(output)], wall=60.0)
        wrong, tried, deadline = [], 0, time.monotonic() + 2
        while job.runs() and time.monotonic() < deadline:
            objects = [entry.path for entry in os.scandir("/dev/shm") if own(entry)]
            pids = descendants(job.process.pid)
            found, count = intrude([job.process.pid, *pids], objects, output)
            wrong, tried = wrong + found, tried + count
            time.sleep(0.05)
        end = job.wait()
        return sorted(set(wrong))[:5] + judge(end, {0}, True), end.told(), tried

    @staticmethod
    def by_hand(base, place, _):
        """A job of ranks started by hand, without a secret: another user starts one too."""
        port, cobre = network.free_port(), base / "cobre"
        if not cobre.exists():
            copy = shutil.copy(COBRE, place / "cobre")
            os.chmod(copy, 0o755)
            os.replace(copy, cobre)
        first = network.rank(place, 0, port, timeout=3)
        network.wait_for(port, first)
        theirs = place / "theirs"
        theirs.mkdir()
        (theirs / "here").mkdir()
        os.chown(theirs / "here", NOBODY, NOBODY)
        problem = theirs / SOF.name
        shutil.copy(SOF, problem)
        stranger = network.rank(theirs, 1, port, user=NOBODY, cobre=cobre, timeout=3, problem=problem)
        ends = [stranger.wait(), first.wait()]
        wrong = ["another user is a rank of the job"] * (ends[0].code == 0 or ends[1].code == 0)
        wrong += [one for end in ends for one in judge(end, {0, 1, 2, 4, 64})]
        return wrong, "\n".join(end.told() for end in ends), 1

    @staticmethod
    def by_name(base, place, _):
        """The name of a segment that another user has taken before."""
        name = f"/cobre-taken-{os.getpid()}-{time.monotonic_ns()}"
        path = f"/dev/shm{name}"
        as_nobody(lambda: [str(os.write(os.open(path, os.O_CREAT | os.O_RDWR, 0o666), bytes(1 << 16)))])
        settings = {"COBRE_COMM_BACKEND": "shm", "COBRE_SHM_NAME": name, "COBRE_SHM_SIZE": "2", "COBRE_SHM_TIMEOUT_SECS": "1"}
        words, ends = [COBRE, *network.PROBLEM], []
        try:
            for number in ("0", "1"):
                job = Job(place, words, environment=settings | {"COBRE_SHM_RANK": number}, name=f"rank{number}")
                ends.append(job.wait())
            kept = os.path.exists(path)
        finally:
            if os.path.exists(path):
                os.unlink(path)
        wrong = [one for end in ends for one in judge(end, {1, 2, 4})]
        wrong += ["an object of another user was removed"] * (not kept)
        return wrong, "\n".join(end.told() for end in ends), 2
