"""Parse one complete raw event into the dataclass of its type, with `parse_event`.

Row events, TABLE_MAP, QUERY and GTIDs have their own modules (`rows`, `table_map`, `query`, `gtid_event`). This module
also exports the parse functions of these modules. An undefined event type raises an error, unless the event is marked
as ignorable (D12). The docstring of each parse function has the layout of the event after its 19-byte header. All
numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.cursor import EventCursor, open_event
from rplctl.event.event_classes import NEUTRAL
from rplctl.event.format_description import CHECKSUM_CRC32, FormatDescription, encrypted_error, parse_format_description
from rplctl.event.gtid import GtidHistory, MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_event import MariadbGtid, MysqlGtid, Xid, decode_gtid_set, parse_gtid
from rplctl.event.header import (
    CHECKSUM_LENGTH,
    FLAG_ARTIFICIAL,
    FLAG_IGNORABLE,
    HEADER_LENGTH,
    EventHeader,
    build_header,
    format_error,
    parse_header,
)
from rplctl.event.query import ExecuteLoadQuery, Query, QueryContext, parse_execute_load, parse_query
from rplctl.event.table_map import TableMap, parse_table_map
from rplctl.event.types import CLASS_TABLE, EventType
from rplctl.position import can_begin_at

__all__ = [
    "Event",
    "ExecuteLoadQuery",
    "MariadbGtid",
    "MysqlGtid",
    "Query",
    "QueryContext",
    "build_rotate",
    "parse_event",
    "parse_execute_load",
    "parse_gtid",
    "parse_query",
]


@dataclass(frozen=True, slots=True)
class Rotate:
    log_name: str
    log_pos: int


@dataclass(frozen=True, slots=True)
class XidEvent:
    """The commit of a transaction. `xid` is the server's own number of the transaction, and not an XA identifier."""

    xid: int


@dataclass(frozen=True, slots=True)
class XaPrepare:
    xid: Xid
    one_phase: bool  # XA COMMIT … ONE PHASE: already committed


@dataclass(frozen=True, slots=True)
class PreviousGtids:
    gtids: MysqlGtidSet


@dataclass(frozen=True, slots=True)
class GtidList:
    """The last GTIDs before the start of a MariaDB binary log, each as (domain, server id, sequence number).

    A domain has one GTID for each server that wrote to it.
    """

    gtids: tuple[tuple[int, int, int], ...]
    flags: int

    @property
    def history(self) -> GtidHistory:
        return GtidHistory.of(self.gtids)

    @property
    def state(self) -> MariadbGtidState:
        """The GTID state, in which each domain has only the GTID that the server listed last for this domain."""
        return MariadbGtidState({domain: (server_id, sequence) for domain, server_id, sequence in self.gtids})


@dataclass(frozen=True, slots=True)
class BinlogCheckpoint:
    log_name: str


@dataclass(frozen=True, slots=True)
class AnnotateRows:
    """The text of the statement that caused the next row events: ANNOTATE_ROWS of MariaDB, ROWS_QUERY of MySQL."""

    sql_bytes: bytes


@dataclass(frozen=True, slots=True)
class HeartbeatEvent:
    log_name: str
    log_pos: int


@dataclass(frozen=True, slots=True)
class IncidentEvent:
    number: int  # 1 = LOST_EVENTS
    message: str


@dataclass(frozen=True, slots=True)
class Stop:
    pass


@dataclass(frozen=True, slots=True)
class Intvar:
    kind: int  # 1 LAST_INSERT_ID, 2 INSERT_ID
    value: int


@dataclass(frozen=True, slots=True)
class Rand:
    seed1: int
    seed2: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UserVar:
    """A user variable that the next statement uses.

    `value` has the bytes of the log, or None for NULL. `kind` is their format: 0 string, 1 double, 2 integer, 4
    decimal.
    """

    name: str
    kind: int
    collation: int
    value: bytes | None
    unsigned: bool


@dataclass(frozen=True, slots=True)
class LoadBlock:
    """A block of the file that LOAD DATA loads.

    The first block is in a BEGIN_LOAD_QUERY, and each later block in an APPEND_BLOCK. A DELETE_FILE has no data: the
    replica discards the file.
    """

    file_id: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Ignorable:
    """An event that a replica ignores: it is marked as ignorable, or belongs to group replication."""

    type_code: int


Event: TypeAlias = (
    Rotate
    | FormatDescription
    | Query
    | ExecuteLoadQuery
    | XidEvent
    | XaPrepare
    | MysqlGtid
    | MariadbGtid
    | PreviousGtids
    | GtidList
    | BinlogCheckpoint
    | AnnotateRows
    | HeartbeatEvent
    | IncidentEvent
    | Stop
    | Intvar
    | Rand
    | UserVar
    | LoadBlock
    | TableMap
    | Ignorable
)


def parse_event(event: bytes, description: FormatDescription) -> Event:
    """Parse one complete event, and return the dataclass of its type.

    Raises BinlogFormatError if the event is damaged, unknown, encrypted, or a row event.
    """
    header = parse_header(event)
    whole = _WHOLE.get(header.type_code)
    if whole is not None:
        return whole(event, description)
    body = open_event(event, description.checksum_length)
    reader = _READERS.get(header.type_code)
    if reader is not None:
        return reader(body, header)
    if header.type_code == EventType.START_ENCRYPTION:
        raise encrypted_error(event)
    if header.flags & FLAG_IGNORABLE or CLASS_TABLE[header.type_code] == NEUTRAL:
        return Ignorable(header.type_code)
    raise format_error("event of a type that is not expected here", event)


def build_rotate(server_id: int, log_name: str, log_pos: int, checksum_algorithm: int = CHECKSUM_CRC32) -> bytes:
    """Return an artificial ROTATE event without a timestamp, as a dump thread sends it.

    The event sets the position in the source's log at which the next event begins.
    """
    name = log_name.encode("utf-8", "surrogateescape")
    checksum = CHECKSUM_LENGTH if checksum_algorithm == CHECKSUM_CRC32 else 0
    length = HEADER_LENGTH + 8 + len(name) + checksum
    event = build_header(
        EventHeader(
            timestamp=0,
            type_code=EventType.ROTATE,
            server_id=server_id,
            event_length=length,
            end_log_pos=0,
            flags=FLAG_ARTIFICIAL,
        )
    )
    event += log_pos.to_bytes(8, "little") + name
    return append_checksum(event) if checksum else event


def _rotate(body: EventCursor, header: EventHeader) -> Rotate:
    """Parse a ROTATE: u64 position, then the name of the next log up to the end."""
    log_pos = body.unsigned(8)
    if not body.remaining:
        raise body.error("ROTATE without a log name")
    if not can_begin_at(log_pos):
        raise body.error(f"ROTATE to position {log_pos}, at which no event can begin")
    return Rotate(body.rest().decode("utf-8", "surrogateescape"), log_pos)


def _xa_prepare(body: EventCursor, header: EventHeader) -> XaPrepare:
    """Parse an XA_PREPARE: u8 one phase, i32 format id, u32 gtrid length, u32 bqual length, gtrid, bqual."""
    one_phase, format_id = bool(body.unsigned(1)), body.signed(4)
    gtrid_length, bqual_length = body.unsigned(4), body.unsigned(4)
    return XaPrepare(Xid(format_id=format_id, gtrid=body.take(gtrid_length), bqual=body.take(bqual_length)), one_phase)


def _gtid_list(body: EventCursor, header: EventHeader) -> GtidList:
    """Parse a GTID_LIST: u32 with the count (low 28 bits) and the flags (high 4 bits), then the GTIDs.

    Each GTID has u32 domain, u32 server id and u64 sequence number.
    """
    head = body.unsigned(4)
    count = head & 0x0FFFFFFF
    if count * 16 > body.remaining:
        raise body.error(f"{count} GTIDs cannot be in {body.remaining} bytes")
    entries = struct.iter_unpack("<IIQ", body.take(count * 16))
    return GtidList(tuple((domain, server_id, sequence) for domain, server_id, sequence in entries), head >> 28)


def _statement_text(body: EventCursor, header: EventHeader) -> AnnotateRows:
    if header.type_code == EventType.ROWS_QUERY:
        body.skip(1)  # the length byte, which is too small for long statements
    if not body.remaining:
        raise body.error("the text of a statement is missing")
    return AnnotateRows(body.rest())


def _heartbeat_v2(body: EventCursor, header: EventHeader) -> HeartbeatEvent:
    """Parse a HEARTBEAT_V2: a list of fields, each with type, length and value.

    Type and length are length-encoded integers. Type 1 is the log name, and type 2 the position as a length-encoded
    integer. Type 0 ends the list.
    """
    log_name, log_pos = "", header.end_log_pos
    while body.remaining and (kind := body.packed_length()) != 0:
        value = body.sub(body.packed_length())
        if kind == 1:
            log_name = value.rest().decode("utf-8", "surrogateescape")
        elif kind == 2:
            log_pos = value.packed_length()
    return HeartbeatEvent(log_name, log_pos)


def _incident(body: EventCursor, header: EventHeader) -> IncidentEvent:
    number = body.unsigned(2)
    return IncidentEvent(number, body.take(body.unsigned(1)).decode("utf-8", "replace") if body.remaining else "")


def _user_var(body: EventCursor, header: EventHeader) -> UserVar:
    """Parse a USER_VAR: u32 length, name, u8 is NULL.

    If the value is not NULL, the event continues: u8 type, u32 collation, u32 length, value, u8 flags (1 = unsigned).
    """
    name = body.take(body.unsigned(4)).decode("utf-8", "surrogateescape")
    if body.unsigned(1):
        return UserVar(name=name, kind=0, collation=63, value=None, unsigned=False)
    kind, collation = body.unsigned(1), body.unsigned(4)
    value = body.take(body.unsigned(4))
    flags = body.unsigned(1) if body.remaining else 0
    if kind not in (0, 1, 2, 4):
        raise body.error(f"unknown type {kind} of a user variable")
    return UserVar(name=name, kind=kind, collation=collation, value=value, unsigned=bool(flags & 1))


_WHOLE: dict[int, Callable[[bytes, FormatDescription], Event]] = {
    EventType.FORMAT_DESCRIPTION: lambda event, _: parse_format_description(event),
    EventType.QUERY: parse_query,
    EventType.QUERY_COMPRESSED: parse_query,
    EventType.EXECUTE_LOAD_QUERY: parse_execute_load,
    EventType.TABLE_MAP: parse_table_map,
    EventType.GTID: parse_gtid,
    EventType.ANONYMOUS_GTID: parse_gtid,
    EventType.GTID_TAGGED: parse_gtid,
    EventType.MARIADB_GTID: parse_gtid,
}

_READERS: dict[int, Callable[[EventCursor, EventHeader], Event]] = {
    EventType.ROTATE: _rotate,
    EventType.XID: lambda body, _: XidEvent(body.unsigned(8)),
    EventType.XA_PREPARE: _xa_prepare,
    EventType.PREVIOUS_GTIDS: lambda body, _: PreviousGtids(decode_gtid_set(body.rest())),
    EventType.GTID_LIST: _gtid_list,
    EventType.BINLOG_CHECKPOINT: lambda body, _header: BinlogCheckpoint(
        body.take(body.unsigned(4)).decode("utf-8", "surrogateescape")
    ),
    EventType.ANNOTATE_ROWS: _statement_text,
    EventType.ROWS_QUERY: _statement_text,
    EventType.HEARTBEAT: lambda body, h: HeartbeatEvent(body.rest().decode("utf-8", "surrogateescape"), h.end_log_pos),
    EventType.HEARTBEAT_V2: _heartbeat_v2,
    EventType.INCIDENT: _incident,
    EventType.STOP: lambda _body, _header: Stop(),
    EventType.INTVAR: lambda body, _: Intvar(body.unsigned(1), body.unsigned(8)),
    EventType.RAND: lambda body, _: Rand(body.unsigned(8), body.unsigned(8)),
    EventType.USER_VAR: _user_var,
    EventType.BEGIN_LOAD_QUERY: lambda body, _: LoadBlock(body.unsigned(4), body.rest()),
    EventType.APPEND_BLOCK: lambda body, _: LoadBlock(body.unsigned(4), body.rest()),
    EventType.DELETE_FILE: lambda body, _: LoadBlock(body.unsigned(4), b""),
}
