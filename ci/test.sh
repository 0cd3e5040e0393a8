#!/usr/bin/env bash
# Every check of the project, the cheap ones first. Ends with the number of tests.
set -u
cd "$(dirname "$0")/.."

log=$(mktemp)
ends=$(mktemp)
trap 'rm -f "$log" "$ends"' EXIT
failed=''

# step NAME COMMAND…: runs it, remembers whether it failed, goes on.
step() {
    local name=$1 start=$SECONDS first
    first=$(($(wc -l <"$log") + 1))
    shift
    echo "=== $name"
    if "$@" 2>&1 | tee -a "$log"; [ "${PIPESTATUS[0]}" -ne 0 ]; then
        failed="$failed
  $name"
        echo "=== $name: FAILED"
        { echo "--- the end of: $name"; tail -n "+$first" "$log" | tail -n 15 | cut -c 1-400; } >>"$ends"
    fi
    echo "=== $name: $((SECONDS - start)) s"
}

# One build for all: with the backend `mpi`, as `make build` has it.
mpi=$(ci/mpi.sh) || mpi=''
all="--release --workspace $mpi"

step 'format' cargo fmt --all --check
step 'house rules' ci/house-rules.sh
step 'house rules can fail' ci/house-rules.sh --self-test
step 'lints' cargo clippy $all --all-targets -- -D warnings
# MPICH spins, so what runs on it stays small.
step 'tests' cargo test $all --no-fail-fast
# Before the next step, which builds the examples anew, without tcp.
if unshare -n true 2>/dev/null; then
    step 'pods of the manifests for Kubernetes' ci/pods.py
fi
step 'each backend alone, and none' ci/features.sh
step 'the portable build of shm' ci/portable.sh
step 'documentation' env RUSTDOCFLAGS='-D warnings' cargo doc $all --no-deps --quiet
step 'reports in a browser' ci/report.py
step 'a sample of chaos' ci/chaos.py 60 2026
step 'a sample of chaos in training' ci/chaos_run.py 8 2026 local,shm,tcp,hosts
step 'a sample of hostile input' ci/hostile.py 700 2026
step 'licences and duplicates of dependencies' ci/judges/dependencies.py
step 'faults of the disk: a sample' ci/judges/disk.py 40 2026
if [ -x /usr/sbin/sshd ] && unshare -n true 2>/dev/null; then
    step 'jobs on two hosts over sshd' ci/ssh.py
fi
step 'tables' ci/tables.sh
step 'python' ci/python.sh
step 'release archive' ci/dist_check.sh
step 'book' target/tools/bin/mdbook build book
if [ -n "$mpi" ]; then
    step 'mpi: a sample of chaos in training' ci/chaos_run.py 4 2026 mpi,local
    # The layer that it preloads is an example, which the tests have built.
    step "mpi4py's tests on shm and tcp: a sample" ci/judges/mpi4py.py sample
fi
if command -v valgrind >/dev/null; then
    step 'unsafe code under memcheck: a sample' ci/judges/valgrind.py sample
fi
if command -v mpicc.openmpi >/dev/null; then
    # Its launcher takes a second and a half per job: the rest is for `make openmpi`.
    step 'mpi: random programs on Open MPI' ci/openmpi.sh mpi/2/program
fi

# Cargo's lines, and the closing line of pytest: "3 failed, 90 passed in 9.81s".
awk '/^test result:/ { passed += $4; bad += $6 }
     /^[0-9]+ (passed|failed|error).* in [0-9.]+s/ {
         for (i = 1; i < NF; i++) {
             if ($(i + 1) ~ /^passed/) passed += $i
             if ($(i + 1) ~ /^(failed|error)/) bad += $i
         }
     }
     END { printf "\n%d passed, %d failed\n", passed, bad }' "$log"
if [ -n "$failed" ]; then
    # What failed tests printed, without their stack: whoever reads only the end of this output sees the reason.
    awk '/^---- .* stdout ----$/ { lines = 40 }
         /^stack backtrace:/ || /^failures:$/ { lines = 0 }
         lines > 0 { lines--; print substr($0, 1, 400) }' "$log"
    grep -aE '^test .*FAILED|^error|^(FAILED|ERROR) ' "$log" | head -n 40
    cat "$ends"
    echo "failed steps:$failed"
    exit 1
fi
