"""Answers SHOW BINLOG EVENTS and BINLOG_GTID_POS from the binary log of applied transactions.

Only the part of the log that replicas can read is used. Invariant: files are read, and never mapped into memory,
because the applier may truncate the last file at any time. If an event is larger than CHUNK bytes, only the bytes that
its row in the answer needs are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import astuple, replace
from itertools import islice
from typing import Any, Final

from rplctl import mysql_errors as er
from rplctl.errors import RplError, UsageError
from rplctl.event.gtid import MariadbGtidState
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.jit import byte_view
from rplctl.event.scan import event_offsets
from rplctl.event.types import ROWS_EVENTS, EventType
from rplctl.front.dump.logs import SendableLogs
from rplctl.front.dump.sendable import CHUNK, SendableLog
from rplctl.front.front import ClientSession, Front
from rplctl.front.result import Answer, texts
from rplctl.front.statement import ClientStatement
from rplctl.plain_file import closing_descriptor, open_plain
from rplctl.position import FIRST_EVENT_POSITION
from rplctl.relay_log.event_list import RelayLogEvent, row_of
from rplctl.relay_log.index import RelayLogIndex
from rplctl.schema.converted_number import leading_integer

MOST_EVENTS: Final = 10_000  # in one answer
_LARGEST_SHOWN: Final = 64 << 20  # bytes of an event whose text is read
_COLUMNS: Final = "Log_name,Pos#,Event_type,Server_id#,End_log_pos#,Info"


def binlog_events(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer SHOW BINLOG EVENTS [IN 'log'] [FROM position] [LIMIT [offset,] count].

    If log_bin is not set, the answer has no rows, as on a server. Raises RplError 1220 if there is no such log, or if
    no event begins at the position.
    """
    log_name = words.string() if words.accept("IN") else None
    position = words.number() if words.accept("FROM") else FIRST_EVENT_POSITION
    offset, count = limit_of(words)
    words.expect_end()
    if front.logs.files() is None:
        return texts(_COLUMNS)
    log = front.logs.log()
    names = log.names()
    if log_name is None and names:
        log_name = names[0]
    if log_name not in names:
        raise _failed("Could not find target log") if names or log_name else _failed("Could not open log file")
    assert log_name is not None
    end = log.look(log_name).end
    if front.is_mariadb and position > end:
        raise _failed(f"Invalid pos specified. Requested from pos:{position} is greater than actual file size:{end}")
    elif FIRST_EVENT_POSITION < position < log.start(log_name).first_end:
        position = log.start(log_name).first_end  # as in MySQL
    if count == 0:  # with LIMIT 0, MariaDB shows one event and MySQL shows all events
        count = 1 if front.is_mariadb else MOST_EVENTS
    if count is None or count > MOST_EVENTS:
        count = MOST_EVENTS
    found = _rows(log, log_name, position, end)
    rows = [_shown(row, front) for row in islice(found, offset, offset + count)]
    if position < end and not _begins(log, log_name, position):
        raise _failed("Wrong offset or I/O error")
    return texts(_COLUMNS, rows)


def limit_of(words: ClientStatement) -> tuple[int, int | None]:
    """Read LIMIT [offset,] count, or LIMIT count OFFSET offset, and return the offset and the count.

    Without LIMIT, the offset is 0 and the count is None.
    """
    if not words.accept("LIMIT"):
        return 0, None
    offset, count = 0, words.number()
    if words.accept(","):
        offset, count = count, words.number()
    elif words.accept("OFFSET"):
        offset = words.number()
    return min(offset, 1 << 62), count


def binlog_gtid_pos(logs: SendableLogs, log_name: object, position: Any) -> str | None:
    """Return the last GTID of each domain before a position of a log, as MariaDB's function BINLOG_GTID_POS does.

    Return None, which becomes NULL, if the log does not exist or if no event begins at the position. Raises UsageError
    1381 if log_bin is not set.
    """
    if logs.files() is None:
        raise UsageError("You are not using binary logging", errno=er.NO_BINARY_LOGGING)
    if log_name is None or position is None:
        return None
    if not log_name:
        return ""
    log, name, wanted = logs.log(), str(log_name), _whole(position)
    if name not in log.names():
        return None
    start, end = log.start(name), log.look(name).end
    position = max(wanted, FIRST_EVENT_POSITION) if wanted >= 0 else end + 1
    if not start.description.is_mariadb or position > end:
        return None
    domains: dict[int, tuple[int, int]] = {}
    at = FIRST_EVENT_POSITION
    for offset, event in _events(log, name, end):
        if offset >= position:
            break
        at = offset + int.from_bytes(event[9:13], "little")
        if event[4] == EventType.MARIADB_GTID:
            number, domain = int.from_bytes(event[19:27], "little"), int.from_bytes(event[27:31], "little")
            domains[domain] = int.from_bytes(event[5:9], "little"), number
    if at != position:
        return None
    return str(MariadbGtidState.parse(start.executed).add_last(domains))


def _whole(position: Any) -> int:
    """Return a position as a whole number. For a text, this is the number at its beginning, as on a server."""
    return leading_integer(position) if isinstance(position, str) else round(position)


def _shown(row: RelayLogEvent, front: Front) -> tuple[object, ...]:
    """Return the values of one row of the answer.

    rplctl's own events in the log (position records) get the words that MySQL or MariaDB has for an ignorable event.
    """
    if row.Event_type == "Ignorable" and front.is_mariadb:
        info = "# Ignorable event type 28 (Ignorable log event)"
        row = replace(row, Event_type="Ignorable log event", Info=info)
    elif row.Event_type == "Ignorable":
        row = replace(row, Info="# Unrecognized ignorable event")
    return astuple(row)


def _begins(log: SendableLog, name: str, position: int) -> bool:
    if position <= FIRST_EVENT_POSITION:
        return True
    return any(offset == position for offset, _ in _events(log, name, position + 1, first=position))


def _rows(log: SendableLog, name: str, position: int, end: int) -> Iterator[RelayLogEvent]:
    description = log.start(name).description
    for offset, event in _events(log, name, end, first=position):
        yield row_of(name, offset, event, description)


def _events(log: SendableLog, name: str, end: int, first: int = FIRST_EVENT_POSITION) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the bytes of each event that begins at `first` or later, and before `end`.

    If an event with rows is larger than CHUNK bytes, only its first bytes are read and yielded.
    """
    size = log.look(name).end
    with closing_descriptor(open_plain(RelayLogIndex(log.files).path(name), follow=False)) as descriptor:
        at = FIRST_EVENT_POSITION
        while at < min(end, size):
            data = byte_view(os.pread(descriptor, min(CHUNK, size - at), at))
            offsets, types = event_offsets(data)
            if not len(types):
                if len(data) < HEADER_LENGTH:
                    return
                length = int.from_bytes(data[9:13].tobytes(), "little")
                is_small = length <= _LARGEST_SHOWN and int(data[4]) not in ROWS_EVENTS
                if at >= first:
                    yield at, os.pread(descriptor, length, at) if is_small else data[:CHUNK].tobytes()
                at += length
                continue
            for begin, behind in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
                if first <= at + begin < end:
                    yield at + begin, data[begin:behind].tobytes()
            at += int(offsets[-1])


def _failed(why: str) -> RplError:
    return RplError(f"Error when executing command SHOW BINLOG EVENTS: {why}", errno=er.ERROR_WHEN_EXECUTING_COMMAND)
