"""How far a binary log that another rplctl writes may be read: to its last position record (applied_log.record).

What stands behind it may be cut off when that applier is killed, and come again with other offsets; its own recovery
looks for the same record. Invariant: nothing behind the last record, ROTATE or STOP is handed out.
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
    """By the FORMAT_DESCRIPTION event; a relay log is none."""
    version = description[_VERSION].split(b"\0", 1)[0]
    return version.endswith(VERSION_SUFFIX.encode()) and not parse_header(description).flags & FLAG_RELAY_LOG


@dataclass(slots=True)
class ReadableEnd:
    """`scanned`: whole events were looked at up to there."""

    end: int = FIRST_EVENT_POSITION
    scanned: int = FIRST_EVENT_POSITION

    def advance(self, descriptor: int, size: int) -> int:
        """The offset behind the last event of those that end something, in the file's first `size` bytes."""
        while size - self.scanned >= HEADER_LENGTH:
            data = os.pread(descriptor, min(_CHUNK, size - self.scanned), self.scanned)
            index = scan_events(data)
            ends, codes = index.offsets[1:], index.type_codes
            if not len(index):  # larger than a chunk, or not whole
                header = parse_header(data)
                if header.event_length > size - self.scanned:
                    break
                ends, codes = np.array([header.event_length]), np.array([header.type_code], np.uint8)
            found = np.flatnonzero(np.isin(codes, _ENDS))
            if len(found):
                self.end = self.scanned + int(ends[found[-1]])
            self.scanned += int(ends[-1])
        return self.end
