"""Events that a server's dump makes up, and what it changes in a FORMAT_DESCRIPTION before it sends it.

ROTATE, artificial: see event.events.build_rotate
FORMAT_DESCRIPTION: in-use flag cleared; when the dump begins inside the file also created = 0 and end_log_pos = 0,
                    so that it neither ends an open transaction nor moves the position; checksum made anew
"""

from __future__ import annotations

import struct
import zlib

from rplctl.event.events import build_rotate
from rplctl.event.format_description import parse_format_description
from rplctl.event.header import CHECKSUM_LENGTH, FLAG_BINLOG_IN_USE, HEADER_LENGTH, parse_header

_CREATED_OFFSET = HEADER_LENGTH + 52
_END_LOG_POS_OFFSET = 13
_FLAGS_OFFSET = 17


def artificial_rotate(log_name: str, position: int, format_description: bytes) -> bytes:
    """The ROTATE that says 'what follows is `log_name` from `position`', checksummed as the log's events are."""
    algorithm = parse_format_description(format_description).checksum_algorithm
    return build_rotate(parse_header(format_description).server_id, log_name, position, algorithm)


def sent_format_description(event: bytes, *, at_start: bool) -> bytes:
    """A file's FORMAT_DESCRIPTION as a dump sends it; `at_start`: the dump includes the file's first event."""
    changed = bytearray(event)
    flags = parse_header(event).flags & ~FLAG_BINLOG_IN_USE
    if not at_start:
        struct.pack_into("<I", changed, _CREATED_OFFSET, 0)
        struct.pack_into("<I", changed, _END_LOG_POS_OFFSET, 0)
    struct.pack_into("<H", changed, _FLAGS_OFFSET, flags)
    if parse_format_description(event).checksum_length:
        struct.pack_into("<I", changed, len(changed) - CHECKSUM_LENGTH, zlib.crc32(changed[:-CHECKSUM_LENGTH]))
    return bytes(changed)
