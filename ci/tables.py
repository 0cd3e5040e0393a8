"""Reads every table of the directories given with pandas, polars and pyarrow, as Parquet and as CSV, and
checks that all of them find the same, that the dictionary explains every column and nothing else, and that
costs add up."""

import csv
import sys
from pathlib import Path

import pandas
import polars
import pyarrow.csv
import pyarrow.parquet


def check_table(place: Path) -> list[str]:
    """Reads one table in every way; returns its columns."""
    frame = pandas.read_parquet(place)
    arrow = pyarrow.parquet.read_table(place)
    polar = polars.read_parquet(place)
    assert list(frame.columns) == arrow.column_names == polar.columns, place
    assert len(frame) == arrow.num_rows == polar.height, place
    assert len(frame) > 0, f"{place} is empty"
    pandas.testing.assert_frame_equal(frame, arrow.to_pandas(), obj=str(place))
    pandas.testing.assert_frame_equal(
        frame, polar.to_arrow().to_pandas(), check_dtype=False, obj=str(place)
    )
    other = place.with_suffix(".csv")
    from_csv = pandas.read_csv(other, float_precision="round_trip", keep_default_na=True)
    pandas.testing.assert_frame_equal(
        frame, from_csv, check_dtype=False, check_exact=True, obj=str(other)
    )
    assert polars.read_csv(other, infer_schema_length=None).columns == polar.columns, other
    assert pyarrow.csv.read_csv(other).num_rows == len(frame), other
    return list(frame.columns)


def check_costs(output: Path) -> None:
    """Costs by kind are the cost of a stage, and stages are the value of a path."""
    costs = pandas.read_parquet(output / "simulation/costs.parquet")
    paths = pandas.read_parquet(output / "simulation/paths.parquet").set_index("scenario")
    kinds = [name for name in costs if name.endswith("_cost") and name not in ("stage_cost", "future_cost")]
    difference = (costs[kinds].sum(axis=1) - costs["stage_cost"]).abs()
    assert (difference <= 1e-9 * (1 + costs["stage_cost"].abs() + costs["future_cost"].abs())).all()
    total = (costs["discount"] * costs["stage_cost"]).groupby(costs["scenario"]).sum()
    assert ((total - paths["value"]).abs() <= 1e-9 * paths["value"].abs()).all()


def main() -> None:
    count = 0
    for output in map(Path, sys.argv[1:]):
        written = set()
        for place in sorted(output.glob("*/*.parquet")):
            name = place.relative_to(output).as_posix()
            written |= {(name, column) for column in check_table(place)}
            count += 1
        with open(output / "dictionary.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        explained = {(row["file"], row["column"]) for row in rows}
        assert explained == written, explained ^ written
        assert len(explained) == len(rows), "an entry comes twice"
        assert all(row["meaning"] for row in rows)
        if (output / "simulation/costs.parquet").exists():
            check_costs(output)
    print(f"{count} tables, the same in pandas, polars and pyarrow")


main()
