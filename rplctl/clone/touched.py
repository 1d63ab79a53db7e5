"""Which rows the relay log touches between two places of the source's log, by their keys, as a copy that goes on wants
them: what was read at the first place is as it was but for these.

Invariant: a table of which that is not sure is not in the answer. Only keys of whole numbers and of text are sure, of
tables that nothing cascades to, changed by plain rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from rplctl.clone.last_row import key_term, read_images, table_map_of
from rplctl.clone.received import alike, changed, count_up_to
from rplctl.event.cells import cells_of, raw_cells
from rplctl.event.charset import decode_text
from rplctl.event.column import ColumnFormat
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.images import Images
from rplctl.event.scan import GroupKind, scan_events
from rplctl.event.types import COMPRESSED_ROWS, ROWS_EVENTS
from rplctl.event.values import decode_column
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.model import INTEGER_BITS, Column, TableModel
from rplctl.schema.statement import TableName

Key = tuple[int | str, ...]
Touched = dict[Key, str]  # each with the condition that finds it on the source
MOST_KEYS: Final = 10_000  # of a table
_NOTHING: Final = MysqlGtidSet()
_SURE: Final = frozenset({*INTEGER_BITS, "char", "varchar"})


class Unsure(Exception):
    """What was changed of any table."""


def key_columns(model: TableModel) -> tuple[int, ...]:
    """Numbers of the primary key's columns; () where its values are not sure, or foreign keys may change rows."""
    key = model.primary_key
    if key is None or key.has_expression or model.foreign_keys:
        return ()
    numbers = {column.name.casefold(): number for number, column in enumerate(model.columns)}
    found = tuple(numbers[name.casefold()] for name in key.columns)
    return found if {model.columns[number].type for number in found} <= _SURE else ()


def touched_keys(
    batches: Iterable[RelayGroups], low: BinlogPosition, high: BinlogPosition, models: Iterable[TableModel]
) -> dict[TableName, Touched]:
    """Behind `low`, up to and with `high`. Raises Unsure; errors of `batches` pass through."""
    tables = {alike((model.database, model.name)): model for model in models if key_columns(model)}
    found: dict[TableName, Touched] = {name: {} for name in tables}
    for groups in batches:
        for number in range(count_up_to(groups, high)):
            is_due = found and low.is_before(groups.scan.source_position(number))
            if is_due and changed(groups, number, frozenset(found), _NOTHING):
                if not _has_added(groups, number, tables, found):
                    raise Unsure(f"what ends at {groups.scan.source_position(number)} is not plain rows")
    return {(tables[name].database, tables[name].name): keys for name, keys in found.items()}


def _has_added(
    groups: RelayGroups, number: int, tables: Mapping[TableName, TableModel], found: dict[TableName, Touched]
) -> bool:
    scan = groups.scan
    if scan.kind[number] != GroupKind.ROWS or scan.has_payload[number]:
        return False
    events = scan_events(groups.data[: int(scan.end[number])], int(scan.start[number]))
    for at in np.flatnonzero(np.isin(events.type_codes, [*map(int, ROWS_EVENTS)])).tolist():
        table_map = table_map_of(groups, events, at) if int(events.type_codes[at]) not in COMPRESSED_ROWS else None
        if table_map is None:
            return False
        name = alike((table_map.database, table_map.table))
        if name not in found:
            continue
        is_known = table_map.column_count == len(tables[name].columns)
        if is_known:
            found[name].update(_keys(*read_images(groups, events, at, table_map, tables[name]), tables[name]))
        if not is_known or len(found[name]) > MOST_KEYS or not all(found[name].values()):
            del found[name]
    return True


def _keys(formats: list[ColumnFormat], images: Images, model: TableModel) -> Iterator[tuple[Key, str]]:
    """Of all images; what an after image does not hold (MINIMAL) is as before. The condition is '' where a key is not
    whole.
    """
    before_of = images.before_of_image
    for image in range(len(images.cell_start)):
        key: list[int | str] = []
        terms = []
        for number in key_columns(model):
            column, fmt = model.columns[number], formats[number]
            holder = image if images.cell_start[image, number] >= 0 else int(before_of[image])
            terms.append(key_term(column, fmt, images, holder, number))
            if terms[-1]:
                key.append(_value(column, fmt, images, holder, number))
        yield tuple(key), " AND ".join(terms) if all(terms) else ""


def _value(column: Column, fmt: ColumnFormat, images: Images, image: int, number: int) -> int | str:
    rows = np.array([image], np.int64)
    if column.type in INTEGER_BITS:
        return int(decode_column(images, rows, number, fmt)[0])
    return decode_text(raw_cells(cells_of(images, rows, number))[0], column.charset or "utf8mb4")
