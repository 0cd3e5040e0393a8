#!/usr/bin/env bash
# Ranks that a PMIx server started: Open MPI's launcher from Debian's packages, unpacked into a directory of its own and gone
# at the end. They must find each other without MPI, on both backends, and train the policy of one process. The command is
# the first argument [default: target/release/cobre].
set -eu
cd "$(dirname "$0")/.."
cobre=$(realpath "${1:-target/release/cobre}")
case=$PWD/examples/two_reservoirs.sof.json
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
die() {
    echo "pmix: $*" >&2
    exit 1
}

(cd "$place" && apt-get download -qq -o APT::Sandbox::User=root openmpi-bin openmpi-common libopenmpi3 libpmix2 \
    libevent-core-2.1-7 libevent-pthreads-2.1-7 libhwloc15 libmunge2 >/dev/null) ||
    die 'its packages cannot be had: apt-get update'
for package in "$place"/*.deb; do dpkg -x "$package" "$place/root"; done
libraries=$(dirname "$(find "$place/root" -name 'libpmix.so.2' -not -path '*/pmix2/*')")
export LD_LIBRARY_PATH=$libraries:$libraries/openmpi/lib OPAL_PREFIX=$libraries/openmpi TMPDIR=$place
export OMPI_MCA_mca_base_component_path=$libraries/openmpi/lib/openmpi3
export PMIX_INSTALL_PREFIX=$libraries/pmix2 PMIX_MCA_pcompress_base_silence_warning=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mca_base_component_show_load_errors=0 PMIX_MCA_mca_base_component_show_load_errors=0

# digest OUT COMMAND…: trains under it, and prints the digest of the policy once per result.
digest() {
    local out=$place/$1
    shift
    timeout 300 "$@" "$cobre" run "$case" --bound=0 --iterations=3 --forward-passes=3 --quiet --json --output "$out" |
        sed -n 's/.*"policy_sha256":"\([0-9a-f]*\)".*/\1/p'
}
launcher="$place/root/usr/bin/mpirun.openmpi -n 4 --oversubscribe"
expected=$(digest alone env)
[ -n "$expected" ] || die 'one process does not train'
backends='shm tcp'
"$cobre" doctor | grep -q '^backends.*mpi' || backends='auto shm tcp'
for backend in $backends; do
    export COBRE_COMM_BACKEND=$backend
    # shellcheck disable=SC2086
    found=$($launcher "$cobre" doctor | grep '^process manager' | sed 's/rank [0-9]* of/a rank of/' | sort -u)
    case $found in
    *'a rank of 4: PMIx started the ranks, all on this host'*) ;;
    *) die "found $found" ;;
    esac
    # shellcheck disable=SC2086
    [ "$(digest "$backend" $launcher)" = "$expected" ] || die "$backend: another policy, or several"
    echo "mpirun.openmpi -n 4: $backend; $found"
done
if [ "$(id -u)" = 0 ] && [ -x /usr/sbin/sshd ] && unshare -n true 2>/dev/null; then
    env -u COBRE_COMM_BACKEND ci/pmix_hosts.py "$cobre" "$place/root/usr/bin/mpirun.openmpi"
fi
