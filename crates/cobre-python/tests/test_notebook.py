"""The notebook that users start from runs from its first cell to its last, with what the wheel itself installs."""

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
NotebookClient(notebook, timeout=240, resources={"metadata": {"path": folder}}).execute()
nbformat.write(notebook, done)
"""

# Packages that the wheel does not install by itself cannot be imported in the kernel.
ALONE = """
import sys
for name in ["pandas", "polars", "pyarrow", "matplotlib", "cloudpickle", "scipy"]:
    sys.modules[name] = None
"""


def executed(tmp_path) -> list[dict]:
    """The cells of the notebook after a run, but for the one that hides packages."""
    path, asked, done = ROOT / "examples/notebooks/quickstart.ipynb", tmp_path / "asked.ipynb", tmp_path / "done.ipynb"
    notebook = json.loads(path.read_text())
    hiding = {"cell_type": "code", "metadata": {}, "id": "hide", "source": ALONE, "outputs": [], "execution_count": None}
    notebook["cells"].insert(0, hiding)
    asked.write_text(json.dumps(notebook))
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(asked), str(path.parent), str(done)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(done.read_text())["cells"][1:]


def test_the_quickstart_notebook_runs_with_the_packages_of_the_wheel_and_ends_in_a_decision(tmp_path):
    cells = executed(tmp_path)
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    shown = ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]
    assert any("<table>" in html for html in shown)
    drawings = [html for html in shown if html.startswith("<svg")]
    assert len(drawings) == 2 and all(html.count("<polygon") == 2 for html in drawings)
    said = "".join("".join(output.get("text", "")) for output in outputs)
    # Stages have the numbers of the case: that of the first month is 0.
    assert "Decision for the first month (2026-01-01)" in said and "m³/s at" in said


def test_progress_in_a_notebook_is_one_live_line(tmp_path):
    training = next(cell for cell in executed(tmp_path) if "progress=True" in "".join(cell["source"]))
    assert not [output for output in training["outputs"] if output["output_type"] == "stream"]
    lines = ["".join(output.get("data", {}).get("text/plain", "")) for output in training["outputs"]]
    bars = [line for line in lines if line.startswith("[###")]
    assert len(bars) == 1 and "60/60" in bars[0], lines
