#!/usr/bin/env bash
# Puts what the build and the tests need on a Debian-like machine that has Rust, gcc and python3.
# Quick when everything is there. `ci/setup.sh book` adds what the book needs, `ci/setup.sh python`
# what the Python package needs, `ci/setup.sh tests` a browser. MPICH is installed where that is possible,
# and demanded for the tests alone: a build without it lacks the backend `mpi`.
set -eu
cd "$(dirname "$0")/.."

mdbook_version=0.5.4
maturin_version=1.16.0

# command:package pairs; a command that is missing asks for its package.
wanted='cc:gcc c++:g++ cmake:cmake objdump:binutils python3:python3 ip:iproute2 pkg-config:pkg-config'
mpich='mpiexec.mpich:mpich mpicc.mpich:libmpich-dev'
# For the tests alone.
[ "${1:-}" != tests ] || wanted="$wanted $mpich chromium:chromium /usr/sbin/sshd:openssh-server ssh:openssh-client"

if ! command -v cargo >/dev/null; then
    echo 'setup: Rust is missing. Install rustup (version 1.91 or later of Rust), then run this again.' >&2
    exit 1
fi

# absent PAIRS: the packages of those whose command is missing, each after a blank.
absent() {
    local pair
    for pair in $1; do
        command -v "${pair%%:*}" >/dev/null || printf ' %s' "${pair#*:}"
    done
}

missing=$(absent "$wanted")
# A library without a command: the bindings of the LP solver are made with it.
if [ -z "${LIBCLANG_PATH:-}" ] && ! compgen -G '/usr/lib/llvm-*/lib/libclang.so*' >/dev/null &&
    ! compgen -G '/usr/lib*/libclang.so*' >/dev/null; then
    missing="$missing libclang-dev"
fi
# A module without a command: the Python package is built and tested in environments of its own.
python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"

# What stands before `apt-get` here; fails if nothing can be installed.
as_root() {
    command -v apt-get >/dev/null || return 1
    [ "$(id -u)" -ne 0 ] || return 0
    sudo -n true 2>/dev/null && echo 'sudo -n'
}

# install PACKAGE…
install() {
    local root
    root=$(as_root) || return 1
    echo "setup: installing $*"
    $root apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends "$@"
}

# shellcheck disable=SC2086
if [ -n "$missing" ] && ! install $missing; then
    echo "setup: these packages are missing and cannot be installed from here:$missing" >&2
    echo "setup: on Debian or Ubuntu: sudo apt-get install$missing" >&2
    exit 1
fi

# Any MPI library will do for a build.
missing=$(absent "$mpich")
# shellcheck disable=SC2086
if [ -n "$missing" ] && [ -z "$(ci/mpi.sh 2>/dev/null)" ] && ! install $missing; then
    echo "setup: going on without MPI, which the backend mpi needs; on Debian or Ubuntu:" \
        "sudo apt-get install$missing" >&2
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
