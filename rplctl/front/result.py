"""The answers to statements: rows with their columns, or OK. An answer may have notes for SHOW WARNINGS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rplctl.command.channel.context import Note
from rplctl.front.wire import DOUBLE, LONGLONG, VAR_STRING

Column = tuple[str, int]  # name and type of a column (wire.py)
Row = Sequence[object]


@dataclass(frozen=True, slots=True)
class Done:
    """The answer OK to a statement that returns no rows."""

    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """The answer to a statement that returns rows, with the names and types of their columns."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    notes: tuple[Note, ...] = ()


Answer = Done | Rows


def texts(names: str, rows: Iterable[Row] = ()) -> Rows:
    """Return an answer with these rows, and with columns of texts or whole numbers.

    `names`: the names of the columns, with commas between them. A name that ends with # is a column of whole numbers;
    the # is removed.
    """
    columns = tuple((name.rstrip("#"), LONGLONG if name.endswith("#") else VAR_STRING) for name in names.split(","))
    return Rows(columns, tuple(rows))


def typed(names: Sequence[str], rows: Sequence[Row]) -> Rows:
    """Return an answer with these rows, in which each column has the type of its values."""
    kinds = []
    for index in range(len(names)):
        found = {type(row[index]) for row in rows} - {type(None)}
        kinds.append(LONGLONG if found == {int} else DOUBLE if found and found <= {int, float} else VAR_STRING)
    return Rows(tuple(zip(names, kinds, strict=True)), tuple(rows))
