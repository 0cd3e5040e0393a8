#!/usr/bin/env python3
"""Runs the transcripts of a page that the test `book` cannot run, and compares them in its way.

    ci/transcript.py PAGE LANGUAGE

In each block of the language, such as `console slurm`, a line `$ …` is a command, and the lines below it are among those that
it prints, in any order; `…` stands for anything. Commands run in this directory and with this environment. A block below a
line `<!-- file: PATH -->` is written to PATH first. Exits 1 if a page is wrong.
"""
import pathlib
import re
import subprocess
import sys

LIMIT = 300.0  # seconds


def blocks(text):
    """Language, file and lines of each fenced block."""
    for found in re.finditer(r"(?:^<!-- file: (\S+) -->\n)?^```([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        yield found[2], found[1], found[3].splitlines()


def steps(lines):
    """Commands, with the lines that they print."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip():
            found[-1][1].append(line)
    return found


def missing(shown, printed):
    """The shown lines that are not printed; each printed line stands for one of them."""
    left, absent = [line.rstrip() for line in printed.splitlines()], []
    for line in sorted(shown, key=lambda line: line.count("…")):
        pattern = ".*".join(map(re.escape, line.rstrip().split("…")))
        found = next((candidate for candidate in left if re.fullmatch(pattern, candidate)), None)
        if found is None:
            absent.append(line)
        else:
            left.remove(found)
    return absent


def main():
    page, wanted = pathlib.Path(sys.argv[1]), sys.argv[2]
    wrong, count = 0, 0
    for language, file, lines in blocks(page.read_text()):
        if file:
            pathlib.Path(file).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(file).write_text("\n".join(lines) + "\n")
        for command, shown in steps(lines) if language == wanted else []:
            ran = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
            count += 1
            absent = missing(shown, ran.stdout)
            if ran.returncode != 0 or absent:
                wrong += 1
                print(f"{page}: $ {command}\n  exits {ran.returncode}, does not print {absent}; it printed:\n{ran.stdout}")
    print(f"{page}: {count} commands of {wanted}, {wrong} wrong")
    sys.exit(1 if wrong or not count else 0)


main()
