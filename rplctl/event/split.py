"""Cut a range of row transactions into splits, so that each Spark task can decode one of them.

Invariant: splits cover [start, end) without gaps. Each split lists the TABLE_MAP events in force at its start. These
are the TABLE_MAP events after the last rows event with the end-of-statement flag. So a split can be decoded without its
neighbours, even inside one huge transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rplctl.event.bytes_at import u16, u32
from rplctl.event.event_classes import GTID, MARIADB_GTID, ROWS, TABLE_MAP, XID
from rplctl.event.format_description import FormatDescription
from rplctl.event.header import HEADER_LENGTH, format_error
from rplctl.event.jit import Buffer, ByteArray, byte_view, lean_kernel
from rplctl.event.types import CLASS_TABLE, EventType

_STATEMENT_END: Final = 1  # flag of a row event: after it, no table map is in force
_SHORT_TABLE_ID: Final = 6  # fixed-part length of TABLE_MAP with 4-byte table ids (up to MySQL 5.1.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSplit:
    start: int
    end: int
    table_map_offsets: tuple[int, ...]  # in force at `start`, oldest first


def split_rows(
    data: Buffer, start: int, end: int, split_bytes: int, description: FormatDescription | None = None
) -> list[RowSplit]:
    """Cut `data[start:end]` (complete events) into splits of about `split_bytes`.

    After `split_bytes`, a split ends before the next transaction. After 1.25 times `split_bytes`, it ends before the
    next TABLE_MAP or row event. Raises BinlogFormatError for impossible lengths.
    """
    if description is not None:
        refuse_short_table_ids(description)
    view = byte_view(data)
    split_bytes = max(split_bytes, 1)
    piece_room, map_room = (end - start) // split_bytes + 2, 256
    while True:
        cuts, maps = np.empty((piece_room, 2), np.int64), np.empty((2, map_room), np.int64)
        count, bad = _split(view, start, end, split_bytes, CLASS_TABLE, cuts, maps)
        if count >= 0:
            break
        map_room *= 4
    if bad >= 0:
        raise format_error("impossible event length", view.data, bad)
    pieces: list[RowSplit] = []
    first_map = 0
    bounds = [*cuts[:count, 0].tolist(), end]
    for index, map_count in enumerate(cuts[:count, 1].tolist()):
        offsets = tuple(maps[0, first_map : first_map + map_count].tolist())
        first_map += map_count
        pieces.append(RowSplit(start=bounds[index], end=bounds[index + 1], table_map_offsets=offsets))
    return pieces


def refuse_short_table_ids(description: FormatDescription) -> None:
    if description.fixed_length(EventType.TABLE_MAP) == _SHORT_TABLE_ID:
        raise format_error("4-byte table ids (MySQL 5.1.3 and older) are not supported", b"")


@lean_kernel
def _split(
    data: ByteArray,
    start: int,
    end: int,
    split_bytes: int,
    class_table: ByteArray,
    cuts: NDArray[np.int64],
    maps: NDArray[np.int64],
) -> tuple[int, int]:
    """Return (number of splits or -1 if `cuts` or `maps` is too small, offset of a damaged event or -1).

    A row of `cuts` has the start of a split and the number of its table maps. maps[0] gets the offsets of the table
    maps of all splits, one split after another. maps[1] has the maps in force at the current event.
    """
    pieces, used, in_force = 0, 0, 0
    after_xid = False
    piece_start = start
    at = start
    while at < end:
        if at + HEADER_LENGTH > end or not HEADER_LENGTH <= u32(data, at + 9) <= end - at:
            return pieces, at
        event_class = class_table[data[at + 4]]
        is_boundary = event_class == GTID or event_class == MARIADB_GTID or after_xid
        after_xid = event_class == XID
        if is_boundary:
            in_force = 0
        size = at - piece_start
        inner = event_class == ROWS or event_class == TABLE_MAP
        if at == start or (is_boundary and size >= split_bytes) or (inner and size >= split_bytes + split_bytes // 4):
            if pieces == len(cuts) or used + in_force > maps.shape[1]:
                return -1, -1
            cuts[pieces, 0], cuts[pieces, 1] = at, in_force
            pieces += 1
            for index in range(in_force):
                maps[0, used + index] = maps[1, index]
            used += in_force
            piece_start = at
        length = u32(data, at + 9)
        if event_class == TABLE_MAP:
            if in_force == maps.shape[1]:
                return -1, -1
            maps[1, in_force] = at
            in_force += 1
        elif event_class == ROWS and length >= HEADER_LENGTH + 8 and u16(data, at + 25) & _STATEMENT_END:
            in_force = 0
        at += length
    return pieces, -1
