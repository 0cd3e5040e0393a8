#!/usr/bin/env python3
"""Jobs on two hosts over real ssh: sshd in network namespaces with addresses of their own, keys and configuration in a
temporary directory. Kills ssh, sshd, the agent, its supervisor and the launcher, and looks for what is left.

ci/ssh.py [COBRE]      needs root (network namespaces), openssh-server and openssh-client
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 60
HOSTS = {"cobre-ssh-a": "10.83.7.1", "cobre-ssh-b": "10.83.7.2"}
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
    """A bridge with two namespaces, each with an sshd."""

    def __init__(self, directory):
        self.directory = directory
        self.daemons = {}

    def open(self):
        directory = self.directory
        run("ip", "link", "add", "cobre-ssh", "type", "bridge")
        run("ip", "addr", "add", "10.83.7.254/24", "dev", "cobre-ssh")
        run("ip", "link", "set", "cobre-ssh", "up")
        for key in ("host", "user"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / key)
        (directory / "authorized").write_text((directory / "user.pub").read_text())
        for number, (name, address) in enumerate(HOSTS.items()):
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"cobre-ssh{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"cobre-ssh{number}", "master", "cobre-ssh", "up")
            for words in (["addr", "add", f"{address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                          ["link", "set", "lo", "up"]):
                run("ip", "-n", name, *words)
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
        os.makedirs("/run/sshd", exist_ok=True)
        log = open(self.directory / f"{name}.log", "w")
        self.daemons[name] = subprocess.Popen(
            ["ip", "netns", "exec", name, SSHD, "-D", "-e", "-f", str(config)], stderr=log)
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

    def close(self):
        for name, daemon in self.daemons.items():
            for pid in self.sessions(name):
                os.kill(pid, signal.SIGKILL)
            daemon.kill()
            daemon.wait()
        for name in HOSTS:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", "cobre-ssh"], stderr=subprocess.DEVNULL)


def launch(cobre, network, ranks, *words, **options):
    hosts = ",".join(f"{address}:{ranks}" for address in HOSTS.values())
    return subprocess.Popen([cobre, "launch", "--hosts", hosts, "--rsh", network.shell(), "--", *words],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


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
    import json
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
            nothing_stays(cobre, network)
        finally:
            network.close()


if __name__ == "__main__":
    main()
