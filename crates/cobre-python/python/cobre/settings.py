"""What callers may ask for, checked before anything is started."""

from __future__ import annotations

import json
import math
import operator
import os
from collections.abc import Mapping
from typing import Any

from cobre import _native
from cobre.errors import IOError, ValidationError
from cobre.problem import Problem

CaseLike = Any


def count(name: str, value: Any, least: int = 1, most: int = (1 << 63) - 1) -> int:
    """``value`` as a whole number from ``least`` to ``most``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: a whole number is expected") from None
    if number < least:
        raise ValidationError(f"{name}={number}: at least {least} is expected")
    if number > most:
        raise ValidationError(f"{name}={number}: at most {most} is expected")
    return number


def maybe(name: str, value: Any, least: int = 1, most: int = (1 << 63) - 1) -> int | None:
    """A number, or nothing: then the case says it, or it is as usual."""
    return None if value is None else count(name, value, least, most)


def text(name: str, value: Any) -> str:
    """``value``, which is a text."""
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r}: a text is expected")
    return value


def maybe_text(name: str, value: Any) -> str | None:
    """A text, or nothing."""
    return None if value is None else text(name, value)


def absolute(path: str | os.PathLike[str]) -> str:
    """A path that workers and later calls understand as this one does."""
    path = os.fsdecode(path)
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise IOError(f"{path}: the working directory is gone, so a path must begin with /") from None


def given(
    case: CaseLike,
    bound: float | None,
    risk: str | None,
    config_overrides: Mapping[str, Any] | None = None,
    boundary: str | os.PathLike[str] | None = None,
    boundary_stage: int | str | None = None,
) -> dict[str, Any]:
    """What is to be solved, as the native part takes it."""
    try:
        finite = bound is None or math.isfinite(bound)
    except OverflowError:
        raise ValidationError("bound: a finite number is expected") from None
    if not finite:
        raise ValidationError(f"bound={bound}: a finite number is expected")
    risk = maybe_text("risk", risk)
    overrides = None if config_overrides is None else _overrides(config_overrides)
    if boundary_stage is not None and boundary is None:
        raise ValidationError("boundary_stage: boundary, the policy that has this stage, is needed")
    stage = None if boundary_stage is None else str(boundary_stage)
    terminal = None if boundary is None else (absolute(boundary), stage)
    if isinstance(case, Problem):
        if overrides is not None:
            raise ValidationError("config_overrides: a Problem has no config.json; only the directory of a case has one")
        source: Any = case.collected()
        return {"source": source, "bound": bound, "risk": risk, "overrides": None, "boundary": terminal, "paths": None}
    known = getattr(case, "given", None)
    if known is not None:
        again = dict(known)
        if bound is not None:
            again["bound"] = bound
        if risk is not None:
            again["risk"] = risk
        if overrides is not None:
            again["overrides"] = overrides
        if terminal is not None:
            again["boundary"] = terminal
        return again
    source = absolute(case)
    return {"source": source, "bound": bound, "risk": risk, "overrides": overrides, "boundary": terminal, "paths": None}


def _overrides(config: Mapping[str, Any]) -> str:
    """What mirrors config.json, as JSON."""
    if not isinstance(config, Mapping):
        raise TypeError(f"config_overrides={config!r}: a dictionary is expected")
    try:
        # Numbers of NumPy know themselves as Python's.
        return json.dumps(config, allow_nan=False, default=lambda value: value.item())
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise ValidationError(f"config_overrides: it cannot be written as JSON: {error}") from None


def processors_each(workers: int) -> int:
    """The processors of this machine divided among workers."""
    return max(1, _native.usable_processors() // workers)
