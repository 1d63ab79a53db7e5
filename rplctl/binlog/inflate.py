"""MariaDB's compressed records: the tail of QUERY_COMPRESSED and of compressed row events.

    u8     0x80 | algorithm << 4 | n      algorithm 0 = zlib, the only one
    n      length of the plain bytes, big-endian, n = 1 … 4
    …      zlib stream

Invariant: never more than `max_bytes` are produced, whatever the record claims.
"""

from __future__ import annotations

import zlib
from typing import Final

from rplctl.binlog.header import format_error

MAX_INFLATED: Final = 1 << 30
_ALGORITHM_MASK = 0x70
_LENGTH_MASK = 0x07


def inflate(record: bytes, max_bytes: int, event: bytes) -> bytes:
    """The plain bytes of one record of `event`. Raises BinlogFormatError when it is broken or larger than allowed."""
    width = record[0] & _LENGTH_MASK if record else 0
    if not 1 <= width <= 4 or not record[0] & 0x80 or record[0] & _ALGORITHM_MASK or len(record) < 1 + width:
        raise format_error("A compressed record has an unknown head", event)
    length = int.from_bytes(record[1 : 1 + width], "big")
    if length > max_bytes:
        raise format_error(f"A compressed record of {length} plain bytes is larger than {max_bytes}", event)
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(record[1 + width :], length + 1)
    except zlib.error as error:
        raise format_error(f"A compressed record is broken ({error})", event) from error
    if len(plain) != length or not stream.eof:
        raise format_error(f"A compressed record does not hold the {length} plain bytes it says", event)
    return plain
