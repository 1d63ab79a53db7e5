"""The rows of SHOW RELAYLOG EVENTS for one file: Log_name, Pos, Event_type, Server_id, End_log_pos, Info.

The names and the texts in Info are those of the servers (MySQL 9, MariaDB). Pos is the offset in the file. End_log_pos
is the 32-bit value in the header, which is a position in the source's log. It is 0 in artificial events, and in
transactions of MariaDB >= 11.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError, RelayLogError
from rplctl.event import events
from rplctl.event.format_description import FormatDescription, parse_format_description
from rplctl.event.gtid_event import MariadbGtid, MariadbGtidFlag, MysqlGtid
from rplctl.event.header import HEADER_LENGTH, parse_header
from rplctl.event.query import ExecuteLoadQuery, Query
from rplctl.event.scan import scan_events
from rplctl.event.table_map import TableMap
from rplctl.event.types import ROWS_EVENTS, SHOWN, EventType
from rplctl.mask import masked
from rplctl.position import FIRST_EVENT_POSITION
from rplctl.relay_log.log_file import event_at, intact_lengths_end, mapped_file, read_start


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayLogEvent:
    """One row of SHOW RELAYLOG EVENTS. The field names are the column names."""

    Log_name: str
    Pos: int
    Event_type: str
    Server_id: int
    End_log_pos: int
    Info: str


def events_of(path: Path, offset: int = FIRST_EVENT_POSITION, limit: int | None = None) -> Iterator[RelayLogEvent]:
    """Yield the rows for at most `limit` complete events, beginning with the event at `offset`.

    Raises RelayLogError 1220 if the file does not exist or if no event begins at `offset`. Raises BinlogFormatError if
    the file is damaged.
    """
    if not path.exists():
        raise _wrong(path, "Could not find target log")
    with mapped_file(path) as data:
        start = read_start(data).boundary.offset
        intact = data[: intact_lengths_end(data, start)]  # events after a torn one are not listed
        index = scan_events(intact, start)
        first = int(np.searchsorted(index.offsets, offset))
        if offset > FIRST_EVENT_POSITION and (first > len(index) or int(index.offsets[first]) != offset):
            raise _wrong(path, "Wrong offset or I/O error")
        described = index.offsets[:first][index.type_codes[:first] == EventType.FORMAT_DESCRIPTION]
        in_force = int(described[-1]) if len(described) else FIRST_EVENT_POSITION
        description = parse_format_description(event_at(intact, in_force))
    return islice(_events(path, index.offsets[first:-1].tolist(), description), limit)


def _events(path: Path, offsets: list[int], description: FormatDescription) -> Iterator[RelayLogEvent]:
    with mapped_file(path) as data:  # the lock keeps the file from being cut during the listing
        for offset in offsets:
            if offset >= len(data):
                return  # the file was cut before this lock was taken
            event = event_at(data, offset)
            if event[4] == EventType.FORMAT_DESCRIPTION:
                description = parse_format_description(event)
            yield row_of(path.name, offset, event, description)


def row_of(log_name: str, offset: int, event: bytes, description: FormatDescription) -> RelayLogEvent:
    """Return the row for one event, which begins at `offset`.

    `event`: the bytes of the event. If the event contains table rows, its first bytes are sufficient.
    """
    header = parse_header(event)
    return RelayLogEvent(
        Log_name=log_name,
        Pos=offset,
        Event_type=SHOWN.get(header.type_code, "Unknown"),
        Server_id=header.server_id,
        End_log_pos=header.end_log_pos,
        Info=_info(event, description),
    )


def _wrong(path: Path, why: str) -> RelayLogError:
    return RelayLogError(
        f"Error when executing command SHOW RELAYLOG EVENTS: {why}",
        errno=er.ERROR_WHEN_EXECUTING_COMMAND,
        position=path.name,
        hint="to list the events from the first one, run: rplctl show-relaylog-events",
    )


_FLAGS: Final = (  # the flags of a row event, as MySQL 9.7 names them; MariaDB shows only the first
    (1, "STMT_END_F"), (2, "NO_FOREIGN_KEY_CHECKS_F"), (4, "RELAXED_UNIQUE_CHECKS_F"), (8, "COMPLETE_ROWS_F"),
    (16, "USE_SQL_FOREIGN_KEY_F"),
)  # fmt: skip


def _info(event: bytes, description: FormatDescription) -> str:
    code = event[4]
    if code in ROWS_EVENTS:
        table_id = int.from_bytes(event[HEADER_LENGTH : HEADER_LENGTH + 6], "little")
        flags = int.from_bytes(event[HEADER_LENGTH + 6 : HEADER_LENGTH + 8], "little")
        names = [name for bit, name in _FLAGS[: 1 if description.is_mariadb else None] if flags & bit]
        return f"table_id: {table_id}" + (f" flags: {' '.join(names)}" if names else "")
    if code not in SHOWN or code == EventType.TRANSACTION_PAYLOAD:
        return ""
    try:
        parsed = events.parse_event(event, description)
    except BinlogFormatError as error:  # the list must not end here, because an operator uses it to find such an event
        return f"unreadable: {error.message}"
    if description.is_mariadb and isinstance(parsed, Query):
        return _statement(parsed)
    text = _TEXTS.get(type(parsed))
    return text(parsed) if text else ""


def _query(query: Query) -> str:
    """Return the statement as MySQL shows it. For an atomic DDL statement, the text includes the XID of its
    transaction.
    """
    return _statement(query) + (f" /* xid={query.context.ddl_xid} */" if query.context.ddl_xid else "")


def _statement(query: Query) -> str:
    try:
        sql = query.sql
    except BinlogFormatError:  # literals in other character sets
        sql = query.sql_bytes.decode("utf-8", "backslashreplace")
    use = f"use `{query.database}`; " if query.database and not query.suppress_use else ""
    return f"{use}{masked(sql)}"


def _mariadb_gtid(gtid: MariadbGtid) -> str:
    if gtid.flags & MariadbGtidFlag.PREPARED_XA and gtid.xid:
        return f"XA START {gtid.xid} GTID {gtid}"
    return f"GTID {gtid}" if gtid.flags & MariadbGtidFlag.STANDALONE else f"BEGIN GTID {gtid}"


def _user_var(variable: events.UserVar) -> str:
    value = "NULL" if variable.value is None else f"0x{variable.value.hex().upper()}"
    return f"@`{variable.name}`={value}"


_TEXTS: dict[type[events.Event], Callable[[Any], str]] = {
    FormatDescription: lambda e: f"Server ver: {e.server_version}, Binlog ver: {e.binlog_version}",
    events.Rotate: lambda e: f"{e.log_name};pos={e.log_pos}",
    Query: _query,
    ExecuteLoadQuery: lambda e: f"{_query(e.query)} ;file_id={e.file_id}",
    events.XidEvent: lambda e: f"COMMIT /* xid={e.xid} */",
    events.XaPrepare: lambda e: f"XA COMMIT {e.xid} ONE PHASE" if e.one_phase else f"XA PREPARE {e.xid}",
    MysqlGtid: lambda e: f"SET @@SESSION.GTID_NEXT= '{e}'",
    MariadbGtid: _mariadb_gtid,
    events.PreviousGtids: lambda e: str(e.gtids),
    events.GtidList: lambda e: "[" + ",".join(f"{d}-{server}-{number}" for d, server, number in e.gtids) + "]",
    events.BinlogCheckpoint: lambda e: str(e.log_name),
    events.AnnotateRows: lambda e: masked(e.sql_bytes.decode("utf-8", "replace")),
    events.HeartbeatEvent: lambda e: f"{e.log_name};pos={e.log_pos}",
    events.IncidentEvent: lambda e: f"#{e.number} (LOST_EVENTS)" if e.number == 1 else f"#{e.number}",
    events.Intvar: lambda e: f"{'LAST_INSERT_ID' if e.kind == 1 else 'INSERT_ID'}={e.value}",
    events.Rand: lambda e: f"rand_seed1={e.seed1},rand_seed2={e.seed2}",
    events.UserVar: _user_var,
    events.LoadBlock: lambda e: f";file_id={e.file_id};block_len={len(e.data)}",
    TableMap: lambda e: f"table_id: {e.table_id} ({e.database}.{e.table})",
}
