#!/usr/bin/env python3
"""The memory of a large policy: simulations that begin with one, on 1, 2, 4 and 8 ranks and with 8 threads.

    ci/policy_memory.py [--megabytes N] [--backend NAME] [--hydros N] [--ranks LIST]

Makes a case of N hydro plants, trains it for one iteration, copies its cuts until slopes and intercepts take N
megabytes (`cargo build --release --workspace --features mpi --example large_policy` has to be done before), and simulates
the policy. For each run: the highest sum over all its processes of what smaps_rollup calls Pss, with the private part.
Exit code 1 if a run takes more than 1.15 times the memory of one rank with one thread, plus 30 MB for each more rank and
10 MB for each more thread.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

from memory import ROOT, measure

PER_RANK = 30_000_000
PER_THREAD = 10_000_000


def policy(cobre, scratch, asked):
    """The case, and the directory of a run with the large policy."""
    case, small, large = scratch / "case", scratch / "small", scratch / "large"
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([cobre, "init", "brazil-like", case, "--hydros", asked.hydros], **quiet)
    train = ["--iterations=1", "--forward-passes=1", "--simulate=0", "--quiet", "--threads=1"]
    subprocess.run([cobre, "run", case, *train, "--output", small], **quiet)
    large.mkdir()
    tool = ROOT / "target/release/examples/large_policy"
    subprocess.run([tool, small / "policy", large / "policy", asked.megabytes], check=True)
    return case, large


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", default="500")
    parser.add_argument("--backend", default="shm")
    parser.add_argument("--hydros", default="100")
    parser.add_argument("--ranks", default="1,2,4,8")
    asked = parser.parse_args()
    cobre = ROOT / "target/release/cobre"
    held, alone = True, None
    with tempfile.TemporaryDirectory(prefix="cobre-policy-") as scratch:
        case, large = policy(cobre, pathlib.Path(scratch), asked)
        base = [cobre, "run", case, "--warm-start", large, "--simulate-only", "--simulate=1", "--quiet", "--json"]
        print("ranks  threads       PSS    private      bound")
        for ranks, threads in [(int(ranks), 1) for ranks in asked.ranks.split(",")] + [(1, 8)]:
            options = ["--threads", str(threads)]
            if ranks > 1:
                options += ["-n", str(ranks), "--backend", asked.backend]
            _, most, private = measure([*base, *options])
            alone = alone or most
            bound = 1.15 * alone + PER_RANK * (ranks - 1) + PER_THREAD * (threads - 1)
            held = held and most <= bound
            print(f"{ranks:5}  {threads:7}  {most / 1e6:7.1f} MB {private / 1e6:7.1f} MB {bound / 1e6:7.1f} MB", flush=True)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
