"""The events of one relay log as SHOW RELAYLOG EVENTS lists them, with the server's names and Info texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from rplctl.binlog.events import (
    AnnotateRows,
    BinlogCheckpoint,
    GtidList,
    Heartbeat,
    Incident,
    Intvar,
    PreviousGtids,
    Rotate,
    UserVar,
    XaPrepare,
    XidEvent,
    parse_event,
)
from rplctl.binlog.format_description import FormatDescription, parse_format_description
from rplctl.binlog.gtid_event import MariadbGtid, MysqlGtid
from rplctl.binlog.header import HEADER_LENGTH, EventType, check_magic, event_name, parse_header
from rplctl.binlog.query import ExecuteLoadQuery, Query
from rplctl.binlog.table_map import TableMap
from rplctl.command.relay_logs import RelayLogEvent
from rplctl.errors import BinlogFormatError
from rplctl.position import FIRST_EVENT_POSITION

# the server's names where they are not the type's own in other letters
_NAMES: dict[int, str] = {
    EventType.FORMAT_DESCRIPTION: "Format_desc",
    EventType.ANONYMOUS_GTID: "Anonymous_Gtid",
    EventType.GTID_TAGGED: "Gtid_tagged",
    EventType.MARIADB_GTID: "Gtid",
    EventType.PARTIAL_UPDATE_ROWS: "Update_rows_partial",
    EventType.TRANSACTION_PAYLOAD: "Transaction_payload",
    EventType.XA_PREPARE: "XA_prepare",
    EventType.USER_VAR: "User var",
    EventType.RAND: "RAND",
}
_MAX_INFO = 1 << 20
_STATEMENT_END = 1


def describe_events(path: Path, position: int, limit: int | None) -> Iterator[RelayLogEvent]:
    """Lines for the whole events from `position` on; a torn tail ends the list. Raises BinlogFormatError."""
    return islice(_events(path, position), limit)


def _events(path: Path, position: int) -> Iterator[RelayLogEvent]:
    description: FormatDescription | None = None
    with path.open("rb") as file:
        check_magic(file.read(FIRST_EVENT_POSITION))
        offset = FIRST_EVENT_POSITION
        while len(head := file.read(HEADER_LENGTH)) == HEADER_LENGTH:
            header = parse_header(head)
            event = head + file.read(header.event_length - HEADER_LENGTH)
            if len(event) < header.event_length:
                return
            if header.type_code == EventType.FORMAT_DESCRIPTION:
                description = parse_format_description(event)
            if offset >= position:
                name = _NAMES.get(header.type_code) or event_name(header.type_code).capitalize()
                info = _info(event, header.type_code, description)
                yield RelayLogEvent(path.name, offset, name, header.server_id, header.end_log_pos, info)
            offset += header.event_length


def _info(event: bytes, type_code: int, description: FormatDescription | None) -> str:
    if description is None or type_code == EventType.FORMAT_DESCRIPTION:
        return f"Server ver: {description.server_version}, Binlog ver: 4" if description else ""
    if type_code in _ROW_EVENTS:
        return _rows(event)
    if type_code == EventType.TRANSACTION_PAYLOAD:
        return ""
    try:
        parsed: Any = parse_event(event, description)
    except BinlogFormatError as error:
        return f"unreadable: {error.message}"
    describe = _INFO.get(type(parsed))
    return describe(parsed)[:_MAX_INFO] if describe else ""


_ROW_EVENTS = frozenset(
    code for code in EventType if code.name.startswith(("WRITE_ROWS", "UPDATE_ROWS", "DELETE_ROWS", "PARTIAL_UPDATE"))
)


def _rows(event: bytes) -> str:
    table_id = int.from_bytes(event[HEADER_LENGTH : HEADER_LENGTH + 6], "little")
    flags = int.from_bytes(event[HEADER_LENGTH + 6 : HEADER_LENGTH + 8], "little")
    return f"table_id: {table_id}{' flags: STMT_END_F' if flags & _STATEMENT_END else ''}"


def _query(query: Query) -> str:
    sql = query.sql_bytes.decode("utf-8", "backslashreplace")
    return f"use `{query.database}`; {sql}" if query.database and sql not in ("BEGIN", "COMMIT") else sql


_INFO: dict[type, Callable[[Any], str]] = {
    Rotate: lambda e: f"{e.log_name};pos={e.log_pos}",
    Query: _query,
    ExecuteLoadQuery: lambda e: f"{_query(e.query)} ;file_id={e.file_id}",
    XidEvent: lambda e: f"COMMIT /* xid={e.xid} */",
    XaPrepare: lambda e: "XA COMMIT ONE PHASE" if e.one_phase else "XA PREPARE",
    MysqlGtid: lambda e: f"SET @@SESSION.GTID_NEXT= '{e}'",
    MariadbGtid: lambda e: f"GTID {e}",
    PreviousGtids: lambda e: str(e.gtids),
    GtidList: lambda e: "[" + ",".join(f"{domain}-{server}-{number}" for domain, server, number in e.gtids) + "]",
    BinlogCheckpoint: lambda e: str(e.log_name),
    AnnotateRows: lambda e: e.sql_bytes.decode("utf-8", "backslashreplace"),
    TableMap: lambda e: f"table_id: {e.table_id} ({e.database}.{e.table})",
    Heartbeat: lambda e: f"{e.log_name};pos={e.log_pos}",
    Incident: lambda e: f"#{e.number} ({e.message})",
    Intvar: lambda e: f"{'LAST_INSERT_ID' if e.kind == 1 else 'INSERT_ID'}={e.value}",
    UserVar: lambda e: f"@`{e.name}`={'NULL' if e.value is None else '…'}",
}
