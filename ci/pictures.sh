#!/usr/bin/env bash
# Draws the pictures of the book anew, from a run of examples/five-years. `make pictures` builds first.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/target/release:$PATH"

# Those that the book shows; together they stay below 350 kB.
shown='convergence storage mix exchange water-value deficit-risk'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cobre run examples/five-years --output "$scratch/results"
cobre report "$scratch/results" --png "$scratch/pictures"
mkdir -p book/src/guide/pictures
for name in $shown; do
    # A run without deficits has no chart of them.
    [ ! -e "$scratch/pictures/$name.png" ] || cp "$scratch/pictures/$name.png" book/src/guide/pictures/
done
du -cb book/src/guide/pictures/*.png
