#!/usr/bin/env python3
"""Times collectives, or training, of tcp between two hosts: with memory inside them, over sockets alone, and encrypted.

    ci/bench_hosts.py [--per-host N] [--rounds K] [--seconds S] [--only OP BYTES]
    ci/bench_hosts.py --training SYSTEM [--iterations K] [--per-host N] [--rounds K]

Hosts are network namespaces joined by a pair of virtual interfaces; every byte between them is authenticated. The ways
alternate, round by round; the tables have medians. Collectives are measured beside Open MPI where it is installed, with
shared memory inside a host and TCP between; training beside as many ranks of one host, and one rank. Needs the right to
make namespaces, and target/release/cobre.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COBRE = ROOT / "target/release/cobre"
LIMIT = 600  # seconds for one run of one way
HOSTS = [f"bench{os.getpid()}h{number}" for number in (0, 1)]
ADDRESSES = ["10.78.0.1", "10.78.0.2"]
# What a way asks of every rank.
WAYS = {
    "by hosts": {"COBRE_TCP_SHARED_MEMORY": "on"},
    "encrypted": {"COBRE_TCP_SHARED_MEMORY": "on", "COBRE_TCP_PROTECTION": "encryption"},
    "sockets": {"COBRE_TCP_SHARED_MEMORY": "off"},
}


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
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def tcp(asked, per_host, secret, words):
    """What rank 0 of a job on both hosts says."""
    size = 2 * per_host
    ranks = []
    for rank in range(size):
        host = rank // per_host
        environment = {**os.environ, "COBRE_COMM_BACKEND": "tcp", "COBRE_TCP_RANK": str(rank), "COBRE_TCP_SIZE": str(size),
                       "COBRE_TCP_COORDINATOR": ADDRESSES[0], "COBRE_TCP_BIND": ADDRESSES[0], "COBRE_TCP_PORT": "29476",
                       "COBRE_TCP_SECRET_FILE": str(secret), "COBRE_TCP_HOST": f"host-{host}", **asked}
        command = ["ip", "netns", "exec", HOSTS[host], str(COBRE), "bench", *words]
        ranks.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    texts = [rank.communicate(timeout=LIMIT)[0] for rank in ranks]
    return lines(texts[0])


def one_host(ranks, words):
    command = [str(COBRE), "bench", *words] + (["-n", str(ranks), "--backend", "shm"] if ranks > 1 else [])
    return lines(subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT).stdout)


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


def openmpi(peer, per_host, seconds, most):
    program, agent = peer
    hosts = ",".join(f"{address}:{per_host}" for address in ADDRESSES)
    # A name for each host: by it Open MPI tells who shares memory.
    named = ["unshare", "-u", "sh", "-c", f'hostname {HOSTS[0]} && exec "$@"', "sh"]
    words = ["ip", "netns", "exec", HOSTS[0], *named, "mpiexec.openmpi", "--mca", "plm_rsh_agent", str(agent), "--mca", "pml", "ob1",
             "--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", "inside", "--mca", "oob_tcp_if_include",
             "inside", "--mca", "mpi_yield_when_idle", "1", "--oversubscribe", "--bind-to", "none", "--host", hosts, "-n", str(2 * per_host), str(program),
             seconds, "openmpi", most]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        print(f"Open MPI failed: {done.stderr}", file=sys.stderr)
    return lines(done.stdout)


def by_case(measure):
    return lambda: {(it["op"], it["bytes"]): it["p50_us"] for it in measure()}


def collectives(options, secret, scratch):
    words = ["collectives", "--json", "--seconds", options.seconds]
    if options.only:
        words += ["--op", options.only[0], "--bytes", options.only[1]]
    ways = {way: by_case(lambda asked=asked: tcp(asked, options.per_host, secret, words)) for way, asked in WAYS.items()}
    peer = compile_peer(scratch)
    most = options.only[1] if options.only else "0"
    if peer:
        ways["Open MPI"] = by_case(lambda: openmpi(peer, options.per_host, options.seconds, most))
    found = medians(ways, options.rounds)
    print(f"2 hosts x {options.per_host} ranks, p50 in us, medians of {options.rounds} rounds")
    print("| operation | bytes | " + " | ".join(ways) + (" | ratio to Open MPI |" if peer else " |"))
    print("|---|---:|" + "---:|" * (len(ways) + bool(peer)))
    # Open MPI's program measures smaller messages, too.
    measured = {case: times for case, times in found.items() if "by hosts" in times}
    for (operation, size), times in measured.items():
        cells = [figure(times.get(way)) for way in ways]
        if peer and "Open MPI" in times:
            cells.append(f"{times['by hosts'] / times['Open MPI']:.2f}")
        print(f"| `{operation}` | {size:,} | " + " | ".join(cells) + " |")


def training(options, secret):
    words = ["sddp", "--json", "--system", options.training, "--iterations", str(options.iterations)]

    def figures(measure):
        (it,) = measure()
        return {"ms per iteration": 1e3 * it["seconds_per_iteration"], "communication, %": 100 * it["communication_share"],
                "LP/s": it["lp_per_second"]}
    ways = {way: lambda asked=asked: figures(lambda: tcp(asked, options.per_host, secret, words)) for way, asked in WAYS.items()}
    ranks = 2 * options.per_host
    ways[f"{ranks} ranks of one host"] = lambda: figures(lambda: one_host(ranks, words))
    ways["1 rank"] = lambda: figures(lambda: one_host(1, words))
    found = medians(ways, options.rounds)
    print(f"{options.training}, {options.iterations} iterations, 2 hosts x {options.per_host} ranks, medians of {options.rounds} rounds")
    print("| ranks | " + " | ".join(found) + " |")
    print("|---|" + "---:|" * len(found))
    for way in ways:
        print(f"| {way} | " + " | ".join(figure(times[way]) for times in found.values()) + " |")


def medians(ways, rounds):
    """For each case the median of each way."""
    found = {}
    for _ in range(rounds):
        for way, measure in ways.items():
            for case, number in measure().items():
                found.setdefault(case, {}).setdefault(way, []).append(number)
    return {case: {way: statistics.median(numbers) for way, numbers in times.items()} for case, times in found.items()}


def figure(number):
    return "-" if number is None else f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-host", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", default="0.1", help="about how long each collective runs")
    parser.add_argument("--only", nargs=2, metavar=("OP", "BYTES"), help="one collective at one size")
    parser.add_argument("--training", metavar="SYSTEM", help="a system of cobre bench sddp, instead of collectives")
    parser.add_argument("--iterations", type=int, default=128)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        secret = scratch / "secret"
        secret.write_bytes(os.urandom(32))
        secret.chmod(0o600)
        try:
            build()
            if options.training:
                training(options, secret)
            else:
                collectives(options, secret, scratch)
        finally:
            remove()


main()
