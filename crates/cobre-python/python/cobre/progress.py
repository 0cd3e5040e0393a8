"""What a run tells while it goes on."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """The state of training after an iteration, as one worker saw it, by the names of the tables of training."""

    worker_id: int
    iteration: int
    bound: float
    estimate_mean: float
    estimate_half_width_95: float | None
    estimate_paths: int
    gap: float | None
    """How far the estimate is from the bound, relative to it; none under a risk measure."""
    cuts: int
    cuts_added: int
    lp_solves: int
    upper_bound: float | None
    """The bound from the other side; none where none was computed."""
    seconds: float
    forward_seconds: float
    backward_seconds: float
    communication_seconds: float
    highs_solves: int
    refactored: int
    cold_starts: int
    fallbacks: int
    retries: int


Callback = Callable[[Progress], Any]


def listener(progress: Any, bar: Callable[[], Line]) -> Any:
    """Who is told: a bar, the caller's function, or nobody."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return bar()
    if callable(progress):
        return progress
    raise TypeError(f"progress={progress!r}: a function, True or None is expected")


INTERVAL_SECS = 0.1
"""The least time between two states of a line."""


class Line:
    """One line that shows how far a run is: live in a notebook and on a terminal, its last state anywhere else."""

    width = 24
    drawn = 0
    text = ""
    shown_at = 0.0

    def __init__(self) -> None:
        self.notebook = notebook_display()

    def draw(self, done: int, of: int | None, name: str, rest: str = "") -> None:
        if of:
            filled = min(self.width, self.width * done // of)
            bar = f"[{'#' * filled}{'.' * (self.width - filled)}] {done}/{of}"
        else:
            bar = f"{name} {done}"
        self.text = bar + rest
        if time.monotonic() - self.shown_at >= INTERVAL_SECS and (self.notebook or sys.stderr.isatty()):
            self.show()

    def show(self) -> None:
        self.shown_at = time.monotonic()
        if self.notebook:
            self.notebook(self.text)
            return
        # A line that the terminal breaks could not be written over.
        line = self.text[: shutil.get_terminal_size().columns - 1]
        before = "\r" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{before}{line:<{self.drawn}}")
        sys.stderr.flush()
        self.drawn = len(line)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        # Other ranks than the first have nothing to show.
        if self.text:
            self.show()
            if not self.notebook:
                sys.stderr.write("\n")
                sys.stderr.flush()


def notebook_display() -> Callable[[str], None] | None:
    """A function that shows a text in the cell of a notebook, in place of the one before; none elsewhere."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return None
    display: Any = sys.modules["IPython"].display.display
    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)


class Bar(Line):
    """How far training is."""

    def __init__(self, iterations: int | None) -> None:
        super().__init__()
        self.iterations = iterations

    def __call__(self, progress: Progress) -> None:
        if progress.worker_id != 0:
            return
        gap = "" if progress.gap is None else f"  gap {100 * progress.gap:.3f} %"
        rest = f"  bound {progress.bound:.8g}{gap}  {progress.seconds:.1f} s"
        self.draw(progress.iteration, self.iterations, "iteration", rest)


class PathBar(Line):
    """How far a simulation is."""

    def __call__(self, done: int, all: int) -> None:
        self.draw(done, all, "path")
