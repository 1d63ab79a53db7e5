"""Writes row changes as SQL statements for MySQL and MariaDB, with many rows in one INSERT or DELETE.

The functions only build text. Statements never write generated columns. An UPDATE sets every TIMESTAMP and DATETIME
column, so that ON UPDATE CURRENT_TIMESTAMP does not change it. If a column has neither a value nor a default, an INSERT
writes the zero value of its type. A replica server does the same for columns that the source lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from rplctl.schema.model import BINARY_TYPES, GEOMETRY_TYPES, INTEGER_BITS, TEXT_BYTES, Column, TableModel
from rplctl.schema.row_key import key_of
from rplctl.sql_text import NO_BYTES, SqlBytes, joined_bytes, row_bytes, written_bytes
from rplctl.target.base import ChangeKind, Row, RowChange, RowSet, TableChunk, Value, no_record
from rplctl.target.mysql.values import comparand, is_empty_enum, is_equal, literal, quote

STATEMENT_BYTES = 1 << 20  # a statement that has reached this size gets no more rows
ROWS_PER_STATEMENT = 500  # a DELETE with more keys costs the optimizer too much, because each key is a range


_Join = Callable[[Iterable[SqlBytes]], SqlBytes]
_BY_COMMA: _Join = partial(joined_bytes, b",")
_BY_OR: _Join = partial(joined_bytes, b" OR ")
_BY_SEMICOLON: _Join = partial(joined_bytes, b";")
_ZEROS: dict[str, SqlBytes] = {
    **dict.fromkeys((*INTEGER_BITS, "float", "double", "decimal", "bit", "year"), written_bytes(b"0")),
    **dict.fromkeys((*TEXT_BYTES, *BINARY_TYPES, "char", "varchar", "set"), written_bytes(b"''")),
    **dict.fromkeys(("date", "datetime", "timestamp"), written_bytes(b"'0000-00-00'")),
    "time": written_bytes(b"'00:00:00'"),
    "enum": written_bytes(b"1"),
    "json": written_bytes(b"'null'"),
}


def table_name(model: TableModel) -> SqlBytes:
    return written_bytes(b"%s.%s", quote(model.database), quote(model.name))


def insert_statements(model: TableModel, rows: RowSet) -> Iterator[tuple[SqlBytes, int]]:
    """Yield INSERT statements for the rows, each as a pair (statement, number of rows)."""
    written = [(i, c) for i, c in enumerate(rows.columns) if model.columns[c].generated is None]
    zeros = implicit_zeros(model, rows.columns)
    names = joined_bytes(
        b", ", [quote(model.columns[c].name) for _, c in written] + [quote(column.name) for column, _ in zeros]
    )
    head = written_bytes(b"INSERT INTO %s (%s) VALUES ", table_name(model), names)
    columns = [(i, model.columns[c]) for i, c in written]
    more = [zero for _, zero in zeros]
    values = (row_bytes([literal(row[i], column) for i, column in columns] + more) for row in rows.rows)
    return _grouped(head, _BY_COMMA, values)


def implicit_zeros(model: TableModel, columns: Sequence[int]) -> list[tuple[Column, SqlBytes]]:
    """Return further columns that an INSERT of `columns` must set, because they are NOT NULL without a default. Each is
    paired with the zero value of its type.
    """
    given = set(columns)
    zeros = ((column, _ZEROS.get(column.type)) for number, column in enumerate(model.columns) if number not in given)
    return [(column, zero) for column, zero in zeros if zero is not None and _needs_value(column)]


def _needs_value(column: Column) -> bool:
    return not column.nullable and column.default is None and column.generated is None and not column.auto_increment


def kept_times(model: TableModel, columns: Collection[int]) -> list[Column]:
    """Return the TIMESTAMP and DATETIME columns that are not in `columns`. An UPDATE must set these columns to their
    own values; otherwise ON UPDATE CURRENT_TIMESTAMP could change them.
    """
    return [
        column
        for number, column in enumerate(model.columns)
        if number not in columns and column.type in ("timestamp", "datetime") and column.generated is None
    ]


def delete_statements(model: TableModel, keys: Sequence[Row]) -> Iterator[tuple[SqlBytes, int]]:
    """Yield DELETE statements for rows with these keys, each as a pair (statement, number of keys)."""
    head = written_bytes(b"DELETE FROM %s WHERE ", table_name(model))
    return _grouped(head, _BY_OR, (written_bytes(b"(%s)", by_key(model, key)) for key in keys))


def by_key(model: TableModel, key: Row) -> SqlBytes:
    columns = [model.columns[c] for c in key_of(model)]
    return joined_bytes(
        b" AND ",
        (
            written_bytes(b"%s=%s", quote(column.name), comparand(value, column))
            for column, value in zip(columns, key, strict=True)
        ),
    )


def update_statement(model: TableModel, columns: Sequence[int], values: Row, where: SqlBytes) -> SqlBytes:
    """Return the UPDATE that sets `columns` to `values` in the rows that meet the condition `where`."""
    given = set(columns)
    parts = [
        written_bytes(b"%s=%s", quote(model.columns[c].name), literal(value, model.columns[c]))
        for c, value in zip(columns, values, strict=False)
        if model.columns[c].generated is None and not _is_no_geometry(value, model.columns[c])
    ]
    parts += [_itself(column) for column in kept_times(model, given)]
    if not parts:  # only generated columns changed, and the server computes these
        free = next(column for column in model.columns if column.generated is None)
        parts.append(_itself(free))
    return written_bytes(b"UPDATE %s SET %s WHERE %s", table_name(model), joined_bytes(b", ", parts), where)


def _itself(column: Column) -> SqlBytes:
    name = quote(column.name)
    return written_bytes(b"%s=%s", name, name)


def _is_no_geometry(value: Value, column: Column) -> bool:
    """True if the value is the empty geometry that ALTER TABLE … ADD g GEOMETRY NOT NULL sets in existing rows. No
    other statement can write this value, so the target's row already has it.
    """
    return value == b"" and column.type in GEOMETRY_TYPES


def change_statement(change: RowChange, model: TableModel) -> SqlBytes:
    """Return the INSERT, UPDATE or DELETE statement that applies one change of one row."""
    if change.kind is ChangeKind.INSERT:
        assert change.after is not None
        return next(insert_statements(model, change.after))[0]
    assert change.before is not None
    where = where_row(model, change.before)
    if change.kind is ChangeKind.DELETE:
        return written_bytes(b"DELETE FROM %s WHERE %s", table_name(model), where)
    assert change.after is not None
    return update_statement(model, change.after.columns, change.after.rows[0], where)


def update_statements(model: TableModel, rows: RowSet) -> Iterator[tuple[SqlBytes, int]]:
    """Yield pairs (text, number of rows). A text has many UPDATE statements, one for each row. Each of `rows` has the
    new values, and then the key.
    """
    width = len(rows.columns)
    return _grouped(
        NO_BYTES,
        _BY_SEMICOLON,
        (update_statement(model, rows.columns, row, by_key(model, row[width:])) for row in rows.rows),
    )


def where_row(model: TableModel, image: RowSet) -> SqlBytes:
    """Return the condition that selects one row. It compares the key if the image has all columns of the key. Otherwise
    it compares all columns of the image, with LIMIT 1, as a replica server does for a table without a key.
    """
    row = image.rows[0]
    if finds_by_key(model, image):
        at = {column: i for i, column in enumerate(image.columns)}
        return by_key(model, tuple(row[at[column]] for column in key_of(model)))
    plain = [(i, model.columns[c]) for i, c in enumerate(image.columns) if model.columns[c].generated is None]
    if not plain:  # the target has none of the columns that identify a row on the source
        raise no_record(image, model)
    return written_bytes(b"%s LIMIT 1", joined_bytes(b" AND ", (is_equal(row[i], column) for i, column in plain)))


def finds_by_key(model: TableModel, image: RowSet) -> bool:
    key = key_of(model)
    return bool(key) and set(key) <= set(image.columns)


def has_empty_enum(model: TableModel, sets: Iterable[RowSet]) -> bool:
    """True if a row has the error value of an ENUM (number 0), which strict mode would refuse."""
    for rows in sets:
        enums = [(i, model.columns[c]) for i, c in enumerate(rows.columns) if model.columns[c].type == "enum"]
        if enums and any(is_empty_enum(row[i], column) for row in rows.rows for i, column in enums):
            return True
    return False


def parents_first(chunks: Sequence[TableChunk], models: Mapping[tuple[str, str], TableModel]) -> list[TableChunk]:
    """Return the chunks in an order in which parent tables come before child tables. If foreign keys form a cycle, no
    order of its tables is right.
    """
    by_name = {(chunk.database, chunk.table): chunk for chunk in chunks}
    wanted = {*by_name}  # only names: a recursive function is a reference cycle, which keeps its variables alive
    ordered: list[tuple[str, str]] = []
    seen: set[tuple[str, str]] = set()

    def visit(name: tuple[str, str]) -> None:
        if name in seen or name not in wanted:
            return
        seen.add(name)
        for key in models[name].foreign_keys:
            visit((key.ref_database, key.ref_table))
        ordered.append(name)

    for name in by_name:
        visit(name)
    return [by_name[name] for name in ordered]


def _grouped(head: SqlBytes, join: _Join, parts: Iterable[SqlBytes]) -> Iterator[tuple[SqlBytes, int]]:
    pending: list[SqlBytes] = []
    size = 0
    for part in parts:
        pending.append(part)
        size += len(part)
        if size >= STATEMENT_BYTES or len(pending) >= ROWS_PER_STATEMENT:
            yield joined_bytes(b"", (head, join(pending))), len(pending)
            pending, size = [], 0
    if pending:
        yield joined_bytes(b"", (head, join(pending))), len(pending)
