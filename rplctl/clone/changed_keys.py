"""Collects the keys of the rows that the relay log changes between two positions of the source's log.

A snapshot at the second position needs these keys if it reuses rows that were read at the first position. All other
rows are unchanged. Invariant: if the changes of a table are uncertain, the table is not in the result. They are
uncertain in these cases:

* Foreign key actions may change the table.
* The table's key has a type that is not supported, or too long values.
* An event other than a plain rows event has changed the table.

Each SQL condition matches exactly one key, even if a collation treats two keys as equal. So no row is read twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np

from rplctl.clone.chunk_file import Key
from rplctl.clone.last_row import key_term, read_images, table_map_of
from rplctl.errors import BinlogFormatError
from rplctl.event.column import ColumnFormat
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.images import Images
from rplctl.event.scan import GroupKind, scan_events
from rplctl.event.types import COMPRESSED_ROWS, ROWS_EVENTS
from rplctl.event.values import decode_column
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.relay_log.received import alike, changed, count_up_to
from rplctl.schema.bounds import key_of
from rplctl.schema.model import BINARY_TYPES, INTEGER_BITS, TEMPORAL_TYPES, TEXT_BYTES, Column, TableModel
from rplctl.schema.statement import TableName
from rplctl.sql_text import NOTHING, Sql, joined
from rplctl.target.registry import value_form

ChangedKeys = dict[Key, Sql]  # key → the condition that finds it on the source
MOST_KEYS: Final = 10_000  # for one table
_LONGEST: Final = 16 << 10  # characters of a key's condition
_NOTHING: Final = MysqlGtidSet()
_SURE: Final = (
    TEMPORAL_TYPES
    | BINARY_TYPES
    | {*INTEGER_BITS, *TEXT_BYTES, "char", "varchar", "decimal", "float", "double", "bit", "year", "enum", "set"}
    | {"inet4", "inet6", "uuid"}
)


class Unsure(Exception):
    """The error if it is uncertain which rows have changed, so that no part of a snapshot can be reused."""


def key_columns(model: TableModel) -> tuple[int, ...]:
    """Return the indexes of the columns of the table's key. Return () if this key cannot find rows with certainty.

    The key is not certain if events may not show the exact values of a key column. The same applies if foreign key
    actions may change rows of the table.
    """
    columns = key_of(model)
    if any(key.acts for key in model.foreign_keys) or not all(map(_is_sure, columns)):
        return ()
    return tuple(model.columns.index(column) for column in columns)


def _is_sure(column: Column) -> bool:
    return column.type in _SURE and not (column.type == "year" and column.length == 2)


def changed_keys(  # noqa: PLR0913 - a part of the log, and the tables to find in it
    batches: Iterable[RelayGroups],
    low: BinlogPosition,
    high: BinlogPosition,
    models: Iterable[TableModel],
    kind: str,
    *,
    folds_names: bool,
) -> dict[TableName, ChangedKeys]:
    """Return the keys of each table that were changed after the position `low`, up to and including `high`.

    The keys have the values that targets of `kind` store. A table with uncertain changes is not in the result.
    `batches`: event groups of the relay log from `low` or earlier. `folds_names`: True if the source's names are
    case-insensitive. Raises Unsure if the changes of all tables are uncertain, and the errors of `batches`.
    """
    logged: Callable[[TableName], TableName] = alike if folds_names else lambda name: name
    tables = {logged((model.database, model.name)): model for model in models if key_columns(model)}
    found: dict[TableName, ChangedKeys] = {name: {} for name in tables}
    for groups in batches:
        for number in range(count_up_to(groups, high)):
            is_due = found and low.is_before(groups.scan.source_position(number))
            if is_due and changed(groups, number, frozenset(map(alike, found)), _NOTHING):
                if not _has_added(groups, number, tables, found, kind, logged):
                    raise Unsure(f"the transaction before {groups.scan.source_position(number)} is not plain rows")
    return {(tables[name].database, tables[name].name): keys for name, keys in found.items()}


def _has_added(  # noqa: PLR0913 - the parameters are those of `changed_keys`
    groups: RelayGroups,
    number: int,
    tables: Mapping[TableName, TableModel],
    found: dict[TableName, ChangedKeys],
    kind: str,
    logged: Callable[[TableName], TableName],
) -> bool:
    scan = groups.scan
    if scan.kind[number] != GroupKind.ROWS or scan.has_payload[number]:
        return False
    events = scan_events(groups.data[: int(scan.end[number])], int(scan.start[number]))
    for at in np.flatnonzero(np.isin(events.type_codes, [*map(int, ROWS_EVENTS)])).tolist():
        table_map = table_map_of(groups, events, at) if int(events.type_codes[at]) not in COMPRESSED_ROWS else None
        if table_map is None:
            return False
        name = logged((table_map.database, table_map.table))
        if name not in found:
            continue
        more: ChangedKeys = {}
        if table_map.column_count == len(tables[name].columns):
            with suppress(BinlogFormatError):
                more = dict(_keys(*read_images(groups, events, at, table_map, tables[name]), tables[name], kind))
        found[name].update(more)
        if not more or "" in more.values() or len(found[name]) > MOST_KEYS:
            del found[name]
    return True


def _keys(formats: list[ColumnFormat], images: Images, model: TableModel, kind: str) -> Iterator[tuple[Key, Sql]]:
    """Yield the key of each row image, with the SQL condition that finds the row on the source.

    If an after image lacks a key column (binlog_row_image=MINIMAL), the before image has its value. The condition is ''
    if the key is incomplete or too long. Raises BinlogFormatError if a value is damaged.
    """
    form, before_of = value_form(kind), images.before_of_image
    for image in range(len(images.cell_start)):
        key: list[Any] = []
        terms = []
        for number in key_columns(model):
            column, fmt = model.columns[number], formats[number]
            holder = image if images.cell_start[image, number] >= 0 else int(before_of[image])
            terms.append(key_term(column, fmt, images, holder, number))
            values = decode_column(images, np.array([holder], np.int64), number, form.format_for(fmt, column))
            key += form.stored(values)
        condition = joined(" AND ", terms)
        yield tuple(key), condition if all(terms) and len(condition) <= _LONGEST else NOTHING
