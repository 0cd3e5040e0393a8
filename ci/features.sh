#!/usr/bin/env bash
# Each backend alone, and none: lints of the crates that have features, and the tests of cobre-comm. A
# build of the whole workspace hides what a feature forgets. With `whole` the tests of the command too,
# which compiles it for each. Ends with 1 if anything fails.
set -u
cd "$(dirname "$0")/.."
failed=0
# check NAME COMMAND…
check() {
    local name=$1 start=$SECONDS
    shift
    "$@" || { failed=1; echo "--- $name: FAILED"; }
    echo "--- $name: $((SECONDS - start)) s"
}

mpi=$(ci/mpi.sh)
for features in '' shm tcp ${mpi:+mpi}; do
    alone="--release --quiet --no-default-features --features=$features"
    name=${features:-no backend}
    # shellcheck disable=SC2086
    check "$name alone, lints" cargo clippy $alone --all-targets \
        -p cobre-comm -p cobre-launch -p cobre-cli -p cobre-testkit -- -D warnings
    # shellcheck disable=SC2086
    check "$name alone, tests of cobre-comm" cargo test $alone -p cobre-comm
    if [ "${1:-}" = whole ]; then
        # shellcheck disable=SC2086
        check "$name alone, tests of the command" cargo test $alone -p cobre-launch -p cobre-cli
    fi
done
exit $failed
