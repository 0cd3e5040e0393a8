"""Building a problem in code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cobre.errors import ValidationError

_Change = tuple[str, int, int, float, float]


class Program:
    """A linear program: columns, rows, and which columns stand for states.

    Columns and rows are known by their names.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._columns: dict[str, tuple[str, float, float, float]] = {}
        self._rows: dict[str, tuple[str, float, float, list[tuple[int, float]]]] = {}
        self._states: list[tuple[str, int, int]] = []
        self._constant = 0.0

    def column(self, name: str, *, cost: float = 0.0, lower: float = 0.0, upper: float = math.inf) -> str:
        """Adds a decision; returns its name."""
        if name in self._columns:
            raise ValidationError(f"two columns are called {name}")
        self._columns[name] = (name, float(cost), float(lower), float(upper))
        return name

    def state(self, name: str, *, lower: float = 0.0, upper: float = math.inf, cost: float = 0.0) -> tuple[str, str]:
        """Adds the columns of a state variable of the problem: ``name_in`` with the value that the
        node before left, and ``name`` with the one that this node leaves. Returns both names."""
        if name not in self._problem._states:
            raise ValidationError(f"there is no state {name}; add it with Problem.state")
        incoming = self.column(f"{name}_in", lower=-math.inf)
        outgoing = self.column(name, cost=cost, lower=lower, upper=upper)
        self._states.append((name, self._column(incoming), self._column(outgoing)))
        return incoming, outgoing

    def row(
        self,
        name: str,
        terms: Mapping[str, float],
        *,
        equals: float | None = None,
        lower: float = -math.inf,
        upper: float = math.inf,
    ) -> str:
        """Adds lower ≤ Σ coefficient × column ≤ upper; ``equals`` sets both. Returns its name."""
        if name in self._rows:
            raise ValidationError(f"two rows are called {name}")
        if equals is not None:
            lower = upper = equals
        numbered = [(self._column(column), float(value)) for column, value in terms.items()]
        self._rows[name] = (name, float(lower), float(upper), numbered)
        return name

    def constant(self, value: float) -> None:
        """Adds to the constant of the objective."""
        self._constant += float(value)

    def _column(self, name: str) -> int:
        return _place("column", name, self._columns)

    def _row(self, name: str) -> int:
        return _place("row", name, self._rows)

    def _changes(self, opening: Opening) -> list[_Change]:
        found: list[_Change] = []
        for row, bounds in opening.rows.items():
            lower, upper = _pair(bounds)
            found.append(("row", self._row(row), 0, lower, upper))
        for column, bounds in opening.columns.items():
            lower, upper = _pair(bounds)
            found.append(("column", self._column(column), 0, lower, upper))
        for column, cost in opening.costs.items():
            found.append(("cost", self._column(column), 0, float(cost), 0.0))
        for (row, column), value in opening.coefficients.items():
            found.append(("coefficient", self._row(row), self._column(column), float(value), 0.0))
        return found


class Opening:
    """One of the things that may happen at a node: what it puts in place of the program's numbers.

    ``rows`` and ``columns`` take a number (both bounds) or a pair of bounds.
    """

    def __init__(
        self,
        probability: float | None = None,
        *,
        rows: Mapping[str, float | tuple[float, float]] | None = None,
        columns: Mapping[str, float | tuple[float, float]] | None = None,
        costs: Mapping[str, float] | None = None,
        coefficients: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        self.probability = probability
        self.rows = dict(rows or {})
        self.columns = dict(columns or {})
        self.costs = dict(costs or {})
        self.coefficients = dict(coefficients or {})


class Problem:
    """A multistage stochastic linear program in the making. ``train``, ``load`` and ``validate``
    take it in place of a path."""

    def __init__(self, sense: str = "min", *, bound: float) -> None:
        """``bound``: the cost to go after any node is never below it (a revenue: above it)."""
        self._sense = sense
        self._bound = float(bound)
        self._states: dict[str, float] = {}
        self._programs: list[Program] = []
        self._nodes: dict[str, dict[str, Any]] = {}
        self._start: list[tuple[int, float]] = []
        self._edges: list[tuple[int, int, float]] = []

    def state(self, name: str, initial: float) -> str:
        """Adds a state variable with its value before the first stage; returns its name."""
        if name in self._states:
            raise ValidationError(f"two states are called {name}")
        self._states[name] = float(initial)
        return name

    def program(self) -> Program:
        """Adds a linear program that nodes can use."""
        program = Program(self)
        self._programs.append(program)
        return program

    def node(
        self,
        name: str,
        program: Program,
        openings: Iterable[Opening] = (),
        *,
        after: str | Mapping[str, float] | None = None,
    ) -> str:
        """Adds a node; returns its name. Openings without a probability are equally likely.

        ``after`` names the node it follows, or several with the probabilities of the step. A node
        without it is where paths start.
        """
        if name in self._nodes:
            raise ValidationError(f"two nodes are called {name}")
        if not any(program is known for known in self._programs):
            raise ValidationError(f"node {name}: its program belongs to another problem")
        openings = list(openings)
        even = 1.0 / max(1, len(openings))
        self._nodes[name] = {
            "name": name,
            "program": next(place for place, known in enumerate(self._programs) if known is program),
            "openings": [
                (even if opening.probability is None else float(opening.probability), program._changes(opening))
                for opening in openings
            ],
        }
        number = len(self._nodes) - 1
        if after is None:
            self._start.append((number, 1.0))
        else:
            before: Mapping[str, float] = {after: 1.0} if isinstance(after, str) else after
            for other, probability in before.items():
                self._edges.append((_place("node", other, self._nodes), number, float(probability)))
        return name

    def edge(self, before: str, after: str, probability: float) -> None:
        """Lets ``after`` follow ``before`` with this probability."""
        self._edges.append(
            (_place("node", before, self._nodes), _place("node", after, self._nodes), float(probability))
        )

    def start(self, probabilities: Mapping[str, float]) -> None:
        """Says where paths start, in place of at the nodes without ``after``."""
        self._start = [
            (_place("node", name, self._nodes), float(probability)) for name, probability in probabilities.items()
        ]

    def _step(self, node: str, opening: Opening) -> tuple[int, list[_Change]]:
        """A step of a path: the number of its node, and what happens there."""
        number = _place("node", node, self._nodes)
        return number, self._programs[self._nodes[node]["program"]]._changes(opening)

    def collected(self) -> dict[str, Any]:
        """Everything, as the native part takes it."""
        return {
            "sense": self._sense,
            "bound": self._bound,
            "states": list(self._states.items()),
            "programs": [
                {
                    "columns": list(program._columns.values()),
                    "rows": list(program._rows.values()),
                    "states": program._states,
                    "constant": program._constant,
                }
                for program in self._programs
            ],
            "nodes": list(self._nodes.values()),
            "start": self._start,
            "edges": self._edges,
        }


def _place(kind: str, name: str, known: Mapping[str, Any] | Sequence[str]) -> int:
    for place, other in enumerate(known):
        if other == name:
            return place
    raise ValidationError(f"there is no {kind} {name}; there are {', '.join(known) or 'none'}")


def _pair(bounds: float | tuple[float, float]) -> tuple[float, float]:
    if isinstance(bounds, tuple):
        lower, upper = bounds
        return float(lower), float(upper)
    return float(bounds), float(bounds)
