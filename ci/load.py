#!/usr/bin/env python3
"""Keeps a machine busy: `ci/load.py N SECONDS [COMMAND…]`.

N processes compute for so many seconds at most. With a command, they compute beside it, end with it, and its exit
code is the result: `ci/load.py 5 7200 make test`. A command that takes longer goes on without them.
"""

import os
import subprocess
import sys
import time


def compute(until, parent):
    """Computes until then, or until nobody wants it any more."""
    while time.monotonic() < until and os.getppid() == parent:
        sum(range(100_000))


def main():
    try:
        count, seconds = int(sys.argv[1]), float(sys.argv[2])
    except (IndexError, ValueError):
        print(__doc__, file=sys.stderr)
        return 64
    own, until, busy = os.getpid(), time.monotonic() + seconds, []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            compute(until, own)
            os._exit(0)
        busy.append(pid)
    try:
        return subprocess.run(sys.argv[3:], check=False).returncode if sys.argv[3:] else 0
    finally:
        for pid in busy:
            if sys.argv[3:]:
                os.kill(pid, 9)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    sys.exit(main())
