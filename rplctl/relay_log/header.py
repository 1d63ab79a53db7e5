"""The events that rplctl itself puts at the start of a relay log (byte table: log_file.py).

Invariant: none of them moves the source position by its end_log_pos: our FORMAT_DESCRIPTION carries the relay log flag,
the other two are artificial with end_log_pos 0 and `created` 0, as a dump thread sends them in the middle of a log.
"""

from __future__ import annotations

import time
from dataclasses import replace

from rplctl.event.checksum_trailer import append_checksum, has_valid_checksum
from rplctl.event.events import build_rotate
from rplctl.event.format_description import build_format_description, parse_format_description
from rplctl.event.header import (
    BINLOG_MAGIC,
    CHECKSUM_LENGTH,
    FLAG_ARTIFICIAL,
    FLAG_BINLOG_IN_USE,
    HEADER_LENGTH,
    build_header,
    parse_header,
)
from rplctl.position import BinlogPosition

OWN_SERVER_VERSION = "8.0.40-rplctl"
_CREATED = slice(HEADER_LENGTH + 52, HEADER_LENGTH + 56)


def relay_log_header(server_id: int, source: BinlogPosition, description: bytes, checksum_algorithm: int) -> bytes:
    """Magic and first events. `description` is the source's FORMAT_DESCRIPTION event, b'' when it is not known yet.

    Its checksum algorithm wins over `checksum_algorithm`. Raises BinlogFormatError when it is no such event.
    """
    version = OWN_SERVER_VERSION
    if description:
        parsed = parse_format_description(description)
        checksum_algorithm = parsed.checksum_algorithm
        version = parsed.server_version if parsed.is_mariadb else version
    own = build_format_description(server_id, int(time.time()), checksum_algorithm, version)
    rotate = artificial_rotate(server_id, source, checksum_algorithm) if source.log_name else b""
    return BINLOG_MAGIC + own + rotate + (_as_artificial(description) if description else b"")


def artificial_rotate(server_id: int, source: BinlogPosition, checksum_algorithm: int) -> bytes:
    """A ROTATE event that says: what follows was read at this position of the source's log."""
    return build_rotate(server_id, source.log_name, source.log_pos, checksum_algorithm)


def _as_artificial(description: bytes) -> bytes:
    """The source's FORMAT_DESCRIPTION with end_log_pos and `created` 0: it stands elsewhere than it came from."""
    header = parse_header(description)
    has_trailer = has_valid_checksum(description)
    flags = (header.flags | FLAG_ARTIFICIAL) & ~FLAG_BINLOG_IN_USE
    event = bytearray(build_header(replace(header, end_log_pos=0, flags=flags)) + description[HEADER_LENGTH:])
    event[_CREATED] = bytes(4)
    return append_checksum(bytes(event[:-CHECKSUM_LENGTH])) if has_trailer else bytes(event)
