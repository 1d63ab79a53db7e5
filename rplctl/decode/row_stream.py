"""Read the rows events of a piece of the relay log, and group their row images by table.

The input is the offsets of the events. Invariants:
* Every event's checksum is verified before its bytes are used.
* Every rows event is read with the table map in force.
* A table map that does not match the table's model raises an error that shows both (design D18).

Compressed events (TRANSACTION_PAYLOAD, MariaDB's compressed rows) are first unpacked into one buffer.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rplctl import mysql_errors as er
from rplctl.decode.table_shape import fitted, formats_of
from rplctl.errors import BinlogFormatError
from rplctl.event.checksum import verify_events
from rplctl.event.checksum_trailer import without_checksum
from rplctl.event.column import ColumnFormat
from rplctl.event.distinct_ranges import distinct_ranges
from rplctl.event.format_description import CHECKSUM_OFF, FormatDescription
from rplctl.event.header import HEADER_LENGTH, parse_header
from rplctl.event.images import Images, first_columns, walk_images
from rplctl.event.jit import ByteArray
from rplctl.event.maps_in_force import maps_in_force
from rplctl.event.payload import expand_event
from rplctl.event.rows import Ints, RowsEvents, parse_rows_events
from rplctl.event.scan import event_offsets
from rplctl.event.table_map import TableMap, parse_table_map
from rplctl.event.types import COMPRESSED, PLAIN_ROWS, STATEMENT_EVENTS, EventType
from rplctl.schema.model import MERGE_ENGINES, TableModel, below_merge
from rplctl.schema.plan import Catalog
from rplctl.schema.statement import TableName
from rplctl.target.base import no_such_table
from rplctl.target.registry import DEFAULT_KIND, value_form


def _is_one_of(numbers: Iterable[int], size: int = 256) -> npt.NDArray[np.bool_]:
    """Return an array that is True at the index of each of these numbers.

    With this array as a lookup table, many values are tested much faster than with a search for each value.
    """
    table = np.zeros(size, np.bool_)
    table[list(numbers)] = True
    return table


IS_ROWS = _is_one_of(PLAIN_ROWS)
_ORDERED_TYPES = _is_one_of(STATEMENT_EVENTS | {EventType.XA_PREPARE})
_COMPRESSED_TYPES = _is_one_of(COMPRESSED)
_ROWS_ONLY = (b"\0BEGIN", b"\0COMMIT")


@dataclass(frozen=True, slots=True)
class TableRows:
    """All row images of one table in a piece of log, in the order of the log."""

    model: TableModel
    formats: tuple[ColumnFormat, ...]
    images: Images
    events: RowsEvents
    target_kind: str  # the kind of target for which the values are encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRun:
    """A sequence of events at offsets of `data`. `lengths` include the checksum that `description` specifies.

    `has_more_than_rows` is true if an unpacked transaction contains savepoints, statements or XA. `origins` is None if
    the events are unchanged. If they were unpacked or rewritten, it has the offset of each event in the log. For an
    unpacked event, this is the offset of the compressed event.
    """

    data: ByteArray
    starts: Ints
    lengths: Ints
    types: npt.NDArray[np.uint8]
    description: FormatDescription
    has_more_than_rows: bool = False
    origins: Ints | None = None

    def rows_events(self) -> RowsEvents:
        """Parse and return the rows events of the run. Raises BinlogFormatError if a body extends beyond its event."""
        chosen = IS_ROWS[self.types]
        starts, lengths, types = self.starts[chosen], self.lengths[chosen], self.types[chosen]
        return parse_rows_events(self.data, starts, lengths, types, self.description.checksum_length)

    def part(self, first: int, last: int) -> EventRun:
        """Return the run of the events with the numbers from `first` to `last` (exclusive)."""
        return self.chosen(slice(first, last))

    def chosen(self, own: slice | npt.NDArray[np.bool_]) -> EventRun:
        origins = None if self.origins is None else self.origins[own]
        return replace(self, starts=self.starts[own], lengths=self.lengths[own], types=self.types[own], origins=origins)

    def event(self, number: int) -> bytes:
        start = int(self.starts[number])
        raw: bytes = self.data[start : start + int(self.lengths[number])].tobytes()
        return raw

    def end_position(self, number: int) -> str:
        """Return the end_log_pos of an event as text.

        It is '' if the log has 0: in a compressed transaction, and in a transaction of MariaDB 11.4 or later.
        """
        return str(parse_header(self.event(number)).end_log_pos or "")


def read_tables(
    run: EventRun, catalog: Catalog, target_kind: str = DEFAULT_KIND, wanted: Container[TableName] | None = None
) -> Iterator[TableRows]:
    """Yield the row images of each table that the run changes. With `wanted`, only these tables are read.

    Raises BinlogFormatError if an event is damaged, and RplError 1146 or 1677 if a table has no model, or a different
    one. Raises RplError 1235 for rows that a MERGE table wrote into other tables.
    """
    is_map = run.types == EventType.TABLE_MAP
    if not IS_ROWS[run.types].any():
        return
    maps, map_number = _distinct_maps(run, np.flatnonzero(is_map))
    events = run.rows_events()
    number_of_event = _map_of_events(run, is_map, maps, map_number, events)
    tables: dict[tuple[str, str, tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for number in np.unique(number_of_event):
        table_map = maps[number]
        key = (table_map.database, table_map.table, table_map.type_codes, table_map.metadata)
        tables.setdefault(key, []).append(int(number))
    for numbers in tables.values():
        table_map = maps[numbers[0]]
        if wanted is not None and (table_map.database, table_map.table) not in wanted:
            continue
        model = model_of(table_map, catalog, target_kind, is_mariadb=run.description.is_mariadb)
        if model.is_sequence or (wanted is None and _is_left_out(model, target_kind)):
            continue  # rows of a sequence are NEXTVAL in MariaDB; the target has no table for them
        formats = formats_of(table_map, model)
        chosen = events.select(np.flatnonzero(_is_one_of(numbers, len(maps))[number_of_event]))
        images = first_columns(walk_images(chosen, formats), len(model.columns))
        yield TableRows(model, formats[: images.column_count], images, chosen, target_kind)


def table_maps(run: EventRun) -> list[TableMap]:
    """Return the distinct table maps of the run."""
    return _distinct_maps(run, np.flatnonzero(run.types == EventType.TABLE_MAP))[0]


def unknown_tables(run: EventRun, catalog: Catalog) -> list[TableName]:
    """Return the tables in the run's table maps that are not in the catalog."""
    return sorted({(m.database, m.table) for m in table_maps(run)} - catalog.tables.keys())


def named_tables(data: ByteArray, start: int, end: int, description: FormatDescription) -> list[TableName]:
    """Return the tables in the table maps of data[start:end], which contains whole events.

    Checksums are not verified.
    """
    return unknown_tables(unverified_run(data, start, end, description), Catalog())


def unverified_run(data: ByteArray, start: int, end: int, description: FormatDescription) -> EventRun:
    """Return the whole events of data[start:end] as a run, without verifying their checksums."""
    offsets, types = event_offsets(data[start:end])
    return EventRun(
        data=data, starts=offsets[:-1] + start, lengths=np.diff(offsets), types=types, description=description
    )


def intact_events(data: ByteArray, start: int, end: int, checksum_algorithm: int) -> tuple[Ints, npt.NDArray[np.uint8]]:
    """Verify the events of data[start:end], and return (offsets, type codes).

    The last offset is `end`. `checksum_algorithm` is the algorithm in force at `start`. Raises BinlogFormatError 1594
    if the last event is incomplete, and 1743 if a checksum does not match.
    """
    piece = data[start:end]
    offsets, types = event_offsets(piece)
    if int(offsets[-1]) != end - start:
        raise BinlogFormatError(
            "the relay log ends inside an event",
            errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
            position=str(start + offsets[-1]),
        )
    if (bad := verify_events(piece, offsets, checksum_algorithm)) >= 0:
        raise BinlogFormatError(
            "Replication event checksum verification failed while reading from a relay log.",
            errno=er.NETWORK_READ_EVENT_CHECKSUM_FAILURE,
            position=str(start + int(offsets[bad])),
            hint="to fetch the relay logs again, run: rplctl stop; rplctl recover --refetch; rplctl start",
        )
    return offsets + start, types


def read_run(
    data: ByteArray, start: int, end: int, description: FormatDescription, context: tuple[int, ...] = ()
) -> EventRun:
    """Return the events of data[start:end] as a run, with checksums verified and compressed events unpacked.

    `context` has the offsets of the table maps in force at `start`, which come first in the run. Raises
    BinlogFormatError 1594 if the last event is incomplete, and 1743 if a checksum does not match.
    """
    offsets, types = intact_events(data, start, end, description.checksum_algorithm)
    lengths = [int.from_bytes(data[at + 9 : at + 13].tobytes(), "little") for at in context]
    run = EventRun(
        data=data,
        starts=np.concatenate([np.array(context, np.int64), offsets[:-1]]),
        lengths=np.concatenate([np.array(lengths, np.int64), np.diff(offsets)]),
        types=np.concatenate([np.full(len(context), EventType.TABLE_MAP, np.uint8), types]),
        description=description,
    )
    return _expanded(run) if _COMPRESSED_TYPES[run.types].any() else run


def model_of(table_map: TableMap, catalog: Catalog, target_kind: str, *, is_mariadb: bool) -> TableModel:
    """Return the model of the table to which a table map belongs.

    Raises RplError 1146 if there is no model, and 1677 if the model does not match the table map.
    """
    model = catalog.tables.get((table_map.database, table_map.table))
    if model is None:
        raise no_such_table(table_map.database, table_map.table)
    return fitted(table_map, model, is_targets=value_form(target_kind).describes_itself, is_mariadb=is_mariadb)


def _is_left_out(model: TableModel, target_kind: str) -> bool:
    """True if the target does not have the table, because its rows are stored elsewhere.

    Raises RplError 1235 for a MERGE table, whose rows are in tables that the target has.
    """
    if not model.lies_elsewhere or value_form(target_kind).describes_itself:
        return False
    if model.engine.upper() in MERGE_ENGINES:
        raise below_merge(model, "row events")
    return True


def _distinct_maps(run: EventRun, numbers: Ints) -> tuple[list[TableMap], Ints]:
    """Return the distinct table maps, and for each TABLE_MAP event the index of its map among them."""
    body_lengths = run.lengths[numbers] - HEADER_LENGTH - run.description.checksum_length
    firsts, which = distinct_ranges(run.data, run.starts[numbers] + HEADER_LENGTH, body_lengths)
    return [parse_table_map(run.event(number), run.description) for number in numbers[firsts]], which


def _map_of_events(
    run: EventRun, is_map: npt.NDArray[np.bool_], maps: Sequence[TableMap], map_number: Ints, events: RowsEvents
) -> Ints:
    """Return the index in `maps` of the table map in force for each rows event.

    Raises BinlogFormatError if a rows event has no table map before it.
    """
    ids = np.array([table_map.table_id for table_map in maps], np.int64)
    result = maps_in_force(run.starts[is_map], map_number, ids, events.event_start, events.table_id)
    without = np.flatnonzero(result < 0)
    if len(without):
        raise BinlogFormatError(
            f"a rows event of table id {events.table_id[without[0]]} has no table map before it",
            errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
        )
    return result


def table_ids(data: ByteArray, starts: Ints) -> Ints:
    """Return the table ids of the TABLE_MAP or rows events that begin at `starts`."""
    ids = np.zeros(len(starts), np.int64)
    for byte in range(6):
        ids |= data[starts + 19 + byte].astype(np.int64) << (8 * byte)
    return ids


def run_of(events: Iterable[bytes], description: FormatDescription) -> EventRun:
    """Return events without checksums as a run in a new buffer."""
    data = np.frombuffer(b"".join(events), np.uint8)
    offsets, types = event_offsets(data)
    return EventRun(
        data=data,
        starts=offsets[:-1],
        lengths=np.diff(offsets),
        types=types,
        description=replace(description, checksum_algorithm=CHECKSUM_OFF),
    )


def _expanded(run: EventRun) -> EventRun:
    """Return the run with its compressed events unpacked, in a new buffer and without checksums."""
    checksum_length = run.description.checksum_length
    plain = [
        expand_event(run.event(number), run.description)
        if is_compressed
        else without_checksum(run.event(number), checksum_length)
        for number, is_compressed in enumerate(_COMPRESSED_TYPES[run.types].tolist())
    ]
    whole = run_of(plain, run.description)
    whole = replace(whole, origins=run.starts[np.searchsorted(np.cumsum([*map(len, plain)]), whole.starts, "right")])
    if EventType.TRANSACTION_PAYLOAD not in run.types:
        return whole  # the scan has already seen the events of these groups
    queries = (whole.event(int(number)) for number in np.flatnonzero(whole.types == EventType.QUERY))
    more = _ORDERED_TYPES[whole.types].any() or not all(q.endswith(_ROWS_ONLY) for q in queries)
    return replace(whole, has_more_than_rows=bool(more))
