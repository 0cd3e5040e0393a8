#!/usr/bin/env bash
# AddressSanitizer and ThreadSanitizer on the unit tests of cobre-comm, and Miri on those of cobre-simd, with a nightly Rust:
# rustup toolchain install nightly --component rust-src --component miri
# Leaks are not looked for: what lives as long as the process is never freed. Tests of the simulation and of models run thousands
# of jobs and stay out, and with ThreadSanitizer those that fork. Miri has no inline assembly, which copies of cobre-comm need.
set -eu
cd "$(dirname "$0")/../.."
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo 'sanitizers: not run, there is no nightly Rust with miri and rust-src' >&2
    exit 1
fi
system=x86_64-unknown-linux-gnu
export CARGO_TARGET_DIR=$PWD/target/sanitizers ASAN_OPTIONS=detect_leaks=0
tests="-p cobre-comm --lib --target $system"
# shellcheck disable=SC2086
RUSTFLAGS=-Zsanitizer=address cargo +nightly test --quiet $tests -- --skip simulation --skip model
# shellcheck disable=SC2086
RUSTFLAGS=-Zsanitizer=thread cargo +nightly test --quiet -Zbuild-std $tests -- \
    backends:: --skip simulation --skip model --skip mpi --skip fork
# Without .cargo: cargo takes no second runner of tests beside Miri's.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git archive HEAD -- Cargo.toml Cargo.lock crates fuzz | tar -x -C "$copy"
(cd "$copy" && cargo +nightly miri test --quiet -p cobre-simd)
