"""Deletes requested numbers of equal rows (copies) in a MySQL or MariaDB table without a key, in bulk.

Equal rows cannot be distinguished in SQL. Therefore a join deletes all copies of a row, and surplus copies are inserted
again. The rows to delete are in the stage, a temporary table.

    stage    complete rows, the number of copies of each, and an indexed checksum of the columns (`_digest`)
    pass 1   a join of the target's table with the stage counts the copies of each row
    pass 2   the same join deletes the rows

Invariants: a row is deleted only if its bytes equal the bytes of a staged row. Pass 1 must find at least the requested
number of copies. Pass 2 must delete as many rows as pass 1 has found; otherwise a row matched two staged rows. If a
number differs, CountMismatch is raised. A pass reads the complete table or, if an index is selective enough, only the
rows that the index finds. If a row has very many copies, a separate statement deletes only the requested number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rplctl.schema.model import CHARACTER_TYPES, GEOMETRY_TYPES, INTEGER_BITS, Column, Key, TableModel
from rplctl.sql_text import SqlBytes, as_bytes, integer_bytes, joined_bytes, text_literal, written, written_bytes
from rplctl.target.base import CountMismatch
from rplctl.target.mysql.rows import kept_times, table_name
from rplctl.target.mysql.values import quote

STAGE = written_bytes(b"`rplctl`.`rplctl_bag`")
COPIES_COLUMN = written_bytes(b"`rplctl_copies`")
MOST_BACK = 8  # maximum of surplus copies of a row that are deleted and inserted again
_FOUND = written_bytes(b"`rplctl`.`rplctl_bag_found`")
_ROW, _DIGEST = written_bytes(b"`rplctl_row`"), written_bytes(b"`rplctl_digest`")
_STAGED = written_bytes(b"s")
_LIKE_NUMBERS = frozenset({*INTEGER_BITS, "decimal", "year", "date", "time", "datetime", "timestamp"})
_NUMBERED = frozenset({"enum", "set", "bit"})
_STRINGS = CHARACTER_TYPES | {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_NOT_COMPARED = GEOMETRY_TYPES | {"json", "vector"}
_WORTH = 4  # the read of one row by an index costs as much as the sequential read of four rows


def compares(model: TableModel) -> bool:
    """True if the server can compare the values of every column. It cannot compare JSON, VECTOR and geometry."""
    return not any(column.type in _NOT_COMPARED for column in model.columns)


class MultisetRemover:
    """Deletes copies of rows in tables without a key. `send`: executes SQL and returns the number of rows for each
    statement. `ask`: executes a query and returns its rows.
    """

    def __init__(
        self, send: Callable[[SqlBytes], Sequence[int]], ask: Callable[[SqlBytes], list[tuple[Any, ...]]]
    ) -> None:
        self._send = send
        self._ask = ask

    @contextmanager
    def stage(self, model: TableModel) -> Iterator[SqlBytes]:
        """Create a temporary table for complete rows with their numbers of copies. Yield the name of the table, and
        drop the table at the end of the `with` block.
        """
        own = written_bytes(
            b"%s INT UNSIGNED NOT NULL DEFAULT 0, %s INT UNSIGNED NOT NULL DEFAULT 0, %s INT UNSIGNED "
            b"NOT NULL AUTO_INCREMENT PRIMARY KEY, KEY %s (%s)",
            COPIES_COLUMN,
            _DIGEST,
            _ROW,
            _DIGEST,
            _DIGEST,
        )
        names = joined_bytes(b", ", (quote(column.name) for column in _stored(model)))
        columns = written_bytes(b"SELECT %s FROM %s WHERE FALSE", names, table_name(model))
        self._send(written_bytes(b"CREATE TEMPORARY TABLE %s (%s) %s", STAGE, own, columns))
        try:
            yield STAGE
        finally:
            self._send(written_bytes(b"DROP TEMPORARY TABLE %s", STAGE))

    def remove(self, model: TableModel, count: int) -> None:
        """Delete copies of rows from the target's table. The temporary table of `stage` has the rows and the number of
        copies of each. `count`: the number of these rows. Raises CountMismatch if a row has fewer copies.
        """
        stays = (
            written_bytes(b"s.%s=s.%s", name, name) for name in (quote(column.name) for column in kept_times(model, ()))
        )
        digest = written_bytes(b"s.%s=%s", _DIGEST, _digest(model, _STAGED))
        self._send(written_bytes(b"UPDATE %s AS s SET %s", STAGE, joined_bytes(b", ", (digest, *stays))))
        pairs = self._pairs(model, count)
        self._send(
            written_bytes(
                b"CREATE TEMPORARY TABLE %s (PRIMARY KEY (%s)) SELECT s.%s, COUNT(*) AS copies FROM %s GROUP BY s.%s",
                _FOUND,
                _ROW,
                _ROW,
                pairs,
                _ROW,
            )
        )
        try:
            self._remove_found(model, count, pairs)
        finally:
            self._send(written_bytes(b"DROP TEMPORARY TABLE %s", _FOUND))

    def _remove_found(self, model: TableModel, count: int, pairs: SqlBytes) -> None:
        more = written_bytes(b"CAST(f.copies AS SIGNED) - CAST(s.%s AS SIGNED)", COPIES_COLUMN)
        both = written_bytes(b"%s AS f JOIN %s AS s USING (%s)", _FOUND, STAGE, _ROW)
        (found, least), *_ = self._ask(written_bytes(b"SELECT COUNT(*), MIN(%s) FROM %s", more, both))
        if int(found) != count or int(least) < 0:
            raise CountMismatch(f"{found} of {count} rows, too few copies by {-min(int(least or 0), 0)}")
        many = self._ask(
            written_bytes(b"SELECT s.%s, s.%s FROM %s WHERE %s > %d", _ROW, COPIES_COLUMN, both, more, MOST_BACK)
        )
        for row, copies in many:
            self._remove_some(model, int(row), int(copies))
        (copies, most), *_ = self._ask(
            written_bytes(b"SELECT COALESCE(SUM(f.copies), 0), COALESCE(MAX(%s), 0) FROM %s", more, both)
        )
        table = table_name(model)
        if (gone := self._send(written_bytes(b"DELETE FROM %s USING %s", table, pairs))[0]) != int(copies):
            raise CountMismatch(f"{gone} copies deleted, {copies} counted")
        names = joined_bytes(b", ", (quote(column.name) for column in _stored(model)))
        for step in range(1, int(most) + 1):
            self._send(
                written_bytes(
                    b"INSERT INTO %s (%s) SELECT %s FROM %s WHERE %s >= %d", table, names, names, both, more, step
                )
            )

    def _remove_some(self, model: TableModel, row: int, copies: int) -> None:
        """Delete exactly `copies` copies of one row from the target's table. Also remove the row from the stage, the
        temporary table of rows to delete. Raises CountMismatch if the target's table has fewer copies.
        """
        table = table_name(model)
        like = written_bytes(b"SELECT 1 FROM %s AS s WHERE s.%s=%d AND %s", STAGE, _ROW, row, _same(model))
        if (
            gone := self._send(written_bytes(b"DELETE FROM %s WHERE EXISTS (%s) LIMIT %d", table, like, copies))[0]
        ) != copies:
            raise CountMismatch(f"{gone} copies of a row deleted, expected {copies}")
        self._send(written_bytes(b"DELETE FROM %s WHERE %s=%d", STAGE, _ROW, row))

    def _pairs(self, model: TableModel, count: int) -> SqlBytes:
        """Return the SQL join of the target's table with the stage, the temporary table of rows to delete. The join
        pairs equal rows. `count`: the number of rows in the stage.
        """
        table, same = table_name(model), _same(model)
        if (index := self._telling_index(model, count)) is not None:
            return written_bytes(b"%s AS s STRAIGHT_JOIN %s FORCE INDEX (%s) ON %s", STAGE, table, quote(index), same)
        return written_bytes(
            b"%s STRAIGHT_JOIN %s AS s FORCE INDEX (%s) ON s.%s=%s AND %s",
            table,
            STAGE,
            _DIGEST,
            _DIGEST,
            _digest(model, table),
            same,
        )

    def _telling_index(self, model: TableModel, count: int) -> str | None:
        """Return the name of an index with which the server finds `count` rows faster than by a read of the whole
        table. The server's statistics decide. Return None if no index is selective enough.
        """
        names = [key.name for key in model.keys if _is_sought(key, model)]
        if not names:
            return None
        asked = written(
            "SELECT INDEX_NAME, MAX(CARDINALITY) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA={}"
            " AND TABLE_NAME={} GROUP BY INDEX_NAME",
            text_literal(model.database),
            text_literal(model.name),
        )
        known = {str(name).casefold(): int(number or 0) for name, number in self._ask(as_bytes(asked))}
        best = max(names, key=lambda name: known.get(name.casefold(), 0))
        return best if known.get(best.casefold(), 0) > _WORTH * count else None


def _is_sought(key: Key, model: TableModel) -> bool:
    """True if the server can use this index to find the rows that equal a given row. The index must have whole columns,
    and the comparison must not convert these columns.
    """
    if key.kind not in ("unique", "index") or key.has_expression or any(part.length for part in key.parts):
        return False
    columns = [model.find(part.column) for part in key.parts]
    return all(c is not None and c.generated is None and c.type not in _NUMBERED for c in columns)


def _stored(model: TableModel) -> list[Column]:
    return [column for column in model.columns if column.generated is None]


def _same(model: TableModel) -> SqlBytes:
    return joined_bytes(b" AND ", (_equal(column, table_name(model)) for column in _stored(model)))


def _equal(column: Column, table: SqlBytes) -> SqlBytes:
    name = quote(column.name)
    one, other = written_bytes(b"%s.%s", table, name), written_bytes(b"s.%s", name)
    if column.type in _NUMBERED:
        return written_bytes(b"CAST(%s AS UNSIGNED) <=> CAST(%s AS UNSIGNED)", one, other)
    same = written_bytes(b"%s <=> %s", one, other)
    if column.type in CHARACTER_TYPES and column.charset != "binary":  # CAST gives NULL above max_allowed_packet
        return written_bytes(b"%s AND (%s IS NULL OR CAST(%s AS BINARY)=CAST(%s AS BINARY))", same, one, one, other)
    return same


def _digest(model: TableModel, table: SqlBytes) -> SqlBytes:
    """Return SQL that computes a checksum of a row, which is the same for equal rows. The checksum covers only numbers,
    times and strings. This is enough, because another condition of the join compares all columns.
    """
    parts = [integer_bytes(0), integer_bytes(0)]
    for column in _stored(model):
        name = written_bytes(b"%s.%s", table, quote(column.name))
        if column.type in _NUMBERED:
            parts.append(written_bytes(b"CAST(%s AS UNSIGNED)", name))
        elif column.type in _LIKE_NUMBERS:
            parts.append(name)
        elif column.type in _STRINGS:
            parts.append(written_bytes(b"CRC32(%s)", name))
    return written_bytes(b"CRC32(CONCAT_WS(',',%s))", joined_bytes(b",", parts))
