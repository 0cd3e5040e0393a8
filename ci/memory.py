#!/usr/bin/env python3
"""The memory of training: peak of a run of the demo on 1, 2, 4 and 8 ranks, and with 2 and 4 threads.

    ci/memory.py [--cobre BINARY] [--iterations K] [--backend NAME] [--case DIR] [-- OPTION...]

For each run: the peak of a control group of its own where one can be made (anonymous and shared memory, files of the
system apart), and the highest sum over all its processes of what smaps_rollup calls Pss, with the private part. The last
lines say what each more rank and each more thread takes: all that is neither shared nor divided among them. Exit code 1
if one rank takes more than 150 MiB, a rank more than 40 MB or a thread more than 10 MB.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUPS = pathlib.Path("/sys/fs/cgroup")
MOST_ALONE = 150 << 20
MOST_PER_RANK = 40_000_000
MOST_PER_THREAD = 10_000_000


def descendants(process):
    """The process and all below it."""
    found = [process]
    for pid in found:
        try:
            tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
            for task in tasks:
                found.extend(int(child) for child in (task / "children").read_text().split())
        except OSError:
            continue
    return found


def pss(process):
    """Bytes of the processes below one: proportional, and private."""
    total = private = 0
    for pid in descendants(process):
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        for line in text.splitlines():
            name, _, value = line.partition(":")
            if name == "Pss":
                total += 1024 * int(value.split()[0])
            elif name in ("Private_Clean", "Private_Dirty"):
                private += 1024 * int(value.split()[0])
    return total, private


def group():
    """A control group of version 2 with a peak, or None."""
    own = GROUPS / f"cobre-memory-{os.getpid()}"
    try:
        own.mkdir()
        (own / "memory.peak").read_text()
    except OSError:
        if own.is_dir():
            own.rmdir()
        return None
    return own


def measure(command):
    """Peak of the control group, of the proportional and of the private bytes of a command."""
    own = group()

    def enter():
        if own:
            (own / "cgroup.procs").write_text(str(os.getpid()))

    try:
        run = subprocess.Popen(command, preexec_fn=enter, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        most = private = 0
        while run.poll() is None:
            now = pss(run.pid)
            if now[0] > most:
                most, private = now
            time.sleep(0.05)
        if run.returncode:
            sys.exit(f"{command} ended with {run.returncode}")
        return int((own / "memory.peak").read_text()) if own else None, most, private
    finally:
        if own:
            own.rmdir()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cobre", default=ROOT / "target/release/cobre")
    parser.add_argument("--case", default=ROOT / "examples/five-years")
    parser.add_argument("--iterations", default="60")
    parser.add_argument("--backend", default="shm")
    parser.add_argument("options", nargs="*")
    asked = parser.parse_args()
    base = [asked.cobre, "run", asked.case, "--iterations", asked.iterations, "--quiet", "--json", *asked.options]
    found = {}
    print("ranks  threads  control group       PSS   private")
    for ranks, threads in [(1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (1, 4)]:
        options = ["--threads", str(threads)]
        if ranks > 1:
            options += ["-n", str(ranks), "--backend", asked.backend]
        peak, most, private = measure([*base, *options])
        found[ranks, threads] = most
        shown = f"{peak / 1e6:9.1f} MB" if peak else "           -"
        print(f"{ranks:5}  {threads:7}  {shown}  {most / 1e6:6.1f} MB {private / 1e6:6.1f} MB", flush=True)
    alone = found[1, 1]
    per_rank = max((found[ranks, 1] - alone) / (ranks - 1) for ranks in (2, 4, 8))
    per_thread = max((found[1, threads] - alone) / (threads - 1) for threads in (2, 4))
    print(f"each more rank {per_rank / 1e6:.1f} MB, each more thread {per_thread / 1e6:.1f} MB")
    held = alone <= MOST_ALONE and per_rank <= MOST_PER_RANK and per_thread <= MOST_PER_THREAD
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
