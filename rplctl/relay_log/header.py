"""The events that rplctl itself puts at the start of a relay log (byte table: log_file.py).

Invariant: none of them moves the source position by its end_log_pos: our FORMAT_DESCRIPTION carries the relay log flag,
the other two are artificial with end_log_pos 0 and `created` 0, as a dump thread sends them in the middle of a log.
"""

from __future__ import annotations

import time

from rplctl.event.events import build_rotate
from rplctl.event.format_description import build_format_description, parse_format_description, resent
from rplctl.event.header import BINLOG_MAGIC, FLAG_ARTIFICIAL
from rplctl.position import BinlogPosition

OWN_SERVER_VERSION = "8.0.40-rplctl"


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
    return BINLOG_MAGIC + own + rotate + (resent(description, flags=FLAG_ARTIFICIAL) if description else b"")


def artificial_rotate(server_id: int, source: BinlogPosition, checksum_algorithm: int) -> bytes:
    """A ROTATE event that says: what follows was read at this position of the source's log."""
    return build_rotate(server_id, source.log_name, source.log_pos, checksum_algorithm)
