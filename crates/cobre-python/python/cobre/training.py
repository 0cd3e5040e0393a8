"""``cobre.train``: one process, or several that the parent starts and watches."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any

from cobre import _native
from cobre.errors import WorkerError
from cobre.progress import Bar, Callback, Progress
from cobre.results import TrainingResult, Worker, training_result
from cobre.settings import CaseLike, count, given, threads_per_worker
from cobre.workers import Team

GRACE_SECS = 60.0
"""How long workers that are asked to end may take to finish an iteration and write results."""


def train(
    case: CaseLike,
    *,
    bound: float | None = None,
    iterations: int | None = None,
    seed: int = 0,
    num_workers: int = 1,
    backend: str = "auto",
    threads: int | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: bool | Callback | None = None,
    forward_passes: int = 1,
    risk: str = "expectation",
    cut_selection: str = "none",
    stop: Sequence[str] = (),
    stop_when_all: bool = False,
    simulate: int = 0,
    solver: str | None = None,
) -> TrainingResult:
    """Trains a policy for ``case``: a path, a loaded :class:`Case` or a :class:`Problem`.

    With ``num_workers`` above 1, fresh interpreters share the work through shared memory
    (``backend="shm"``) or sockets (``"tcp"``). The result is the same bits for any number of workers
    and threads, and the same as that of ``cobre run`` with the same options.

    ``progress`` is called with a :class:`Progress` after every iteration, once per worker; ``True``
    draws a bar. If it raises, or Ctrl-C is pressed, the run ends after the iteration, writes what
    it has to ``output``, and the exception is raised.
    """
    workers = count("num_workers", num_workers)
    asked = given(case, bound, risk)
    request: dict[str, Any] = {
        "seed": count("seed", seed, least=0),
        "iterations": None if iterations is None else count("iterations", iterations),
        "forward_passes": count("forward_passes", forward_passes),
        "cut_selection": cut_selection,
        "stop": list(stop),
        "stop_when_all": bool(stop_when_all),
        "threads": threads_per_worker(threads, workers),
        "simulate": count("simulate", simulate, least=0),
        "solver": solver,
        "output": None if output is None else os.path.abspath(os.fspath(output)),
    }
    bar = Bar(request["iterations"]) if progress is True else None
    callback: Callback | None = bar or (progress if callable(progress) else None)
    try:
        if workers == 1 and backend in ("auto", "local"):
            return _alone(asked, request, callback)
        return _together(asked, request, callback, workers, backend)
    finally:
        if bar is not None:
            bar.close()


def _alone(asked: dict[str, Any], request: dict[str, Any], callback: Callback | None) -> TrainingResult:
    def tell(step: dict[str, Any]) -> None:
        assert callback is not None
        callback(Progress(worker_id=0, **step))

    found = _native.train(asked, request, True, None if callback is None else tell)
    alone = Worker(rank=0, pid=os.getpid(), host=socket.gethostname(), backend="local")
    return training_result(found, (alone,))


def _together(
    asked: dict[str, Any],
    request: dict[str, Any],
    callback: Callback | None,
    workers: int,
    backend: str,
) -> TrainingResult:
    team = Team(workers, backend, grace_secs=GRACE_SECS, bind=request["threads"] == 1)
    # Workers would all find the same errors.
    _native.describe(asked)
    task = ("train", asked, request, callback is not None)

    def step(rank: int, told: dict[str, Any]) -> None:
        if callback is not None:
            callback(Progress(worker_id=rank, **told))

    ended = team.run(task, step=step)
    found = ended.results.get(0)
    if found is None:
        raise WorkerError("worker 0 ended without a result", rank=0, exit_code=0)
    return training_result(found, ended.workers)
