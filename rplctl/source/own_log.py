"""Finds the readable part of a binary log that another rplctl writes: up to its last position record
(applied_log.record).

If the applier of that rplctl is killed, its recovery may truncate the bytes after this record and write them again with
other offsets. The recovery looks for the same record. Invariant: no byte after the last record, ROTATE or STOP is
returned.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

import numpy as np

from rplctl.event.header import FLAG_RELAY_LOG, HEADER_LENGTH, parse_header
from rplctl.event.scan import scan_events
from rplctl.event.types import EventType
from rplctl.position import FIRST_EVENT_POSITION

VERSION_SUFFIX: Final = "-rplctl"  # of the server version in such a log's FORMAT_DESCRIPTION
_VERSION = slice(HEADER_LENGTH + 2, HEADER_LENGTH + 52)
_CHUNK: Final = 4 << 20
_ENDS: Final = [EventType.IGNORABLE, EventType.ROTATE, EventType.STOP]


def is_own_log(description: bytes) -> bool:
    """True if the log is a binary log that rplctl writes, as its FORMAT_DESCRIPTION event shows; False for
    a relay log.
    """
    version = description[_VERSION].split(b"\0", 1)[0]
    return version.endswith(VERSION_SUFFIX.encode()) and not parse_header(description).flags & FLAG_RELAY_LOG


@dataclass(slots=True)
class ReadableEnd:
    """The end of the readable part of one log; the complete events before `scanned` were checked."""

    end: int = FIRST_EVENT_POSITION
    scanned: int = FIRST_EVENT_POSITION

    def advance(self, descriptor: int, size: int) -> int:
        """Search the file's first `size` bytes for further records, and return the offset after the last record, ROTATE
        or STOP.
        """
        while size - self.scanned >= HEADER_LENGTH:
            data = os.pread(descriptor, min(_CHUNK, size - self.scanned), self.scanned)
            index = scan_events(data)
            ends, codes = index.offsets[1:], index.type_codes
            if not len(index):  # the event is larger than a chunk, or not complete
                header = parse_header(data)
                if header.event_length > size - self.scanned:
                    break
                ends, codes = np.array([header.event_length]), np.array([header.type_code], np.uint8)
            found = np.flatnonzero(np.isin(codes, _ENDS))
            if len(found):
                self.end = self.scanned + int(ends[found[-1]])
            self.scanned += int(ends[-1])
        return self.end
