#!/usr/bin/env python3
"""Times collectives of tcp between two hosts, with memory inside them and over sockets alone, beside Open MPI.

    ci/bench_hosts.py [RANKS_PER_HOST [SECONDS [ROUNDS]]]

Hosts are network namespaces joined by a pair of virtual interfaces; every byte between them is authenticated. Open MPI
has shared memory inside a host and TCP between. The ways alternate, round by round; the table has the best median of
each in microseconds. Needs the right to make namespaces, target/release/cobre, and Open MPI for its column.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COBRE = ROOT / "target/release/cobre"
LIMIT = 300  # seconds for one run of one way
HOSTS = [f"bench{os.getpid()}h{number}" for number in (0, 1)]
ADDRESSES = ["10.78.0.1", "10.78.0.2"]


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


def build():
    for host in HOSTS:
        ip(f"netns add {host}")
        ip(f"-n {host} link set lo up")
    ip(f"link add inside netns {HOSTS[0]} type veth peer name inside netns {HOSTS[1]}")
    for host, address in zip(HOSTS, ADDRESSES):
        ip(f"-n {host} addr add {address}/24 dev inside")
        ip(f"-n {host} link set inside up")


def remove():
    for host in HOSTS:
        subprocess.run(["ip", "netns", "del", host], capture_output=True)


def lines(text):
    found = (line for line in text.splitlines() if line.startswith("{"))
    return {(it["op"], it["bytes"]): it["p50_us"] for it in map(json.loads, found)}


def tcp(sharing, per_host, seconds, secret):
    size = 2 * per_host
    ranks = []
    for rank in range(size):
        host = rank // per_host
        environment = {**os.environ, "COBRE_COMM_BACKEND": "tcp", "COBRE_TCP_RANK": str(rank), "COBRE_TCP_SIZE": str(size),
                       "COBRE_TCP_COORDINATOR": ADDRESSES[0], "COBRE_TCP_BIND": ADDRESSES[0], "COBRE_TCP_PORT": "29476",
                       "COBRE_TCP_SECRET_FILE": str(secret), "COBRE_TCP_SHARED_MEMORY": sharing,
                       "COBRE_TCP_HOST": f"host-{host}"}
        words = ["ip", "netns", "exec", HOSTS[host], str(COBRE), "bench", "collectives", "--json", "--seconds", seconds]
        ranks.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True))
    texts = [rank.communicate(timeout=LIMIT)[0] for rank in ranks]
    return lines(texts[0])


def compile_peer(scratch):
    """Open MPI's program and the agent that starts its daemons in the namespaces; None without Open MPI."""
    if not shutil.which("mpicc.openmpi"):
        return None
    program, agent = scratch / "peer", scratch / "agent"
    source = ROOT / "crates/cobre-cli/src/bench/peer.c"
    subprocess.run(["mpicc.openmpi", "-O2", "-o", program, source, "-lm"], check=True)
    cases = "".join(f"{address}) host={host} ;;\n" for host, address in zip(HOSTS, ADDRESSES))
    agent.write_text(f'#!/bin/sh\ncase $1 in\n{cases}esac\nshift\n'
                     'exec ip netns exec $host unshare -u sh -c "hostname $host && $*"\n')
    agent.chmod(0o700)
    return program, agent


def openmpi(peer, per_host, seconds):
    program, agent = peer
    hosts = ",".join(f"{address}:{per_host}" for address in ADDRESSES)
    # A name for each host: by it Open MPI tells who shares memory.
    named = ["unshare", "-u", "sh", "-c", f'hostname {HOSTS[0]} && exec "$@"', "sh"]
    words = ["ip", "netns", "exec", HOSTS[0], *named, "mpiexec.openmpi", "--mca", "plm_rsh_agent", str(agent), "--mca", "pml", "ob1",
             "--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", "inside", "--mca", "oob_tcp_if_include",
             "inside", "--oversubscribe", "--bind-to", "none", "--host", hosts, "-n", str(2 * per_host), str(program),
             seconds, "openmpi", "0"]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        print(f"Open MPI failed: {done.stderr}", file=sys.stderr)
    return lines(done.stdout)


def main():
    arguments = sys.argv[1:] + ["2", "0.1", "3"][len(sys.argv) - 1:]
    per_host, seconds, rounds = int(arguments[0]), arguments[1], int(arguments[2])
    best = {}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        secret = scratch / "secret"
        secret.write_bytes(os.urandom(32))
        secret.chmod(0o600)
        try:
            build()
            peer = compile_peer(scratch)
            ways = {"by hosts": lambda: tcp("on", per_host, seconds, secret),
                    "sockets": lambda: tcp("off", per_host, seconds, secret)}
            if peer:
                ways["Open MPI"] = lambda: openmpi(peer, per_host, seconds)
            for _ in range(rounds):
                for way, measure in ways.items():
                    for case, figure in measure().items():
                        times = best.setdefault(case, {})
                        times[way] = min(figure, times.get(way, figure))
        finally:
            remove()
    print(f"2 hosts x {per_host} ranks, p50 in us, the best of {rounds} rounds")
    print(f"{'op':<14} {'bytes':>10}" + "".join(f" {way:>12}" for way in ways))
    for (operation, size), times in best.items():
        print(f"{operation:<14} {size:>10}" + "".join(f" {times.get(way, float('nan')):>12.2f}" for way in ways))


main()
