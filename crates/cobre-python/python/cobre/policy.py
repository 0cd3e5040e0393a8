"""Policies: what training makes, saved and loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from cobre import _native
from cobre.errors import ValidationError
from cobre.settings import absolute
from cobre.table import Table


class Policy:
    """Cuts below the cost to go of every node (above the revenue to go), and what they belong to."""

    def __init__(self, bare: dict[str, Any]) -> None:
        self._bare = bare

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Reads a policy from the directory that :meth:`save` wrote, or from the output of a run."""
        return cls(_native.load_policy(absolute(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the policy into a directory: ``manifest.json`` and ``cuts.parquet``."""
        _native.save_policy(self._bare, absolute(path))

    @property
    def sense(self) -> str:
        """``"min"`` or ``"max"``."""
        return str(self._bare["sense"])

    @property
    def risk(self) -> str:
        """The risk measure it was trained with."""
        return str(self._bare["risk"])

    @property
    def seed(self) -> int:
        """The seed it was trained with."""
        return int(self._bare["seed"])

    @property
    def bound(self) -> float:
        """The last bound of its training."""
        return float(self._bare["bound"])

    @property
    def states(self) -> dict[str, float]:
        """The state variables with their initial values."""
        return dict(self._bare["states"])

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the graph."""
        return tuple(self._bare["nodes"])

    @property
    def sha256(self) -> str:
        """The fingerprint: names, and every bit of the cuts."""
        return str(self._bare["sha256"])

    @property
    def cuts(self) -> Table:
        """The cuts, one a row, in the modeller's sense."""
        bare = self._bare
        sign = 1.0 if self.sense == "min" else -1.0
        passes = bare["forward_passes"]
        columns: dict[str, Any] = {
            "node": [bare["nodes"][number] for number in bare["node"]],
            "iteration": bare["slot"] // passes + 1,
            "pass": bare["slot"] % passes + 1,
            "intercept": sign * bare["intercept"],
        }
        for place, state in enumerate(self.states):
            columns[f"slope:{state}"] = sign * bare["gradient"][:, place]
        return Table(columns)

    def future_value(self, node: str, state: Mapping[str, float]) -> float:
        """The cost to go (revenue to go) after ``node`` at a state, as the cuts have it; 0 if it has none."""
        import numpy as np

        bare = self._bare
        if node not in self.nodes:
            raise ValidationError(f"there is no node {node}; there are {', '.join(self.nodes)}")
        if set(state) != set(self.states):
            raise ValidationError(f"state={dict(state)}: a value for each of {', '.join(self.states)} is expected")
        here = bare["node"] == self.nodes.index(node)
        if not here.any():
            return 0.0
        point = np.array([state[name] for name in self.states])
        values = bare["intercept"][here] + bare["gradient"][here] @ point
        return float(values.max()) * (1.0 if self.sense == "min" else -1.0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        cuts = len(self._bare["node"])
        return f"<cobre.Policy of {len(self.nodes)} nodes, {cuts} cuts, {self.sha256[:16]}…>"
