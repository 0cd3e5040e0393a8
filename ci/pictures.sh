#!/usr/bin/env bash
# Draws the pictures of the book anew, from runs of examples/five-years and of the template history. `make pictures` builds
# first.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/target/release:$PATH"

# Those that the book shows; with the page itself, which README.md shows, they stay below 700 kB. upper-bound.png is the
# convergence of the reference case 4ree, with the command below it in the book.
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
# A year of the record beside all others: the dearest one.
cobre init history "$scratch/basin"
cobre run "$scratch/basin" --iterations 20 --quiet --output "$scratch/trained"
cobre run "$scratch/basin" --simulate-only --warm-start "$scratch/trained" --years all --quiet --output "$scratch/years"
cobre report "$scratch/years" --scenario 1982 --png "$scratch/years-pictures"
cp "$scratch/years-pictures/storage.png" book/src/guide/pictures/storage-1982.png
cobre fit "$scratch/basin" --output "$scratch/model"

# page FILE PICTURE: the top of a page, as a browser shows it.
page() {
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=0.75 \
        --virtual-time-budget=4000 --window-size=1180,1085 \
        --screenshot="$PWD/book/src/guide/pictures/$2" "file://$1"
}
page "$scratch/results/report.html" report.png
page "$scratch/model/inflow_models.html" inflow-model.png
du -cb book/src/guide/pictures/*.png
