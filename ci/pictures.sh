#!/usr/bin/env bash
# Draws the pictures of the book anew, from a run of examples/five-years. `make pictures` builds first.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/target/release:$PATH"

# Those that the book shows; with the page itself, which README.md shows, they stay below 450 kB.
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
# The top of the page, as a browser shows it.
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=0.75 \
    --virtual-time-budget=4000 --window-size=1180,1085 \
    --screenshot="$PWD/book/src/guide/pictures/report.png" "file://$scratch/results/report.html"
du -cb book/src/guide/pictures/*.png
