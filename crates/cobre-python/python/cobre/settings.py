"""What callers may ask for, checked before anything is started."""

from __future__ import annotations

import math
import operator
import os
from typing import Any

from cobre import _native
from cobre.errors import ValidationError
from cobre.problem import Problem

CaseLike = Any


def count(name: str, value: Any, least: int = 1) -> int:
    """``value`` as a whole number that is at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: a whole number is expected") from None
    if number < least or number >= 1 << 63:
        raise ValidationError(f"{name}={number}: at least {least} is expected")
    return number


def given(case: CaseLike, bound: float | None, risk: str | None) -> dict[str, Any]:
    """What is to be solved, as the native part takes it."""
    if bound is not None and not math.isfinite(bound):
        raise ValidationError(f"bound={bound}: a finite number is expected")
    if isinstance(case, Problem):
        return {"source": case.collected(), "bound": bound, "risk": risk}
    known = getattr(case, "given", None)
    if known is not None:
        again = dict(known)
        if bound is not None:
            again["bound"] = bound
        if risk is not None:
            again["risk"] = risk
        return again
    path = os.path.abspath(os.fspath(case))
    return {"source": path, "bound": bound, "risk": risk}


def threads_per_worker(threads: int | None, workers: int) -> int:
    """As asked for, else the processors of this machine shared out."""
    if threads is None:
        return max(1, _native.usable_processors() // workers)
    return count("threads", threads)
