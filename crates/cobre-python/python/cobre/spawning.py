"""``cobre.spawn``: a user's own function on all ranks."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
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
    args: Iterable[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Runs ``fn(comm, *args, **kwargs)`` on ``num_workers`` fresh interpreters and returns what
    each rank returned, by rank.

    ``fn`` is pickled. A function of a notebook or of the script itself needs cloudpickle.
    """
    if not callable(fn):
        raise TypeError(f"fn={fn!r}: a function is expected")
    workers = count("num_workers", num_workers)
    team = Team(workers, backend, grace_secs=GRACE_SECS, bind=False)
    ended = team.run(("spawn",), payload=by_value((fn, tuple(args), dict(kwargs or {}))))
    return [ended.results[rank] for rank in range(workers)]


def by_value(content: Any) -> bytes:
    """Pickles what another interpreter is to load; what that cannot import goes by value, with
    cloudpickle."""
    try:
        import cloudpickle
    except ImportError:
        into = io.BytesIO()
        ByName(into).dump(content)
        return into.getvalue()
    return bytes(cloudpickle.dumps(content))


class ByName(pickle.Pickler):
    """Refuses functions and classes that another interpreter cannot import."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, (type, FunctionType)):
            name = thing.__qualname__
            if thing.__module__ == "__main__" or "<" in name:
                raise CobreError(
                    f"{name} is defined in this script, notebook or another function, where another "
                    "interpreter cannot import it from: install cloudpickle (pip install "
                    "cobre-sddp[cloudpickle]), or put it into a module",
                    kind="usage",
                )
        return NotImplemented
