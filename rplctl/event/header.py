"""Parse and build the header of an event: its first 19 bytes (binary log format v4).

    offset size field            (all little-endian)
    0      4    timestamp        seconds since 1970 on the source; 0 in artificial events
    4      1    type code        types.EventType
    5      4    server id
    9      4    event length     header, body and checksum
    13     4    end_log_pos      low 32 bits of the position after the event; 0 if the event is artificial or in a
                                 group of MariaDB >= 11.4
    17     2    flags

A log file begins with the magic `fe 62 69 6e`. A file that MySQL encrypted begins with `fd 62 69 6e`. An unknown event
stops the reader (D12): `format_error` reports offset, type code and a hex dump.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError
from rplctl.event.types import event_name

HEADER_LENGTH: Final = 19
CHECKSUM_LENGTH: Final = 4
BINLOG_MAGIC: Final = b"\xfebin"
ENCRYPTED_MAGIC: Final = b"\xfdbin"
MAX_EVENT_LENGTH: Final = 1 << 31  # servers write and send events of at most 1 GiB; the rest is a safety margin

FLAG_BINLOG_IN_USE: Final = 0x0001  # of FORMAT_DESCRIPTION: the file is not closed; cleared for the checksum
FLAG_THREAD_SPECIFIC: Final = 0x0004  # a QUERY that uses temporary tables
FLAG_SUPPRESS_USE: Final = 0x0008
FLAG_ARTIFICIAL: Final = 0x0020  # created by the dump thread; in no file of the source
FLAG_RELAY_LOG: Final = 0x0040  # written by the replica itself: its end_log_pos is not a position of the source
FLAG_IGNORABLE: Final = 0x0080

_HEADER = struct.Struct("<IBIIIH")
_DUMP_BYTES = 64


@dataclass(frozen=True, slots=True)
class EventHeader:
    timestamp: int
    type_code: int
    server_id: int
    event_length: int
    end_log_pos: int
    flags: int

    @property
    def is_artificial(self) -> bool:
        return bool(self.flags & FLAG_ARTIFICIAL)


def format_error(message: str, data: bytes | memoryview, offset: int = 0) -> BinlogFormatError:
    """Return the error for an event that cannot be read (design D12).

    The text has the reason, the type code, the offset, and the first 64 bytes of the event in hex.
    """
    head = bytes(data[offset : offset + _DUMP_BYTES])
    type_text = f", event type {head[4]} ({event_name(head[4])})" if len(head) > 4 else ""
    return BinlogFormatError(
        f"{message}{type_text}, at offset {offset}: {head.hex(' ')}",
        errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
        position=str(offset),
    )


def parse_header(data: bytes | memoryview, offset: int = 0) -> EventHeader:
    """Return the header at `offset`. Raises BinlogFormatError if it is incomplete or has an impossible length."""
    if offset < 0 or len(data) - offset < HEADER_LENGTH:
        raise format_error("event header is cut short", data, max(offset, 0))
    header = EventHeader(*_HEADER.unpack_from(data, offset))
    if not HEADER_LENGTH <= header.event_length <= MAX_EVENT_LENGTH:
        raise format_error(f"impossible event length {header.event_length}", data, offset)
    return header


def build_header(header: EventHeader) -> bytes:
    """Return the 19 bytes of a header."""
    return _HEADER.pack(
        header.timestamp, header.type_code, header.server_id, header.event_length, header.end_log_pos, header.flags
    )


def check_magic(data: bytes | memoryview) -> None:
    """Raise BinlogFormatError if `data` does not begin like a binary log. An encrypted log has its own error text."""
    magic = bytes(data[:4])
    if magic == ENCRYPTED_MAGIC:
        raise BinlogFormatError(
            "the binary log file is encrypted (binlog_encryption=ON); its key is in the server's keyring",
            position="0",
            hint="to read the log from the server, run: rplctl change-master --master-host HOST --master-user USER "
            "--ask-password; rplctl start",
        )
    if magic != BINLOG_MAGIC:
        raise BinlogFormatError(f"not a binary log: the file begins with {magic.hex(' ') or 'nothing'}", position="0")
