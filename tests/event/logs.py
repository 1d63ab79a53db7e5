"""Recorded logs and dump streams of real servers, and events built by hand where no server writes them on demand.

`tests/data/binlog`: `<case>.xz` a log file, `<case>.bounds.xz` its transactions as another program found them (end
position, kind, GTID), `dump-<case>.xz` what a server sent to a replica after COM_BINLOG_DUMP, first packet number 1.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.format_description import FormatDescription, parse_format_description
from rplctl.event.header import HEADER_LENGTH, EventHeader, build_header
from rplctl.event.scan import scan_events
from rplctl.event.types import EventType

DATA = Path(__file__).parent.parent / "data"
BOUNDED = sorted(path.name.removesuffix(".bounds.xz") for path in (DATA / "binlog").glob("*.bounds.xz"))
DUMPS = sorted(path.name.removesuffix(".xz") for path in (DATA / "binlog").glob("dump-*.xz"))
SMALL = ["ma1011-crash-inuse", "my97-crash-inuse", "my97-torture-compress-l1", "mariadb-compressed", "mysql-tagged"]
FULL_PACKET = 0xFFFFFF


@cache
def log(case: str) -> bytes:
    path = DATA / "binlog" / f"{case}.xz"
    return lzma.decompress((path if path.exists() else DATA / f"{case}.xz").read_bytes())


def bounds(case: str) -> list[tuple[int, str, str]]:
    lines = log(f"{case}.bounds").decode().splitlines()
    return [(int(end), kind, gtid) for end, kind, gtid in (line.split("\t") for line in lines)]


def events(data: bytes, offset: int = 4) -> Iterator[bytes]:
    offsets = scan_events(data, offset).offsets.tolist()
    for start, end in zip(offsets, offsets[1:], strict=False):
        yield data[start:end]


def described(data: bytes) -> Iterator[tuple[bytes, FormatDescription]]:
    """Each event of a log file with the description in force."""
    description = parse_format_description(next(events(data)))
    for event in events(data):
        if event[4] == EventType.FORMAT_DESCRIPTION:
            description = parse_format_description(event)
        yield event, description


def event(type_code: int, body: bytes = b"", *, end_log_pos: int = 0, flags: int = 0, checksum: bool = True) -> bytes:
    """One event with any body; timestamp 7, server id 1."""
    length = HEADER_LENGTH + len(body) + 4 * checksum
    plain = (
        build_header(
            EventHeader(
                timestamp=7, type_code=type_code, server_id=1, event_length=length, end_log_pos=end_log_pos, flags=flags
            )
        )
        + body
    )
    return append_checksum(plain) if checksum else plain


def query(sql: str, *, end_log_pos: int = 0, database: bytes = b"d", sql_mode: int | None = None) -> bytes:
    variables = b"" if sql_mode is None else b"\x01" + sql_mode.to_bytes(8, "little")
    head = bytes(8) + bytes([len(database)]) + bytes(2) + len(variables).to_bytes(2, "little")
    return event(EventType.QUERY, head + variables + database + b"\0" + sql.encode(), end_log_pos=end_log_pos)


def positioned(parts: Sequence[bytes], start: int = 4) -> bytes:
    """The events one after another, each with its end position (low 32 bits), as a source's file has them."""
    out = b""
    for part in parts:
        start += len(part)
        plain = part[:13] + (start & 0xFFFFFFFF).to_bytes(4, "little") + part[17:-4]
        out += append_checksum(plain)
    return out


def length_prefixed(parts: Sequence[bytes], sequence: int = 1) -> bytes:
    """Events as the packets of a dump stream."""
    out = []
    for part in parts:
        payload = b"\0" + part
        while True:
            chunk = payload[:FULL_PACKET]
            out.append(len(chunk).to_bytes(3, "little") + bytes([sequence]) + chunk)
            sequence = (sequence + 1) & 0xFF
            payload = payload[FULL_PACKET:]
            if len(chunk) < FULL_PACKET:
                break
    return b"".join(out)
