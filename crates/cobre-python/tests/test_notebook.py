"""The notebook that users start from runs from its first cell to its last."""

from __future__ import annotations

import json
import subprocess
import sys

from conftest import ROOT

# In a process of its own: the client of a kernel keeps sockets for good.
RUN = """
import sys, nbformat
from nbclient import NotebookClient
path, folder, done = sys.argv[1:]
notebook = nbformat.read(path, as_version=4)
NotebookClient(notebook, timeout=120, resources={"metadata": {"path": folder}}).execute()
nbformat.write(notebook, done)
"""


def test_the_quickstart_notebook_runs(tmp_path):
    path, done = ROOT / "examples/notebooks/quickstart.ipynb", tmp_path / "done.ipynb"
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(path), str(path.parent), str(done)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    cells = json.loads(done.read_text())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert any("<table>" in "".join(output.get("data", {}).get("text/html", "")) for output in outputs)
