"""Stores rows as columns, so that a statement with many rows as parameters needs no tuple for each row.

Invariant: a reader of `ColumnRows` sees a list of rows, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

from rplctl.target.base import Row, Value


class ColumnRows(Sequence[Row]):
    def __init__(self, columns: Sequence[Sequence[Value]]) -> None:
        """Store the columns: one or more, all with the same length."""
        self._columns = columns

    @property
    def columns(self) -> list[list[Value]]:
        """The values of each column, in the order of the rows."""
        return [list(column) for column in self._columns]

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[Row]:
        return zip(*self._columns, strict=True)

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> ColumnRows: ...

    def __getitem__(self, at: int | slice) -> Row | ColumnRows:
        if isinstance(at, slice):
            return ColumnRows([column[at] for column in self._columns])
        return tuple(column[at] for column in self._columns)

    def values(self) -> list[Value]:
        width = len(self._columns)
        found: list[Value] = [None] * (width * len(self))
        for number, column in enumerate(self._columns):
            found[number::width] = column
        return found


def values_of(rows: Sequence[Row]) -> list[Value]:
    """Return the values of all rows in one list, row after row."""
    return rows.values() if isinstance(rows, ColumnRows) else list(chain.from_iterable(rows))
