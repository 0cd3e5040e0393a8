#!/usr/bin/env bash
# Builds the Python package into target/wheels, with the lowest manylinux tag that holds.
set -eu
cd "$(dirname "$0")/.."
maturin=target/tools/maturin/bin/maturin
rm -f target/wheels/cobre-*.whl
"$maturin" build --release --quiet --locked \
    --manifest-path crates/cobre-python/Cargo.toml --interpreter python3 --out target/wheels
ls target/wheels/cobre-*.whl
