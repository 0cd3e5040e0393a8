"""Loading and checking problems without solving them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cobre import _native
from cobre.errors import IOError, ValidationError
from cobre.settings import CaseLike, given


@dataclass(frozen=True)
class Node:
    """A node of the policy graph: its linear program, openings and what follows."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    probabilities: tuple[float, ...]
    successors: dict[str, float]


@dataclass(frozen=True)
class Case:
    """A problem that makes sense, as it was loaded. ``train`` takes it in place of the path."""

    path: str | None
    sense: str
    risk: str
    stages: int
    columns: int
    rows: int
    openings: int
    states: dict[str, float]
    nodes: tuple[Node, ...] = field(repr=False)
    start: dict[str, float]
    validation_scenarios: int
    settings: dict[str, int] | None
    """What config.json asks for: forward_passes, seed, simulate; none without one."""
    warnings: tuple[str, ...] = field(repr=False)
    """What looks wrong."""
    given: dict[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class ValidationResult:
    """Whether a problem makes sense, and everything that is wrong if not."""

    path: str | None
    findings: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """What is legal but looks wrong."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.ok


def load(
    case: CaseLike,
    *,
    bound: float | None = None,
    risk: str | None = None,
    config_overrides: Mapping[str, Any] | None = None,
) -> Case:
    """Loads the problem at a path (or one built in Python) and shows what is in it."""
    asked = given(case, bound, risk, config_overrides)
    found = _native.describe(asked)
    nodes = tuple(
        Node(
            name=node["name"],
            columns=tuple(node["columns"]),
            rows=tuple(node["rows"]),
            probabilities=tuple(node["probabilities"]),
            successors=dict(node["successors"]),
        )
        for node in found["nodes"]
    )
    source = asked["source"]
    return Case(
        path=source if isinstance(source, str) else None,
        sense=found["sense"],
        risk=found["risk"],
        stages=found["stages"],
        columns=found["columns"],
        rows=found["rows"],
        openings=found["openings"],
        states=dict(found["states"]),
        nodes=nodes,
        start=dict(found["start"]),
        validation_scenarios=found["validation_scenarios"],
        settings=found["settings"],
        warnings=tuple(found["warnings"]),
        given=asked,
    )


def validate(
    case: CaseLike,
    *,
    bound: float | None = None,
    risk: str | None = None,
    config_overrides: Mapping[str, Any] | None = None,
) -> ValidationResult:
    """Checks a problem without solving it; findings are returned, not raised."""
    path = case if isinstance(case, str) else getattr(case, "__fspath__", lambda: None)()
    try:
        loaded = load(case, bound=bound, risk=risk, config_overrides=config_overrides)
    except ValidationError as error:
        return ValidationResult(path, error.findings)
    except IOError as error:
        return ValidationResult(path, (str(error),))
    return ValidationResult(path, (), loaded.warnings)
