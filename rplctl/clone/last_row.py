"""Finds a row of the last change to a table group, for a source of MySQL without GTIDs.

A table group has the tables that foreign keys link. As soon as MySQL grants a lock on the row, new snapshots show the
change. The reason is that InnoDB makes a transaction visible to new snapshots before it releases the row locks. With
binlog_order_commits=ON, transactions become visible in the order of the log. So a snapshot that shows the last
transaction of the table group also shows the earlier ones. Invariant: a row is used only if its key is certain, because
a wrong key would find no row. The locking SELECT must find the row, except if the change is a DELETE.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from rplctl import mysql_errors as er
from rplctl.errors import SourceError
from rplctl.event.cells import cells_of, raw_cells, unsigned_cells
from rplctl.event.column import ColumnFormat, column_formats
from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.images import Images, walk_images
from rplctl.event.rows import DELETE, RowsEvents, parse_rows_events
from rplctl.event.scan import EventIndex, GroupKind, scan_events
from rplctl.event.table_map import TableMap, parse_table_map
from rplctl.event.types import PLAIN_ROWS, EventType
from rplctl.event.values import decode_column
from rplctl.relay_log.reader import RelayGroups
from rplctl.relay_log.received import Received, changed
from rplctl.schema.bounds import grammar_of
from rplctl.schema.cell_format import known_formats
from rplctl.schema.model import BINARY_TYPES, INTEGER_BITS, TEMPORAL_TYPES, TEXT_BYTES, Column, TableModel
from rplctl.schema.source_catalog import quote
from rplctl.schema.statement import TableName
from rplctl.source.snapshot import RowLock
from rplctl.sql_text import NOTHING, Grammar, Sql, float_literal, hex_literal, joined, matched, word, written

_SCAN_MS: Final = 1000
_LOOKED_BACK: Final = 8  # pieces of 16 MB that are searched; an older change of the table group is not found
_NOTHING: Final = MysqlGtidSet()
_DECODED: Final = (
    TEMPORAL_TYPES
    | BINARY_TYPES
    | {*INTEGER_BITS, "decimal", "float", "double", "bit", "year", "inet4", "inet6", "uuid"}
)


class LastRow:
    """The last change to some tables in the relay log, from which a row to lock is chosen.

    `read_model` returns the source's model of a table, and raises SourceError. `tables`: the tables whose events count
    as a change; None means any table.
    """

    def __init__(
        self, received: Received, read_model: Callable[[TableName], TableModel], tables: frozenset[TableName] | None
    ) -> None:
        """Find the last change in the newest relay log file. Raises RelayLogError if the file is damaged."""
        self._received, self._read_model, self._tables = received, read_model, tables
        self._last: tuple[RelayGroups, int] | None = None
        self._models: dict[TableName, TableModel] = {}
        for groups in reversed(deque(received.from_file_start(), _LOOKED_BACK)):
            if self._look(groups):
                break

    def look(self, groups: RelayGroups) -> None:
        """Search for a later change in event groups that have just arrived in the relay log."""
        self._look(groups)
        if np.any((groups.scan.kind != GroupKind.ROWS) & (groups.scan.kind != GroupKind.CONTROL)):
            self._models.clear()

    def _look(self, groups: RelayGroups) -> bool:
        for number in reversed(range(len(groups.scan))):
            if changed(groups, number, self._tables, _NOTHING):
                self._last = groups, number
                return True
        return False

    def lock(self) -> RowLock | None:
        """Examine all events that have arrived, and return the statement that locks a row of the last change.

        None if the newest relay log file has no change of the tables, or if no row of the change can be found with
        certainty. Raises SourceError if a table's definition cannot be read, and RelayLogError if the log is damaged.
        """
        for groups in self._received.new():
            self.look(groups)
        return next(self._locks(*self._last), None) if self._last is not None else None

    def _locks(self, groups: RelayGroups, number: int) -> Iterator[RowLock]:
        """Yield possible locks for the change in the event group with this number.

        First yield locks of single rows, which the server finds by their primary keys. Then yield locks of all rows of
        a table without such a key. The SELECT that locks all rows has a time limit.
        """
        scan = groups.scan
        if scan.kind[number] != GroupKind.ROWS or scan.has_payload[number]:
            return
        events = scan_events(groups.data[: int(scan.end[number])], int(scan.start[number]))
        without_key: list[TableModel] = []
        for at in np.flatnonzero(np.isin(events.type_codes, [*map(int, PLAIN_ROWS)]))[::-1].tolist():
            found = self._row(groups, events, at)
            if found is None:
                continue
            model, where, finds = found
            if where:
                name = quote(model.database, model.name)
                sql = written("SELECT 1 FROM {} FORCE INDEX (PRIMARY) WHERE {} LOCK IN SHARE MODE", name, where)
                yield RowLock(sql, finds)
            elif model not in without_key:
                without_key.append(model)
        for (
            model
        ) in without_key:  # the SELECT has all columns, so that InnoDB locks rows and not the entries of an index
            sql = written(
                "SELECT /*+ MAX_EXECUTION_TIME({}) */ * FROM {} WHERE RAND() > 2 LOCK IN SHARE MODE",
                _SCAN_MS,
                quote(model.database, model.name),
            )
            yield RowLock(sql, finds=False)

    def _row(self, groups: RelayGroups, events: EventIndex, at: int) -> tuple[TableModel, Sql, bool] | None:
        """Return the table of a rows event, a condition that finds its first row, and True if this row must exist.

        The condition is '' if no primary key finds the row. The row does not exist after a DELETE. The result is None
        if the account may not read the table, or if the table is not in InnoDB or has other columns now.
        """
        table_map = table_map_of(groups, events, at)
        model = self._model(table_map) if table_map is not None else None
        if table_map is None or model is None or table_map.column_count != len(model.columns):
            return None
        formats, images = read_images(groups, events, at, table_map, model)
        return model, _key_condition(model, formats, images), int(images.ops[0]) != DELETE

    def _model(self, table_map: TableMap) -> TableModel | None:
        name = table_map.database, table_map.table
        if name not in self._models:
            try:
                self._models[name] = self._read_model(name)
            except SourceError as error:
                if error.errno not in (er.TABLEACCESS_DENIED_ERROR, er.NO_SUCH_TABLE, er.BAD_DB_ERROR):
                    raise
                return None
        model = self._models[name]
        return model if model.engine.lower() == "innodb" else None


def table_map_of(groups: RelayGroups, events: EventIndex, at: int) -> TableMap | None:
    """Return the TABLE_MAP that belongs to the rows event with index `at`. Return None if this TABLE_MAP is missing."""
    description = groups.scan.description_at(int(events.offsets[at]))
    if description is None:
        return None
    rows = _parsed(groups, events, at, description)
    maps = np.flatnonzero(events.type_codes[:at] == EventType.TABLE_MAP)[::-1].tolist()
    parsed = (
        parse_table_map(groups.data[events.offsets[n] : events.offsets[n + 1]].tobytes(), description) for n in maps
    )
    return next((each for each in parsed if each.table_id == rows.table_id[0]), None)


def read_images(
    groups: RelayGroups, events: EventIndex, at: int, table_map: TableMap, model: TableModel
) -> tuple[list[ColumnFormat], Images]:
    """Return the column formats and the row images of the rows event with index `at`.

    `table_map`: the event's TABLE_MAP, with as many columns as the model has.
    """
    description = groups.scan.description_at(int(events.offsets[at]))
    assert description is not None
    formats = column_formats(table_map, known_formats(model.columns))
    return formats, walk_images(_parsed(groups, events, at, description), formats)


def _parsed(groups: RelayGroups, events: EventIndex, at: int, description: FormatDescription) -> RowsEvents:
    lengths = np.diff(events.offsets[at : at + 2])
    codes = events.type_codes[at : at + 1]
    return parse_rows_events(groups.data, events.offsets[at : at + 1], lengths, codes, description.checksum_length)


def _key_condition(model: TableModel, formats: Sequence[ColumnFormat], images: Images) -> Sql:
    """Return the condition that finds the event's first row by its primary key.

    It is '' without a primary key, or if the value of a key column is uncertain.
    """
    key = model.primary_key
    if key is None or key.has_expression or not len(images.ops):
        return NOTHING
    numbers = {column.name.casefold(): number for number, column in enumerate(model.columns)}
    for row in (int(images.after[0]), int(images.before[0])):  # with MINIMAL, only the before image has the key
        found = (numbers[name.casefold()] for name in key.columns) if row >= 0 else ()
        terms = [key_term(model.columns[number], formats[number], images, row, number) for number in found]
        if terms and all(terms):
            return joined(" AND ", terms)
    return NOTHING


def key_term(column: Column, fmt: ColumnFormat, images: Images, row: int, number: int) -> Sql:
    """Return an SQL condition that is true only for the column's value in a row image, and can use an index.

    `row`, `number`: the indexes of the image and of the column. The result is '' if the column's type permits no such
    condition, or if the image lacks the column (binlog_row_image=MINIMAL). Raises BinlogFormatError if the value is
    damaged.
    """
    rows = np.array([row], np.int64)
    cells = cells_of(images, rows, number)
    if not len(cells):
        return NOTHING
    name, kind = quote(column.name), column.type
    if kind in TEXT_BYTES or kind in ("char", "varchar"):
        found, charset = hex_literal(raw_cells(cells)[0]), word(column.charset or "utf8mb4")
        return written("{} = _{} {} AND CAST({} AS BINARY) = {}", name, charset, found, name, found)
    if kind in ("enum", "set"):
        return written("{} = {}", name, int(unsigned_cells(cells)[0]))
    value: Any = decode_column(images, rows, number, fmt)[0] if kind in _DECODED else None
    if kind in BINARY_TYPES:
        return written("{} = {}", name, hex_literal(value))
    if kind in ("float", "double"):
        return written("{} = {}", name, matched(Grammar.DOUBLE, float_literal(value)))
    if kind in ("bit", "year"):
        return written("{} = {}", name, int(value))
    return written("{} = '{}'", name, matched(grammar_of(column), str(value))) if kind in _DECODED else NOTHING
