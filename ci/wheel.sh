#!/usr/bin/env bash
# Builds the Python package into target/wheels, with the lowest manylinux tag that holds. The command `cobre` is in it.
set -eu
cd "$(dirname "$0")/.."
maturin=target/tools/maturin/bin/maturin
ci/command.sh
# maturin takes what is in this directory for the scripts of the package: see `data` in pyproject.toml.
mkdir -p target/wheel-data/scripts
install -m 755 target/handed-on/cobre target/wheel-data/scripts/cobre
rm -f target/wheels/cobre*.whl
"$maturin" build --release --quiet --locked \
    --manifest-path crates/cobre-python/Cargo.toml --interpreter python3 --out target/wheels
ls target/wheels/cobre_sddp-*.whl
