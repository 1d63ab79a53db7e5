"""Map the beginning of a log file into memory while another process may extend the file, or cut its end.

Invariant: no byte after `end` is mapped. A process that reads a mapped byte dies if the byte was cut. The writer of a
relay log cuts only bytes after the last complete group.
"""

from __future__ import annotations

import os

import numpy as np

from rplctl.event.jit import ByteArray


def mapped_to(path: str, end: int) -> ByteArray:
    """Map the first `end` bytes of the file, or all bytes of a shorter file.

    Without a length, np.memmap would read the size and map the file in two steps, and fail if the file became shorter
    in between. Raises OSError if the file cannot be opened, and ValueError if the file is empty.
    """
    return np.memmap(path, np.uint8, "r", shape=(min(end, os.stat(path).st_size),))
