#!/usr/bin/env bash
# The portable build of `shm`: only calls that POSIX systems share (`--cfg cobre_portable`). Runs on Linux the unit tests of
# cobre-comm and the contracts of `shm` with 2 and 3 ranks; with `whole` those with every number of ranks, and checks the types of
# the crate for macOS, if rustup has its standard library. Has a build directory of its own, without the LP solver.
set -eu
cd "$(dirname "$0")/.."
alone='--release --quiet --no-default-features --features shm --target-dir target/portable'
export RUSTFLAGS='--cfg cobre_portable'
# shellcheck disable=SC2086
cargo test $alone -p cobre-comm --lib
# shellcheck disable=SC2086
contracts() { cargo test $alone -p cobre-testkit --test conformance -- "$@"; }
if [ "${1:-}" != whole ]; then
    contracts shm/2
    contracts shm/3
    exit
fi
contracts shm/
target=aarch64-apple-darwin
if rustup target list --installed 2>/dev/null | grep -qx "$target"; then
    # shellcheck disable=SC2086
    env -u RUSTFLAGS cargo check $alone -p cobre-comm --target "$target"
    echo "portable: cobre-comm with shm compiles for $target"
else
    echo "portable: not checked for $target (rustup target add $target)"
fi
