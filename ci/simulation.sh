#!/usr/bin/env bash
# ci/simulation.sh [SEEDS [FIRST]]: simulates so many jobs over tcp, each with the faults of its seed, and holds every
# outcome against the contract. Prints counts, and each seed that breaks it.
set -eu
cd "$(dirname "$0")/.."
export COBRE_SIMULATION=${1:-100000} COBRE_SIMULATION_SEED=${2:-0}
# shellcheck disable=SC2046
exec cargo test --release --workspace $(ci/mpi.sh) --lib simulation::tests::every_seed -- --nocapture
