"""Rows of a MySQL or MariaDB table without a key, so many copies of each, deleted at once.

There is no name for a row here, so all copies of a row go, and those that were more than asked for come back: rows
that are alike in every column are the same. Invariant: a row goes because its bytes are those that are staged (never
by a collation alone); of each row there were at least as many as asked for, counted before; and as many rows went as
were counted, so none was like two of the staged ones. Anything else is CountMismatch.

    stage    whole rows, how many of each, and a number made of all columns (`_digest`), which is indexed
    pass 1   the target's table joined with the stage: how many there are of each
    pass 2   the same join deletes them
A pass reads the whole table, or, where an index tells its rows well enough apart, only what that finds for each staged
row. Of a row with very many copies only those asked for are deleted, by a statement of its own.
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
MOST_BACK = 8  # copies of a row that are deleted and inserted again
_FOUND = written_bytes(b"`rplctl`.`rplctl_bag_found`")
_ROW, _DIGEST = written_bytes(b"`rplctl_row`"), written_bytes(b"`rplctl_digest`")
_STAGED = written_bytes(b"s")
_LIKE_NUMBERS = frozenset({*INTEGER_BITS, "decimal", "year", "date", "time", "datetime", "timestamp"})
_NUMBERED = frozenset({"enum", "set", "bit"})
_STRINGS = CHARACTER_TYPES | {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_NOT_COMPARED = GEOMETRY_TYPES | {"json", "vector"}
_WORTH = 4  # rows found by an index cost as much as so many read one after the other


def compares(model: TableModel) -> bool:
    """True if every column of the table can be compared."""
    return not any(column.type in _NOT_COMPARED for column in model.columns)


class MultisetRemover:
    """`send` executes and returns the rows each statement changed, `ask` fetches."""

    def __init__(
        self, send: Callable[[SqlBytes], Sequence[int]], ask: Callable[[SqlBytes], list[tuple[Any, ...]]]
    ) -> None:
        self._send = send
        self._ask = ask

    @contextmanager
    def stage(self, model: TableModel) -> Iterator[SqlBytes]:
        """The name of a table for whole rows with their number of copies."""
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
        """Delete what is staged, `count` rows."""
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
        """Only as many as are asked for; the row then no longer takes part."""
        table = table_name(model)
        like = written_bytes(b"SELECT 1 FROM %s AS s WHERE s.%s=%d AND %s", STAGE, _ROW, row, _same(model))
        if (
            gone := self._send(written_bytes(b"DELETE FROM %s WHERE EXISTS (%s) LIMIT %d", table, like, copies))[0]
        ) != copies:
            raise CountMismatch(f"{gone} copies of a row deleted, expected {copies}")
        self._send(written_bytes(b"DELETE FROM %s WHERE %s=%d", STAGE, _ROW, row))

    def _pairs(self, model: TableModel, count: int) -> SqlBytes:
        """Return the join of the table's rows with the staged rows that are equal to them."""
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
        """An index that finds the rows with less work than reading all, going by what the server knows of it."""
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
    """True if `_same` finds rows by the key: an index over whole columns that are compared as they are."""
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
        return written_bytes(b"%s+0 <=> %s+0", one, other)
    same = written_bytes(b"%s <=> %s", one, other)
    if column.type in CHARACTER_TYPES and column.charset != "binary":  # CAST of what is above max_allowed_packet: NULL
        return written_bytes(b"%s AND (%s IS NULL OR CAST(%s AS BINARY)=CAST(%s AS BINARY))", same, one, one, other)
    return same


def _digest(model: TableModel, table: SqlBytes) -> SqlBytes:
    """A number that rows which are alike have in common; other columns than these are only compared."""
    parts = [integer_bytes(0), integer_bytes(0)]
    for column in _stored(model):
        name = written_bytes(b"%s.%s", table, quote(column.name))
        if column.type in _NUMBERED:
            parts.append(written_bytes(b"%s+0", name))
        elif column.type in _LIKE_NUMBERS:
            parts.append(name)
        elif column.type in _STRINGS:
            parts.append(written_bytes(b"CRC32(%s)", name))
    return written_bytes(b"CRC32(CONCAT_WS(',',%s))", joined_bytes(b",", parts))
