#!/usr/bin/env bash
# Builds the command as it is handed on: without mpi, so that it needs no library of the machine, and stripped, into
# target/handed-on/cobre. The build of HiGHS is that of every other build; target/release/cobre stays as it is.
set -eu
cd "$(dirname "$0")/.."
built=target/release/cobre
kept=$built.kept
if [ -e "$built" ]; then
    mv "$built" "$kept"
    trap 'rm -f "$built"; mv "$kept" "$built"' EXIT
fi
cargo build --release --quiet --locked -p cobre-cli
mkdir -p target/handed-on
strip -o target/handed-on/cobre "$built"
