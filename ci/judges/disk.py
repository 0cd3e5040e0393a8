#!/usr/bin/env python3
"""Faults of the disk at every call of a run that writes checkpoints and results.

    ci/judges/disk.py [CASES [SEED [FAULT...]]]     every call without CASES, else so many chosen by SEED

A layer (disk_faults.c, loaded by LD_PRELOAD) numbers the calls that write, sync, rename, remove or make files of the
run and lets them fail. Needs `make build` and a C compiler. For each fault and each call:

1. A run without a fault gives the expected files.
2. With the fault it ends with code 0 and these files, or with code 2 and an error that names a file. It neither
   panics nor hangs.
3. What is there then is not taken for whole: `cobre summary` fails, or all files are the expected ones.
4. Without the fault, `--resume` goes on from the newest checkpoint that was complete on the disk or a later one, and
   gives the expected files.

The fault `power` ends the process before the call. Then everything that was not on the disk is lost: bytes since the
last sync of their file; names, directories and renames since the last sync of their directory. Half of the cases lose
all of it, half a random part.
"""

import collections
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COBRE = ROOT / "target/release/cobre"
LIMITS = ["--iterations=6", "--checkpoint=iterations:2"]
RUN = [COBRE, "run", ROOT / "examples/two_reservoirs.sof.json", "--bound=0", "--forward-passes=3", "--simulate=10"]
RUN += ["--threads=1", *LIMITS]
# Faults from a certain call on; the others have no such call.
AT_A_CALL = ["eio", "eio-once", "enospc", "erofs", "rename", "fsync", "power"]
ALWAYS = ["short", "eintr"]
# Files that hold times, or that are no results.
OTHERS = {"run.json", "training/timings.parquet", ".lock", ".cobre-files"}
DEADLINE_SECS = 300


class Judge:
    def __init__(self, scratch):
        self.scratch = scratch
        self.layer = scratch / "disk_faults.so"
        source = ROOT / "ci/judges/disk_faults.c"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self.layer, source, "-ldl", "-lpthread"], check=True)
        self.disk, self.saved, self.log = scratch / "disk", scratch / "saved", scratch / "log"
        self.output = self.disk / "results"
        self.tried = collections.Counter()
        self.failed_runs = collections.Counter()
        self.complaints = []
        self.clear()
        code, text = self.start(None, None)
        if code != 0:
            sys.exit(f"the run without a fault ends with {code}: {text}")
        self.expected = self.files()
        self.calls = len(self.lines())

    def clear(self):
        for directory in [self.disk, self.saved]:
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
        self.log.unlink(missing_ok=True)

    def start(self, fault, call):
        variables = {"LD_PRELOAD": self.layer, "DISK_BELOW": self.disk, "DISK_LOG": self.log, "DISK_SAVED": self.saved}
        if fault:
            variables |= {"DISK_FAULT": fault, "DISK_CALL": str(call)}
        return self.command([*RUN, "--output", self.output], variables)

    def command(self, words, variables=None):
        environment = {**os.environ, **{name: str(value) for name, value in (variables or {}).items()}}
        try:
            ended = subprocess.run(
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=DEADLINE_SECS,
            )
        except subprocess.TimeoutExpired:
            return "a hang", ""
        return ended.returncode, ended.stdout

    def lines(self):
        return [line.split(" ") for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def files(self):
        found = {}
        for path in sorted(self.output.rglob("*")):
            name = str(path.relative_to(self.output))
            if path.is_file() and name not in OTHERS and not name.startswith("checkpoint/"):
                found[name] = path.read_bytes()
        return found

    def promised(self):
        """The newest checkpoint that was on the disk: its manifest renamed, and the directory synced."""
        renamed, promised = 0, 0
        for _, call, path, *more in self.lines():
            if call == "rename" and "/checkpoint/" in path and more[0].endswith(".json"):
                renamed = int(pathlib.Path(more[0]).stem)
            elif call == "sync" and path.endswith("/checkpoint"):
                promised = max(promised, renamed)
        return promised

    def lose_power(self, choose):
        """Undoes what was not on the disk, in reverse order."""
        synced, written = {}, set()
        pending = []
        for _, call, path, *more in self.lines():
            if call == "write":
                written.add(path)
            elif call == "sync" and more[0]:
                synced[path] = int(more[0])
                written.discard(path)
            elif call == "sync":
                pending = [step for step in pending if os.path.dirname(step[1]) != path]
            elif call in ["open", "mkdir"] and more[0] == "new":
                pending.append((call, path))
            elif call == "rename":
                pending = [step for step in pending if step[1] != path]
                pending.append((call, more[0], path, more[1]))
                for of_path in [synced, written]:
                    self.follow(of_path, path, more[0])
        for path in written:
            if os.path.exists(path) and choose():
                os.truncate(path, min(synced.get(path, 0), os.path.getsize(path)))
        for call, path, *more in reversed(pending):
            if os.path.exists(path) and choose():
                self.undo(call, path, more)

    @staticmethod
    def follow(of_path, before, after):
        """A name goes on with what is known of the file."""
        if isinstance(of_path, dict):
            if before in of_path:
                of_path[after] = of_path.pop(before)
        elif before in of_path:
            of_path.discard(before)
            of_path.add(after)

    @staticmethod
    def undo(call, path, more):
        if call == "rename":
            os.rename(path, more[0])
            if more[1] != "-":
                os.link(more[1], path)
        elif call == "mkdir":
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def judge(self, fault, call, choose):
        self.clear()
        self.tried[fault] += 1
        name = f"{fault} at call {call}"
        code, text = self.start(fault, call)
        promised = self.promised()
        if fault == "power":
            self.lose_power(choose)
            allowed = [0, 137]
        else:
            allowed = [0] if fault in ALWAYS else [0, 2]
        self.failed_runs[fault] += code != 0
        complain = lambda what: self.complaints.append(f"{name}: {what}\n{text[-1500:]}")  # noqa: E731
        if code not in allowed or "panicked" in text:
            complain(f"the run ends with {code}")
        if code == 0 and self.files() != self.expected:
            complain("the run ends with 0 and its files are not the expected ones")
        if code == 2 and str(self.disk) not in text:
            complain("the error names no file")
        summary, _ = self.command([COBRE, "summary", self.output])
        if summary == 0 and self.files() != self.expected:
            complain("half of the results are taken for whole")
        code, text = self.command([*RUN, "--output", self.output, "--resume"])
        after = [int(line.split()[-1]) for line in text.splitlines() if line.startswith("resumed after iteration")]
        if code != 0 or self.files() != self.expected:
            complain(f"the run that resumes ends with {code}, or with other files")
        elif promised > (after or [0])[0]:
            complain(f"the checkpoint of iteration {promised} was on the disk and is lost")

    def report(self):
        for fault, tried in self.tried.items():
            print(f"{fault}: {tried} cases, {self.failed_runs[fault]} runs failed and were resumed")
        print(f"{sum(self.tried.values())} cases over {self.calls} calls, {len(self.complaints)} wrong")
        for complaint in self.complaints[:20]:
            print(complaint, file=sys.stderr)
        sys.exit(1 if self.complaints else 0)


def main():
    number = int(sys.argv[1]) if len(sys.argv) > 1 else None
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 2026
    faults = sys.argv[3:] or AT_A_CALL + ALWAYS
    if not COBRE.exists():
        sys.exit(f"{COBRE} is missing: make build")
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        judge = Judge(pathlib.Path(scratch).resolve())
        calls = range(1, judge.calls + 2)
        cases = [(fault, call) for fault in faults for call in (calls if fault in AT_A_CALL else [1])]
        if number is not None and number < len(cases):
            # Every fault at least once.
            chosen = {fault: generator.choice([case for case in cases if case[0] == fault]) for fault in faults}
            cases = [*chosen.values(), *generator.sample(cases, max(0, number - len(faults)))]
        for index, (fault, call) in enumerate(cases):
            judge.judge(fault, call, (lambda: True) if index % 2 else (lambda: generator.random() < 0.5))
        judge.report()


if __name__ == "__main__":
    main()
