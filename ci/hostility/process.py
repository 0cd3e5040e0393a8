"""Runs one command under ceilings, and judges what came of it."""
import ctypes
import json
import os
import pathlib
import resource
import signal
import subprocess
import time
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COBRE = pathlib.Path(os.environ.get("HOSTILE_COBRE", ROOT / "target/release/cobre"))
SOF = ROOT / "examples/two_reservoirs.sof.json"
WALL_SECS = 30.0
ADDRESS_BYTES = 6 << 30
RESIDENT_BYTES = 1 << 30
OUTPUT_BYTES = 16 << 20
# A variable that all processes of this kit inherit, and no other's.
MARK = ("HOSTILE_KIT", str(os.getpid()))
# Codes that the book has: those of a run, and those of the launcher.
CODES = {0, 1, 2, 3, 4, 5, 64}
LAUNCH_CODES = CODES | {124, 126, 127, 141}
# Letters that turn the direction of text or break lines, beside the control characters.
STEERING = set("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def alone():
    """Gives the kit a /dev/shm of its own, so that what is left there is its own; says whether it could."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or libc.unshare(0x20000) != 0:  # CLONE_NEWNS
        return False
    private = libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) == 0  # MS_REC, MS_PRIVATE
    return private and libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"mode=1777,size=1g") == 0


class Ended:
    """How a command ended and what it wrote."""

    def __init__(self, words, status, out, err, seconds, resident, late):
        self.words, self.out, self.err = words, out, err
        self.code = os.waitstatus_to_exitcode(status)
        self.seconds, self.resident, self.late = seconds, resident, late

    def line(self):
        """The line of JSON; None if there is not exactly one."""
        lines = self.out.decode("utf-8", "replace").splitlines()
        try:
            return json.loads(lines[0]) if len(lines) == 1 else None
        except ValueError:
            return None

    def told(self):
        words = " ".join(repr(os.fsdecode(word)) for word in self.words)
        parts = [f"  command: {words}", f"  code: {self.code}, {self.seconds:.2f} s, {self.resident >> 20} MiB"]
        for name, text in (("out", self.out), ("err", self.err)):
            parts.append(f"  {name}: {ascii(text[:600].decode('utf-8', 'replace'))}")
        return "\n".join(parts)


class Job:
    """A command that runs under ceilings."""

    def __init__(self, place, words, environment=None, wall=WALL_SECS, user=None, name="job", file_bytes=None):
        self.words = [os.fsencode(word) for word in words]
        self.wall, self.files = wall, [place / f"{name}.out", place / f"{name}.err"]
        here = place / "here"
        here.mkdir(exist_ok=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("COBRE_")}
        settings = {**kept, MARK[0]: MARK[1], "HOME": str(place), "RUST_BACKTRACE": "0", **(environment or {})}

        def prepare():
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if file_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        out, err = (open(file, "wb") for file in self.files)
        with out, err:
            self.start = time.monotonic()
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=here,
                                            env=settings, preexec_fn=prepare)

    def runs(self):
        """Whether it has not ended; its end stays to be waited for."""
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def wait(self):
        pause, late = 0.001, False
        while True:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - self.start > self.wall:
                late = True
                os.killpg(self.process.pid, signal.SIGKILL)
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        out, err = (file.read_bytes() for file in self.files)
        return Ended(self.words, status, out, err, time.monotonic() - self.start, usage.ru_maxrss << 10, late)


def run(place, words, **settings):
    return Job(place, [COBRE, *words], **settings).wait()


def steers(text):
    """The letters of an output that steer a terminal."""
    try:
        letters = text.decode()
    except UnicodeDecodeError as error:
        return [f"byte {text[error.start]:#x}"]
    bad = {letter for letter in letters if letter in STEERING or unicodedata.category(letter) == "Cc"} - {"\n"}
    return sorted(f"U+{ord(letter):04X}" for letter in bad)


def judge(ended, codes=frozenset(CODES), is_json=False):
    """What is wrong with how a command ended, whatever it was given."""
    wrong = []
    if ended.late:
        wrong.append(f"it took more than {ended.seconds:.0f} s")
    elif ended.code < 0:
        wrong.append(f"it died of signal {-ended.code}")
    elif ended.code not in codes:
        wrong.append(f"its code {ended.code} is none that the book has")
    if ended.resident > RESIDENT_BYTES:
        wrong.append(f"it took {ended.resident >> 20} MiB")
    for name, text in (("standard output", ended.out), ("standard error", ended.err)):
        if b"panicked" in text or b"RUST_BACKTRACE" in text:
            wrong.append(f"a panic on {name}")
        if letters := steers(text):
            wrong.append(f"{', '.join(letters[:4])} on {name}")
        if len(text) > OUTPUT_BYTES:
            wrong.append(f"{len(text)} bytes on {name}")
    if not ended.late and ended.code > 0 and not ended.out and not ended.err:
        wrong.append("it failed without a word")
    if is_json and not ended.late and ended.line() is None:
        count = len(ended.out.decode("utf-8", "replace").splitlines())
        wrong.append(f"{count} lines instead of one of JSON")
    return wrong


def same(line, known):
    """Whether a line of JSON has the results of one that is kept in a file."""
    known = json.loads(known.read_text())
    return line is not None and all(line.get(key) == known[key] for key in ("bound", "estimate", "iterations", "policy_sha256"))


def tree(place):
    """The names below a place, with what tells one state of a file from another."""
    found = {}
    for path in sorted(place.rglob("*")):
        stat = path.lstat()
        found[os.fsencode(path.relative_to(place))] = (stat.st_mode, stat.st_size, stat.st_mtime_ns if path.is_file() else 0)
    return found


def unchanged(before, place, what):
    """Complaints about what was made, changed or removed below a place."""
    after = tree(place)
    names = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    return [f"{what}: {', '.join(ascii(os.fsdecode(name)) for name in sorted(names)[:4])}"] if names else []


def remaining():
    """The processes that jobs of the kit have left."""
    left = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            marked = "=".join(MARK).encode() in (entry / "environ").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if marked and state != "Z":
            left.append(int(entry.name))
    return left
