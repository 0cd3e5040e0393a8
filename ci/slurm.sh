#!/usr/bin/env bash
# Ranks of a real Slurm: one controller and two nodes on this machine, from Debian's packages, unpacked into a directory
# of its own and gone at the end. Steps on one node and on two, with PMI, PMIx and neither, and a batch script must train the
# policy of one process, and the page on clusters must be right. The command is the first argument [default: target/release/cobre].
set -eu
cd "$(dirname "$0")/.."
cobre=$(realpath "${1:-target/release/cobre}")
case=$PWD/examples/two_reservoirs.sof.json
place=$(mktemp -d)
daemons=''
finish() {
    for pid in $daemons; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
    rm -rf "$place"
}
trap finish EXIT
die() {
    echo "slurm: $*" >&2
    tail -n 5 "$place"/*.log >&2 || true
    exit 1
}

(cd "$place" && apt-get download -qq -o APT::Sandbox::User=root \
    slurmctld slurmd slurm-client slurm-wlm-basic-plugins libmunge2 \
    libpmix2 libevent-core-2.1-7 libevent-pthreads-2.1-7 libhwloc15 >/dev/null) ||
    die 'its packages cannot be had: apt-get update'
for package in "$place"/*.deb; do dpkg -x "$package" "$place/root"; done
libraries=$(dirname "$(find "$place/root" -name slurm-wlm -path '*/lib/*' -type d)")
# Slurm's plugin for PMIx has the path of its library inside, which is not installed here: as many bytes of another take its
# place.
mkdir "$place/pmix"
ln -s "$libraries/libpmix.so.2" "$place/pmix/libpmix.so"
python3 - "$libraries/slurm-wlm/mpi_pmix_v4.so" "$place/pmix" <<'PATCH'
import pathlib, sys
plugin, own = pathlib.Path(sys.argv[1]), sys.argv[2].encode()
built_in = b"/usr/lib/x86_64-linux-gnu/pmix2/lib"
data = plugin.read_bytes()
assert built_in in data and len(own) <= len(built_in), own
plugin.write_bytes(data.replace(built_in, own.ljust(len(built_in), b"/")))
PATCH
export SLURM_CONF=$place/slurm.conf LD_LIBRARY_PATH=$libraries:$libraries/slurm-wlm
export PMIX_INSTALL_PREFIX=$libraries/pmix2
export PATH=$place/root/usr/bin:$place/root/usr/sbin:$PATH HOME=$place/home
mkdir "$HOME" "$place/state"
read -r controller first second <<<"$(python3 -c '
import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*[one.getsockname()[1] for one in held])')"
# No daemon takes work from another machine: all addresses are loopback, and nobody else knows the ports.
cat >"$SLURM_CONF" <<CONF
ClusterName=cobre
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$controller
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
PluginDir=$libraries/slurm-wlm
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/spool-%n
SlurmctldPidFile=$place/controller.pid
SlurmdPidFile=$place/%n.pid
SlurmctldParameters=enable_configless
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=n1 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$first CPUs=2
NodeName=n2 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$second CPUs=2
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE OverSubscribe=FORCE:4
CONF
slurmctld-wlm -D >"$place/controller.log" 2>&1 &
daemons="$daemons $!"
for node in n1 n2; do
    slurmd-wlm -D -N "$node" -d "$place/root/usr/sbin/slurmstepd-wlm" >"$place/$node.log" 2>&1 &
    daemons="$daemons $!"
done
for _ in $(seq 120); do
    [ "$(sinfo -h -o '%T %D' 2>/dev/null)" = 'idle 2' ] && break
    sleep 0.5
done

# digest COMMAND…: trains under it, and prints the digest of the policy once per result.
digest() {
    timeout 300 "$@" "$cobre" run "$case" --bound=0 --iterations=3 --forward-passes=3 --quiet --json |
        sed -n 's/.*"policy_sha256":"\([0-9a-f]*\)".*/\1/p'
}
expected=$(digest env)
[ -n "$expected" ] || die 'one process does not train'
mpi=$("$cobre" doctor | grep -c '^backends.*mpi') || true
# check BACKEND WORDS…: ranks that srun starts train one policy, once. A build with mpi is told the backend.
check() {
    local backend=$1
    shift
    if [ "$mpi" != 0 ]; then export COBRE_COMM_BACKEND=$backend; fi
    found=$(srun --quiet --overcommit "$@" "$cobre" doctor | grep '^process manager' | sort -u | head -n 1)
    [ "$(digest srun --quiet --overcommit "$@")" = "$expected" ] || die "srun $*: another policy, or several"
    unset COBRE_COMM_BACKEND
    echo "srun $*: $backend; $found"
}
check shm -N1 -n2
check shm -N1 -n2 --mpi=pmi2
# Two nodes on one machine would share the directory of the PMIx server: this one is for one node.
check shm -N1 -n2 --mpi=pmix
check tcp -N2 -n4
check tcp -N2 -n4 --mpi=pmi2
[ -z "$(ls -A "$HOME/.cobre")" ] || die "left in $HOME/.cobre: $(ls -A "$HOME/.cobre")"
printf '#!/bin/sh\nexec "%s" run "%s" -n 2 --bound=0 --iterations=3 --forward-passes=3 --quiet --json\n' \
    "$cobre" "$case" >"$place/batch"
timeout 300 sbatch --quiet --wait --ntasks=2 --overcommit --output="$place/out" "$place/batch"
grep -q "$expected" "$place/out" || die "sbatch: $(cat "$place/out")"
echo 'sbatch with -n 2: holds'
if [ "$mpi" != 0 ]; then export COBRE_COMM_BACKEND=tcp; fi
PATH=$(dirname "$cobre"):$PATH ci/transcript.py book/src/guide/cluster.md 'console slurm'
