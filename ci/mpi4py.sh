#!/usr/bin/env bash
# The collectives of the Python package beside those of mpi4py on MPICH and of the command, two ranks
# each. Needs the wheel (make wheel), the command (make build) and MPICH (make setup).
set -eu
cd "$(dirname "$0")/.."
python=target/python-bench/bin/python
python3 -m venv --clear target/python-bench
"$python" -m pip install --quiet target/wheels/cobre_sddp-*.whl
MPICC=mpicc.mpich "$python" -m pip install --quiet --no-binary mpi4py mpi4py
script=crates/cobre-python/benches/beside_mpi4py.py
export PYTHONDONTWRITEBYTECODE=1
"$python" "$script"
mpiexec.mpich -n 2 "$python" "$script" mpi4py
target/release/cobre bench collectives -n 2 --op allreduce --bytes 32
target/release/cobre bench collectives --op allreduce --bytes 32
