"""Rows that are kept as columns are what a list of them is, to whoever reads them."""

from __future__ import annotations

from rplctl.target.base import Row
from rplctl.target.column_rows import ColumnRows, values_of


def test_they_are_read_as_a_list_of_rows() -> None:
    listed: list[Row] = [(1, "a", None), (2, "b", b"x"), (3, None, b"")]
    rows = ColumnRows(list(zip(*listed, strict=True)))
    assert (len(rows), list(rows), rows[1], list(rows[1:]), list(rows[3:])) == (3, listed, listed[1], listed[1:], [])
    assert list(rows[3:]) == list(listed[3:]) and not rows[3:]
    assert values_of(rows) == values_of(listed) == [1, "a", None, 2, "b", b"x", 3, None, b""]
