#!/usr/bin/env bash
# The release archive as users get it: unpacked elsewhere, run, completed, read.
set -eu
cd "$(dirname "$0")/.."
archive=$(ci/dist.sh)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
tar -C "$place" -xzf "$archive"
cd "$place"/cobre-*
die() {
    echo "release archive: $*" >&2
    exit 1
}
[ -s LICENSE ] && [ -s licences/LIST ] || die 'no licence'
ls licences/highs-sys-*/HiGHS/LICENSE* >/dev/null || die 'no licence of HiGHS'
if objdump -h bin/cobre | grep -q '\.debug_info'; then die 'cobre is not stripped'; fi
if ldd bin/cobre | grep -qi 'mpi'; then die 'cobre needs MPI'; fi
bin/cobre doctor | grep -q 'shm' || die 'cobre doctor does not know shm'
bin/cobre run examples/one-reservoir --iterations 3 --quiet -n 2 --json | grep -q '"bound"' || die 'the example does not run'
# No MPI in it, and yet ranks that MPICH's launcher starts find each other.
if command -v mpiexec.mpich >/dev/null; then
    # Ranks that did not would print a line each.
    lines=$(mpiexec.mpich -n 4 bin/cobre run examples/one-reservoir --iterations 3 --quiet --json | grep -c '"bound"')
    [ "$lines" = 1 ] || die "four ranks of mpiexec do not find each other: $lines results"
fi
bash -n share/bash-completion/completions/cobre
# What bash would offer after `cobre ru`.
words=$(bash -c '. share/bash-completion/completions/cobre
    COMP_WORDS=(cobre ru) COMP_CWORD=1
    _cobre cobre ru cobre
    echo "${COMPREPLY[*]}"')
[ "$words" = run ] || die "bash completes \`cobre ru\` to: $words"
grep -q '^#compdef cobre' share/zsh/site-functions/_cobre || die 'no completions for zsh'
grep -q '__fish_cobre\|complete -c cobre' share/fish/vendor_completions.d/cobre.fish || die 'no completions for fish'
for page in cobre cobre-run cobre-launch; do
    grep -q '^\.SH NAME' "share/man/man1/$page.1" || die "no manual page $page"
done
grep -q 'forward\\-passes' share/man/man1/cobre-run.1 || die 'the manual page of cobre run has no options'
echo "release archive: $(du -k "$OLDPWD/$archive" 2>/dev/null | cut -f1) KiB, holds"
