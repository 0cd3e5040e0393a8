#!/usr/bin/env bash
# The contracts of the backend `mpi` on Open MPI, on two ranks; $1 picks some of them.
set -eu
cd "$(dirname "$0")/.."
export MPI_PKG_CONFIG=ompi OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CI=true
exec cargo test --release -p cobre-comm -p cobre-cli -p cobre-testkit --features mpi \
    --test conformance -- "${1:-mpi/2/}"
