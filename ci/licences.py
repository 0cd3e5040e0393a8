#!/usr/bin/env python3
"""licences.py PACKAGE DIRECTORY: copies the licences of what a package is linked with into a directory."""

import json
import pathlib
import shutil
import subprocess
import sys

NAMES = ("licen", "copying", "notice", "third_party")


def main() -> None:
    package, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    told = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--locked", "--offline"], check=True, capture_output=True, text=True
    ).stdout
    found = json.loads(told)
    packages = {one["id"]: one for one in found["packages"]}
    edges = {
        node["id"]: [dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        for node in found["resolve"]["nodes"]
    }
    open_ones = [number for number, one in packages.items() if one["name"] == package]
    linked = set()
    while open_ones:
        one = open_ones.pop()
        if one not in linked:
            linked.add(one)
            open_ones += edges[one]
    lines = []
    for one in sorted((packages[number] for number in linked), key=lambda one: one["name"]):
        if one["source"] is None:
            continue
        lines.append(f"{one['name']} {one['version']}: {one['license']}\n")
        root = pathlib.Path(one["manifest_path"]).parent
        # HiGHS is the one that has its sources in a folder.
        for file in sorted([*root.iterdir(), *root.glob("HiGHS/*")]):
            if file.is_file() and file.name.lower().startswith(NAMES):
                into = directory / f"{one['name']}-{one['version']}" / file.relative_to(root)
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, into)
    (directory / "LIST").write_text("".join(lines))


main()
