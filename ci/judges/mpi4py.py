#!/usr/bin/env python3
"""mpi4py's own tests of collectives, unmodified, on the backends shm and tcp.

    ci/judges/mpi4py.py            2 to 5 ranks, shm and tcp, every module test_cco_*, every mutant
    ci/judges/mpi4py.py sample     2 ranks, the modules of buffers, one mutant

The layer target/release/examples/libpmpi.so (crates/cobre-testkit/examples/pmpi) carries barriers,
broadcasts, gathers to all and reductions to all over the backend and leaves the rest to MPICH. The tests
and the package come from the source distribution of mpi4py, by its name and version. Needs `make build`
and MPICH. Fails if a test fails, if fewer than 80 % of the calls on plain number types are carried, if a
mutant of the layer is not found by the tests, or if a job leaves a segment behind.
"""

import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = ROOT / "target/judges"
LAYER = ROOT / "target/release/examples/libpmpi.so"
VERSION = "4.1.2"
SUITE = HOME / f"mpi4py-{VERSION}/test"
PYTHON = HOME / "python/bin/python"
MUTANTS = ["broadcast", "allgatherv", "allreduce"]
CARRIED = 0.80
# No run takes long; a deadlock of the layer ends here.
DEADLINE_SECS = 3000


def install():
    """The suite and the package, once. Its speed is no matter, so the compiler does not optimise."""
    if SUITE.exists() and (HOME / f"installed-{VERSION}").exists():
        return
    HOME.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", HOME / "python"], check=True)
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    package = ["--no-deps", "--no-binary", "mpi4py", f"mpi4py=={VERSION}"]
    environment = {**os.environ, "MPICC": "mpicc.mpich", "CFLAGS": "-O0 -g0"}
    subprocess.run([*pip, "download", "--dest", HOME, *package], check=True, env=environment)
    shutil.unpack_archive(HOME / f"mpi4py-{VERSION}.tar.gz", HOME)
    archive = HOME / f"mpi4py-{VERSION}.tar.gz"
    subprocess.run([*pip, "install", archive], check=True, env=environment)
    (HOME / f"installed-{VERSION}").touch()


def segments():
    return set(glob.glob("/dev/shm/cobre-pmpi-*"))


def run(backend, ranks, tests, mutant=None):
    """The exit code of the suite, its output, and the layer's numbers."""
    with tempfile.TemporaryDirectory() as directory:
        counts = pathlib.Path(directory) / "counts.json"
        variables = {"LD_PRELOAD": LAYER, "PMPI_BACKEND": backend, "PMPI_COUNTS": counts}
        if mutant:
            variables["PMPI_MUTANT"] = mutant
        command = ["mpiexec.mpich", "-n", str(ranks)]
        for name, value in variables.items():
            command += ["-genv", name, str(value)]
        command += [PYTHON, "main.py", "-q", *tests]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            command, cwd=SUITE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        try:
            output, _ = process.communicate(timeout=DEADLINE_SECS)
        except subprocess.TimeoutExpired:
            # The launcher ends its ranks.
            process.terminate()
            output, _ = process.communicate()
            return "a hang", output, None
        numbers = json.loads(counts.read_text()) if counts.exists() else None
        return process.returncode, output, numbers


def summary(numbers):
    """Calls on plain number types: carried, all, and a line per kind."""
    carried = everything = 0
    parts = []
    for kind, ways in numbers["calls"].items():
        of_kind = ways["carried"]["plain"]
        total = sum(way["plain"] for way in ways.values())
        other = ways["carried"]["other"], sum(way["other"] for way in ways.values())
        carried += of_kind
        everything += total
        parts.append(f"{kind} {of_kind} of {total}" + (f" (other types {other[0]} of {other[1]})" if other[1] else ""))
    return carried, everything, "; ".join(parts)


def judge(backend, ranks, tests):
    """The complaints about a run that should pass."""
    code, output, numbers = run(backend, ranks, tests)
    # Ranks write at once: the number of tests may stand anywhere in a line.
    ran = re.findall(r"Ran (\d+) tests", output)
    name = f"mpi4py {VERSION} on {backend}, {ranks} ranks"
    if code != 0 or numbers is None or not ran or ran[0] == "0":
        return [f"{name}: exit code {code}\n{output[-4000:]}"]
    carried, everything, line = summary(numbers)
    print(f"{name}: {ran[0]} tests passed; carried {carried} of {everything} calls on plain numbers: {line}", flush=True)
    if carried < CARRIED * everything:
        return [f"{name}: only {carried} of {everything} calls were carried"]
    return []


def judge_mutant(backend, mutant, tests):
    """The complaint about a mutant that the suite does not see."""
    code, output, numbers = run(backend, 2, tests, mutant)
    if code == 0 or "FAIL" not in output or numbers is None:
        return [f"mutant {mutant} on {backend}: exit code {code}, not found by a test\n{output[-2000:]}"]
    print(f"mutant {mutant} on {backend}: found", flush=True)
    return []


def main():
    sample = sys.argv[1:] == ["sample"]
    if sys.argv[1:] and not sample:
        sys.exit(__doc__)
    if not LAYER.exists():
        sys.exit(f"{LAYER} is missing: make build")
    install()
    before = segments()
    buffers = ["-i", "test_cco_buf$|test_cco_buf.py|test_cco_vec.py"]
    complaints = []
    for ranks in [2] if sample else range(2, 6):
        for backend in ["shm", "tcp"]:
            complaints += judge(backend, ranks, buffers if sample else ["-i", "test_cco_"])
    for mutant in MUTANTS[-1:] if sample else MUTANTS:
        for backend in ["shm"] if sample else ["shm", "tcp"]:
            name = {"broadcast": "testBcast", "allgatherv": "testAllgather", "allreduce": "testAllreduce"}[mutant]
            # Ranks check different things there: one would fail alone, and the others wait for it.
            complaints += judge_mutant(backend, mutant, ["-k", name, "-x", "TypeIndexed", *buffers])
    left = segments() - before
    if left:
        complaints.append(f"segments left behind: {sorted(left)}")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
