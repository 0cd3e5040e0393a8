#!/usr/bin/env bash
# Unit tests of the communication layer for aarch64, under qemu-user: reductions with the bits that the tests state, copies,
# call signatures, messages, the objects and rings of shm; then training, with the policy that this machine finds. Needs the
# standard library for that target (rustup) and Debian's g++-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user; says
# what is missing and ends without a failure.
set -eu
cd "$(dirname "$0")/../.."
target=aarch64-unknown-linux-gnu
rustlib=$(rustc --print sysroot)/lib/rustlib
for need in "$rustlib/$target:rustup target add $target" \
    "$(command -v aarch64-linux-gnu-g++ || echo none):apt-get install g++-aarch64-linux-gnu libc6-dev-arm64-cross" \
    "$(command -v qemu-aarch64 || echo none):apt-get install qemu-user"; do
    if [ ! -e "${need%%:*}" ]; then
        echo "aarch64: not run; ${need#*:}"
        exit 0
    fi
done
export CARGO_TARGET_DIR=target/aarch64 CARGO_INCREMENTAL=0
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu'
# Left out: the model checker, for its time; control groups, which are the host's; tests that start their own program
# again, which the host cannot run.
cargo test --release --target "$target" -p cobre-comm -p cobre-simd --no-default-features --features cobre-comm/shm --lib \
    -- --skip model --skip cgroups --skip fork
exec ci/judges/aarch64_training.py
