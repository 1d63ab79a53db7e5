"""Find the end of a folder of binary logs quickly, from the headers of the events, if its newest log ends with a
commit.

Most logs end with a commit. Then `start` does not load the compiled scan of folder_end.py, which takes a second of CPU
time. For other logs, folder_end.py finds the end.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from struct import Struct
from typing import Final

from rplctl.event.header import HEADER_LENGTH
from rplctl.event.types import LOG_EVENTS, EventType
from rplctl.plain_file import open_plain
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.source.log_folder import log_names, read_head

LARGEST: Final = 32 << 20  # bytes of log; for larger logs, loading the scan is faster than Python
_HEADER: Final = Struct("<4xBIII2x")  # type code, server id, length, end_log_pos


def last_commit(folder: Path, left_out: Collection[int]) -> BinlogPosition | None:
    """Return the position at the end of the newest log, if the log ends with a commit. Otherwise, return None.

    After the commit, the log may have events about the log itself, which a server writes when it stops. The result is
    also None if the log is larger than LARGEST, or if the commit has a server id in `left_out`. Raises SourceError if a
    file is not a binary log.
    """
    names = log_names(folder)
    if not names:
        return None
    log = folder / names[-1]
    read_head(log)
    with os.fdopen(open_plain(log), "rb") as file:
        data = file.read(LARGEST + 1)
    at, end = FIRST_EVENT_POSITION, 0
    while len(data) <= LARGEST and at + HEADER_LENGTH <= len(data):
        type_code, server_id, length, end_log_pos = _HEADER.unpack_from(data, at)
        if length < HEADER_LENGTH or type_code == EventType.ROTATE:
            return None  # the event is damaged, or the log ends with a ROTATE, so the next position is in another log
        at += length
        ends = type_code == EventType.XID or (end and type_code in LOG_EVENTS)
        end = at if ends and end_log_pos == at and server_id not in left_out else 0
    return BinlogPosition(log.name, end) if end and at == len(data) else None
