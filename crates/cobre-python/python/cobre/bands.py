"""``cobre.bands``: a quantity over scenarios, by stage, as numbers and as a drawing that needs no other package."""

from __future__ import annotations

import html
import math
from typing import Any

from cobre.errors import ValidationError
from cobre.table import Table
from cobre.tables import START_DATE, dates_of

LEVELS = (5.0, 25.0, 50.0, 75.0, 95.0)
WIDTH, HEIGHT = 640.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 76.0, 12.0, 28.0, 40.0
COLOUR = "#3b78b5"


def bands(table: Table, column: str, *, by: str = "stage", combine: str = "sum") -> Bands:
    """Mean and percentiles of a column over scenarios, for each value of ``by``.

    The rows of a scenario that have the same value of ``by`` (plants, blocks, buses) are combined: by their ``"sum"``,
    or by their ``"mean"``. ``table.where(bus="North")`` keeps the rows of one of them.
    """
    import numpy as np

    for name in ("scenario", by, column):
        if name not in table:
            raise ValidationError(f"there is no column {name}; there are {', '.join(table)}")
    if combine not in ("sum", "mean"):
        raise ValidationError(f'combine="{combine}": "sum" or "mean" is expected')
    keys, place = np.unique(np.column_stack([table[by], table["scenario"]]), axis=0, return_inverse=True)
    place = place.reshape(-1)
    values: Any = np.bincount(place, weights=table[column], minlength=len(keys))
    if combine == "mean":
        values = values / np.bincount(place, minlength=len(keys))
    steps = np.unique(keys[:, 0])
    of_steps = [values[keys[:, 0] == step] for step in steps]
    percentiles = [np.percentile(of_step, LEVELS) for of_step in of_steps]
    columns: dict[str, Any] = {by: steps}
    # Stages of StochOptFormat have no dates.
    if by == "stage" and START_DATE in table and all(table[START_DATE]):
        columns[START_DATE] = dates_of(table, steps.tolist())
    columns["mean"] = [of_step.mean() for of_step in of_steps]
    for number, level in enumerate(LEVELS):
        columns[f"p{level:.0f}"] = [found[number] for found in percentiles]
    return Bands(columns, column)


class Bands(Table):
    """A table of mean and percentiles that a notebook shows as a drawing: 90 % and 50 % of the scenarios, and the mean."""

    def __init__(self, columns: dict[str, Any], quantity: str) -> None:
        super().__init__(columns)
        self.quantity = quantity

    def __reduce__(self) -> Any:
        return Bands, (self._columns, self.quantity)

    def _repr_html_(self) -> str:
        return drawing(self)


def drawing(found: Bands) -> str:
    """The bands as SVG."""
    by = next(iter(found))
    steps = found[by]
    low, high = float(found["p5"].min()), float(found["p95"].max())
    ticks = nice_ticks(min(low, 0.0) if low < 0.5 * high else low, high)
    bottom, top = ticks[0], ticks[-1]
    span = float(steps[-1] - steps[0]) or 1.0

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * float(step - steps[0]) / span

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - bottom) / ((top - bottom) or 1.0)

    def points(name: str) -> list[str]:
        return [f"{x(step):.1f},{y(value):.1f}" for step, value in zip(steps, found[name])]

    parts = []
    for tick in ticks:
        parts.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="currentColor" opacity="0.15"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    every = max(1, math.ceil(len(steps) / 12))
    labels = [f"{step:g}" for step in steps]
    if START_DATE in found:
        # Months, unless stages are shorter.
        months = [str(date)[:7] for date in found[START_DATE]]
        labels = months if len(set(months)) == len(months) else list(found[START_DATE])
        every = max(1, math.ceil(len(steps) / 6))
    for step, label in list(zip(steps, labels))[::every]:
        parts.append(f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{label}</text>')
    for lower, upper, opacity in (("p5", "p95", 0.25), ("p25", "p75", 0.4)):
        outline = " ".join(points(lower) + points(upper)[::-1])
        parts.append(f'<polygon points="{outline}" fill="{COLOUR}" fill-opacity="{opacity}"/>')
    parts.append(f'<polyline points="{" ".join(points("mean"))}" fill="none" stroke="{COLOUR}" stroke-width="2"/>')
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{html.escape(by)}</text>')
    title = f"{html.escape(found.quantity)}: mean, 50 % and 90 % of scenarios"
    parts.append(f'<text x="{LEFT}" y="16" font-weight="bold">{title}</text>')
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" width="{WIDTH:.0f}" style="max-width:100%" '
        f'font-family="sans-serif" font-size="12" fill="currentColor"><title>{title}</title>{"".join(parts)}</svg>'
    )


def nice_ticks(low: float, high: float) -> list[float]:
    """About five round numbers from below ``low`` to above ``high``."""
    span = high - low or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(span / 4.0))
    step *= next((factor for factor in (1.0, 2.0, 2.5, 5.0) if span / (factor * step) <= 5.0), 10.0)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]
