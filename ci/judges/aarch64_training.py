#!/usr/bin/env python3
"""Training on aarch64, under qemu-user: the same policy, to the last bit, as on the processor of this machine.

    ci/judges/aarch64_training.py            the examples, and the reference problems and cases where they are at hand
    ci/judges/aarch64_training.py NAME...    those alone

Builds the command for aarch64 with Rust's standard library for it (rustup) and Debian's cross compiler; HiGHS without
contraction of a * b + c, which aarch64 has in its baseline (.cargo/config.toml). Trains each problem with the kernel and
with HiGHS, on qemu and with target/release/cobre, and compares bound and policy_sha256. Fails if they differ, or if the
program has a fused multiply-add outside a function that asks for one.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRIPLE = "aarch64-unknown-linux-gnu"
TARGET = ROOT / "target/aarch64"
REFERENCE = ROOT.parent / "shared/reference"
HOST = [ROOT / "target/release/cobre"]
GUEST = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", TARGET / TRIPLE / "release/cobre"]
# Iterations by solver: HiGHS takes an hour for more of them under qemu.
ITERATIONS = {"kernel": 12, "highs": 2}
DEADLINE_SECS = 3600
FUSED = re.compile(r"\t(fn?madd|fn?msub|fmla|fmls)\t")
# Of Rust's own cube root; nothing here calls it.
MAY_FUSE = "libm_math4cbrt"


def build():
    name = TRIPLE.replace("-", "_")
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(TARGET),
        "CARGO_INCREMENTAL": "0",
        f"CARGO_TARGET_{name.upper()}_LINKER": "aarch64-linux-gnu-gcc",
        f"CMAKE_TOOLCHAIN_FILE_{name}": str(ROOT / "ci/judges/aarch64.cmake"),
        f"BINDGEN_EXTRA_CLANG_ARGS_{name}": "-I/usr/aarch64-linux-gnu/include",
    }
    command = ["cargo", "build", "--release", "--target", TRIPLE, "-p", "cobre-cli", "--bin", "cobre"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def problems():
    """Name, path and options of every problem."""
    found = {path.name: (path, []) for path in (ROOT / "examples").iterdir() if (path / "config.json").exists()}
    found |= {path.name.removesuffix(".sof.json"): (path, ["--bound=0"]) for path in (ROOT / "examples").glob("*.sof.json")}
    table = REFERENCE / "problems/expected.csv"
    for line in table.read_text().splitlines()[1:] if table.exists() else []:
        name, _, bound = line.split(",")[:3]
        found[name] = (REFERENCE / f"problems/{name}.sof.json", [f"--bound={bound}"])
    for path in (REFERENCE / "cases").glob("*/config.json"):
        found[path.parent.name] = (path.parent, [])
    return dict(sorted(found.items()))


def fused():
    """Functions of the program with a fused multiply-add that nobody asked for."""
    command = ["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", GUEST[-1]]
    function, found = "", set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
        for line in listing.stdout:
            if line.endswith(">:\n"):
                function = line.split("<", 1)[1]
            elif FUSED.search(line) and MAY_FUSE not in function:
                found.add(function)
    return sorted(found)


def train(cobre, name, path, options, solver):
    """Bound and policy, or what the command said; and seconds."""
    words = ["run", path, *options, f"--solver={solver}", f"--iterations={ITERATIONS[solver]}"]
    words += ["--forward-passes=2", "--simulate=0", "--threads=1", "--seed=1", "--quiet", "--json"]
    began = time.monotonic()
    ended = subprocess.run([*cobre, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_SECS)
    seconds = time.monotonic() - began
    said = json.loads(ended.stdout or "{}")
    if "policy_sha256" not in said:
        return ("no policy", (ended.stdout + ended.stderr)[-300:]), seconds
    return (repr(said["bound"]), said["policy_sha256"]), seconds


def main():
    build()
    known, contracted = problems(), fused()
    print(f"functions with fused multiply-adds: {contracted or 'none'}", flush=True)
    differ, same, refused = [], 0, 0
    for solver in ITERATIONS:
        for name in sys.argv[1:] or known:
            path, options = known[name]
            (here, _), (there, seconds) = (train(cobre, name, path, options, solver) for cobre in (HOST, GUEST))
            if here[0] == "no policy" and there[0] == "no policy":
                refused += 1
                print(f"{name}, {solver}: refused on both: {here[1]}", flush=True)
            elif here == there:
                same += 1
                print(f"{name}, {solver}: {here[1][:16]} on both ({seconds:.1f} s)", flush=True)
            else:
                differ.append(f"{name}, {solver}")
                print(f"{name}, {solver}: DIFFERENT: {here} here, {there} on aarch64", flush=True)
    print(f"{same} policies are the same on both, {len(differ)} differ, {refused} are of problems that are refused")
    sys.exit(1 if differ or contracted or not same else 0)


if __name__ == "__main__":
    main()
