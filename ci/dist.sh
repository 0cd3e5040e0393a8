#!/usr/bin/env bash
# Packs target/cobre-VERSION-SYSTEM.tar.gz: the command, its completions and manual pages, the examples, the licences.
# The same sources give the same archive.
set -eu
cd "$(dirname "$0")/.."
ci/command.sh
version=$(target/handed-on/cobre --version)
name=cobre-${version#cobre }-$(uname -m)-linux-gnu
place=target/dist/$name
rm -rf target/dist
mkdir -p "$place/bin" "$place/share/man/man1" "$place/share/bash-completion/completions" \
    "$place/share/zsh/site-functions" "$place/share/fish/vendor_completions.d"
cobre=$place/bin/cobre
install -m 755 target/handed-on/cobre "$cobre"
"$cobre" completions bash >"$place/share/bash-completion/completions/cobre"
"$cobre" completions zsh >"$place/share/zsh/site-functions/_cobre"
"$cobre" completions fish >"$place/share/fish/vendor_completions.d/cobre.fish"
for page in $("$cobre" man --list); do
    "$cobre" man "$page" >"$place/share/man/man1/$page.1"
done
cp LICENSE README.md CHANGELOG.md "$place"
cp -r examples "$place"
ci/licences.py cobre-cli "$place/licences"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='2000-01-01 00:00Z' \
    -C target/dist -cf - "$name" | gzip -n9 >"target/$name.tar.gz"
ls "target/$name.tar.gz"
