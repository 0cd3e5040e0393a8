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


class Bar:
    """A line that is written over and over, on a terminal and in a notebook."""

    width = 24

    def __init__(self, iterations: int | None) -> None:
        self.iterations = iterations

    def __call__(self, progress: Progress) -> None:
        if progress.worker_id != 0:
            return
        if self.iterations:
            done = min(self.width, self.width * progress.iteration // self.iterations)
            drawn = f"[{'#' * done}{'.' * (self.width - done)}] {progress.iteration}/{self.iterations}"
        else:
            drawn = f"iteration {progress.iteration}"
        gap = "" if progress.gap is None else f"  gap {100 * progress.gap:.3f} %"
        line = f"{drawn}  bound {progress.bound:.8g}{gap}  {progress.seconds:.1f} s"
        sys.stderr.write(f"\r{line:<96}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\n")
        sys.stderr.flush()
