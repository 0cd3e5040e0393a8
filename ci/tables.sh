#!/usr/bin/env bash
# Whether pandas, polars and pyarrow read every table that a run writes, and find the same in it.
set -eu
cd "$(dirname "$0")/.."
python=target/tables-test/bin/python
if ! "$python" -c 'import pandas, polars, pyarrow' 2>/dev/null; then
    python3 -m venv --clear target/tables-test
    "$python" -m pip install --quiet pandas polars pyarrow
fi
# shellcheck disable=SC2046
cargo build --release --quiet --workspace --bins $(ci/mpi.sh 2>/dev/null)
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
cobre=target/release/cobre
options='--iterations 5 --simulate 70 --checkpoint none --csv --quiet'
# shellcheck disable=SC2086
$cobre run examples/four-regions $options --output "$output/case"
# shellcheck disable=SC2086
$cobre run examples/two_reservoirs.sof.json --bound 0 $options --output "$output/file"
exec "$python" ci/tables.py "$output/case" "$output/file"
