"""The position record: an event in the binary log that stores the position after the events before it.

The record is an event of type IGNORABLE (28) with the ignorable flag, between transactions. Servers and their tools
skip it. So the log stores "the positions along with the XID in the binary log", as variant 1 of WL#5125 requires.

    19   header: rplctl's server id, the time of the last event before it, end_log_pos
    16   `rplctl-position` and a zero byte
    n    JSON: xid, changes, before and after (relay log, offset, source's log, offset), gtid_executed after the commit
    4    checksum, if the log has checksums

Invariant: events after the last intact record of a log were never finished, and are truncated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from rplctl.errors import BinlogFormatError
from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.cursor import open_event
from rplctl.event.format_description import CHECKSUM_CRC32
from rplctl.event.header import CHECKSUM_LENGTH, FLAG_IGNORABLE, HEADER_LENGTH, EventHeader, build_header
from rplctl.event.types import EventType
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition

_MAGIC = b"rplctl-position\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRecord:
    """The record of one commit in the target, with the applier's positions before and after the commit.

    `xid`: the name of the transaction in two-phase commit, '' in other commit modes. `changes`: True if data changed.
    """

    before: RelayLogInfo
    after: RelayLogInfo
    xid: str = ""
    changes: bool = True

    def is_step_of(self, other: PositionRecord) -> bool:
        """True if this record and `other` are about the same transaction of the target."""
        return self.xid == other.xid and self.before.is_at(other.before) and self.after.is_at(other.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPlace:
    """The header values of an event that rplctl itself writes, and its place in the file."""

    server_id: int
    timestamp: int
    begins_at: int  # the offset of the event in the file
    checksum_algorithm: int


def build_record(record: PositionRecord, place: EventPlace) -> bytes:
    """Return the bytes of the complete event for this record."""
    content = {
        "xid": record.xid,
        "changes": record.changes,
        "before": _coordinates(record.before),
        "after": _coordinates(record.after),
        "gtid_executed": record.after.gtid_executed,
    }
    return log_event(EventType.IGNORABLE, _MAGIC + json.dumps(content).encode(), place, FLAG_IGNORABLE)


def log_event(type_code: int, body: bytes, place: EventPlace, flags: int = 0) -> bytes:
    """Return the bytes of an event that rplctl itself writes, with header and checksum.

    `body`: the bytes of the event after the header.
    """
    checksum = CHECKSUM_LENGTH if place.checksum_algorithm == CHECKSUM_CRC32 else 0
    length = HEADER_LENGTH + len(body) + checksum
    end = (place.begins_at + length) & 0xFFFFFFFF
    event = (
        build_header(
            EventHeader(
                timestamp=place.timestamp,
                type_code=type_code,
                server_id=place.server_id,
                event_length=length,
                end_log_pos=end,
                flags=flags,
            )
        )
        + body
    )
    return append_checksum(event) if checksum else event


def parse_record(event: bytes, checksum_length: int) -> PositionRecord | None:
    """Return the position record in this event, or None if another program wrote the event.

    Raises BinlogFormatError if the record is damaged.
    """
    if event[4] != EventType.IGNORABLE or not event.startswith(_MAGIC, HEADER_LENGTH):
        return None
    body = open_event(event, checksum_length)
    body.skip(len(_MAGIC))
    try:
        content = json.loads(body.rest())
        before, after = _info(content["before"]), _info(content["after"])
        after = replace(after, gtid_executed=str(content["gtid_executed"]))
        return PositionRecord(before=before, after=after, xid=str(content["xid"]), changes=bool(content["changes"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BinlogFormatError(f"a position record of the binary log cannot be read: {error}") from error


def _coordinates(info: RelayLogInfo) -> list[str | int]:
    return [info.relay_log_name, info.relay_log_pos, info.master_log_name, info.master_log_pos]


def _info(values: list[str | int]) -> RelayLogInfo:
    relay, at, source, position = values
    return RelayLogInfo().at(RelayLogPosition(str(relay), int(at)), BinlogPosition(str(source), int(position)))
