#!/usr/bin/env bash
# Prints the arguments that make cargo build the backend `mpi` into every program of the workspace, or
# nothing where no MPI development package is installed or `$1` is `no`. Looks where the build of
# ferrompi looks, in that order. What it has decided goes to stderr.
set -u

found() {
    local name
    for name in MPI_PKG_CONFIG MPICC CRAY_MPICH_DIR; do
        if [ -n "${!name:-}" ]; then
            echo "$name=${!name}"
            return
        fi
    done
    for name in mpich ompi mpi; do
        if pkg-config --exists "$name" 2>/dev/null; then
            echo "$name $(pkg-config --modversion "$name"), by pkg-config"
            return
        fi
    done
    command -v mpicc
}

if [ "${1:-}" = no ]; then
    echo 'backend mpi: left out, as asked for' >&2
elif library=$(found); then
    echo "backend mpi: built with $library; make mpi=no leaves it out" >&2
    echo '--features mpi'
else
    echo 'backend mpi: left out, as no MPI development package is installed (Debian: libmpich-dev)' >&2
fi
