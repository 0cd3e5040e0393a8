"""Paths that a policy is simulated on: how many are drawn, or which ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from cobre.errors import ValidationError
from cobre.problem import Opening, Problem
from cobre.settings import absolute, count

EXPECTED = (
    "a number of paths, an array of inflows (paths × stages × hydro plants, m³/s), whole numbers of openings "
    "from 0 (paths × stages), the file of scenarios, or of a Problem pairs of node and Opening"
)


def _is_steps(paths: Any) -> bool:
    """Whether paths are lists of pairs of a node and what happens there."""
    if not isinstance(paths, (list, tuple)) or not paths or not all(isinstance(path, (list, tuple)) for path in paths):
        return False
    steps = [step for path in paths for step in path]
    return bool(steps) and all(
        isinstance(step, tuple) and len(step) == 2 and isinstance(step[1], Opening) for step in steps
    )


def asked(case: Any, paths: Any, labels: Sequence[str] | None) -> tuple[int | None, dict[str, Any] | None]:
    """The number of paths and those that are given, as the native part takes them."""
    names = [] if labels is None else [str(label) for label in labels]
    if paths is None or (np.isscalar(paths) and not isinstance(paths, (str, bytes, os.PathLike))):
        if names:
            raise ValidationError("labels: they name paths that are given")
        return (None if paths is None else count("paths", paths)), None
    given: dict[str, Any] = {"labels": names, "files": [], "inflows": None, "openings": None, "steps": None}
    if isinstance(paths, (str, os.PathLike)):
        given["files"] = [absolute(paths)]
        return None, given
    if _is_steps(paths):
        if not isinstance(case, Problem):
            raise ValidationError("paths: pairs of node and Opening are for a cobre.Problem")
        if names and len(names) != len(paths):
            raise ValidationError(f"labels: {len(names)} of them for {len(paths)} paths")
        given["steps"] = [[case._step(*step) for step in path] for path in paths]
        return len(paths), given
    try:
        array = np.asarray(paths)
    except ValueError:
        raise ValidationError(f"paths: {EXPECTED} are expected; the paths differ in length") from None
    if array.ndim == 3 and array.dtype.kind in "iuf" and array.size:
        given["inflows"] = array.astype(float).tolist()
    elif array.ndim == 2 and array.dtype.kind in "iu" and array.size and array.min() >= 0:
        given["openings"] = array.tolist()
    else:
        raise ValidationError(f"paths: {EXPECTED} is expected; an array of shape {array.shape} and type {array.dtype} is found")
    if names and len(names) != len(array):
        raise ValidationError(f"labels: {len(names)} of them for {len(array)} paths")
    return len(array), given
