"""Maps the beginning of a log file that another process may extend, or cut after this part.

Invariant: no byte after `end` is mapped. The writer of a relay log cuts only bytes after the last complete group, and a
process that reads a mapped byte that was cut dies.
"""

from __future__ import annotations

import os

import numpy as np

from rplctl.event.jit import ByteArray


def mapped_to(path: str, end: int) -> ByteArray:
    """Map the first `end` bytes of the file, or all bytes of a shorter file.

    Without a length, np.memmap reads the size and maps the file in two steps, and fails if the file becomes shorter in
    between. Raises OSError if the file cannot be opened, and ValueError if it is empty.
    """
    return np.memmap(path, np.uint8, "r", shape=(min(end, os.stat(path).st_size),))
