#!/usr/bin/env python3
"""The cost of authentication and encryption on tcp: `cobre bench collectives` over sockets, in alternating rounds.

    ci/tcp_protection.py [--cobre PATH] [--rounds N] [--seconds S] [--ranks N ...]

Prints the table of book/src/reference/backends/tcp.md: medians over the rounds of p50 in microseconds, and their ratios to
no protection.
"""
import argparse
import json
import os
import statistics
import subprocess

PROTECTIONS = ("none", "authentication", "encryption")


def measure(cobre, ranks, protection, seconds):
    """p50 by operation and size of one run."""
    command = [cobre, "bench", "collectives", "-n", str(ranks), "--backend", "tcp"]
    command += ["--seconds", str(seconds), "--json"]
    # With shared memory nothing would cross a socket.
    environment = dict(os.environ, COBRE_TCP_PROTECTION=protection, COBRE_TCP_SHARED_MEMORY="off")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    cases = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return {(case["op"], case["bytes"]): case["p50_us"] for case in cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cobre", default="target/release/cobre")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    options = parser.parse_args()
    found = {}
    for _ in range(options.rounds):
        for ranks in options.ranks:
            for protection in PROTECTIONS:
                for case, p50 in measure(options.cobre, ranks, protection, options.seconds).items():
                    found.setdefault(case, {}).setdefault((ranks, protection), []).append(p50)
    titles = [f"{protection}, {n}" for n in options.ranks for protection in PROTECTIONS]
    print("| operation | bytes | " + " | ".join(titles) + " |")
    print("|---|---:|" + "---:|" * len(titles))
    for (operation, size), cells in found.items():
        row = []
        for ranks in options.ranks:
            plain, *protected = (statistics.median(cells[ranks, protection]) for protection in PROTECTIONS)
            row += [figure(plain)] + [f"{figure(p50)} ({p50 / plain:.2f})" for p50 in protected]
        print(f"| `{operation}` | {size:,} | " + " | ".join(row) + " |")


def figure(p50):
    return f"{p50:,.0f}" if p50 >= 100 else f"{p50:.2f}"


main()
