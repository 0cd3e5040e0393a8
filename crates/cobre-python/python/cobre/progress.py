"""What a run tells while it goes on."""

from __future__ import annotations

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


class Line:
    """A line that is written over and over, on a terminal and in a notebook."""

    width = 24

    def draw(self, done: int, of: int | None, name: str, rest: str = "") -> None:
        if of:
            drawn = min(self.width, self.width * done // of)
            bar = f"[{'#' * drawn}{'.' * (self.width - drawn)}] {done}/{of}"
        else:
            bar = f"{name} {done}"
        sys.stderr.write(f"\r{bar + rest:<96}")
        sys.stderr.flush()

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
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
