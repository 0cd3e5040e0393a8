"""What a run found."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cobre.policy import Policy
from cobre.table import Table
from cobre.tables import Tables, in_directory, in_memory

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class Estimate:
    """The policy's mean value on some paths, with half the width of its 95 % interval."""

    mean: float
    half_width_95: float | None
    paths: int
    source: str

    def __str__(self) -> str:
        if self.half_width_95 is None:
            return f"{self.mean:.8g} ({self.paths} path)"
        return f"{self.mean:.8g} ± {self.half_width_95:.2g} ({self.paths} paths)"


@dataclass(frozen=True)
class Worker:
    """A process that took part in a run."""

    rank: int
    pid: int
    host: str
    backend: str


@dataclass(frozen=True, repr=False, eq=False)
class TrainingResult:
    """What training found, in the modeller's sense; the same bits for any workers and threads,
    seconds apart."""

    sense: str
    bound: float
    upper_bound: float | None
    """The best deterministic bound from the other side; none if none was asked for or found."""
    estimate: Estimate
    iterations: int
    stop_reason: str
    convergence: Table
    timings: Table
    lp_solves: int
    validation: tuple[float, ...]
    policy_sha256: str
    seconds: dict[str, float]
    workers: tuple[Worker, ...]
    policy: Policy
    resumed_from: int | None
    """Iterations of an earlier run that this one went on from."""
    values: npt.NDArray[np.float64]
    """The value of each simulated path, in order; none if nothing was simulated."""
    tables: Tables
    """The tables of simulated paths, as ``cobre run`` writes them: storage, generation and so on."""
    output: str | None
    """The directory of results, if there is one."""

    @property
    def gap(self) -> float | None:
        """The distance of the estimate from the bound, relative to the bound; none under a risk measure.

        Above zero for a cost above its bound or a revenue below. Sampling can put it on the other side.
        """
        if math.isnan(self.convergence["gap"][-1]):
            return None
        beyond = self.estimate.mean - self.bound if self.sense == "min" else self.bound - self.estimate.mean
        return beyond / max(abs(self.bound), 1e-9)

    def _facts(self) -> list[tuple[str, str]]:
        side = "lower bound" if self.sense == "min" else "upper bound"
        backend = self.workers[0].backend
        gap = self.gap
        other = "upper bound" if self.sense == "min" else "lower bound"
        beyond = [] if self.upper_bound is None else [(other, repr(self.upper_bound))]
        return [
            (side, repr(self.bound)),
            *beyond,
            ("estimate", str(self.estimate)),
            ("gap", "none under a risk measure" if gap is None else f"{100 * gap:.4f} %"),
            ("iterations", f"{self.iterations} ({self.stop_reason})"),
            ("LP solves", str(self.lp_solves)),
            ("training", f"{self.seconds['train']:.3f} s on {len(self.workers)} × {backend}"),
            ("policy", self.policy_sha256[:16] + "…"),
        ]

    def __repr__(self) -> str:
        return _text("TrainingResult", self._facts())

    def _repr_html_(self) -> str:
        return _html("TrainingResult", self._facts())

    def plot_convergence(self, ax: Any = None) -> Any:
        """Draws bound and estimate by iteration; needs matplotlib. Returns the axes."""
        ax = _axes(ax)
        table = self.convergence
        ax.plot(table["iteration"], table["bound"], label="bound")
        ax.plot(table["iteration"], table["estimate_mean"], ".", label="estimate", alpha=0.5)
        ax.set_xlabel("iteration")
        ax.set_ylabel(_value(self.sense))
        ax.legend()
        return ax

    def plot_timings(self, ax: Any = None) -> Any:
        """Draws where the time went by iteration; needs matplotlib. Returns the axes."""
        ax = _axes(ax)
        table = self.timings
        for part in ("forward", "backward", "communication"):
            ax.plot(table["iteration"], table[f"{part}_seconds"], label=part)
        ax.plot(table["iteration"], table["seconds"], label="in all")
        ax.set_xlabel("iteration")
        ax.set_ylabel("seconds so far")
        ax.legend()
        return ax


def _text(title: str, facts: list[tuple[str, str]]) -> str:
    return title + "\n" + "\n".join(f"  {name:<12} {value}" for name, value in facts)


def _html(title: str, facts: list[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in facts
    )
    return f"<table><caption>{title}</caption><tbody>{rows}</tbody></table>"


def _axes(ax: Any) -> Any:
    """What is drawn on: the caller's, or new ones."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plots need matplotlib: pip install cobre-sddp[matplotlib]") from None
    return pyplot.subplots()[1] if ax is None else ax


def _value(sense: str) -> str:
    return "cost" if sense == "min" else "revenue"


CONVERGENCE = (
    "iteration",
    "bound",
    "estimate_mean",
    "estimate_half_width_95",
    "estimate_paths",
    "gap",
    "cuts",
    "cuts_added",
    "lp_solves",
    "upper_bound",
)
TIMINGS = (
    "iteration",
    "seconds",
    "forward_seconds",
    "backward_seconds",
    "communication_seconds",
    "highs_solves",
    "refactored",
    "cold_starts",
    "fallbacks",
    "retries",
)


def training_result(found: dict[str, Any], workers: tuple[Worker, ...], output: str | None) -> TrainingResult:
    """The result from what the native part found."""

    def column(name: str) -> list[Any]:
        values = [step[name] for step in found["steps"]]
        return [math.nan if value is None else value for value in values]

    return TrainingResult(
        sense=found["sense"],
        bound=found["bound"],
        upper_bound=found["upper_bound"],
        estimate=Estimate(**found["estimate"]),
        iterations=len(found["steps"]),
        stop_reason=found["stop_reason"],
        convergence=Table({name: column(name) for name in CONVERGENCE}),
        timings=Table({name: column(name) for name in TIMINGS}),
        lp_solves=found["lp_solves"],
        validation=tuple(found["validation"]),
        policy_sha256=found["policy_sha256"],
        seconds={part: found[f"{part}_seconds"] for part in ("train", "simulate", "write")},
        workers=workers,
        policy=Policy(found["policy"]),
        resumed_from=found["resumed_from"],
        values=found["values"],
        tables=_tables(found, output),
        output=output,
    )


def _tables(found: dict[str, Any], output: str | None) -> Tables:
    return in_memory(found["tables"]) if output is None else in_directory(output)


@dataclass(frozen=True, repr=False, eq=False)
class SimulationResult:
    """What a policy is worth, in the modeller's sense."""

    sense: str
    estimate: Estimate
    values: npt.NDArray[np.float64]
    """The value of each path, in order."""
    validation: tuple[float, ...]
    lp_solves: int
    seconds: float
    workers: tuple[Worker, ...]
    tables: Tables
    """The tables of simulated paths, as ``cobre run`` writes them: storage, generation and so on."""
    output: str | None
    """The directory of results, if there is one."""

    def _facts(self) -> list[tuple[str, str]]:
        backend = self.workers[0].backend
        return [
            ("estimate", str(self.estimate)),
            ("least, most", f"{self.values.min():.8g}, {self.values.max():.8g}"),
            ("LP solves", str(self.lp_solves)),
            ("simulation", f"{self.seconds:.3f} s on {len(self.workers)} × {backend}"),
        ]

    def __repr__(self) -> str:
        return _text("SimulationResult", self._facts())

    def _repr_html_(self) -> str:
        return _html("SimulationResult", self._facts())

    def plot_values(self, ax: Any = None, bins: int | str = "auto") -> Any:
        """Draws how the values of paths are spread, with their mean; needs matplotlib. Returns the axes."""
        ax = _axes(ax)
        ax.hist(self.values, bins=bins)
        ax.axvline(self.estimate.mean, color="black", linestyle="--", label="mean")
        ax.set_xlabel(_value(self.sense))
        ax.set_ylabel("paths")
        ax.legend()
        return ax


def simulation_result(tried: dict[str, Any], workers: tuple[Worker, ...], output: str | None) -> SimulationResult:
    """The result from what the native part found."""
    return SimulationResult(
        sense=tried["sense"],
        estimate=Estimate(**tried["estimate"]),
        values=tried["values"],
        validation=tuple(tried["validation"]),
        lp_solves=tried["lp_solves"],
        seconds=tried["seconds"],
        workers=workers,
        tables=_tables(tried, output),
        output=output,
    )
