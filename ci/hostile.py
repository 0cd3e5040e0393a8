#!/usr/bin/env python3
"""Gives cobre hostile input of every kind and judges what it does.

    ci/hostile.py N [SEED [KIND...]] [--keep] [--only INDEX]

N mutants are spread over the kinds: files of cases, StochOptFormat, policies, checkpoints and results with bytes and
values changed, words of the command line, variables, connections to a job's port, names, another user. A mutant
depends on seed, kind and index alone. Each run has ceilings on time and memory. Wrong is: a code that the book does not
have, a panic, death by a signal, a letter that steers the terminal, not exactly one line with --json, a file where none
should be, something left in /dev/shm, a process left, and a result that is not the one without the damage. Prints a
table, and exits 1 if anything was wrong.
"""
import argparse
import concurrent.futures
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from hostility import process  # noqa: E402
from hostility.kinds import KINDS, prepare  # noqa: E402

WORKERS = 2


def attempt(kind, seed, index, base, keep):
    """One mutant: what is wrong, what happened, and how many hostile things it did."""
    place = pathlib.Path(tempfile.mkdtemp(prefix=f"{kind}-{index}-", dir=base))
    try:
        chance = random.Random(f"{seed}/{kind}/{index}")
        wrong, about, acts = KINDS[kind].attempt(chance, base, place)
    except Exception:
        wrong, about, acts = ["the kit failed"], traceback.format_exc(), 1
    if wrong and keep:
        about += f"\n  kept in {place}"
    else:
        shutil.rmtree(place, ignore_errors=True)
    return index, wrong, about, acts


def left(is_alone):
    """What all jobs so far have left behind."""
    deadline = time.monotonic() + 5
    while True:
        found = [f"process {pid} is left" for pid in process.remaining()]
        if is_alone:
            found += [f"/dev/shm/{name} is left" for name in os.listdir("/dev/shm")]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def shares(count, kinds):
    """How many mutants of each kind."""
    whole = sum(KINDS[kind].weight for kind in kinds)
    return {kind: max(1, round(count * KINDS[kind].weight / whole)) for kind in kinds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("seed", nargs="?", default="1")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--keep", action="store_true", help="keeps what a failed mutant was made of")
    parser.add_argument("--only", type=int, metavar="INDEX", help="this mutant of each kind alone")
    asked = parser.parse_args()
    kinds = asked.kinds or list(KINDS)
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    start, is_alone = time.monotonic(), process.alone()
    if not is_alone:
        print("not root: /dev/shm is shared with others, and is not looked at")
    base = pathlib.Path(tempfile.mkdtemp(prefix="cobre-hostile-"))
    base.chmod(0o755)
    passed, failed, rows = 0, 0, []
    try:
        prepare(base)
        for kind, count in shares(asked.count, kinds).items():
            if excuse := KINDS[kind].excuse():
                print(f"{kind}: skipped, {excuse}")
                continue
            began, bad, acts = time.monotonic(), 0, 0
            numbers = [asked.only] if asked.only is not None else range(count)
            fork = multiprocessing.get_context("fork")
            with concurrent.futures.ProcessPoolExecutor(WORKERS, mp_context=fork) as pool:
                jobs = [pool.submit(attempt, kind, asked.seed, index, base, asked.keep) for index in numbers]
                for job in concurrent.futures.as_completed(jobs):
                    index, wrong, about, done = job.result()
                    acts += done
                    if wrong:
                        bad += 1
                        again = f"ci/hostile.py 1 {asked.seed} {kind} --only {index} --keep"
                        print(f"FAILED {kind} {index}: {'; '.join(wrong)}\n{about}\n  again: {again}", flush=True)
            if behind := left(is_alone):
                bad = max(bad, 1)
                for pid in process.remaining():
                    os.kill(pid, signal.SIGKILL)
                print(f"FAILED {kind}: {'; '.join(behind)}", flush=True)
            passed, failed = passed + len(numbers) - bad, failed + bad
            rows.append((kind, len(numbers), acts, bad, time.monotonic() - began))
    finally:
        if not (asked.keep and failed):
            shutil.rmtree(base, ignore_errors=True)
    print(f"\n{'kind':<14} {'mutants':>8} {'hostile acts':>13} {'wrong':>6} {'seconds':>8}")
    for kind, count, acts, bad, seconds in rows:
        print(f"{kind:<14} {count:>8} {acts:>13} {bad:>6} {seconds:>8.1f}")
    print(f"{passed} passed, {failed} failed in {time.monotonic() - start:.2f}s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
