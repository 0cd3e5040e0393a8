#!/usr/bin/env bash
# Puts what the build and the tests need on a Debian-like machine that has Rust, gcc and python3.
# Quick when everything is there. `ci/setup.sh book` adds what the book needs, `ci/setup.sh python`
# what the Python package needs, `ci/setup.sh tests` a browser.
set -eu
cd "$(dirname "$0")/.."

mdbook_version=0.5.4
maturin_version=1.16.0

# command:package pairs; a command that is missing asks for its package.
wanted='cc:gcc c++:g++ cmake:cmake objdump:binutils python3:python3 ip:iproute2 pkg-config:pkg-config
    mpiexec.mpich:mpich mpicc.mpich:libmpich-dev'
# For the tests alone.
[ "${1:-}" != tests ] || wanted="$wanted chromium:chromium"

if ! command -v cargo >/dev/null; then
    echo 'setup: Rust is missing. Install rustup (version 1.91 or later of Rust), then run this again.' >&2
    exit 1
fi

missing=''
for pair in $wanted; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
# A library without a command: the bindings of the LP solver are made with it.
if [ -z "${LIBCLANG_PATH:-}" ] && ! compgen -G '/usr/lib/llvm-*/lib/libclang.so*' >/dev/null &&
    ! compgen -G '/usr/lib*/libclang.so*' >/dev/null; then
    missing="$missing libclang-dev"
fi
# A module without a command: the Python package is built and tested in environments of its own.
python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
if [ -n "$missing" ]; then
    as_root=''
    if [ "$(id -u)" -ne 0 ]; then
        if sudo -n true 2>/dev/null; then as_root='sudo -n'; else as_root='no'; fi
    fi
    if [ "$as_root" = no ] || ! command -v apt-get >/dev/null; then
        echo "setup: these packages are missing and cannot be installed from here:$missing" >&2
        echo "setup: on Debian or Ubuntu: sudo apt-get install$missing" >&2
        exit 1
    fi
    echo "setup: installing$missing"
    $as_root apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing
fi

if [ "${1:-}" = book ] && [ "$(target/tools/bin/mdbook --version 2>/dev/null)" != "mdbook v$mdbook_version" ]; then
    echo "setup: building mdbook $mdbook_version into target/tools (two minutes, once)"
    cargo install --quiet mdbook --version "$mdbook_version" --locked \
        --no-default-features --features search --root target/tools
fi

if [ "${1:-}" = python ] &&
    [ "$(target/tools/maturin/bin/maturin --version 2>/dev/null)" != "maturin $maturin_version" ]; then
    echo "setup: installing maturin $maturin_version into target/tools"
    python3 -m venv --clear target/tools/maturin
    target/tools/maturin/bin/pip install --quiet "maturin==$maturin_version"
fi
