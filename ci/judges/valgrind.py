#!/usr/bin/env python3
"""Valgrind's memcheck on the unit tests of crates with unsafe code.

    ci/judges/valgrind.py            every unit test but those that need time or other processes
    ci/judges/valgrind.py sample     those of the files with unsafe code alone

Takes the test programs that `cargo test --release --workspace --lib --no-run` names. Fails on an invalid access, on a
use of memory that nobody has written, and on a test that fails. Needs valgrind (Debian: valgrind).

rustix finds the system's clock in the vDSO, whose address it takes from the kernel by prctl(PR_GET_AUXV); valgrind hides
the vDSO from programs and does not know this call. A seccomp filter refuses it, and rustix reads the address where
valgrind has removed it.
"""

import ctypes
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The model checker and the simulation run thousands of jobs, MPI's tests start a library that is not ours, tests of memory limits and
# processes measure the process that valgrind replaces.
SKIPPED = ["model", "simulation", "mpi", "memory", "cgroups", "cpus"]
CRATES = {
    "cobre_comm": ["backends::", "copy::", "data::", "region::", "transport::", "report::"],
    "cobre_simd": [],
    "cobre_launch": [],
}
SAMPLE = {
    "cobre_comm": ["copy::", "backends::fork_guard", "backends::shm", "backends::tcp::sys"],
    "cobre_simd": [],
}
DEADLINE_SECS = 3000
PR_GET_AUXV = 0x41555856


def refuse_auxv():
    """Lets prctl(PR_GET_AUXV) fail with EINVAL in this process and those it starts."""
    # Load the number of the call; if it is prctl's, load the first argument; compare.
    allow, refuse = 0x7FFF0000, 0x00050000 | 22
    program = [
        (0x20, 0, 0, 0),
        (0x15, 0, 3, 157),
        (0x20, 0, 0, 16),
        (0x15, 0, 1, PR_GET_AUXV),
        (0x06, 0, 0, refuse),
        (0x06, 0, 0, allow),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in program)
    steps = ctypes.create_string_buffer(code)
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(steps))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(38, 1, 0, 0, 0) != 0 or prctl(22, 2, ctypes.create_string_buffer(header), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def test_programs():
    """The test programs of the libraries, by crate."""
    features = subprocess.run([ROOT / "ci/mpi.sh"], capture_output=True, text=True).stdout.split()
    build = ["cargo", "test", "--release", "--workspace", *features, "--lib", "--no-run", "--message-format=json"]
    built = subprocess.run(build, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    messages = [json.loads(line) for line in built.splitlines() if line.startswith("{")]
    return {
        message["target"]["name"]: message["executable"] for message in messages if message.get("executable")
    }


def main():
    chosen = SAMPLE if sys.argv[1:] == ["sample"] else CRATES
    if not shutil.which("valgrind"):
        sys.exit("valgrind is missing: apt-get install valgrind")
    programs = test_programs()
    valgrind = ["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=no", "--fair-sched=yes"]
    failed = False
    for crate, tests in chosen.items():
        words = [programs[crate], "--test-threads=2", *tests]
        for name in SKIPPED:
            words += ["--skip", name]
        ended = subprocess.run(
            [*valgrind, *words],
            cwd=ROOT / "crates" / crate.replace("_", "-"),
            preexec_fn=refuse_auxv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=DEADLINE_SECS,
        )
        passed = re.findall(r"(\d+) passed", ended.stdout)
        if ended.returncode != 0 or not passed:
            failed = True
            print(f"{crate}: exit code {ended.returncode}\n{ended.stdout[-6000:]}")
        else:
            print(f"{crate}: {passed[-1]} tests under memcheck", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
