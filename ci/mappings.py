#!/usr/bin/env python3
"""Mappings, regions and descriptors of a rank, and the policy, after few and after many iterations on every backend.

    ci/mappings.py [--iterations LIST] [--backends LIST] [--cobre BINARY]

Runs examples/five-years with one forward pass on two ranks (`local`: one) and prints the most that a rank had at a time;
regions are the shared mappings, with what the backend itself maps. Exit code 1 if the backends do not all give the same
policy.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from memory import ROOT, descendants

STARTED = {
    "local": [],
    "shm": ["-n", "2", "--backend", "shm"],
    "tcp": ["-n", "2", "--backend", "tcp"],
    "mpi": [],
}


def counts(process):
    """Mappings, those that are shared, and descriptors of the process with the most mappings: a rank, no launcher."""
    most = (0, 0, 0)
    for pid in descendants(process):
        directory = pathlib.Path(f"/proc/{pid}")
        try:
            lines = (directory / "maps").read_text().splitlines()
            found = len(lines), sum(line.split()[1].endswith("s") for line in lines), len(os.listdir(directory / "fd"))
        except OSError:
            continue
        most = max(most, found)
    return most


def run(cobre, backend, iterations):
    """The highest counts of a run, its policy and its seconds."""
    command = ["mpiexec.mpich", "-n", "2"] if backend == "mpi" else []
    command += [cobre, "run", ROOT / "examples/five-years", f"--iterations={iterations}", *STARTED[backend]]
    command += ["--simulate=0", "--threads=1", "--forward-passes=1", "--quiet", "--json"]
    most = (0, 0, 0)
    with tempfile.TemporaryFile("w+") as output:
        began = time.monotonic()
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output)
        while job.poll() is None:
            most = tuple(map(max, most, counts(job.pid)))
            time.sleep(0.05)
        seconds = time.monotonic() - began
        output.seek(0)
        if job.returncode:
            sys.exit(f"{command} ended with {job.returncode}")
        return most, json.load(output)["policy_sha256"], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cobre", default=ROOT / "target/release/cobre")
    parser.add_argument("--iterations", default="10,1000")
    parser.add_argument("--backends", default="mpi,shm,tcp,local")
    asked = parser.parse_args()
    policies = {}
    print("backend  iterations  mappings  shared  descriptors  seconds  policy")
    for backend in asked.backends.split(","):
        for iterations in map(int, asked.iterations.split(",")):
            (mappings, shared, files), policy, seconds = run(asked.cobre, backend, iterations)
            policies.setdefault(iterations, set()).add(policy)
            numbers = f"{iterations:10}  {mappings:8}  {shared:6}  {files:11}  {seconds:7.1f}"
            print(f"{backend:7}  {numbers}  {policy}", flush=True)
    sys.exit(0 if all(len(found) == 1 for found in policies.values()) else "the policies differ")


if __name__ == "__main__":
    main()
