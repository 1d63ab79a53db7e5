"""Parse the event that begins every transaction: GTID (33), ANONYMOUS_GTID (34), GTID_TAGGED (42), MARIADB_GTID (162).

    33, 34     u8         flags
               16 bytes   UUID
               i64        number
               u8         2; this and all following fields: since MySQL 5.7
               i64        last committed
               i64        sequence
               7 bytes    commit time in microseconds; this and all following fields: since MySQL 8.0
               7 bytes    original commit time, only if bit 55 of the commit time is set
               1-9 bytes  transaction length, length-encoded
               u32        server version
               u32        original server version, only if bit 31 of the server version is set
               u64        commit group ticket
    42         varint     version of MySQL's serialization format
               varint     size
               varint     the last field that a reader may not ignore if it does not know the field
               …          a varint with the number of a field, and its value, for each field
    162        u64        sequence
               u32        domain
               u8         flags, which state if the following fields are present
               u64        commit id
               …          XID: i32 format id, u8 length of gtrid, u8 length of bqual, gtrid, bqual
               u8         more flags, and then the fields that they announce
               …          zeros up to a length of 19 bytes

The first byte of a varint has as many one bits at its low end as bytes follow. In a signed varint, the lowest bit is
the sign.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import IntFlag
from typing import TypeAlias

from rplctl.errors import BinlogFormatError
from rplctl.event.cursor import EventCursor, open_event
from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid import MAX_SEQUENCE, TAGGED_FORMAT, Interval, MysqlGtidSet, Source, is_tag, merged
from rplctl.event.header import format_error, parse_header
from rplctl.event.types import EventType

_LOGICAL_CLOCK = 2
MARIADB_LENGTH = 19  # bytes; shorter bodies are padded
_HAS_ORIGINAL_TIME = 1 << 55
_HAS_ORIGINAL_VERSION = 1 << 31
_LARGEST_NUMBER = (1 << 63) - 1


class MariadbGtidFlag(IntFlag):
    STANDALONE = 1  # one statement, without COMMIT
    GROUP_COMMIT_ID = 2
    TRANSACTIONAL = 4
    ALLOW_PARALLEL = 8
    WAITED = 16
    DDL = 32
    PREPARED_XA = 64
    COMPLETED_XA = 128


class MariadbGtidExtra(IntFlag):
    MULTI_ENGINE = 1
    START_ALTER = 2
    COMMIT_ALTER = 4
    ROLLBACK_ALTER = 8
    THREAD_ID = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """The identifier of an XA transaction."""

    format_id: int
    gtrid: bytes
    bqual: bytes

    def __str__(self) -> str:
        """Return the XID in the form of XA COMMIT, as the servers write it."""
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlGtid:
    """A GTID of MySQL, with the other fields of its event.

    Times are in microseconds since 1970, or 0 if they are not logged. Versions are numbers like 80036 for 8.0.36.
    """

    server_uuid: str
    number: int  # 0 for an anonymous transaction
    tag: str = ""
    flags: int = 0
    last_committed: int = 0
    sequence_number: int = 0
    immediate_commit_time: int = 0
    original_commit_time: int = 0
    transaction_length: int = 0
    immediate_server_version: int = 0
    original_server_version: int = 0
    commit_group_ticket: int = 0

    @property
    def is_anonymous(self) -> bool:
        return self.number == 0

    def __str__(self) -> str:
        if self.is_anonymous:
            return "ANONYMOUS"
        return f"{self.server_uuid}:{self.tag}:{self.number}" if self.tag else f"{self.server_uuid}:{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MariadbGtid:
    domain: int
    server_id: int
    sequence: int
    flags: MariadbGtidFlag
    commit_id: int = 0
    xid: Xid | None = None
    extra: MariadbGtidExtra = MariadbGtidExtra(0)
    extra_engines: int = 0
    alter_sequence: int = 0  # sequence number of the START ALTER that this COMMIT ALTER or ROLLBACK ALTER ends
    thread_id: int = 0

    def __str__(self) -> str:
        return f"{self.domain}-{self.server_id}-{self.sequence}"


Gtid: TypeAlias = MysqlGtid | MariadbGtid


def parse_gtid(event: bytes, description: FormatDescription) -> Gtid:
    """Return the GTID in one complete event of MySQL or MariaDB.

    Raises BinlogFormatError for another type of event, or if the event is damaged.
    """
    body = open_event(event, description.checksum_length)
    type_code = event[4]
    if type_code == EventType.MARIADB_GTID:
        return _parse_mariadb(body, parse_header(event).server_id)
    if type_code == EventType.GTID_TAGGED:
        return _parse_tagged(body)
    if type_code in (EventType.GTID, EventType.ANONYMOUS_GTID):
        return _parse_untagged(body)
    raise format_error("a GTID event was expected", event)


def _parse_untagged(body: EventCursor) -> MysqlGtid:
    flags = body.unsigned(1)
    server_uuid = str(uuid.UUID(bytes=body.take(16)))
    number = body.signed(8)
    if not 0 <= number < _LARGEST_NUMBER:
        raise body.error(f"GTID number {number} is impossible")
    if not body.remaining or body.unsigned(1) != _LOGICAL_CLOCK:
        return MysqlGtid(server_uuid=server_uuid, number=number, flags=flags)  # MySQL 5.6
    last_committed, sequence_number = body.signed(8), body.signed(8)
    immediate = original = length = immediate_version = original_version = ticket = 0
    if body.remaining >= 7:  # MySQL 8.0
        immediate = original = body.unsigned(7)
        if immediate & _HAS_ORIGINAL_TIME:
            immediate &= ~_HAS_ORIGINAL_TIME
            original = body.unsigned(7)
    if body.remaining:
        length = body.packed_length()
    if body.remaining >= 4:
        immediate_version = original_version = body.unsigned(4)
        if immediate_version & _HAS_ORIGINAL_VERSION:
            immediate_version &= ~_HAS_ORIGINAL_VERSION
            original_version = body.unsigned(4)
    if body.remaining >= 8:
        ticket = body.unsigned(8)
    return MysqlGtid(
        server_uuid=server_uuid,
        number=number,
        tag="",
        flags=flags,
        last_committed=last_committed,
        sequence_number=sequence_number,
        immediate_commit_time=immediate,
        original_commit_time=original,
        transaction_length=length,
        immediate_server_version=immediate_version,
        original_server_version=original_version,
        commit_group_ticket=ticket,
    )


def _varint(body: EventCursor) -> int:
    first = body.unsigned(1)
    further = 0
    while further < 8 and first >> further & 1:
        further += 1
    if further == 8:
        return body.unsigned(8)
    return (body.unsigned(further) << 8 | first) >> (further + 1)


def _parse_tagged(body: EventCursor) -> MysqlGtid:
    if _varint(body) != 1:
        raise body.error("unknown version of the serialization format")
    start = body.position
    size = _varint(body)
    if size > body.end - start + 1:
        raise body.error(f"GTID_TAGGED states a size of {size} bytes, which it does not have")
    last_needed = _varint(body)
    values: dict[int, int] = {}
    server_uuid, tag = "", ""
    while body.remaining:
        field = _varint(body)
        if field == 1:
            server_uuid = str(uuid.UUID(bytes=_varint_bytes(body)))
        elif field == 3:
            tag = _tag(body, _varint(body))
        elif field in (2, 4, 5):
            value = _varint(body)
            values[field] = -(value >> 1) - 1 if value & 1 else value >> 1
        elif field <= 11:
            values[field] = _varint(body)
        elif field <= last_needed:
            raise body.error(f"GTID_TAGGED has an unknown field {field}")
        else:
            break  # newer fields, which may be ignored
    number = values.get(2, 0)
    if not server_uuid or not 0 < number < _LARGEST_NUMBER:
        raise body.error("GTID_TAGGED has no UUID or no number")
    immediate, version = values.get(6, 0), values.get(9, 0)
    return MysqlGtid(
        server_uuid=server_uuid,
        number=number,
        tag=tag,
        flags=values.get(0, 0),
        last_committed=values.get(4, 0),
        sequence_number=values.get(5, 0),
        immediate_commit_time=immediate,
        original_commit_time=values.get(7, immediate),
        transaction_length=values.get(8, 0),
        immediate_server_version=version,
        original_server_version=values.get(10, version),
        commit_group_ticket=values.get(11, 0),
    )


def _tag(body: EventCursor, length: int) -> str:
    """Read a tag of `length` bytes. '' means that the GTID has no tag. Raises BinlogFormatError for an invalid tag."""
    raw = body.take(length)
    tag = raw.decode("latin-1")
    if raw and not is_tag(tag):
        raise body.error(f"a GTID has an invalid tag: {raw[:64]!r}")
    return tag


def _varint_bytes(body: EventCursor) -> bytes:
    values = [_varint(body) for _ in range(16)]
    if max(values) > 255:
        raise body.error("GTID_TAGGED has a UUID byte above 255")
    return bytes(values)


def _parse_mariadb(body: EventCursor, server_id: int) -> MariadbGtid:
    if body.remaining < MARIADB_LENGTH:
        raise body.error(f"a GTID event has {body.remaining} bytes, but needs at least {MARIADB_LENGTH}")
    sequence, domain, flags = body.unsigned(8), body.unsigned(4), MariadbGtidFlag(body.unsigned(1))
    commit_id = body.unsigned(8) if flags & MariadbGtidFlag.GROUP_COMMIT_ID else 0
    xid = None
    if flags & (MariadbGtidFlag.PREPARED_XA | MariadbGtidFlag.COMPLETED_XA):
        format_id, gtrid_length, bqual_length = body.signed(4), body.unsigned(1), body.unsigned(1)
        xid = Xid(format_id=format_id, gtrid=body.take(gtrid_length), bqual=body.take(bqual_length))
    extra = MariadbGtidExtra(body.unsigned(1) if body.remaining else 0)
    engines = body.unsigned(1) if extra & MariadbGtidExtra.MULTI_ENGINE else 0
    ends_alter = extra & (MariadbGtidExtra.COMMIT_ALTER | MariadbGtidExtra.ROLLBACK_ALTER)
    alter_sequence = body.unsigned(8) if ends_alter else 0
    thread_id = body.unsigned(4) if extra & MariadbGtidExtra.THREAD_ID else 0
    return MariadbGtid(
        domain=domain,
        server_id=server_id,
        sequence=sequence,
        flags=flags,
        commit_id=commit_id,
        xid=xid,
        extra=extra,
        extra_engines=engines,
        alter_sequence=alter_sequence,
        thread_id=thread_id,
    )


def decode_gtid_set(data: bytes) -> MysqlGtidSet:
    """Decode a GTID set from the binary form that `MysqlGtidSet.encode` returns.

    Raises BinlogFormatError if the bytes do not have this form.
    """
    body = EventCursor(data)
    head = body.unsigned(8)
    tagged = head >> 56 == TAGGED_FORMAT
    count = (head >> 8) & ((1 << 48) - 1) if tagged else head
    found: dict[Source, list[Interval]] = {}
    for _ in range(count):
        server = str(uuid.UUID(bytes=body.take(16)))
        tag = _tag(body, body.unsigned(1) >> 1) if tagged else ""
        intervals = found.setdefault((server, tag), [])
        for _ in range(body.unsigned(8)):
            first, behind = body.unsigned(8), body.unsigned(8)
            if not 0 < first < behind <= MAX_SEQUENCE + 1:
                raise BinlogFormatError(f"GTID interval {first}-{behind - 1} of {server} is impossible")
            intervals.append((first, behind - 1))
    if body.remaining:
        raise BinlogFormatError(f"{body.remaining} unexpected bytes follow a GTID set")
    return MysqlGtidSet({source: merged(intervals) for source, intervals in found.items()})
