"""The event before every transaction: GTID (33), ANONYMOUS_GTID (34) and GTID_TAGGED (42) of MySQL, MARIADB_GTID (162).

    33, 34: u8 flags, 16 bytes UUID, i64 number; then when and how it was committed, which we do not ask for
    42:     serialization format: varint version, size, last field that may not be ignored; then (field id, value)*
    162:    u64 sequence, u32 domain, u8 flags, [u64 commit id], [i32 format id, u8, u8, XID], …, zeros up to 19 bytes
A varint has as many further bytes as its first byte has trailing ones; signed ones keep the sign in the lowest bit.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import IntFlag
from typing import TypeAlias

from rplctl.errors import BinlogFormatError
from rplctl.event.cursor import EventCursor, open_event
from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid import TAGGED_FORMAT, Interval, MysqlGtidSet, Source, merged
from rplctl.event.header import format_error, parse_header
from rplctl.event.types import EventType

MARIADB_LENGTH = 19  # bytes; shorter ones are padded
_LARGEST_NUMBER = (1 << 63) - 1


class MariadbGtidFlag(IntFlag):
    STANDALONE = 1  # one statement, no COMMIT follows
    GROUP_COMMIT_ID = 2
    TRANSACTIONAL = 4
    ALLOW_PARALLEL = 8
    WAITED = 16
    DDL = 32
    PREPARED_XA = 64
    COMPLETED_XA = 128


@dataclass(frozen=True, slots=True)
class Xid:
    """The identifier of an XA transaction."""

    format_id: int
    gtrid: bytes
    bqual: bytes

    def __str__(self) -> str:
        """As the servers write it in XA COMMIT."""
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format_id}"


@dataclass(frozen=True, slots=True)
class MysqlGtid:
    server_uuid: str
    number: int  # 0 for an anonymous transaction
    tag: str = ""

    @property
    def is_anonymous(self) -> bool:
        return self.number == 0

    def __str__(self) -> str:
        if self.is_anonymous:
            return "ANONYMOUS"
        return f"{self.server_uuid}:{self.tag}:{self.number}" if self.tag else f"{self.server_uuid}:{self.number}"


@dataclass(frozen=True, slots=True)
class MariadbGtid:
    domain: int
    server_id: int
    sequence: int
    flags: MariadbGtidFlag
    xid: Xid | None = None

    def __str__(self) -> str:
        return f"{self.domain}-{self.server_id}-{self.sequence}"


Gtid: TypeAlias = MysqlGtid | MariadbGtid


def parse_gtid(event: bytes, description: FormatDescription) -> Gtid:
    """One whole GTID event of either vendor. Raises BinlogFormatError."""
    body = open_event(event, description.checksum_length)
    type_code = event[4]
    if type_code == EventType.MARIADB_GTID:
        return _parse_mariadb(body, parse_header(event).server_id)
    if type_code == EventType.GTID_TAGGED:
        return _parse_tagged(body)
    if type_code in (EventType.GTID, EventType.ANONYMOUS_GTID):
        return _parse_untagged(body)
    raise format_error("A GTID event was expected", event)


def _parse_untagged(body: EventCursor) -> MysqlGtid:
    body.skip(1)
    server_uuid = str(uuid.UUID(bytes=body.take(16)))
    number = body.signed(8)
    if not 0 <= number < _LARGEST_NUMBER:
        raise body.error(f"GTID number {number} is impossible")
    return MysqlGtid(server_uuid, number)


def _varint(body: EventCursor) -> int:
    first = body.unsigned(1)
    further = 0
    while further < 8 and first >> further & 1:
        further += 1
    if further == 8:
        return body.unsigned(8)
    return (body.unsigned(further) << 8 | first) >> (further + 1)


def _signed_varint(body: EventCursor) -> int:
    value = _varint(body)
    return -(value >> 1) - 1 if value & 1 else value >> 1


def _parse_tagged(body: EventCursor) -> MysqlGtid:
    if _varint(body) != 1:
        raise body.error("Unknown version of the serialization format")
    start = body.position
    size = _varint(body)
    if size > body.end - start + 1:
        raise body.error(f"GTID_TAGGED says it has {size} bytes")
    last_needed = _varint(body)
    server_uuid, tag, number = "", "", 0
    while body.remaining:
        field = _varint(body)
        if field == 1:
            server_uuid = str(uuid.UUID(bytes=_varint_bytes(body)))
        elif field == 3:
            tag = body.take(_varint(body)).decode("ascii", "replace")
        elif field == 2:
            number = _signed_varint(body)
        elif field <= 11:
            _varint(body)
        elif field <= last_needed:
            raise body.error(f"GTID_TAGGED has an unknown field {field}")
        else:
            break  # newer fields, which may be ignored
    if not server_uuid or not 0 < number < _LARGEST_NUMBER:
        raise body.error("GTID_TAGGED without UUID or number")
    return MysqlGtid(server_uuid, number, tag)


def _varint_bytes(body: EventCursor) -> bytes:
    values = [_varint(body) for _ in range(16)]
    if max(values) > 255:
        raise body.error("GTID_TAGGED has a UUID byte above 255")
    return bytes(values)


def _parse_mariadb(body: EventCursor, server_id: int) -> MariadbGtid:
    if body.remaining < MARIADB_LENGTH:
        raise body.error(f"A GTID event of {body.remaining} bytes, {MARIADB_LENGTH} are the least")
    sequence, domain, flags = body.unsigned(8), body.unsigned(4), MariadbGtidFlag(body.unsigned(1))
    body.skip(8 if flags & MariadbGtidFlag.GROUP_COMMIT_ID else 0)
    xid = None
    if flags & (MariadbGtidFlag.PREPARED_XA | MariadbGtidFlag.COMPLETED_XA):
        format_id, gtrid_length, bqual_length = body.signed(4), body.unsigned(1), body.unsigned(1)
        xid = Xid(format_id, body.take(gtrid_length), body.take(bqual_length))
    return MariadbGtid(domain, server_id, sequence, flags, xid)


def decode_gtid_set(data: bytes) -> MysqlGtidSet:
    """The inverse of `MysqlGtidSet.encode`. Raises BinlogFormatError."""
    body = EventCursor(data)
    head = body.unsigned(8)
    tagged = head >> 56 == TAGGED_FORMAT
    count = (head >> 8) & ((1 << 48) - 1) if tagged else head
    found: dict[Source, list[Interval]] = {}
    for _ in range(count):
        server = str(uuid.UUID(bytes=body.take(16)))
        tag = body.take(body.unsigned(1) >> 1).decode("ascii", "replace") if tagged else ""
        intervals = found.setdefault((server, tag), [])
        for _ in range(body.unsigned(8)):
            first, behind = body.unsigned(8), body.unsigned(8)
            if not 0 < first < behind:
                raise BinlogFormatError(f"GTID interval {first}-{behind - 1} of {server} is impossible")
            intervals.append((first, behind - 1))
    if body.remaining:
        raise BinlogFormatError(f"{body.remaining} bytes are left over behind a GTID set")
    return MysqlGtidSet({source: merged(intervals) for source, intervals in found.items()})
