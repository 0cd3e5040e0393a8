#!/usr/bin/env python3
"""Readers of files and messages under libFuzzer, which looks for inputs that reach new code.

    ci/judges/fuzz.py                       every target for 60 s, from the corpora in fuzz/corpus
    ci/judges/fuzz.py SECONDS [TARGET...]   so long each; `ci/judges/fuzz.py 3600` is the long run
    ci/judges/fuzz.py minimize [TARGET...]  keeps the inputs of the runs so far that reach code no other reaches, and are
                                            small, in fuzz/corpus

Fails on a panic, an arithmetic overflow, an input that takes 20 s, or one that takes more memory than 64 MiB and 1,000
times its size. The input stays in target/fuzz/artifacts. Coverage comes from a pass of the compiler (`sancov`) that the
toolchain of the tree has; the build is apart from the workspace's, in target/fuzz, with the HiGHS of the latter.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRATE = ROOT / "fuzz"
TARGET = ROOT / "target/fuzz"
TRIPLE = "x86_64-unknown-linux-gnu"
PROGRAM = TARGET / TRIPLE / "release/cobre-fuzz"
COVERAGE = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
COVERAGE += " -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
COVERAGE += " -Cllvm-args=-sanitizer-coverage-trace-compares"
# Bytes of an input that the tree keeps.
LARGEST_KEPT = 4096


def highs():
    """The variables by which the build finds the HiGHS of the workspace."""
    built = sorted(ROOT.glob("target/release/build/highs-sys-*/out/c_bindings.rs"), key=lambda path: path.stat().st_mtime)
    if not built:
        sys.exit("HiGHS is not built: make build")
    command = ["cargo", "metadata", "--format-version=1", "--manifest-path", ROOT / "Cargo.toml"]
    packages = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    manifest = next(package["manifest_path"] for package in packages if package["name"] == "highs-sys")
    return {"COBRE_HIGHS_BUILT": str(built[-1].parent), "COBRE_HIGHS_PACKAGE": str(pathlib.Path(manifest).parent)}


def build():
    environment = {**os.environ, **highs(), "RUSTFLAGS": COVERAGE, "CARGO_TARGET_DIR": str(TARGET)}
    environment["CARGO_INCREMENTAL"] = "0"
    command = ["cargo", "build", "--release", "--locked", "--target", TRIPLE]
    subprocess.run(command, cwd=CRATE, env=environment, check=True)


def start(target, words, **more):
    """Runs the program on a target, with a directory in memory that is its own."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="fuzz-") as scratch:
        environment = {**os.environ, "COBRE_FUZZ_TARGET": target, "COBRE_FUZZ_DIRECTORY": scratch}
        # Readers of cases start no threads of their own, and libFuzzer's options name files below this directory.
        command = [str(word) for word in [PROGRAM, *words]]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)


def directories(target):
    found, artifacts = TARGET / "corpus" / target, TARGET / "artifacts"
    for directory in [found, artifacts]:
        directory.mkdir(parents=True, exist_ok=True)
    return found, artifacts, CRATE / "corpus" / target


def run(target, seconds):
    """True if nothing was found."""
    found, artifacts, kept = directories(target)
    words = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048", "-max_len=16384", "-detect_leaks=0"]
    words += [f"-artifact_prefix={artifacts}/{target}-", "-print_final_stats=1", found, kept]
    ended = start(target, words, text=True, errors="replace")
    inputs = re.findall(r"number_of_executed_units: (\d+)", ended.stdout)
    covered = re.findall(r"cov: (\d+)", ended.stdout)
    print(f"{target}: {(inputs or ['?'])[-1]} inputs in {seconds} s, {(covered or ['?'])[-1]} edges of code", flush=True)
    if ended.returncode != 0 or not inputs or not covered:
        print(ended.stdout[-6000:])
        return False
    return True


def minimize(target):
    """Puts the smallest inputs that reach all code that any has reached into the tree."""
    found, _, kept = directories(target)
    with tempfile.TemporaryDirectory() as merged:
        start(target, ["-merge=1", "-max_len=16384", merged, kept, found])
        small = [file for file in pathlib.Path(merged).iterdir() if file.stat().st_size <= LARGEST_KEPT]
        new = [file for file in small if not (kept / file.name).exists()]
        # A dozen of the smallest; the rest is found again in minutes.
        for file in sorted(new, key=lambda file: (file.stat().st_size, file.name))[:12]:
            shutil.copy(file, kept / file.name)
    print(f"{target}: {len(list(kept.iterdir()))} inputs in the tree")


def main():
    words = sys.argv[1:]
    if not shutil.which("c++"):
        sys.exit("a C++ compiler is missing: make setup")
    build()
    targets = words[1:] or sorted(path.name for path in (CRATE / "corpus").iterdir())
    if words[:1] == ["minimize"]:
        for target in targets:
            minimize(target)
        return
    seconds = int(words[0]) if words else 60
    found = [target for target in targets if not run(target, seconds)]
    sys.exit(f"found: {', '.join(found)}" if found else 0)


if __name__ == "__main__":
    main()
