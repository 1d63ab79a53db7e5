"""FORMAT_DESCRIPTION is the first event of every log file, and defines the format of the other events.

    offset size field        (after the 19-byte header)
    0      2    binlog version, always 4
    2      50   server version, padded with zeros
    52     4    created; 0 if the server sends the event again in the middle of a file
    56     1    header length, always 19
    57     n    length of the fixed part of each event type 1 … n
    57+n   1    checksum algorithm of the file: 0 off, 1 CRC32        (MySQL >= 5.6.1, MariaDB >= 5.3)
    58+n   4    checksum of this event, also with algorithm 0         (the same versions)

The checksum of this event is computed with the in-use flag (header flag 1) cleared. The server changes this flag in
place when it opens or closes the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from rplctl.errors import BinlogFormatError
from rplctl.event.checksum_trailer import append_checksum, has_valid_checksum
from rplctl.event.cursor import EventCursor, open_event
from rplctl.event.header import (
    CHECKSUM_LENGTH,
    FLAG_BINLOG_IN_USE,
    FLAG_RELAY_LOG,
    HEADER_LENGTH,
    EventHeader,
    build_header,
    format_error,
    parse_header,
)
from rplctl.event.types import EventType
from rplctl.system_zone import SystemZone

CHECKSUM_OFF: Final = 0
CHECKSUM_CRC32: Final = 1
_VERSION_LENGTH = 50
_FIXED_LENGTH = 57
_CREATED = HEADER_LENGTH + 52
_FIRST_CHECKSUM_VERSION = (5, 6, 1)
_FIRST_CHECKSUM_MARIADB = (5, 3, 0)
_FIRST_MARIADB_TYPE = 160

# Fixed-part lengths of event types 1 … 42 (MySQL 9) and 1 … 171 (MariaDB), as those servers write them.
_MYSQL_LENGTHS = bytes.fromhex("000d0008000000000400040000006300041a08000000000000020000000a0a0a2a2a001234000a280000")
_MARIADB_LENGTHS = bytes.fromhex(
    "380d000800120004040404120000e400041a08000000080808020000000a0a0a0000000000000a0a0a"
).ljust(159, b"\0") + bytes.fromhex("00041304000d0808080a0a0a")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatDescription:
    binlog_version: int
    server_version: str
    created: int
    header_lengths: tuple[int, ...]  # lengths of the fixed parts; index 0 is event type 1
    checksum_algorithm: int  # CHECKSUM_OFF or CHECKSUM_CRC32
    is_mariadb: bool
    system_zone: SystemZone | None = None  # the receiver queries it: no event contains it

    @property
    def checksum_length(self) -> int:
        """The number of checksum bytes of each event in this file: 4 or 0. FORMAT_DESCRIPTION itself always has 4."""
        return CHECKSUM_LENGTH if self.checksum_algorithm == CHECKSUM_CRC32 else 0

    @property
    def version_number(self) -> tuple[int, int, int]:
        return _version_number(self.server_version)

    def fixed_length(self, type_code: int) -> int:
        """Return the length of the fixed part of an event type in bytes, or 0 if this server does not know the type."""
        return self.header_lengths[type_code - 1] if 0 < type_code <= len(self.header_lengths) else 0


def _version_number(version: str) -> tuple[int, int, int]:
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return (int(numbers[1]), int(numbers[2]), int(numbers[3] or 0)) if numbers else (0, 0, 0)


def parse_format_description(event: bytes) -> FormatDescription:
    """Parse one complete FORMAT_DESCRIPTION event.

    Raises BinlogFormatError for any other event. For START_ENCRYPTION, the error states that the log is encrypted.
    """
    if len(event) > 4 and event[4] == EventType.START_ENCRYPTION:
        raise encrypted_error(event)
    body = open_event(event, 0)
    if event[4] != EventType.FORMAT_DESCRIPTION:
        raise format_error("a FORMAT_DESCRIPTION event was expected", event)
    binlog_version = body.unsigned(2)
    if binlog_version != 4:
        raise format_error(f"binary log version {binlog_version} is not supported, only 4 (MySQL >= 5.0)", event)
    version_bytes = body.take(_VERSION_LENGTH).split(b"\0", 1)[0]
    if not version_bytes.isascii():
        raise format_error(f"the server version is not ASCII: {version_bytes!r}", event)
    server_version = version_bytes.decode("ascii")
    created = body.unsigned(4)
    header_length = body.unsigned(1)
    if header_length != HEADER_LENGTH:
        raise format_error(f"event headers of {header_length} bytes are not supported", event)
    return _with_lengths(body, server_version, created)


def _with_lengths(body: EventCursor, server_version: str, created: int) -> FormatDescription:
    named_mariadb = "mariadb" in server_version.lower()
    first = _FIRST_CHECKSUM_MARIADB if named_mariadb else _FIRST_CHECKSUM_VERSION
    algorithm = CHECKSUM_OFF
    trailer = 1 + CHECKSUM_LENGTH if _version_number(server_version) >= first else 0
    lengths = body.take(body.remaining - trailer)
    if trailer:
        algorithm = body.unsigned(1)
    if algorithm not in (CHECKSUM_OFF, CHECKSUM_CRC32):
        raise body.error(f"unknown checksum algorithm {algorithm}")
    is_mariadb = named_mariadb or len(lengths) >= _FIRST_MARIADB_TYPE
    return FormatDescription(
        binlog_version=4,
        server_version=server_version,
        created=created,
        header_lengths=tuple(lengths),
        checksum_algorithm=algorithm,
        is_mariadb=is_mariadb,
    )


def encrypted_error(event: bytes) -> BinlogFormatError:
    """Return the error for a START_ENCRYPTION event. The rest of the file after this event is encrypted."""
    error = format_error(
        "the log is an encrypted binlog (encrypt_binlog=ON of MariaDB) and cannot be read as a file", event
    )
    error.hint = "to read the log from the server, run: rplctl change-master --master-host HOST"
    return error


def resent(event: bytes, *, in_place: bool = False, flags: int = 0) -> bytes:
    """Return the FORMAT_DESCRIPTION of a log in the form in which a dump thread sends it.

    The in-use flag is cleared, `flags` are added, and the checksum is new. With `in_place`, the event keeps its
    end_log_pos and `created`. Otherwise both are 0, so that the event neither moves the position nor ends an open
    transaction.
    """
    header = parse_header(event)
    end_log_pos = header.end_log_pos if in_place else 0
    header = replace(header, end_log_pos=end_log_pos, flags=(header.flags | flags) & ~FLAG_BINLOG_IN_USE)
    changed = bytearray(build_header(header) + event[HEADER_LENGTH:])
    if not in_place:
        changed[_CREATED : _CREATED + 4] = bytes(4)
    return append_checksum(bytes(changed[:-CHECKSUM_LENGTH])) if has_valid_checksum(event) else bytes(changed)


def build_format_description(
    server_id: int,
    timestamp: int,
    checksum_algorithm: int,
    server_version: str,
    *,
    relay_log: bool = True,
    header_lengths: tuple[int, ...] = (),
) -> bytes:
    """Return rplctl's own FORMAT_DESCRIPTION, the event at position 4 of a log file.

    `header_lengths` has the fixed length of each event type. If it is empty, rplctl uses the lengths of MariaDB or
    MySQL, depending on whether `server_version` contains `MariaDB`. With `relay_log`, the event has FLAG_RELAY_LOG, so
    that readers do not mistake its end_log_pos for a position of the source.
    """
    lengths = _MYSQL_LENGTHS
    if "mariadb" in server_version.lower():
        lengths = _MARIADB_LENGTHS
    lengths = bytes(header_lengths) or lengths
    event_length = HEADER_LENGTH + _FIXED_LENGTH + len(lengths) + 1 + CHECKSUM_LENGTH
    header = EventHeader(
        timestamp=timestamp,
        type_code=EventType.FORMAT_DESCRIPTION,
        server_id=server_id,
        event_length=event_length,
        end_log_pos=4 + event_length,
        flags=FLAG_RELAY_LOG if relay_log else 0,
    )
    version = server_version.encode("ascii")[: _VERSION_LENGTH - 1].ljust(_VERSION_LENGTH, b"\0")
    body = (
        (4).to_bytes(2, "little") + version + bytes(4) + bytes([HEADER_LENGTH]) + lengths + bytes([checksum_algorithm])
    )
    return append_checksum(build_header(header) + body)
