"""Is what stands in a relay log intact? Lengths and checksums, event by event (WL#5493's question).

Invariant: nothing here looks at transactions; the answer is an event boundary. An event is intact when its length is
possible, it is there to its last byte and, where the format description in force says CRC32, its checksum fits.
"""

from __future__ import annotations

import numpy as np

from rplctl.errors import BinlogFormatError
from rplctl.event.checksum import verify_events
from rplctl.event.format_description import parse_format_description
from rplctl.event.jit import ByteArray
from rplctl.event.scan import scan_events
from rplctl.event.types import EventType
from rplctl.relay_log.log_file import event_at, intact_lengths_end

_STEP_BYTES = 64 << 20


def intact_end(data: ByteArray, offset: int, checksum_algorithm: int) -> int:
    """Offset behind the last intact event from `offset` on; `checksum_algorithm` is in force there."""
    end = intact_lengths_end(data, offset)
    while offset < end:
        index = scan_events(data[: min(end, offset + _STEP_BYTES)], offset)
        if not len(index):  # one event larger than the step
            index = scan_events(data[: offset + len(event_at(data, offset))], offset)
        bad = verify_events(data, index.offsets, checksum_algorithm)
        if bad >= 0:
            return int(index.offsets[bad])
        for number in np.flatnonzero(index.type_codes == EventType.FORMAT_DESCRIPTION):
            try:
                description = parse_format_description(event_at(data, int(index.offsets[number])))
            except BinlogFormatError:
                return int(index.offsets[number])
            checksum_algorithm = description.checksum_algorithm
        offset = index.end
    return end
