"""Small binary logs built in memory, for the tests of both kinds of source."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from rplctl.event.format_description import build_format_description
from rplctl.event.header import BINLOG_MAGIC, EventHeader, build_header
from rplctl.event.types import EventType

SERVER_ID = 4711


def event(
    kind: int, body: bytes, end_log_pos: int, *, server_id: int = SERVER_ID, flags: int = 0, crc: bool = True
) -> bytes:
    length = 19 + len(body) + (4 if crc else 0)
    whole = (
        build_header(
            EventHeader(
                timestamp=1700000000,
                type_code=kind,
                server_id=server_id,
                event_length=length,
                end_log_pos=end_log_pos,
                flags=flags,
            )
        )
        + body
    )
    return whole + struct.pack("<I", zlib.crc32(whole)) if crc else whole


def mysql_gtid(number: int, end_log_pos: int, *, server_id: int = SERVER_ID) -> bytes:
    body = b"\x01" + bytes(range(16)) + struct.pack("<q", number)
    return event(EventType.GTID, body, end_log_pos, server_id=server_id)


def mariadb_gtid(
    domain: int, number: int, end_log_pos: int, *, server_id: int = SERVER_ID, standalone: bool = True
) -> bytes:
    body = struct.pack("<QIB", number, domain, 1 if standalone else 0) + bytes(6)
    return event(EventType.MARIADB_GTID, body, end_log_pos, server_id=server_id)


def query(text: str, end_log_pos: int, *, server_id: int = SERVER_ID) -> bytes:
    body = struct.pack("<IIBHH", 1, 0, 0, 0, 0) + b"\0" + text.encode()
    return event(EventType.QUERY, body, end_log_pos, server_id=server_id)


def rotate(name: str, end_log_pos: int) -> bytes:
    return event(EventType.ROTATE, struct.pack("<Q", 4) + name.encode(), end_log_pos)


def description(*, crc: bool = True, version: str = "8.0.40") -> bytes:
    return build_format_description(SERVER_ID, 1700000000, 1 if crc else 0, version, relay_log=False)


def statements(count: int, *, start: int, first: int = 1) -> list[bytes]:
    """`count` DDL statements with their GTIDs, numbered from `first`, the first one at position `start`."""
    events: list[bytes] = []
    at = start
    for number in range(first, first + count):
        for made in (mysql_gtid, lambda n, end: query(f"CREATE TABLE t{n} (a INT)", end)):
            at += len(made(number, 0))
            events.append(made(number, at))
    return events


def write_log(path: Path, events: list[bytes]) -> Path:
    """A log file: magic, our FORMAT_DESCRIPTION, the events."""
    path.write_bytes(BINLOG_MAGIC + description() + b"".join(events))
    return path


FIRST_EVENT = 4 + len(description())
