#!/usr/bin/env python3
"""Ranks of two hosts that a PMIx server started: Open MPI's launcher over real ssh, on the hosts of `ci/ssh.py`. They must find
each other without MPI and without a directory that both see, and train the policy of one process. Called by `ci/pmix.sh`,
which has unpacked Open MPI and set its variables.

ci/pmix_hosts.py COBRE MPIRUN      needs root (network namespaces) and openssh-server
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from ssh import HOSTS, Network

LIMIT = 300


def main():
    cobre, mpirun = (os.path.abspath(path) for path in sys.argv[1:])
    case = os.path.abspath("examples/two_reservoirs.sof.json")
    words = [cobre, "run", case, "--bound=0", "--iterations=3", "--forward-passes=3", "--threads=1", "--quiet", "--json"]
    alone = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    expected = json.loads(alone)["policy_sha256"]
    # What the daemon of Open MPI needs on each host, as it is installed in no place that it knows.
    prefixes = ("OMPI_", "OPAL_", "PMIX_", "LD_LIBRARY_PATH", "TMPDIR")
    own = [f"{name}={value}" for name, value in os.environ.items() if name.startswith(prefixes)]
    daemon = " ".join(["env", *own, os.path.join(os.path.dirname(mpirun), "orted")])
    with tempfile.TemporaryDirectory() as name:
        network = Network(pathlib.Path(name))
        try:
            network.open()
            launcher = [
                mpirun, "-n", "4", "--host", ",".join(f"{address}:2" for address in HOSTS.values()),
                "--mca", "plm_rsh_agent", network.shell(), "--mca", "orte_launch_agent", daemon,
                "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "oob_tcp_if_include", "10.83.7.0/24",
                "-x", "COBRE_COMM_BACKEND=tcp", "-x", "COBRE_JOB_DIR=/no/directory",
            ]
            options = {"capture_output": True, "text": True, "timeout": LIMIT, "stdin": subprocess.DEVNULL}
            found = subprocess.run([*launcher, cobre, "doctor"], **options)
            lines = {line for line in found.stdout.splitlines() if line.startswith("process manager")}
            assert len(lines) == 4 and all("PMIx started the ranks (" in line for line in lines), (found.stdout, found.stderr)
            both = subprocess.run([*launcher, *words], **options)
            digests = [json.loads(line).get("policy_sha256") for line in both.stdout.splitlines()]
            assert digests == [expected], (both.stdout, both.stderr)
        finally:
            network.close()
    print("mpirun.openmpi -n 4 on two hosts: tcp;", sorted(lines)[0])


if __name__ == "__main__":
    main()
