"""Finds the readable part of a binary log that another rplctl writes, in a folder that is the source.

That rplctl writes a position record to the log after each commit (applied_log/record.py). If the applier of that rplctl
is killed, its next start truncates the log after the last record, and writes other events there. So the readable part
ends after the last record. Invariant: no byte after the last position record, ROTATE or STOP event is returned.
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

VERSION_SUFFIX: Final = "-rplctl"  # the end of the server version in the FORMAT_DESCRIPTION of such a log
_VERSION = slice(HEADER_LENGTH + 2, HEADER_LENGTH + 52)
_CHUNK: Final = 4 << 20
_ENDS: Final = [EventType.IGNORABLE, EventType.ROTATE, EventType.STOP]


def is_own_log(description: bytes) -> bool:
    """True if this FORMAT_DESCRIPTION event belongs to a binary log of rplctl. False for rplctl's relay logs."""
    version = description[_VERSION].split(b"\0", 1)[0]
    return version.endswith(VERSION_SUFFIX.encode()) and not parse_header(description).flags & FLAG_RELAY_LOG


@dataclass(slots=True)
class ReadableEnd:
    """The end of the readable part of one log.

    `end`: the offset of this end. `scanned`: the offset up to which all events were checked.
    """

    end: int = FIRST_EVENT_POSITION
    scanned: int = FIRST_EVENT_POSITION

    def advance(self, descriptor: int, size: int) -> int:
        """Check the events that are new since the last call, and return the new end of the readable part.

        `size`: the size of the file in bytes. The end is the offset after the last position record, ROTATE or STOP
        event.
        """
        while size - self.scanned >= HEADER_LENGTH:
            data = os.pread(descriptor, min(_CHUNK, size - self.scanned), self.scanned)
            index = scan_events(data)
            ends, codes = index.offsets[1:], index.type_codes
            if not len(index):  # the next event is larger than a chunk, or is not complete
                header = parse_header(data)
                if header.event_length > size - self.scanned:
                    break
                ends, codes = np.array([header.event_length]), np.array([header.type_code], np.uint8)
            found = np.flatnonzero(np.isin(codes, _ENDS))
            if len(found):
                self.end = self.scanned + int(ends[found[-1]])
            self.scanned += int(ends[-1])
        return self.end
