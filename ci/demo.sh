#!/usr/bin/env bash
# Shows the launcher and the examples on every backend of this build. `make demo` builds first.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/target/release:$PATH"

# Ranks: one per processor that can really be used, and at least two, so that there is company.
report=$(cobre doctor)
ranks=$(awk '$1 == "processors" { print ($2 > 2 ? $2 : 2) }' <<<"$report")
backends=$(sed -n 's/^backends *//p' <<<"$report" | tr -d ,)

title() { printf '\n== %s\n' "$*"; }
# show COMMAND: prints the line and runs it, errors in their place among the output.
show() {
    printf '$ %s\n' "$1"
    eval "$1" 2>&1
}

title 'This machine and this build'
show 'cobre doctor'

title "Five years of four regions, trained by $ranks ranks through shared memory"
results=target/demo
rm -rf "$results"
show 'cobre validate examples/five-years'
show "cobre run examples/five-years -n $ranks --backend shm --output $results"
show "ls $results $results/*"
show "cobre report $results"

for backend in $backends; do
    title "$ranks ranks on the $backend backend"
    if [ "$backend" = local ]; then
        echo '(with local each rank is a world of its own: rank 0 of 1)'
    fi
    for example in mean shared_table; do
        show "cobre launch -n $ranks --backend $backend -- target/release/examples/$example"
    done
done

title 'A rank fails: the launcher names it and exits with its code'
code=0
show "cobre launch -n $ranks --backend local -- sh -c 'exit 3'" || code=$?
echo "exit code: $code"
[ "$code" -eq 3 ] || { echo 'demo: expected exit code 3' >&2; exit 1; }

title 'Where to read on'
cat <<'TEXT'
README.md                a first program
target/demo/report.html  the results of the training above as a page: open it in a browser
target/demo              the same as tables: Parquet and JSON
book/src/guide/cases.md  what is in a case, and how to write one
book/src/tutorial.md     from nothing to a launched program
make book                the whole book, into book/book/index.html
cobre launch --help      every option
TEXT
printf '\nThe report of the demo: file://%s\n' "$PWD/$results/report.html"
