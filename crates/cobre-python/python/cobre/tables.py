"""The tables of simulated paths, in memory or in the files of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cobre import _native
from cobre.errors import ValidationError
from cobre.table import Table

SIMULATION = "simulation"
"""The part of a run's results that they are in."""

START_DATE = "start_date"
"""The column with the first day of a row's stage."""


class Tables(Mapping[str, Table]):
    """Tables of simulated paths by name, with the names and columns of the files that ``cobre run`` writes.

    A table is read when it is asked for: from memory, or from its file where the run has an ``output``.
    """

    def __init__(self, places: Mapping[str, bytes | str]) -> None:
        self._places = dict(places)
        self._read: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        name = name.removeprefix(f"{SIMULATION}/")
        if name not in self._places:
            there = ", ".join(self._places)
            raise KeyError(f"there is no table {name}; " + (f"there are {there}" if there else "nothing was simulated"))
        if name not in self._read:
            self._read[name] = Table(dict(_native.read_table(self._places[name])))
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __reduce__(self) -> tuple[type[Tables], tuple[dict[str, bytes | str]]]:
        return Tables, (self._places,)

    def __repr__(self) -> str:
        return f"<cobre.Tables {', '.join(self._places)}>" if self._places else "<cobre.Tables, none>"


def in_memory(tables: list[tuple[str, bytes]]) -> Tables:
    """Tables as the native part hands them over."""
    return Tables({name.removeprefix(f"{SIMULATION}/"): whole for name, whole in tables})


def in_directory(output: str) -> Tables:
    """The tables that a run has left in its output directory."""
    directory = os.path.join(output, SIMULATION)
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    tables = (name.removesuffix(".parquet") for name in names if name.endswith(".parquet"))
    return Tables({name: os.path.join(directory, f"{name}.parquet") for name in tables})


def dates_of(table: Table, stages: Iterable[int]) -> list[str]:
    """The first day of stages: of each, as its first row has it."""
    import numpy as np

    there, first = np.unique(table["stage"], return_index=True)
    dates = dict(zip(there.tolist(), table[START_DATE][first]))
    return [str(dates[stage]) for stage in stages]


def results_directory(results: Any) -> str:
    """The directory of a run's results: a path, or the result of a run that has one."""
    output = getattr(results, "output", results)
    if output is None:
        raise ValidationError("this run has no files: give train or simulate an output")
    return os.path.abspath(os.fsdecode(output))
