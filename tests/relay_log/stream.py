"""A small source for the relay log's tests: what a MySQL server's dump thread would send, event by event."""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.format_description import build_format_description
from rplctl.event.header import EventHeader, build_header
from rplctl.event.types import EventType
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.log_file import artificial_rotate
from rplctl.relay_log.reader import RelayGroups, RelayLogReader
from rplctl.relay_log.writer import RelayLogWriter

SOURCE_UUID = uuid.UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")
TIMESTAMP = 1_700_000_000


@dataclass(slots=True)
class FakeSource:
    """Sends events from `position` on and counts it as a server does."""

    position: BinlogPosition = BinlogPosition("binlog.000001", 4)
    checksum: int = 1
    sent: int = 0  # transactions
    ends: list[BinlogPosition] = field(default_factory=list)  # after each transaction

    def event(self, code: int, body: bytes, *, flags: int = 0) -> bytes:
        length = 19 + len(body) + (4 if self.checksum else 0)
        self.position = BinlogPosition(self.position.log_name, self.position.log_pos + length)
        low = self.position.log_pos & 0xFFFFFFFF
        event = (
            build_header(
                EventHeader(
                    timestamp=TIMESTAMP, type_code=code, server_id=1, event_length=length, end_log_pos=low, flags=flags
                )
            )
            + body
        )
        return append_checksum(event) if self.checksum else event

    def begin(self) -> bytes:
        """What a dump starts with: artificial ROTATE, then FORMAT_DESCRIPTION (with its end only at position 4)."""
        rotate = artificial_rotate(1, self.position, self.checksum)
        description = self.description(end_log_pos=0)
        if self.position.log_pos == 4:
            self.position = BinlogPosition(self.position.log_name, 4 + len(description))
            description = self.description(end_log_pos=self.position.log_pos)
        return rotate + description

    def description(self, end_log_pos: int) -> bytes:
        event = build_format_description(1, TIMESTAMP, self.checksum, "8.0.40", relay_log=False)
        header = EventHeader(
            timestamp=TIMESTAMP,
            type_code=EventType.FORMAT_DESCRIPTION,
            server_id=1,
            event_length=len(event),
            end_log_pos=end_log_pos,
            flags=0,
        )
        return append_checksum(build_header(header) + event[19:-4])

    def transaction(self, rows: int = 1, images: int = 1) -> bytes:
        """GTID, BEGIN, TABLE_MAP, that many rows events with that many images of 5 bytes each, XID."""
        self.sent += 1
        parts = [self.event(EventType.GTID, b"\x01" + SOURCE_UUID.bytes + struct.pack("<QBQQ", self.sent, 2, 0, 1))]
        parts.append(self.query("BEGIN"))
        table_map = struct.pack("<IHHB", 90, 0, 1, 1) + b"d\x00\x01t\x00\x01\x03\x00\x01"
        parts.append(self.event(EventType.TABLE_MAP, table_map))
        for number in range(rows):
            flags = 1 if number == rows - 1 else 0
            body = struct.pack("<IHHHBB", 90, 0, flags, 2, 1, 0x01) + struct.pack("<BI", 0, self.sent) * images
            parts.append(self.event(EventType.WRITE_ROWS, body))
        parts.append(self.event(EventType.XID, struct.pack("<Q", self.sent)))
        self.ends.append(self.position)
        return b"".join(parts)

    def query(self, sql: str) -> bytes:
        return self.event(EventType.QUERY, struct.pack("<IIBHH", 7, 0, 1, 0, 0) + b"d\x00" + sql.encode())

    def rotate(self, next_name: str) -> bytes:
        """The real ROTATE at the end of a log, then what the dump thread sends before the next."""
        event = self.event(EventType.ROTATE, struct.pack("<Q", 4) + next_name.encode())
        self.position = BinlogPosition(next_name, 4)
        return event + self.begin()


def new_writer(channel: Channel, max_relay_log_size: int = 1 << 30, sync_relay_log: int = 10_000) -> RelayLogWriter:
    config = Config(channel.datadir, max_relay_log_size=max_relay_log_size, sync_relay_log=sync_relay_log)
    return RelayLogWriter(channel, config, server_id=2)


def write_relay_log(channel: Channel, source: FakeSource, transactions: int) -> RelayLogPosition:
    """A relay log with that many transactions, as a receiver leaves it."""
    writer = new_writer(channel)
    writer.open_new(source.position)
    writer.append(source.begin(), 2)
    for _ in range(transactions):
        writer.append(source.transaction(), 5)
    writer.sync()
    end = writer.end
    writer.close()
    return end


def read_everything(reader: RelayLogReader, limit_bytes: int = 1 << 20) -> list[RelayGroups]:
    found = []
    while (groups := reader.groups(limit_bytes)) is not None:
        found.append(groups)
    return found


def transactions_of(found: list[RelayGroups]) -> list[BinlogPosition]:
    """Source positions after each transaction handed out (CONTROL groups left out)."""
    return [g.scan.source_position(i) for g in found for i in range(len(g.scan)) if g.scan.kind[i] != 0]


def executed(position: BinlogPosition, relay: RelayLogPosition | None = None) -> RelayLogInfo:
    return RelayLogInfo().at(relay or RelayLogPosition("", 0), position)


def contents(channel: Channel) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(channel.datadir).glob("relay-bin*"))}
