"""Writes large bytes and texts into SQLite in pieces: first the statement writes zeros, then the pieces replace them.

Invariant: nobody sees the zeros, because both steps are in the applier's transaction. If an index, check, generated
column or trigger reads the column, the value is not written in pieces, but bound to the statement as usual.

For bytes, SQLite reserves the space without memory if the later columns are empty. A row of 1 GB then needs memory for
one piece. For text, or if a later column has a value, SQLite has the zeros in memory twice. The manual of SQLite
explains zeroblob(), and "Open A BLOB For Incremental I/O", which is also possible for text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rplctl.event.large_text import LargeText
from rplctl.schema.model import TableModel
from rplctl.schema.naming import physical_name
from rplctl.sql_text import Sql, joined, with_parameter, written
from rplctl.target.base import Row, Value, pieces_of
from rplctl.target.ddl_parts import quote
from rplctl.target.sqlite.ddl_type import row_number
from rplctl.target.sqlite.driver import SqliteDriver

MOST_BOUND: Final = 16 << 20
_PIECE: Final = 1 << 20
_TIED: Final = written("""
SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE
UNION ALL SELECT 1 FROM pragma_encoding WHERE encoding <> 'UTF-8'
UNION ALL SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden IN (2, 3)
UNION ALL SELECT 1 FROM pragma_index_list(?1) l, pragma_index_xinfo(l.name) x
WHERE l.partial OR x.cid = -2 OR x.name = ?2 COLLATE NOCASE
""")
sqlite3.register_adapter(LargeText, str)  # for a text that is bound to a parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundColumns:
    """The columns of a table to which a statement's parameters ?1, ?2, … belong.

    The parameters are first the values of `columns`. In an UPDATE, the values of the `key` follow.
    """

    model: TableModel
    columns: tuple[int, ...]
    key: tuple[int, ...] = ()


def execute_rows(driver: SqliteDriver, sql: Sql, rows: Sequence[Row], bound: BoundColumns | None) -> int:
    """Execute an INSERT, UPDATE or DELETE for each row, and return the total number of affected rows.

    `bound`: the columns of the parameters, so that large values can be written in pieces, or None if no value is large.
    """
    if bound is None or set(bound.columns) & set(bound.key) or not any(_is_large(v) for row in rows for v in row):
        return driver.executemany(sql, rows).rowcount
    return sum(_execute(driver, sql, row, bound) for row in rows)


def _execute(driver: SqliteDriver, sql: Sql, row: Row, bound: BoundColumns) -> int:
    model, columns = bound.model, bound.columns
    name = physical_name(model.database, model.name)
    large: dict[int, memoryview | LargeText] = {}
    for number, (column, value) in enumerate(zip(columns, row, strict=False)):
        if not isinstance(value, memoryview | LargeText) or not _is_large(value):
            continue
        tied = (name, model.columns[column].name)
        if not model.checks and driver.execute(_TIED, tied).fetchone() is None:
            large[number] = value
            zeros = written("zeroblob(?{})", number + 1)
            zeros = written("CAST({} AS TEXT)", zeros) if isinstance(value, LargeText) else zeros
            sql = with_parameter(sql, f"?{number + 1}", zeros)
    values = tuple(len(large[number]) if number in large else value for number, value in enumerate(row))
    cursor = driver.execute(sql, values)
    if not large or cursor.rowcount != 1:
        return cursor.rowcount
    rowid = cursor.lastrowid
    if bound.key:
        where = joined(" AND ", (written("{}=?", quote(model.columns[c].name)) for c in bound.key))
        found = written("SELECT {} FROM {} WHERE {}", row_number(model.columns), quote(name), where)
        (rowid,) = driver.execute(found, row[len(columns) :]).fetchone()
    assert rowid is not None
    for number, value in large.items():
        with driver.blobopen(name, model.columns[columns[number]].name, rowid) as blob:
            for piece in pieces_of(value, _PIECE):
                blob.write(piece)
    return 1


def _is_large(value: Value) -> bool:
    return isinstance(value, memoryview | LargeText) and len(value) > MOST_BOUND
