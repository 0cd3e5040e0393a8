"""Tables that pandas, polars and pyarrow take as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cobre import _native
from cobre.errors import ValidationError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Table(Mapping[str, "npt.NDArray[Any]"]):
    """Named columns of one length, each a read-only NumPy array.

    It speaks the Arrow PyCapsule interface: ``pandas.DataFrame.from_arrow(table)``,
    ``polars.DataFrame(table)`` and ``pyarrow.table(table)`` take it, with the numbers where they are.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        import numpy as np

        self._columns: dict[str, np.ndarray] = {}
        for name, values in columns.items():
            column = np.array(values)
            if column.ndim != 1:
                raise ValidationError(f"column {name} has {column.ndim} dimensions; one is expected")
            if column.dtype.kind in "iu":
                column = column.astype(np.int64)
            elif column.dtype.kind == "f":
                column = column.astype(np.float64)
            column.flags.writeable = False
            self._columns[name] = column
        lengths = {name: len(column) for name, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValidationError(f"columns of one length are expected; they have {lengths}")

    def __reduce__(self) -> tuple[type[Table], tuple[dict[str, npt.NDArray[Any]]]]:
        return Table, (self._columns,)

    def __eq__(self, other: object) -> bool:
        """Whether names and values are the same, in order; NaN is the same as NaN."""
        import numpy as np

        if not isinstance(other, Table) or list(self) != list(other):
            return False
        pairs = ((column, other[name]) for name, column in self.items())
        return all(np.array_equal(one, two, equal_nan=one.dtype.kind == two.dtype.kind == "f") for one, two in pairs)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return next((len(column) for column in self._columns.values()), 0)

    def where(self, **values: Any) -> Table:
        """The rows whose columns have these values: ``table.where(stage=0, bus="North")``."""
        import numpy as np

        kept = np.ones(self.num_rows, bool)
        for name, value in values.items():
            if name not in self:
                raise ValidationError(f"there is no column {name}; there are {', '.join(self)}")
            kept &= self[name] == value
        return Table({name: column[kept] for name, column in self.items()})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The columns as an Arrow stream."""
        columns = []
        for name, column in self._columns.items():
            numeric = column.dtype.kind in "if"
            columns.append((name, column if numeric else [str(text) for text in column]))
        return _native.arrow_stream(columns)

    def to_pandas(self) -> Any:
        """A pandas data frame."""
        import pandas

        return pandas.DataFrame({name: column for name, column in self._columns.items()})

    def to_polars(self) -> Any:
        """A polars data frame."""
        import polars

        return polars.DataFrame(self)

    def to_pyarrow(self) -> Any:
        """A pyarrow table."""
        import pyarrow

        return pyarrow.table(self)

    def _row_texts(self, most: int = 10) -> list[list[str]]:
        def text(value: Any) -> str:
            return f"{value:.8g}" if getattr(value, "dtype", None) is not None and value.dtype.kind == "f" else str(value)

        rows = range(self.num_rows)
        shown = list(rows) if len(rows) <= most else [*rows[: most // 2], None, *rows[-(most // 2) :]]
        return [
            ["…"] * len(self) if row is None else [text(column[row]) for column in self._columns.values()]
            for row in shown
        ]

    def __repr__(self) -> str:
        rows = [list(self._columns), *self._row_texts()]
        widths = [max(len(row[place]) for row in rows) for place in range(len(self))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import html

        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._row_texts()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
