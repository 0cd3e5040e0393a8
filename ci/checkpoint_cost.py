#!/usr/bin/env python3
"""What checkpoints cost the demo: runs it with and without them in turn, and compares the medians.

    ci/checkpoint_cost.py [PAIRS [OPTION...]]

Options go to every `cobre run`; without any it is the case and the ranks of `make demo`, with the usual checkpoints.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = {"with": [], "without": ["--checkpoint=none"]}


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    options = sys.argv[2:] or ["-n", "2", "--backend", "shm"]
    command = [ROOT / "target/release/cobre", "run", ROOT / "examples/five-years", "--quiet", "--json", *options]
    train, total, size = {rule: [] for rule in RULES}, {rule: [] for rule in RULES}, 0
    for pair in range(pairs):
        # Whoever is first has the colder machine: take turns at that too.
        for rule in sorted(RULES, reverse=pair % 2 == 1):
            with tempfile.TemporaryDirectory(prefix="cobre-cost-") as output:
                ended = subprocess.run([*command, *RULES[rule], "--output", output], check=True, capture_output=True)
                seconds = json.loads(ended.stdout)["seconds"]
                size = max([size] + [file.stat().st_size for file in pathlib.Path(output).glob("checkpoint/*.state")])
            train[rule].append(seconds["train"])
            total[rule].append(seconds["total"])
            print(f"{rule:8} training {train[rule][-1]:6.2f} s, in all {total[rule][-1]:6.2f} s", flush=True)
    print(f"a state has {size / 1e6:.0f} MB")
    for name, taken in {"training": train, "in all": total}.items():
        one, other = (statistics.median(taken[rule]) for rule in ("with", "without"))
        print(f"{name:8} {one:6.2f} s with, {other:6.2f} s without: {100 * (one / other - 1):+.1f} %")


if __name__ == "__main__":
    main()
