#!/usr/bin/env bash
# What no lint can express. Prints every breach as file:line and exits 1 if there is one.
# `ci/house-rules.sh --self-test` proves that each rule can fail.
set -u

# The only files that may contain unsafe code: the audit list.
unsafe_files='
crates/cobre-comm/src/backends/mpi/sys.rs
crates/cobre-comm/src/backends/origin.rs
crates/cobre-comm/src/backends/shm/copy.rs
crates/cobre-comm/src/backends/shm/distress.rs
crates/cobre-comm/src/backends/shm/liveness.rs
crates/cobre-comm/src/backends/shm/model.rs
crates/cobre-comm/src/backends/shm/segment.rs
crates/cobre-comm/src/backends/tcp/inherited.rs
crates/cobre-comm/src/backends/tcp/sys.rs
crates/cobre-comm/src/copy.rs
crates/cobre-comm/src/wide.rs
crates/cobre-launch/src/signals.rs
crates/cobre-launch/src/sys.rs
crates/cobre-testkit/src/bin/victim.rs
crates/cobre-python/src/shared.rs
crates/cobre-python/src/table.rs
crates/cobre-sddp/src/lp/highs.rs
'

# The only files where a feature may be asked for.
feature_files='
crates/cobre-comm/src/backends/mod.rs
'

# The only file with a tree to remove: one that its tests make.
test_trees='
crates/cobre-comm/src/cgroups.rs
'

# breach RULE < lines "file:line:text": prints them with the rule.
breach() {
    while IFS= read -r line; do printf '%s: %s\n' "$1" "$line"; done
}

# except LIST: drops the lines whose file is in LIST.
except() {
    local files
    files=$(printf '%s\n' "$1" | sed '/^$/d; s/$/:/')
    if [ -n "$files" ]; then grep -vF -- "$files"; else cat; fi
}

sources() { find crates examples -name '*.rs' -not -path '*/target/*' 2>/dev/null | sort; }
library() { sources | grep '/src/'; }
in_files() { xargs -r grep -nE -- "$1" /dev/null; }

# depends CRATE ALLOWED: prints the project's crates that CRATE uses beyond ALLOWED.
depends() {
    [ -f "crates/$1/Cargo.toml" ] || return 0
    awk '/^\[/{on=($0=="[dependencies]")} on && /^cobre-/{print FILENAME":"FNR":"$1}' "crates/$1/Cargo.toml" |
        grep -vE ":($2)(\.workspace)?$"
}

# Prints every breach in the current directory.
rules() {
    sources | in_files 'cfg(_attr)?\(.*feature *=' | except "$feature_files" |
        breach 'features are asked for in the backend table only'
    sources | in_files 'unsafe_code|\bunsafe (\{|fn|impl|extern)' | except "$unsafe_files" |
        breach 'unsafe code in a file that is not on the audit list'
    library | grep -vE '/(env|tests)\.rs$' | in_files 'COBRE_[A-Z]' |
        breach 'variables are named in env.rs only'
    sources | in_files '\b(todo!|unimplemented!|dbg!)|\b(TODO|FIXME|XXX)\b' |
        breach 'unfinished work'
    sources | in_files '#\[ignore' | breach 'a test that does not run'
    sources | in_files 'fn test_' | breach 'a test is named by the sentence it proves'
    sources | grep -E '/(utils?|common|helpers?|types|traits|misc)(\.rs|/)' |
        breach 'a file name that states no idea'
    library | in_files '\b(previously|no longer|for now|in the future)\b' |
        breach 'comments speak in the present tense'
    find Makefile .ci ci crates examples -type f \( -name '*.sh' -o -name '*.rs' -o -name Makefile -o -name run \) \
        -not -name house-rules.sh 2>/dev/null | in_files '\b(pkill|killall)\b' |
        breach 'only processes one started are ended, by id'
    library | grep -vE '/tests\.rs$' | in_files 'remove_dir_all' | except "$test_trees" |
        breach 'files are removed one by one, never a tree'
    depends cobre-comm 'none' | breach 'cobre-comm depends on nothing of ours'
    depends cobre-launch 'cobre-comm' | breach 'cobre-launch depends on cobre-comm only'
    depends cobre-files 'none' | breach 'cobre-files depends on nothing of ours'
    depends cobre-sddp 'cobre-comm|cobre-files' | breach 'cobre-sddp depends on cobre-comm and cobre-files only'
    depends cobre-results 'none' | breach 'cobre-results depends on nothing of ours'
    depends cobre-report 'cobre-results|cobre-files' | breach 'cobre-report depends on cobre-results and cobre-files only'
    depends cobre-case 'cobre-sddp' | breach 'cobre-case depends on cobre-sddp only'
}

# Each line: a file to write and the text that must be caught in it.
self_test() {
    local failed=0 file text
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    while IFS='|' read -r file text; do
        rm -rf "${dir:?}/crates"
        mkdir -p "$dir/$(dirname "$file")"
        printf '%b\n' "$text" >"$dir/$file"
        if [ -z "$(cd "$dir" && rules)" ]; then
            echo "house rules: not caught: $file: $text"
            failed=1
        fi
    done <<'LIST'
crates/x/src/a.rs|#[cfg(feature = "shm")]
crates/x/src/a.rs|#![expect(\n    unsafe_code,\n    reason = "x"\n)]
crates/x/src/a.rs|unsafe { f() }
crates/x/src/a.rs|const A: &str = "COBRE_X";
crates/x/src/a.rs|fn f() { todo!() }
crates/x/tests/a.rs|#[ignore]
crates/x/tests/a.rs|fn test_it() {}
crates/x/src/utils.rs|//! x
crates/x/src/a.rs|// this is no longer true
crates/x/tests/a.rs|"killall"
crates/x/src/a.rs|std::fs::remove_dir_all(path)
crates/cobre-files/Cargo.toml|[dependencies]\ncobre-comm.workspace = true
crates/cobre-comm/Cargo.toml|[dependencies]\ncobre-launch.workspace = true
crates/cobre-launch/Cargo.toml|[dependencies]\ncobre-sddp.workspace = true
crates/cobre-sddp/Cargo.toml|[dependencies]\ncobre-case.workspace = true
crates/cobre-results/Cargo.toml|[dependencies]\ncobre-sddp.workspace = true
crates/cobre-report/Cargo.toml|[dependencies]\ncobre-sddp.workspace = true
crates/cobre-case/Cargo.toml|[dependencies]\ncobre-comm.workspace = true
LIST
    rm -rf "${dir:?}/crates"
    mkdir -p "$dir/crates/x/src"
    echo '//! Nothing wrong here.' >"$dir/crates/x/src/a.rs"
    [ -z "$(cd "$dir" && rules)" ] || { echo 'house rules: a clean tree was refused'; failed=1; }
    return $failed
}

cd "$(dirname "$0")/.." || exit 2
case "${1:-}" in
--self-test) self_test && echo 'house rules: every rule can fail' ;;
'')
    found=$(rules)
    [ -z "$found" ] || { printf '%s\n' "$found"; exit 1; }
    echo 'house rules: kept'
    ;;
*) echo "usage: $0 [--self-test]" >&2; exit 64 ;;
esac
