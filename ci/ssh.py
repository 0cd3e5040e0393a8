#!/usr/bin/env python3
"""Jobs on two hosts over real ssh: sshd in namespaces with a network, a name and a /dev/shm of their own, keys and
configuration in a temporary directory. Kills ssh, sshd, the agent, its supervisor and the launcher, cuts the network
between the ranks while ssh goes on, and looks for what is left.

ci/ssh.py [COBRE]      needs root (network namespaces), openssh-server and openssh-client
"""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 60
HOSTS = {"cobre-ssh-a": "10.83.7.1", "cobre-ssh-b": "10.83.7.2"}
# The network between the ranks, where a test names it: ssh goes through the other.
DATA = {"cobre-ssh-a": "10.83.9.1", "cobre-ssh-b": "10.83.9.2"}
BRIDGES = {"eth0": "cobre-ssh", "eth1": "cobre-data"}
SSHD = "/usr/sbin/sshd"


def run(*words, **options):
    return subprocess.run(words, check=True, **options)


def wait_until(what, holds):
    until = time.monotonic() + LIMIT
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"ssh: waited {LIMIT} s in vain: {what}")
        time.sleep(0.02)


def sleeping(mark):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def command_line(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


class Network:
    """Two hosts, each with an sshd, and two networks between them."""

    def __init__(self, directory):
        self.directory = directory
        self.daemons = {}

    def open(self):
        directory = self.directory
        # Names and addresses are those of the machine: one at a time.
        os.makedirs("/run/sshd", exist_ok=True)
        self.lock = os.open("/run/sshd", os.O_RDONLY)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        for bridge in BRIDGES.values():
            run("ip", "link", "add", bridge, "type", "bridge")
            run("ip", "link", "set", bridge, "up")
        run("ip", "addr", "add", "10.83.7.254/24", "dev", "cobre-ssh")
        for key in ("host", "user"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / key)
        (directory / "authorized").write_text((directory / "user.pub").read_text())
        for number, (name, address) in enumerate(HOSTS.items()):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
            for (inside, bridge), own in zip(BRIDGES.items(), (address, DATA[name])):
                link = f"{bridge}{number}"
                run("ip", "link", "add", link, "type", "veth", "peer", "name", inside, "netns", name)
                run("ip", "link", "set", link, "master", bridge, "up")
                run("ip", "-n", name, "addr", "add", f"{own}/24", "dev", inside)
                run("ip", "-n", name, "link", "set", inside, "up")
            self.raise_host(name)

    def raise_host(self, name):
        config = self.directory / f"{name}.config"
        config.write_text(f"""
Port 22
ListenAddress {HOSTS[name]}
HostKey {self.directory}/host
AuthorizedKeysFile {self.directory}/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
""")
        log = open(self.directory / f"{name}.log", "w")
        # `ip netns exec` has made mounts of its own already.
        names = self.directory / "hosts"
        names.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {host}\n" for host, address in HOSTS.items()))
        inside = (f"mount -t tmpfs tmpfs /dev/shm && mount --bind {names} /etc/hosts && hostname {name} && "
                  f"exec {SSHD} -D -e -f {config}")
        self.daemons[name] = subprocess.Popen(
            ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", inside], stderr=log)
        probe = ["ssh", *self.options(), HOSTS[name], "true"]
        wait_until("sshd answers", lambda: subprocess.run(probe, stderr=subprocess.DEVNULL).returncode == 0)

    def options(self):
        return ["-i", str(self.directory / "user"), "-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
                "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]

    def shell(self):
        return "ssh " + " ".join(self.options())

    def sessions(self, name):
        """The processes of sshd that have a connection."""
        daemon = self.daemons[name].pid
        listing = pathlib.Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
        return [int(pid) for pid in listing]

    def set_data(self, state):
        """Cuts the network between the ranks, or mends it."""
        run("ip", "link", "set", "cobre-data1", state)

    def close(self):
        for name, daemon in self.daemons.items():
            for pid in self.sessions(name):
                os.kill(pid, signal.SIGKILL)
            daemon.kill()
            daemon.wait()
        # A namespace may outlive its name for a while, and its links with it.
        links = [f"{bridge}{number}" for bridge in BRIDGES.values() for number in range(len(HOSTS))]
        for link in (*links, *BRIDGES.values()):
            subprocess.run(["ip", "link", "del", link], stderr=subprocess.DEVNULL)
        for name in HOSTS:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def launch(cobre, network, ranks, *words, coordinator=None):
    hosts = ",".join(f"{address}:{ranks}" for address in HOSTS.values())
    meeting = ["--coordinator", coordinator] if coordinator else []
    return subprocess.Popen([cobre, "launch", "--hosts", hosts, "--rsh", network.shell(), *meeting, "--", *words],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ranks_are_one_job(cobre, network):
    job = launch(cobre, network, 2, "sh", "-c", "echo $COBRE_LAUNCH_RANK at $COBRE_TCP_COORDINATOR")
    out, err = job.communicate(timeout=LIMIT)
    lines = sorted(out.splitlines())
    assert job.returncode == 0, err
    assert lines == [f"[{rank}] {rank} at 10.83.7.1" for rank in range(4)], lines
    print("ssh: four ranks on two hosts, at the address by which ssh reached the first")


def training_has_the_same_bits(cobre, network, directory):
    words = ["--bound=0", "--iterations=10", "--threads=1", "--quiet", "--json", "examples/two_reservoirs.sof.json"]
    alone = run(cobre, "run", *words, capture_output=True, text=True).stdout
    hosts = ",".join(f"{address}:2" for address in HOSTS.values())
    both = run(cobre, "run", "--hosts", hosts, "--rsh", network.shell(), "--retries=1", "--output", directory / "out",
               *words, capture_output=True, text=True).stdout
    digests = [json.loads(text)["policy_sha256"] for text in (alone, both)]
    assert digests[0] == digests[1], digests
    print("ssh: training on two hosts gives the policy of one process")


def victim_of(network, what, launcher, mark):
    agent = next(pid for pid in sleeping("host-agent") if os.readlink(f"/proc/{pid}/ns/net") ==
                 os.readlink(f"/proc/{network.daemons['cobre-ssh-b'].pid}/ns/net") and
                 command_line(pid)[-2:-1] == [b"host-agent"])
    if what == "agent":
        return agent
    if what == "supervisor":
        rank = next(pid for pid in sleeping(mark) if parent(parent(parent(pid))) == agent)
        return parent(rank)
    if what == "ssh":
        return next(pid for pid in sleeping("10.83.7.2") if command_line(pid)[0] == b"ssh")
    if what == "sshd":
        return network.sessions("cobre-ssh-b")[0]
    return launcher.pid


def nothing_stays(cobre, network):
    for number, what in enumerate(["ssh", "sshd", "agent", "supervisor", "launcher"]):
        mark = f"86400.{os.getpid()}{number}"
        job = launch(cobre, network, 2, "sh", "-c", f"setsid sleep {mark} & exec sleep {mark}")
        wait_until("all run", lambda: len(sleeping(mark)) == 8)
        os.kill(victim_of(network, what, job, mark), signal.SIGKILL)
        wait_until(f"all end after {what}", lambda: not sleeping(mark))
        _, err = job.communicate(timeout=LIMIT)
        assert what == "launcher" or "cobre launch: host 10.83.7.2: " in err, err
        wait_until("the agents end", lambda: not sleeping("host-agent"))
        print(f"ssh: nothing stays on any host after {what} was killed")


def two_jobs_run_beside_each_other(cobre, network):
    jobs = [launch(cobre, network, 2, "sh", "-c", f"sleep 1; echo job {number}") for number in range(2)]
    for number, job in enumerate(jobs):
        out, err = job.communicate(timeout=LIMIT)
        assert job.returncode == 0 and sorted(out.splitlines()) == [f"[{rank}] job {number}" for rank in range(4)], (out, err)
    print("ssh: two jobs run beside each other on the same hosts")


def long_run(cobre, network, output, *words):
    """Training on both hosts, whose ranks have a network of their own, and what it says; it has written a checkpoint."""
    said = open(f"{output}.said", "w+")
    job = subprocess.Popen(
        [cobre, "run", "examples/five-years", "--hosts", ",".join(HOSTS.values()), "--rsh", network.shell(),
         "--coordinator", DATA["cobre-ssh-a"], "--iterations=100000", "--checkpoint=iterations:1", "--threads=1", "--quiet",
         "--output", output, *words],
        stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    wait_until("a checkpoint is there", lambda: newest(output) > 0)
    return job, lambda: pathlib.Path(f"{output}.said").read_text()


def newest(output):
    """The time of the newest file of a checkpoint."""
    times = [0]
    for path in (output / "checkpoint").rglob("*"):
        try:
            times.append(path.stat().st_mtime_ns)
        except OSError:
            pass
    return max(times)


def cut_network_is_named(cobre, network, directory):
    """Without retries the run ends; with them it goes on at the first host, and takes the other back."""
    job, said = long_run(cobre, network, directory / "cut")
    network.set_data("down")
    wait_until("the run ends", lambda: job.poll() is not None)
    assert job.returncode == 4 and "cobre-ssh-b) is gone" in said(), said()
    wait_until("the agents end", lambda: not sleeping("host-agent"))
    asked = launch(cobre, network, 1, "true", coordinator=DATA["cobre-ssh-a"])
    _, err = asked.communicate(timeout=LIMIT)
    assert asked.returncode == 4 and f"host 10.83.7.2: it does not reach {DATA['cobre-ssh-a']}" in err, err
    print("ssh: a run ends if its ranks cannot reach each other, and a start is refused with the host")

    network.set_data("up")
    job, said = long_run(cobre, network, directory / "on", "--ranks=1:2", "--retries=5")
    network.set_data("down")
    wait_until("the host is left out", lambda: f"it does not reach {DATA['cobre-ssh-a']}" in said())
    before = newest(directory / "on")
    wait_until("the run goes on", lambda: newest(directory / "on") > before)
    assert "is back" not in said(), said()
    network.set_data("up")
    wait_until("the host is taken back", lambda: "host 10.83.7.2 is back" in said())
    assert job.poll() is None, said()
    job.terminate()
    wait_until("the run ends", lambda: job.poll() is not None)
    wait_until("the agents end", lambda: not sleeping("host-agent"))
    print("ssh: with --retries it goes on without the host that is cut off, and takes it back")


def main():
    cobre = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/release/cobre")
    if os.geteuid() != 0 or not os.path.exists(SSHD):
        sys.exit("ssh: root and openssh-server are needed")
    with tempfile.TemporaryDirectory() as name:
        network = Network(pathlib.Path(name))
        try:
            network.open()
            ranks_are_one_job(cobre, network)
            training_has_the_same_bits(cobre, network, pathlib.Path(name))
            two_jobs_run_beside_each_other(cobre, network)
            nothing_stays(cobre, network)
            cut_network_is_named(cobre, network, pathlib.Path(name))
        finally:
            network.close()


if __name__ == "__main__":
    main()
