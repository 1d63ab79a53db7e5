"""Find transactions ("event groups") in raw bytes: start, end and kind of each, and the source position at its end.

Invariant: the groups of a scan cover [offset, complete_end) without gaps. An incomplete group at the end is not part of
the scan. If the source crashes in the middle of a transaction, its next log or a STOP follows. The incomplete
transaction then becomes a CONTROL group: the position moves past the group, and nothing is applied. An unknown event
ends the scan with a group of kind UNKNOWN.

The source position has 64 bits, but end_log_pos in the header has only the low 32. These rules give the position:
* An artificial ROTATE sets the position.
* An event with end_log_pos moves the position to the next one with these low 32 bits.
* A non-artificial event without end_log_pos adds its length (MariaDB >= 11.4 writes such events inside groups). The
  next event with end_log_pos sets the exact position again.
* FORMAT_DESCRIPTION never moves the position backwards.
* An event that the replica wrote itself (FLAG_RELAY_LOG) never moves the position.
* A real ROTATE moves the position into the next log.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from rplctl.event import group_kernel as kernel
from rplctl.event.format_description import FormatDescription, encrypted_error, parse_format_description
from rplctl.event.header import CHECKSUM_LENGTH, HEADER_LENGTH, format_error
from rplctl.event.jit import Buffer, ByteArray, byte_view
from rplctl.event.types import CLASS_TABLE
from rplctl.position import BinlogPosition

_SMALL_GROUP = 64  # bytes, for the size of the tables; unused parts of the tables take no memory
_MESSAGES = {
    kernel.BAD_LENGTH: "impossible event length",
    kernel.SHORT_EVENT: "event is too short for its type",
    kernel.PARTIAL_BEFORE_RECONNECT: "the receiver reconnected in the middle of a transaction",
    kernel.BACKWARDS: "end_log_pos goes backwards",
    kernel.NESTED: "A transaction begins inside another",
}


class GroupKind(IntEnum):
    """The kinds of groups, which decide how the applier may apply a group (design D1, D10, D11)."""

    CONTROL = 0  # nothing to apply, only a position; also START ALTER and ROLLBACK ALTER of MariaDB
    ROWS = 1  # only row events; also a TRANSACTION_PAYLOAD, which may contain other events (FLAG_PAYLOAD)
    QUERY = 2  # one statement outside a transaction: DDL
    STATEMENT = 3  # contains a statement event
    ORDERED = 4  # rows with SAVEPOINT or ROLLBACK TO between them
    ROLLED_BACK = 5  # rows and a final ROLLBACK; with a statement: STATEMENT, because ROLLBACK does not undo DDL
    XA = 6  # XA START … XA PREPARE, or XA COMMIT / XA ROLLBACK alone
    INCIDENT = 7  # the source reports that its binary log lost events
    UNKNOWN = 9  # contains an event of unknown type that is not marked as ignorable


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScan:
    """The complete groups of a scan.

    Group i is `data[start[i]:end[i]]`. It ends at `source_position(i)` in the source's log. `row_events` has the number
    of rows events of each group. `complete_end` is the offset in `data` after the last group.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    kind: NDArray[np.int64]  # GroupKind
    timestamp: NDArray[np.int64]  # seconds since 1970, of the GTID or first event
    source_end: NDArray[np.int64]
    source_log: NDArray[np.int64]  # index into log_names
    gtid_offset: NDArray[np.int64]  # offset of the GTID event in data, or -1
    row_events: NDArray[np.int64]
    has_payload: NDArray[np.bool_]  # contains TRANSACTION_PAYLOAD: decompress and scan its events before applying
    unpacks: NDArray[np.bool_]  # contains compressed events, which may be far larger after decompression
    log_names: tuple[str, ...]
    complete_end: int
    first_source: BinlogPosition  # source position before the first group
    descriptions: tuple[tuple[int, FormatDescription], ...]  # (first offset in force, description), ascending

    def __len__(self) -> int:
        return len(self.start)

    def source_position(self, group: int) -> BinlogPosition:
        return BinlogPosition(self.log_names[int(self.source_log[group])], int(self.source_end[group]))

    @property
    def end_position(self) -> BinlogPosition:
        """The source position after the last complete group."""
        return self.source_position(len(self) - 1) if len(self) else self.first_source

    def description_at(self, offset: int) -> FormatDescription | None:
        """Return the FORMAT_DESCRIPTION in force for the event at `offset`."""
        found = None
        for begins, description in self.descriptions:
            if begins <= offset:
                found = description
        return found


def scan_groups(
    data: Buffer, offset: int, source: BinlogPosition, limit_bytes: int, description: FormatDescription | None = None
) -> GroupScan:
    """Return the complete groups from `offset` on, until their total size is at least `limit_bytes`.

    `source` is the source position at `offset`, and `description` is the FORMAT_DESCRIPTION in force there. If
    `description` is None, the data must begin with a FORMAT_DESCRIPTION, or have no checksums. Raises BinlogFormatError
    for lengths, positions and nesting that no source writes.
    """
    view = byte_view(data)
    name = byte_view(source.log_name.encode("utf-8", "surrogateescape"))
    algorithm = description.checksum_algorithm if description is not None else 0
    checksum = algorithm * CHECKSUM_LENGTH
    table, marks = _run(view, offset, max(limit_bytes, 1), (source.log_pos, checksum), name)
    columns = np.ascontiguousarray(table.T)
    names = [source.log_name]
    descriptions = [(0, description)] if description is not None else []
    for at, name_length in marks.tolist():
        if name_length:
            raw = view[at + HEADER_LENGTH + 8 : at + HEADER_LENGTH + 8 + name_length].tobytes()
            names.append(raw.decode("utf-8", "surrogateescape"))
        else:
            length = int.from_bytes(view[at + 9 : at + 13].tobytes(), "little")
            descriptions.append((at, parse_format_description(view[at : at + length].tobytes())))
    return GroupScan(
        start=columns[0],
        end=columns[1],
        kind=columns[2],
        timestamp=columns[3],
        source_end=columns[4],
        source_log=columns[5],
        gtid_offset=columns[6],
        row_events=columns[7],
        has_payload=(columns[8] & kernel.FLAG_PAYLOAD) != 0,
        unpacks=(columns[8] & (kernel.FLAG_PAYLOAD | kernel.FLAG_COMPRESSED)) != 0,
        log_names=tuple(names),
        complete_end=int(columns[1][-1]) if len(table) else offset,
        first_source=source,
        descriptions=tuple(descriptions),
    )


def _run(
    view: ByteArray, offset: int, limit: int, initial: tuple[int, int], name: ByteArray
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the kernel's groups and marks. `initial` is (source position, checksum length) at `offset`.

    Kernels do not allocate memory. So if the tables for the result are too small, the kernel runs again with larger
    tables.
    """
    group_room, mark_room = 64 + min(len(view) - offset, limit) // _SMALL_GROUP, 16
    while True:
        registers = np.zeros(kernel.REGISTERS, np.int64)
        registers[:2] = initial
        table, marks = np.empty((group_room, kernel.COLUMNS), np.int64), np.empty((mark_room, 2), np.int64)
        count, mark_count, error, at = kernel.run_groups(
            view, offset, limit, registers, name, CLASS_TABLE, table, marks
        )
        if error == kernel.TABLE_FULL:
            group_room, mark_room = 4 * group_room, 4 * mark_room
            continue
        if error == kernel.ENCRYPTED:
            raise encrypted_error(view[at : at + 64].tobytes())
        if error:
            raise format_error(_MESSAGES[error], view.data, at)
        return table[:count], marks[:mark_count]
