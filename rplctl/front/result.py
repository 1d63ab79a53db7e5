"""The answer to a statement: rows with their columns, or only OK. Both may have notes for SHOW WARNINGS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rplctl.command.channel.context import Note
from rplctl.front.wire import DOUBLE, LONGLONG, VAR_STRING

Column = tuple[str, int]  # name and type of a column (wire.py)
Row = Sequence[object]


@dataclass(frozen=True, slots=True)
class Done:
    """The answer OK, which has no rows."""

    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """The answer of a statement that returns rows, with their columns."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    notes: tuple[Note, ...] = ()


Answer = Done | Rows


def texts(names: str, rows: Iterable[Row] = ()) -> Rows:
    """Return an answer with text columns. `names`: separated by commas; a column whose name ends with # has whole
    numbers.
    """
    columns = tuple((name.rstrip("#"), LONGLONG if name.endswith("#") else VAR_STRING) for name in names.split(","))
    return Rows(columns, tuple(rows))


def typed(names: Sequence[str], rows: Sequence[Row]) -> Rows:
    """Return an answer whose column types follow from the values."""
    kinds = []
    for index in range(len(names)):
        found = {type(row[index]) for row in rows} - {type(None)}
        kinds.append(LONGLONG if found == {int} else DOUBLE if found and found <= {int, float} else VAR_STRING)
    return Rows(tuple(zip(names, kinds, strict=True)), tuple(rows))
