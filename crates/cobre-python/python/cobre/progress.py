"""What a run tells while it goes on."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """The state of training after an iteration, as one worker saw it."""

    worker_id: int
    iteration: int
    bound: float
    estimate: float
    half_width_95: float | None
    paths: int
    gap: float | None
    """How far the estimate is from the bound, relative to it; none under a risk measure."""
    cuts: int
    lp_solves: int
    retries: int
    seconds: float
    forward_seconds: float
    backward_seconds: float
    communication_seconds: float


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


class Line:
    """A line that is written over and over, on a terminal and in a notebook."""

    width = 24
    drawn = 0

    def draw(self, done: int, of: int | None, name: str, rest: str = "") -> None:
        if of:
            filled = min(self.width, self.width * done // of)
            bar = f"[{'#' * filled}{'.' * (self.width - filled)}] {done}/{of}"
        else:
            bar = f"{name} {done}"
        # A line that the terminal breaks could not be written over.
        line = (bar + rest)[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write(f"\r{line:<{self.drawn}}")
        sys.stderr.flush()
        self.drawn = len(line)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        # Other ranks than the first draw nothing.
        if self.drawn:
            sys.stderr.write("\n")
            sys.stderr.flush()


class Bar(Line):
    """How far training is."""

    def __init__(self, iterations: int | None) -> None:
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
