#!/usr/bin/env bash
# What no lint can express. Prints every breach as file:line and exits 1 if there is one.
# `ci/house-rules.sh --self-test` proves that each rule can fail.
set -u

# The only files that may contain unsafe code: the audit list.
unsafe_files='
crates/cobre-cli/src/aborts.rs
crates/cobre-cli/src/dispositions.rs
crates/cobre-comm/src/backends/mpi/sys.rs
crates/cobre-comm/src/backends/fork_guard.rs
crates/cobre-comm/src/backends/shm/copy.rs
crates/cobre-comm/src/backends/shm/crash_handler.rs
crates/cobre-comm/src/backends/shm/death_linux.rs
crates/cobre-comm/src/backends/shm/liveness.rs
crates/cobre-comm/src/backends/shm/model.rs
crates/cobre-comm/src/backends/shm/ring_model.rs
crates/cobre-comm/src/backends/shm/segment.rs
crates/cobre-comm/src/backends/tcp/inherited.rs
crates/cobre-comm/src/backends/tcp/sys.rs
crates/cobre-comm/src/copy.rs
crates/cobre-comm/src/process_managers/descriptor.rs
crates/cobre-comm/src/process_managers/pmix_library.rs
crates/cobre-comm/src/status_page.rs
crates/cobre-launch/src/signals.rs
crates/cobre-launch/src/sys.rs
crates/cobre-testkit/examples/pmpi/collectives.rs
crates/cobre-testkit/examples/pmpi/main.rs
crates/cobre-testkit/examples/pmpi/mpich.rs
crates/cobre-testkit/examples/pmpi/numbers.rs
crates/cobre-testkit/src/bin/victim.rs
crates/cobre-python/src/shared.rs
crates/cobre-python/src/table.rs
crates/cobre-sddp/src/lp/highs.rs
crates/cobre-simd/src/lib.rs
'

# The only files where a feature may be asked for.
feature_files='
crates/cobre-comm/src/backends/mod.rs
'

# Doc lines that may open with What, How, Whether, Who or Why instead of the noun.
opening_words_limit=20

# Type names that may be defined more than once beside those below.
doubled_types_limit=0

# Type names that several places define on purpose; at most 14.
doubled_types='
Args            the options of a subcommand: one per file of cobre-cli, never imported
Cell            a cell of a table that is read (cobre-case, a trait) and of one that is written (cobre-sddp)
Column          a column of a table: as a case has it, as results have it, as Python has it
Communicator    the Python class of the trait that it stands for
Estimate        the fields of a Python object from the type of the engine
Graph           the policy graph of a problem, and its reader in StochOptFormat
Group           a communicator inside a backend: one per backend, private to it
Member          what handles of a communicator share: one per backend, private to it
Node            a node of a problem, of a StochOptFormat file, and of a problem built in Python
Results         the results of a run, and the reader of their directory
Table           a table of results as written, as read, and the Parquet file below both
Template        the linear program of nodes, and a case that cobre init writes
Values          the values of a column, read and written
'

# Lines of production code that cobre-sddp may have: those outside tests. 12,540 before sparse factors (1,500 lines), the memory
# of bases, limits of numbers, costs that nobody pays and times of work units (100) came in; 1,500 for terminal values, the upper bound
# and rules on the policy; 400 for paths that are no openings, 160 for the estimate of memory,
# 500 for cyclic graphs, 600 for hyperplane groups, 120 for evaluations of the upper bound that can be interrupted, 120 for vectorised
# pricing and lists of nonzero elements, 600 for cut tables once per machine and policies that leaders read, 500 for
# workspaces of threads and policies that are read node by node, 200 for the timeline of a rank, 130 for references that move
# within a solve, 50 for cuts that come in with rows and rows that change member by member, 40 for units of pivots, 460 for upper
# bounds of cyclic graphs, 60 for files of their own for the checks of drafts and the options of HiGHS, and for bounds that are
# contradicted, 260 for searches by lanes and memory of bases that is used again, 630 for rows outside the
# basis that are priced in blocks, 230 for the sparse bump of a factorisation, 130 for lists of indices and solves without checks
# of bounds. Whoever raises it says for what.
sddp_lines_limit=22860

# Functions of more than 60 lines that stay: lists of things that no reader wants in parts. Another one fails.
long_functions='
crates/cobre-case/src/hydrothermal/model/energy.rs add
crates/cobre-case/src/hydrothermal/model/generic.rs columns
crates/cobre-case/src/hydrothermal/model/water.rs balance
crates/cobre-case/src/hydrothermal/results/mod.rs new
crates/cobre-case/src/hydrothermal/system/hydros.rs costs
crates/cobre-case/src/hydrothermal/system/hydros.rs resolve
crates/cobre-case/src/hydrothermal/system/production.rs models
crates/cobre-case/src/hydrothermal/system/sources.rs resolve
crates/cobre-case/src/hydrothermal/system/thermals.rs bounds
crates/cobre-case/src/template/four_regions.rs make
crates/cobre-case/src/template/grown.rs grow
crates/cobre-case/src/template/parts.rs buses
crates/cobre-cli/src/bench/sddp.rs measure
crates/cobre-cli/src/run/mod.rs arguments
crates/cobre-cli/src/run/mod.rs solve
crates/cobre-cli/src/summary/mod.rs facts
crates/cobre-comm/src/backends/shm/collectives.rs gather_through_rings
crates/cobre-comm/src/backends/tcp/rendezvous.rs join
crates/cobre-comm/src/backends/wire.rs decode
crates/cobre-comm/src/backends/wire.rs encode
crates/cobre-launch/src/message.rs message
crates/cobre-launch/src/supervisor/mod.rs start
crates/cobre-report/src/sections/deficit.rs section
crates/cobre-report/src/sections/mod.rs hydrothermal
crates/cobre-results/src/layout/cost_kinds.rs column
crates/cobre-sddp/src/kernel/reduced_lp.rs finish
crates/cobre-testkit/src/bin/victim.rs go
crates/cobre-testkit/src/bin/victim.rs main
'

# The only files that may write to the terminal: what makes text safe, the output of ranks, as it is, and the frames of an
# agent to its launcher.
terminal_files='
crates/cobre-comm/src/terminal.rs
crates/cobre-launch/src/hosts/agent.rs
crates/cobre-launch/src/output/console.rs
'

# The only files with a tree to remove: one that their tests make.
test_trees='
crates/cobre-comm/src/backends/tcp/session.rs
crates/cobre-comm/src/cgroups.rs
crates/cobre-comm/src/backends/tcp/session.rs
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

in_text() { grep -E -- "$1"; }

# Lines as "file:line:text", up to the tests at the foot of a file.
# shellcheck disable=SC2016
outside_tests='FNR == 1 { on = 1; held = "" }
    held != "" { if ($0 ~ /^mod .*\{/) on = 0; else if (on) print held; held = "" }
    !on { next }
    $0 == "#[cfg(test)]" { held = FILENAME ":" FNR ":" $0; next }
    { print FILENAME ":" FNR ":" $0 }'

# production FOLDER: the lines of production code below it.
production() {
    library | grep "^$1/" | grep -vE '/(tests|fuzzing)(\.rs|/)' | xargs -r awk "$outside_tests"
}

# Functions of more than 60 lines, as "file name:line:lines"; a declaration without a body is none.
# shellcheck disable=SC2016
long='FNR == 1 { name = "" }
    name == "" && match($0, /^ *(pub(\([a-z: ]+\))? )?(const )?(unsafe )?(extern "C" )?fn [a-z_0-9]+/) {
        head = substr($0, 1, RLENGTH); indent = match(head, /[^ ]/) - 1
        sub(/.* /, "", head); name = head; start = FNR
    }
    name != "" && /;$/ && match($0, /[^ ]/) - 1 == indent { name = "" }
    name != "" && /^ *\) ?(->.*)?;$/ { name = "" }
    name != "" && /^ *}/ && match($0, /[^ ]/) - 1 == indent {
        if (FNR - start + 1 > 60) print FILENAME " " name ":" start ": " FNR - start + 1 " lines"
        name = ""
    }'

# over LIMIT < lines: the lines, if there are more than LIMIT.
over() {
    local lines
    lines=$(cat)
    [ -z "$lines" ] || [ "$(wc -l <<<"$lines")" -le "$1" ] || printf '%s\n' "$lines"
}

# stay < names: drops the first words of doubled_types.
stay() { grep -vxF -e '' -f <(awk 'NF { print $1 }' <<<"$doubled_types"); }

# The names of types that stand at the left margin of more than one place.
twice() {
    library | xargs -r grep -hoE '^(pub(\([a-z: ]+\))? )?(struct|enum|trait) [A-Z][A-Za-z0-9]+' /dev/null |
        awk '{ print $NF }' | sort | uniq -d
}

# places < names: the places that define each.
places() {
    local name
    while IFS= read -r name; do
        library | in_files "^(pub(\\([a-z: ]+\\))? )?(struct|enum|trait) $name\\b"
    done
}

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
    sources | in_files '^[[:space:]]*//[/!] (What|How|Whether|Who|Why)\b' | over "$opening_words_limit" |
        breach "a doc line begins with the noun or the verb (more than $opening_words_limit do not)"
    twice | stay | over "$doubled_types_limit" | places |
        breach "one meaning per type name (more than $doubled_types_limit have several)"
    awk 'NF' <<<"$doubled_types" | over 14 | breach 'too many type names are defined twice on purpose'
    depends cobre-simd 'none' | breach 'cobre-simd depends on nothing of ours'
    depends cobre-comm 'cobre-simd' | breach 'cobre-comm depends on cobre-simd only'
    library | grep -vE '^crates/cobre-testkit/|/tests\.rs$' | in_files '\be?print(ln)?!|\bstd(out|err)\(\)\.(lock|write)|\bio::std(out|err)\(\)[,;)]|stdio::std(out|err)' |
        grep -vE ':[0-9]+: *//' | except "$terminal_files" | breach 'the terminal is written to in terminal.rs only'
    library | grep '^crates/cobre-sddp/' | grep -vE '/(ranks/|tests\.rs)' |
        in_files 'cobre_comm::.*\b(Communicator|SharedMemoryProvider|SharedRegion)\b' |
        breach 'in cobre-sddp only ranks/ knows of other processes'
    library | grep -vE '/tests\.rs$' | in_files 'remove_dir_all' | except "$test_trees" |
        breach 'files are removed one by one, never a tree'
    depends cobre-launch 'cobre-comm' | breach 'cobre-launch depends on cobre-comm only'
    depends cobre-files 'none' | breach 'cobre-files depends on nothing of ours'
    depends cobre-sddp 'cobre-comm|cobre-files|cobre-results|cobre-simd' |
        breach 'cobre-sddp depends on cobre-comm, cobre-files, cobre-results and cobre-simd only'
    depends cobre-results 'cobre-files' | breach 'cobre-results depends on cobre-files only'
    depends cobre-report 'cobre-files|cobre-results' | breach 'cobre-report depends on cobre-files and cobre-results only'
    depends cobre-case 'cobre-sddp|cobre-files|cobre-results' |
        breach 'cobre-case depends on cobre-sddp, cobre-files and cobre-results only'
    production crates/cobre-sddp | over "$sddp_lines_limit" | tail -1 |
        breach "cobre-sddp has more than $sddp_lines_limit lines of production code"
    library | grep -v '/tests\.rs$' | xargs -r awk "$long" | except "$long_functions" |
        breach 'a function of more than 60 lines'
    library | grep -vE '^crates/cobre-(results|testkit)/|/tests\.rs$' | xargs -r awk "$outside_tests" |
        in_text '"(training|policy|simulation)/[a-z_]+|"(run|manifest)\.json"|"dictionary\.csv"' |
        breach 'files and tables of results are named in cobre-results only'
}

# Each line: a file to write and the text that must be caught in it.
self_test() {
    local failed=0 file text
    # A single line is one too many here.
    opening_words_limit=0 doubled_types_limit=0 sddp_lines_limit=1
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
crates/x/src/a.rs|println!("x");
crates/x/src/a.rs|let _ = io::stderr().write_all(text);
crates/x/src/a.rs|let _ = writeln!(std::io::stdout(), "x");
crates/x/src/utils.rs|//! x
crates/x/src/a.rs|// this is no longer true
crates/x/tests/a.rs|"killall"
crates/x/src/a.rs|/// What it is.
crates/x/tests/a.rs|    //! Whether it works.
crates/x/src/a.rs|struct Twice;\npub(crate) enum Twice {}
crates/cobre-simd/Cargo.toml|[dependencies]\ncobre-comm.workspace = true
crates/cobre-sddp/src/a.rs|use cobre_comm::{CommError, Communicator};
crates/x/src/a.rs|std::fs::remove_dir_all(path)
crates/cobre-files/Cargo.toml|[dependencies]\ncobre-comm.workspace = true
crates/cobre-comm/Cargo.toml|[dependencies]\ncobre-launch.workspace = true
crates/cobre-launch/Cargo.toml|[dependencies]\ncobre-sddp.workspace = true
crates/cobre-sddp/Cargo.toml|[dependencies]\ncobre-case.workspace = true
crates/cobre-results/Cargo.toml|[dependencies]\ncobre-sddp.workspace = true
crates/cobre-report/Cargo.toml|[dependencies]\ncobre-sddp.workspace = true
crates/cobre-case/Cargo.toml|[dependencies]\ncobre-comm.workspace = true
crates/cobre-sddp/src/a.rs|//! Two lines are one\n//! too many here.
crates/x/src/a.rs|table("simulation/paths")
crates/x/src/a.rs|join("run.json")
crates/x/src/a.rs|fn long() {\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n}
LIST
    rm -rf "${dir:?}/crates"
    mkdir -p "$dir/crates/x/src"
    printf '//! Nothing wrong here.\nstruct Args;\nstruct Once;\n' >"$dir/crates/x/src/a.rs"
    echo 'struct Args;' >"$dir/crates/x/src/b.rs"
    [ -z "$(cd "$dir" && rules)" ] || { echo 'house rules: a clean tree was refused'; failed=1; }
    doubled_types=$(seq 15)
    [ -n "$(cd "$dir" && rules)" ] || { echo 'house rules: a long list of names was not caught'; failed=1; }
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
