"""``cobre.summary``: the essentials of a run, as ``cobre summary`` shows them."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cobre import _native
from cobre.errors import IOError, ValidationError
from cobre.table import Table
from cobre.tables import START_DATE, Tables, dates_of, in_directory, results_directory

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

NO_DEFICIT_MW = 1e-6
"""A deficit below this is one of the solver's tolerance."""


@dataclass(frozen=True, repr=False, eq=False)
class Summary:
    """What a run was, what its policy costs, and what the system does under it; tables are none where a run has none."""

    facts: dict[str, str]
    costs: Table | None
    """Mean, percentiles and share by kind, discounted."""
    storage: Table | None
    """Water in all reservoirs after each stage, hm³."""
    deficit: Table | None
    """Energy that is not served, MWh, by bus."""
    marginal_costs: Table | None
    """Cost of one more MWh at each bus, over scenarios and stages, weighted by hours."""

    def _parts(self) -> list[tuple[str, Table]]:
        parts = [
            ("costs, discounted", self.costs),
            ("water in all reservoirs after the stage, hm³", self.storage),
            ("deficit, MWh", self.deficit),
            ("marginal cost of a stage, per MWh", self.marginal_costs),
        ]
        return [(title, table) for title, table in parts if table is not None]

    def __repr__(self) -> str:
        facts = "\n".join(f"  {name:<12} {value}" for name, value in self.facts.items())
        return "\n\n".join([f"Summary\n{facts}", *(f"{title}\n{table}" for title, table in self._parts())])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self.facts.items()
        )
        tables = "".join(f"<h4>{html.escape(title)}</h4>{table._repr_html_()}" for title, table in self._parts())
        return f"<table><tbody>{rows}</tbody></table>{tables}"


def summary(results: Any) -> Summary:
    """The essentials of a run: of the directory of its results, or of what ``train`` or ``simulate`` returned."""
    tables = getattr(results, "tables", None)
    if isinstance(tables, Tables):
        facts = dict(results._facts())
    else:
        directory = results_directory(results)
        facts, tables = _facts_of(directory), in_directory(directory)
    hydrothermal = "buses" in tables
    return Summary(
        facts=facts,
        costs=_costs(tables) if "paths" in tables else None,
        storage=_storage(tables["hydros"]) if "hydros" in tables else None,
        deficit=_deficit(tables["buses"]) if hydrothermal else None,
        marginal_costs=_marginal_costs(tables["buses"]) if hydrothermal else None,
    )


def _facts_of(directory: str) -> dict[str, str]:
    place = os.path.join(directory, "run.json")
    try:
        # Opening a pipe would wait for its other end.
        if os.path.exists(place) and not os.path.isfile(place):
            raise IOError(f"{place}: it is no file")
        with open(place, encoding="utf-8") as file:
            run = json.load(file)
    except OSError as error:
        raise IOError(f"{place}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ValidationError(f"{place}: {error}") from None
    estimate = run.get("estimate") or {} if isinstance(run, dict) else None
    if not isinstance(estimate, dict):
        raise ValidationError(f"{place}: it is no record of a run")
    facts = {
        "case": run.get("case"),
        "finished": run.get("finished"),
        "bound": run.get("bound"),
        "estimate": estimate.get("mean"),
        "paths": estimate.get("paths"),
        "iterations": run.get("iterations"),
        "stopped by": run.get("stop_reason"),
        "policy": run.get("policy_sha256"),
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _spread(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    import numpy as np

    low, high = np.percentile(values, [5.0, 95.0])
    return float(values.mean()), float(low), float(high)


def _sums(keys: list[Any], values: npt.NDArray[np.float64]) -> tuple[Any, npt.NDArray[np.float64]]:
    """The distinct rows of keys in order, and the sum of the values of each."""
    import numpy as np

    distinct, place = np.unique(np.column_stack(keys), axis=0, return_inverse=True)
    sums: Any = np.bincount(place.reshape(-1), weights=values, minlength=len(distinct))
    return distinct, sums


def _costs(tables: Tables) -> Table:
    whole = tables["paths"]["value"]
    kinds: list[tuple[str, Any]] = []
    if "costs" in tables:
        costs = tables["costs"]
        for name in costs:
            if _native.is_cost_kind(name) and costs[name].any():
                kinds.append((name, _sums([costs["scenario"]], costs["discount"] * costs[name])[1]))
    kinds.append(("all", whole))
    spreads = [_spread(values) for _, values in kinds]
    mean = float(whole.mean())
    return Table(
        {
            "kind": [name for name, _ in kinds],
            "mean": [spread[0] for spread in spreads],
            "p5": [spread[1] for spread in spreads],
            "p95": [spread[2] for spread in spreads],
            "share": [spread[0] / mean if mean else float("nan") for spread in spreads],
        }
    )


def _storage(hydros: Table) -> Table:
    keys, stored = _sums([hydros["stage"], hydros["scenario"]], hydros["storage_hm3"])
    stages = sorted(set(keys[:, 0].tolist()))
    spreads = [_spread(stored[keys[:, 0] == stage]) for stage in stages]
    return Table(
        {
            "stage": stages,
            START_DATE: dates_of(hydros, stages),
            "mean": [spread[0] for spread in spreads],
            "p5": [spread[1] for spread in spreads],
            "p95": [spread[2] for spread in spreads],
        }
    )


def _by_bus(buses: Table) -> list[tuple[str, Any]]:
    """Name and rows of each bus, by number: names may occur twice."""
    import numpy as np

    numbers, first = np.unique(buses["bus_id"], return_index=True)
    return [(str(buses["bus"][row]), buses["bus_id"] == number) for number, row in zip(numbers, first)]


def _deficit(buses: Table) -> Table:
    import numpy as np

    energy = np.where(buses["deficit_mw"] > NO_DEFICIT_MW, buses["deficit_mw"], 0.0) * buses["hours"]
    everywhere = np.ones(len(energy), bool)
    named = [*_by_bus(buses), ("all", everywhere)]
    of_scenarios = [_sums([buses["scenario"][rows]], energy[rows])[1] for _, rows in named]
    return Table(
        {
            "bus": [name for name, _ in named],
            "scenarios": [float((energies > 0.0).mean()) for energies in of_scenarios],
            "mean": [float(energies.mean()) for energies in of_scenarios],
            "p95": [_spread(energies)[2] for energies in of_scenarios],
            "most": [float(energies.max()) for energies in of_scenarios],
        }
    )


def _marginal_costs(buses: Table) -> Table:
    named = _by_bus(buses)
    found = []
    for _, rows in named:
        at = [buses["scenario"][rows], buses["stage"][rows]]
        weighted = _sums(at, buses["marginal_cost_per_mwh"][rows] * buses["hours"][rows])[1]
        hours = _sums(at, buses["hours"][rows])[1]
        _, low, high = _spread(weighted / hours)
        found.append((weighted.sum() / hours.sum(), low, high, (weighted / hours).max()))
    return Table(
        {
            "bus": [name for name, _ in named],
            **{name: [one[place] for one in found] for place, name in enumerate(("mean", "p5", "p95", "most"))},
        }
    )
