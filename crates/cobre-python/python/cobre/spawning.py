"""``cobre.spawn``: a user's own function on all ranks."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from cobre.errors import CobreError
from cobre.settings import count
from cobre.workers import Team

GRACE_SECS = 2.0
"""How long workers that are asked to end may take."""


def spawn(
    fn: Callable[..., Any],
    num_workers: int,
    *,
    backend: str = "shm",
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> list[Any]:
    """Runs ``fn(comm, *args, **kwargs)`` on ``num_workers`` fresh interpreters and returns what
    each rank returned, by rank.

    ``fn`` is pickled. A function of a notebook or of the script itself needs cloudpickle.
    """
    workers = count("num_workers", num_workers)
    team = Team(workers, backend, grace_secs=GRACE_SECS, bind=False)
    ended = team.run(("spawn",), payload=_pickled(fn, (fn, args, kwargs or {})))
    return [ended.results.get(rank) for rank in range(workers)]


def _pickled(fn: Callable[..., Any], content: Any) -> bytes:
    try:
        import cloudpickle
    except ImportError:
        pass
    else:
        return bytes(cloudpickle.dumps(content))
    name = getattr(fn, "__qualname__", "")
    if getattr(fn, "__module__", None) == "__main__" or "<locals>" in name or "<lambda>" in name:
        raise CobreError(
            f"{name or fn!r} is defined in this script, notebook or another function, where a worker "
            "cannot import it from: install cloudpickle (pip install cobre[cloudpickle]), or put it "
            "into a module",
            kind="IncompatibleSettings",
        )
    return pickle.dumps(content)
