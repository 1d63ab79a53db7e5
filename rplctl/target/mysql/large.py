"""Applies single row changes on MySQL and MariaDB. LOAD DATA LOCAL sends large values before the statement of a change.

Invariant: if the target accepts LOAD DATA LOCAL, no statement contains a large value. So max_allowed_packet does not
limit the value, and the value is never copied in memory. The result and the errors are the same as for a statement with
the value. The statement reads each large value from a separate temporary table, because MySQL can open a temporary
table only once in a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.event.cells import LARGE_CELL
from rplctl.event.fields import EncodedText, Fields
from rplctl.event.jit import byte_view
from rplctl.schema.model import TableModel
from rplctl.schema.row_key import key_of
from rplctl.sql_text import SqlBytes, joined_bytes, written_bytes
from rplctl.target.base import ChangeKind, Row, RowChange, RowSet, Value, expect_rows
from rplctl.target.mysql.bulk import load_local
from rplctl.target.mysql.bulk_execute import BulkCounts
from rplctl.target.mysql.connection import LARGE_PACKETS, LoadingConnection
from rplctl.target.mysql.rows import change_statement, finds_by_key, has_empty_enum, implicit_zeros, table_name
from rplctl.target.mysql.values import StagedCell, literal, quote

_CELL = written_bytes(b"v")
_CLEAN = BulkCounts(records=1, replaced=0, skipped=0, warnings=0)


class SingleChanges:
    """Applies changes of single rows. `send`: executes SQL and returns the number of matched rows of each statement."""

    def __init__(self, send: Callable[[SqlBytes], Sequence[int]], driver: Callable[[], LoadingConnection]) -> None:
        self._send = send
        self._driver = driver

    def apply(self, change: RowChange, model: TableModel, *, may_load: bool) -> int:
        """Apply the change, and return the number of changed rows. `may_load`: True if LOAD DATA LOCAL may be used."""
        if not may_load or not _has_large_cell(change):
            return sum(self._send(change_statement(change, model)))
        if change.before is None and change.after is not None and self._inserted(change.after, model):
            return 1
        tables: list[SqlBytes] = []
        try:
            return sum(self._send(change_statement(self._staged(change, model, tables), model)))
        finally:
            if tables:
                self._send(written_bytes(b"DROP TEMPORARY TABLE %s", joined_bytes(b", ", tables)))

    def insert(self, model: TableModel, rows: RowSet) -> RowSet:
        """Insert the rows that have a large value, one by one, and return the other rows for a common INSERT. Raises
        CountMismatch if a statement does not insert exactly one row.
        """
        large, small = _split_large(rows)
        self._expect_each(
            model, (RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet(rows.columns, [r])) for r in large)
        )
        return small

    def update(self, model: TableModel, rows: RowSet) -> RowSet:
        """Update the rows that have a large value, one by one, and return the other rows. Each of `rows` has the new
        values, and then the key. Raises CountMismatch if a statement does not find exactly one row.
        """
        large, small = _split_large(rows)
        key, width = key_of(model), len(rows.columns)
        images = ((RowSet(key, [row[width:]]), RowSet(rows.columns, [row[:width]])) for row in large)
        self._expect_each(
            model, (RowChange(kind=ChangeKind.UPDATE, before=before, after=after) for before, after in images)
        )
        return small

    def _expect_each(self, model: TableModel, changes: Iterable[RowChange]) -> None:
        for change in changes:
            expect_rows(f"a change of {model.qualified_name}", self.apply(change, model, may_load=True), 1)

    def _inserted(self, rows: RowSet, model: TableModel) -> bool:
        """Insert one row with LOAD DATA LOCAL, and return True. If the server reports a skipped row or a warning, undo
        the insert and return False. The caller then uses an INSERT statement, which reports the error exactly.
        """
        cells = [(v, model.columns[c]) for v, c in zip(rows.rows[0], rows.columns, strict=True)]
        cells = [(value, column) for value, column in cells if column.generated is None]
        large = [(value, column) for value, column in cells if _is_large(value)]
        given = [(column, literal(value, column)) for value, column in cells if not _is_large(value)]
        sets = [
            written_bytes(b"%s=%s", quote(column.name), text)
            for column, text in [*given, *implicit_zeros(model, rows.columns)]
        ]
        places = [quote(column.name) for _, column in large]
        if not large or has_empty_enum(model, [rows]):  # an empty ENUM warns
            return False
        self._send(written_bytes(b"SAVEPOINT rplctl_large"))
        text = _text(value for value, _ in large)
        if load_local(self._driver(), table_name(model), places, text, sets=sets) == _CLEAN:
            return True
        self._send(written_bytes(b"ROLLBACK TO SAVEPOINT rplctl_large"))
        return False

    def _staged(self, change: RowChange, model: TableModel, tables: list[SqlBytes]) -> RowChange:
        """Load each large value of the change into a temporary table, and append the table's name to `tables`. Return
        the change with a reference (StagedCell) in place of each large value.
        """

        def stage(value: Value, column: int) -> Value:
            if not _is_large(value) or model.columns[column].generated is not None:
                return value
            table = written_bytes(b"`rplctl`.`rplctl_cell_%d`", len(tables))
            self._send(written_bytes(b"CREATE TEMPORARY TABLE %s (v LONGBLOB)", table))
            tables.append(table)
            if (loaded := load_local(self._driver(), table, [_CELL], _text([value]))) != _CLEAN:
                raise TargetError(
                    f"cannot load a large value into the target's table '{model.name}': {loaded}",
                    errno=er.WARN_ALLOWED_PACKET_OVERFLOWED,
                    hint=LARGE_PACKETS,
                )
            return cast(Value, StagedCell(table))  # only `literal` reads this value

        def staged(image: RowSet) -> RowSet:
            return RowSet(image.columns, [tuple(map(stage, image.rows[0], image.columns))])

        before, after = change.before, change.after
        if before is not None and after is not None:
            after = _without_large_alike(before, after)
        if before is not None and not finds_by_key(model, before):
            before = staged(before)
        return RowChange(kind=change.kind, before=before, after=after and staged(after))


def _has_large_cell(change: RowChange) -> bool:
    return any(_is_large(value) for image in (change.before, change.after) if image for value in image.rows[0])


def _is_large(value: object) -> bool:
    return isinstance(value, bytes | memoryview) and len(value) > LARGE_CELL


def _split_large(rows: RowSet) -> tuple[list[Row], RowSet]:
    large = [row for row in rows.rows if any(map(_is_large, row))]
    return large, RowSet(rows.columns, [row for row in rows.rows if not any(map(_is_large, row))])


def _without_large_alike(before: RowSet, after: RowSet) -> RowSet:
    """Return the new image without unchanged large values. The source logs all columns of a row, but the UPDATE need
    not set unchanged columns.
    """
    old = dict(zip(before.columns, before.rows[0], strict=True))
    kept = [(c, v) for c, v in zip(after.columns, after.rows[0], strict=True) if not _is_large(v) or old.get(c) != v]
    return RowSet(tuple(c for c, _ in kept), [tuple(v for _, v in kept)])


def _text(values: Iterable[Value]) -> EncodedText:
    """Return the large values as one row in the format of LOAD DATA, without a copy of the values."""
    views = [byte_view(value) for value in values if isinstance(value, bytes | memoryview)]
    return EncodedText([Fields(view, np.zeros(1, np.int64), np.array([len(view)], np.int32)) for view in views])
