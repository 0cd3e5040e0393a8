#!/usr/bin/env python3
"""Licences and duplicates of everything that Cargo.lock brings in, for all features.

Fails if a package has no licence from the list below, comes from anywhere but the registry, or is there in two versions
without a row in the table "Two versions" of book/src/reference/dependencies.md; and if such a row has no duplicate any
more. Advisories are `cargo audit`'s: see the page Independent judges.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "book/src/reference/dependencies.md"
# Licences that ask for no more than a notice.
FREE = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}


def is_free(expression):
    """True if an SPDX expression can be met with licences from the list."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR ").replace(" WITH ", "~"))

    def either():
        value = both()
        while words and words[0] == "OR":
            words.pop(0)
            value = both() or value
        return value

    def both():
        value = one()
        while words and words[0] == "AND":
            words.pop(0)
            value = one() and value
        return value

    def one():
        word = words.pop(0)
        if word != "(":
            return word.replace("~", " WITH ") in FREE
        value = either()
        words.pop(0)
        return value

    return either()


def excused():
    """The libraries of the table of duplicates."""
    section = PAGE.read_text().split("\n## Two versions\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `([a-z0-9_-]+)` \|", section, re.MULTILINE))


def main():
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--all-features"]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    used = {node["id"] for node in found["resolve"]["nodes"]}
    packages = [one for one in found["packages"] if one["id"] in used and not one["name"].startswith("cobre-")]
    complaints = []
    versions = collections.defaultdict(set)
    for one in packages:
        versions[one["name"]].add(one["version"])
        if not one["license"] or not is_free(one["license"]):
            complaints.append(f"{one['name']} {one['version']}: licence {one['license']}")
        if not (one["source"] or "").startswith("registry+"):
            complaints.append(f"{one['name']} {one['version']}: not from the registry: {one['source']}")
    twice = {name for name, numbers in versions.items() if len(numbers) > 1}
    complaints += [f"{name}: versions {sorted(versions[name])}, no row in {PAGE.name}" for name in twice - excused()]
    complaints += [f"{name}: one version alone, and a row in {PAGE.name}" for name in excused() - twice]
    print(f"{len(packages)} packages, {len(twice)} in several versions, {len(complaints)} complaints")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    # The parser of licences can fail.
    assert not is_free("GPL-3.0") and not is_free("MIT AND (GPL-3.0 OR LGPL-2.1)") and is_free("GPL-3.0 OR MIT")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
