"""Decode rows events whose order counts into the changes of each event, in the form that the target reads.

A Spark task runs this module. The driver, which is the applier, has already verified, unpacked and filtered the events.
It sends each event after a table map of the event's table. The task changes nothing outside of itself, so it may run
twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rplctl.decode.net_changes import Inconsistent, has_large_cell, row_changes
from rplctl.decode.row_stream import IS_ROWS, EventRun, read_tables, table_ids, unverified_run
from rplctl.errors import RplError
from rplctl.event.format_description import FormatDescription
from rplctl.event.jit import byte_view
from rplctl.event.types import EventType
from rplctl.schema.plan import Catalog
from rplctl.schema.statement import TableName
from rplctl.target.base import ChangeKind, TableChunk
from rplctl.target.registry import value_form


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedPiece:
    """Whole events for one task. They are in `events`, or in the file `path` of the spool folder if they are large.

    `kinds` and `tables` have one element for each rows event. `start` and `end` are offsets in the driver's input, for
    messages.
    """

    events: bytes
    path: str
    start: int
    end: int
    description: FormatDescription
    target_kind: str
    kinds: tuple[ChangeKind, ...]
    tables: tuple[TableName, ...]
    spool_folder: str


def ordered_chunks(piece: OrderedPiece, catalog: Catalog) -> list[TableChunk]:
    """Return one chunk with the changes of each rows event.

    If this task cannot decode an event, the chunk of the event has no table. The driver (the applier) then decodes the
    event itself when it reaches the event, and reports the error if there is one.
    """
    data = byte_view(piece.events) if piece.events else np.memmap(piece.path, np.uint8, "r")
    run = unverified_run(data, 0, len(data), piece.description)
    return [_chunk(pair, catalog, piece.target_kind) for pair in _pairs(run)]


def _pairs(run: EventRun) -> Iterator[EventRun]:
    """Yield each rows event together with its table map, as a run of two events."""
    maps: dict[int, int] = {}
    for number, (table_id, code) in enumerate(zip(table_ids(run.data, run.starts), run.types, strict=True)):
        if code == EventType.TABLE_MAP:
            maps[table_id] = number
        elif IS_ROWS[code]:
            yield run.chosen(np.array([maps[table_id], number]))


def _chunk(pair: EventRun, catalog: Catalog, target_kind: str) -> TableChunk:
    try:
        for rows in read_tables(pair, catalog, target_kind):
            has_views = value_form(target_kind).takes_views and has_large_cell(rows.images)
            changes = list(row_changes(rows))
            return TableChunk(
                database=rows.model.database,
                table=rows.model.name,
                ordered=changes,
                change_count=len(changes),
                foreign_keys_off=False,
                has_views=has_views,
            )
    except (RplError, Inconsistent):
        pass
    return TableChunk(database="", table="", change_count=0, foreign_keys_off=False)
