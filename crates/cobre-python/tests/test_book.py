"""What the book shows runs as it is shown."""

from __future__ import annotations

import re

import cobre
from conftest import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_guide_runs_from_its_first_block_to_its_last(tmp_path, monkeypatch, case, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    text = (ROOT / "book/src/guide/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    # What the text around the blocks speaks of.
    names = {"__name__": "__main__", "case": case, "comm": cobre.Communicator()}
    for block in blocks:
        exec(compile(block, "book/src/guide/python.md", "exec"), names)
    assert names["result"].iterations == 60


def test_the_tutorial_that_builds_sddp_prints_what_it_shows_and_agrees_with_cobre(capsys):
    page = "book/src/tutorials/sddp.md"
    names: dict[str, object] = {}
    shown = []
    for language, block in BLOCK.findall((ROOT / page).read_text()):
        if language == "python":
            exec(compile(block, page, "exec"), names)
        elif language == "text":
            shown.append(block)
            assert capsys.readouterr().out == block
    assert len(shown) == 3
