#!/usr/bin/env bash
# The Python package as users get it: the wheel in a fresh environment, its types, its tests.
# ci/python.sh [PACKAGE...]: with these packages besides; `ci/python.sh ray` tests the recipe for Ray, too.
set -eu
cd "$(dirname "$0")/.."
ci/wheel.sh
python=target/python-test/bin/python
python3 -m venv --clear target/python-test
extras='pandas,polars,pyarrow,matplotlib,cloudpickle'
wheel=$(echo target/wheels/cobre_sddp-*.whl)
"$python" -m pip install --quiet "${wheel}[$extras]" pytest mypy nbclient ipykernel scipy auditwheel distributed "$@"
# From its source, for MPICH, and not from a cache that may hold one for another MPI: the wheel of the registry looks for a
# name of MPICH's library that Debian does not have. Not optimised: compiling would take minutes.
CFLAGS=-O0 MPICC=mpicc.mpich "$python" -m pip install --quiet --no-cache-dir --no-binary mpi4py mpi4py
# What the name of the wheel promises about the machines that take it, checked by another tool.
tag=${wheel##*-}
"$python" -m auditwheel show "$wheel" | tr '\n' ' ' | grep -q "platform tag: \"${tag%.whl}\"" || {
    echo "auditwheel does not agree with the name $wheel" >&2
    exit 1
}
export PYTHONDONTWRITEBYTECODE=1
cd crates/cobre-python
../../"$python" -m mypy --strict --cache-dir=/dev/null -p cobre
../../"$python" -m mypy.stubtest cobre --mypy-config-file pyproject.toml
exec ../../"$python" -m pytest
