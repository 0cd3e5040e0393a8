#!/usr/bin/env python3
"""The time in which a run on two hosts goes on after one of them vanished: from the loss to the first checkpoint that the ranks on
the other host write. Hosts are network namespaces behind a remote shell without a network (`tests/hosts/remote_host.py`); one
vanishes without a word, its network down and its processes frozen, or its remote shells end.

ci/restart_time.py [REPEATS [COBRE]]      needs root (network namespaces)
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 120
HOSTS = {"cobre-time-a": "10.83.8.1", "cobre-time-b": "10.83.8.2"}
SHELL = pathlib.Path(__file__).parent.parent / "crates/cobre-cli/tests/hosts/remote_host.py"


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def below(pid):
    """A process and all that descend from it."""
    found = [pid]
    for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in thread.read_text().split():
                found += below(int(child))
        except OSError:
            pass
    return found


class Hosts:
    """Two namespaces on a bridge, each with the daemon of a remote shell."""

    def __init__(self, directory):
        self.directory = directory
        self.daemons = {}

    def open(self):
        ip("link", "add", "cobre-time", "type", "bridge")
        ip("link", "set", "cobre-time", "up")
        for number, (name, address) in enumerate(HOSTS.items()):
            ip("netns", "add", name)
            ip("link", "add", f"cobre-time{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"cobre-time{number}", "master", "cobre-time", "up")
            for words in (["addr", "add", f"{address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                          ["link", "set", "lo", "up"]):
                ip("-n", name, *words)
            self.daemons[name] = subprocess.Popen(
                ["ip", "netns", "exec", name, sys.executable, SHELL, "serve", self.directory, name])
        wait_until("the hosts are up", lambda: all((self.directory / name).exists() for name in HOSTS))

    def vanish(self, how):
        """Host b is gone, without a word or with the end of its remote shells."""
        ip("link", "set", "cobre-time1", "down")
        daemon = self.daemons["cobre-time-b"].pid
        # Nobody answers those who ask for it again.
        (self.directory / "cobre-time-b").unlink()
        if how == "silence":
            for pid in below(daemon):
                os.kill(pid, signal.SIGSTOP)
        else:
            os.kill(daemon, signal.SIGKILL)

    def close(self):
        for daemon in self.daemons.values():
            for pid in reversed(below(daemon.pid)):
                os.kill(pid, signal.SIGKILL)
            daemon.wait()
        for name in HOSTS:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
        for link in ("cobre-time0", "cobre-time1", "cobre-time"):
            subprocess.run(["ip", "link", "del", link], stderr=subprocess.DEVNULL)


def wait_until(what, holds):
    until = time.monotonic() + LIMIT
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"restart_time: waited {LIMIT} s in vain: {what}")
        time.sleep(0.01)


def newest(output):
    """The time of the newest file of a checkpoint."""
    times = [0]
    for path in (output / "checkpoint").rglob("*"):
        try:
            times.append(path.stat().st_mtime_ns)
        except OSError:
            pass
    return max(times)


def measure(cobre, how, scratch):
    """Seconds until a checkpoint after the loss, and what an iteration takes."""
    hosts = Hosts(scratch)
    output = scratch / "out"
    with open(scratch / "said", "w") as said:
        try:
            hosts.open()
            run = subprocess.Popen(
                [cobre, "run", "examples/five-years", "--hosts", ",".join(HOSTS), "--rsh",
                 f"{sys.executable} {SHELL} {scratch}", "--coordinator", HOSTS["cobre-time-a"], "--ranks", "1:2",
                 "--retries", "3", "--iterations", "2000", "--checkpoint", "iterations:1", "--threads", "1", "--quiet",
                 "--output", output],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            try:
                wait_until("a checkpoint is there", lambda: newest(output))
                time.sleep(2)
                before = time.monotonic()
                hosts.vanish(how)
                told = lambda: "starting again" in (scratch / "said").read_text()
                wait_until("the loss is seen", told)
                seen = time.monotonic() - before
                last = newest(output)
                wait_until("the run goes on", lambda: newest(output) > last)
                return seen, time.monotonic() - before
            finally:
                run.kill()
                run.wait()
        finally:
            hosts.close()
            sys.stderr.write((scratch / "said").read_text())


def main():
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    cobre = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "target/release/cobre")
    for how in ("end", "silence"):
        times = []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as name:
                times.append(measure(cobre, how, pathlib.Path(name)))
        seen, on = (sorted(column) for column in zip(*times))
        print(f"{how:8} loss seen after {seen[0]:.1f} to {seen[-1]:.1f} s, a checkpoint after {on[0]:.1f} to {on[-1]:.1f} s "
              f"({repeats} times)", flush=True)


if __name__ == "__main__":
    main()
