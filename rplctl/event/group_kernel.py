"""Find transactions in raw bytes with a state machine of kernels. `groups` is its public interface.

A group is one transaction with all its events:

    IDLE ──GTID, INTVAR …──▶ PENDING ──BEGIN──▶ TRANSACTION ──XID, COMMIT, ROLLBACK──▶ group
      └──BEGIN──▶ TRANSACTION    │  └──XA START──▶ XA ──XA_PREPARE──▶ group
                                 └──any other statement, payload, incident──▶ group

A MariaDB GTID without the standalone flag acts as BEGIN. With the prepared-XA flag, it acts as XA START. `run_groups`
checks the length of each event first, so the kernels read only offsets inside a complete event. The array `registers`
has the state of the state machine between two events.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rplctl.event import event_classes as c, query_words as words
from rplctl.event.bytes_at import u16, u32
from rplctl.event.group_position import CHECKSUM, INEXACT, POSITION, SHORTEST_DESCRIPTION, move_position
from rplctl.event.header import FLAG_ARTIFICIAL, FLAG_IGNORABLE, FLAG_RELAY_LOG, HEADER_LENGTH, MAX_EVENT_LENGTH
from rplctl.event.jit import ByteArray, lean_kernel

# Errors of run_groups.
BAD_LENGTH: Final = 1
SHORT_EVENT: Final = 2
PARTIAL_BEFORE_RECONNECT: Final = 3
BACKWARDS: Final = 4
NESTED: Final = 5
ENCRYPTED: Final = 6
TABLE_FULL: Final = 7

# Columns of the result; the first eight are those of GroupScan.
COLUMNS: Final = 9
FLAG_ROWS: Final = 1
FLAG_STATEMENT: Final = 2
FLAG_SAVEPOINT: Final = 4
FLAG_XA: Final = 8
FLAG_ROLLBACK: Final = 16
FLAG_INCIDENT: Final = 32
FLAG_UNKNOWN: Final = 64
FLAG_PAYLOAD: Final = 128
FLAG_QUERY: Final = 256
FLAG_HALF_ALTER: Final = 512
FLAG_COMPRESSED: Final = 1024

# Registers of the state machine (int64), after those of group_position.
PHASE: Final = 3
START: Final = 4
TIMESTAMP: Final = 5
GTID_AT: Final = 6
ROW_EVENTS: Final = 7
FLAGS: Final = 8
REGISTERS: Final = 9

IDLE: Final = 0
PENDING: Final = 1
TRANSACTION: Final = 2
IN_XA: Final = 3

_GOES_ON: Final = 0
ENDS: Final = 1
_NESTED: Final = 2
_SHORT: Final = 3

_STANDALONE: Final = 1
_PREPARED_XA: Final = 64
_COMPLETED_XA: Final = 128
_START_ALTER: Final = 2
_ROLLBACK_ALTER: Final = 8
_UNKNOWN_KIND: Final = 9
_FIRST_COMPRESSED: Final = 165  # MariaDB's first compressed event; uncompressed rows events have lower codes


@lean_kernel
def _open(registers: NDArray[np.int64], phase: int, at: int, timestamp: int) -> None:
    registers[PHASE] = phase
    registers[START] = at
    registers[TIMESTAMP] = timestamp
    registers[GTID_AT] = -1
    registers[ROW_EVENTS] = 0
    registers[FLAGS] = 0


@lean_kernel
def _kind(flags: int) -> int:
    """Return the GroupKind of a finished group.

    `flags` are the properties of all its events. If several kinds match, the result is the kind that restricts the
    applier most. For example, a group with an unknown event is UNKNOWN, whatever else it contains.
    """
    if flags & FLAG_UNKNOWN:
        return 9
    if flags & FLAG_INCIDENT:
        return 7
    if flags & FLAG_XA:
        return 6
    if flags & FLAG_STATEMENT:  # a later ROLLBACK does not undo DDL
        return 3
    if flags & FLAG_ROLLBACK:
        return 5
    if flags & FLAG_QUERY:
        return 0 if flags & FLAG_HALF_ALTER else 2
    return 4 if flags & FLAG_SAVEPOINT else 1


@lean_kernel
def _mariadb_gtid(data: ByteArray, registers: NDArray[np.int64], at: int, end: int) -> int:
    """Set the phase and the flags of a new group from the flags of a MariaDB GTID event.

    The first flags are at offset 12 of the body. After them come the group commit id, the XID and more flags, if
    present.
    """
    body = at + HEADER_LENGTH
    if end - body < HEADER_LENGTH:
        return _SHORT
    flags = int(data[body + 12])
    if flags & _PREPARED_XA:
        registers[PHASE] = IN_XA
        registers[FLAGS] = FLAG_XA
        return _GOES_ON
    if flags & (_STANDALONE | _COMPLETED_XA) == 0:
        registers[PHASE] = TRANSACTION
        return _GOES_ON
    more = body + 13
    if flags & 2:  # a group commit id
        more += 8
    if flags & _COMPLETED_XA:
        registers[FLAGS] = FLAG_XA
    elif more < end and int(data[more]) & (_START_ALTER | _ROLLBACK_ALTER):
        registers[FLAGS] = FLAG_HALF_ALTER
    return _GOES_ON


@lean_kernel
def _query(data: ByteArray, registers: NDArray[np.int64], at: int, end: int) -> int:
    """Process a QUERY event of an open group. The caller has already changed the phase IDLE to PENDING."""
    body = at + HEADER_LENGTH
    if end - body < 13:
        return _SHORT
    text = body + 13 + u16(data, body + 11) + int(data[body + 8]) + 1
    if text > end:
        return _SHORT
    word = words.query_word(data, text, end)
    if word == words.WORD_BEGIN:
        if registers[PHASE] != PENDING:
            return _NESTED
        registers[PHASE] = TRANSACTION
        return _GOES_ON
    if word == words.WORD_XA_START or word == words.WORD_XA_END:
        registers[FLAGS] |= FLAG_XA
        registers[PHASE] = IN_XA
        return _GOES_ON
    if word == words.WORD_XA_FINISH:
        registers[FLAGS] |= FLAG_XA
        return ENDS
    if word == words.WORD_COMMIT:
        return ENDS
    if word == words.WORD_ROLLBACK:
        registers[FLAGS] |= FLAG_ROLLBACK
        return ENDS
    if word == words.WORD_SAVEPOINT and registers[PHASE] != PENDING:
        registers[FLAGS] |= FLAG_SAVEPOINT
        return _GOES_ON
    return _statement(registers)


@lean_kernel
def _statement(registers: NDArray[np.int64]) -> int:
    if registers[PHASE] == PENDING:
        registers[FLAGS] |= FLAG_QUERY
        return ENDS
    registers[FLAGS] |= FLAG_STATEMENT
    return _GOES_ON


@lean_kernel
def step(data: ByteArray, registers: NDArray[np.int64], at: int, end: int, event_class: int) -> int:
    """Process one event: open a group if none is open, and update the flags of the group.

    Return ENDS if the event is the last one of its group, and _GOES_ON if the group continues. Return _NESTED or _SHORT
    for an error. `end` is the end of the event without its checksum. The caller passes control events only if a group
    is open.
    """
    if event_class == c.GTID or event_class == c.MARIADB_GTID:
        if registers[PHASE] != IDLE:
            return _NESTED
        _open(registers, PENDING, at, u32(data, at))
        registers[GTID_AT] = at
        return _mariadb_gtid(data, registers, at, end) if event_class == c.MARIADB_GTID else _GOES_ON
    if registers[PHASE] == IDLE:
        _open(registers, PENDING, at, u32(data, at))
    if event_class == c.QUERY:
        return _query(data, registers, at, end)
    if event_class == c.ROWS or event_class == c.TABLE_MAP:
        registers[FLAGS] |= FLAG_ROWS
        registers[ROW_EVENTS] += 1 if event_class == c.ROWS else 0
        registers[FLAGS] |= FLAG_COMPRESSED if data[at + 4] >= _FIRST_COMPRESSED else 0
        if registers[PHASE] == PENDING:
            registers[PHASE] = TRANSACTION
        return _GOES_ON
    if event_class == c.XID:
        return ENDS
    if event_class == c.XA_PREPARE:
        if end - at <= HEADER_LENGTH:
            return _SHORT
        registers[FLAGS] |= FLAG_XA
        if data[at + HEADER_LENGTH] != 0:  # one phase: an ordinary commit
            registers[FLAGS] &= ~FLAG_XA
        return ENDS
    return _rare_step(registers, event_class)


@lean_kernel
def _rare_step(registers: NDArray[np.int64], event_class: int) -> int:
    if event_class == c.COMPRESSED_QUERY:
        registers[FLAGS] |= FLAG_COMPRESSED
        return _statement(registers)
    if event_class == c.STATEMENT:
        registers[FLAGS] |= FLAG_STATEMENT
    elif event_class == c.STATEMENT_END:
        registers[FLAGS] |= FLAG_STATEMENT
        return ENDS if registers[PHASE] == PENDING else _GOES_ON
    elif event_class == c.INCIDENT:
        registers[FLAGS] |= FLAG_INCIDENT
        return ENDS if registers[PHASE] == PENDING else _GOES_ON
    elif event_class == c.PAYLOAD:
        registers[FLAGS] |= FLAG_PAYLOAD | FLAG_ROWS
        registers[ROW_EVENTS] += 1
        return ENDS if registers[PHASE] == PENDING else _GOES_ON
    elif event_class == c.UNKNOWN:
        registers[FLAGS] |= FLAG_UNKNOWN
        return ENDS
    return _GOES_ON


@lean_kernel
def _same_bytes(first: ByteArray, second: ByteArray) -> bool:
    if len(first) != len(second):
        return False
    for index in range(len(first)):
        if first[index] != second[index]:
            return False
    return True


@lean_kernel
def _emit(
    table: NDArray[np.int64], count: int, registers: NDArray[np.int64], end: int, kind: int, log_index: int
) -> None:
    """Write the current group as row `count` of `table`, and set the state machine to IDLE."""
    table[count, 0] = registers[START]
    table[count, 1] = end
    table[count, 2] = kind
    table[count, 3] = registers[TIMESTAMP]
    table[count, 4] = registers[POSITION] + registers[INEXACT]
    table[count, 5] = log_index
    table[count, 6] = registers[GTID_AT]
    table[count, 7] = registers[ROW_EVENTS]
    table[count, 8] = registers[FLAGS]
    registers[PHASE] = IDLE


@lean_kernel
def _check(data: ByteArray, registers: NDArray[np.int64], at: int, event_class: int) -> int:
    """Return 0, or the error of an event that is encrypted or too short for its type.

    The caller has checked that `data` contains the whole event.
    """
    length = u32(data, at + 9)
    if event_class == c.ENCRYPTION:
        return ENCRYPTED
    if event_class == c.DESCRIPTION:
        return SHORT_EVENT if length < SHORTEST_DESCRIPTION else 0
    body = length - HEADER_LENGTH - registers[CHECKSUM]
    return SHORT_EVENT if body < 0 or (event_class == c.ROTATE and body <= 8) else 0


@lean_kernel
def _cuts_open_group(
    data: ByteArray, registers: NDArray[np.int64], at: int, end: int, event_class: int, log_name: ByteArray
) -> int:
    """Find out if the open transaction was cut short before this event.

    ENDS means that the source cut it short, for example in a crash. _NESTED means that the receiver reconnected in the
    middle of the transaction. _GOES_ON means that the transaction was not cut short, or that no transaction is open.
    """
    flags = u16(data, at + 17)
    if registers[PHASE] == IDLE or flags & FLAG_RELAY_LOG != 0:
        return _GOES_ON
    if event_class == c.DESCRIPTION or event_class == c.STOP:
        return ENDS
    if event_class != c.ROTATE:
        return _GOES_ON
    if flags & FLAG_ARTIFICIAL != 0 and _same_bytes(data[at + HEADER_LENGTH + 8 : end], log_name):
        return _NESTED
    return ENDS


@lean_kernel
def run_groups(
    data: ByteArray,
    at: int,
    limit: int,
    registers: NDArray[np.int64],
    log_name: ByteArray,
    class_table: ByteArray,
    table: NDArray[np.int64],
    marks: NDArray[np.int64],
) -> tuple[int, int, int, int]:
    """Find the groups from `at` on, until their total size is at least `limit` bytes, and write them to `table`.

    Return (number of groups, number of marks, error or 0, offset of the error). A mark in `marks` is (offset of a
    ROTATE, length of the new log name) or (offset of a FORMAT_DESCRIPTION, 0).
    """
    count, mark_count, log_index = 0, 0, 0
    begin = at
    while at + HEADER_LENGTH <= len(data):
        length = u32(data, at + 9)
        if length < HEADER_LENGTH or length > MAX_EVENT_LENGTH:
            return count, mark_count, BAD_LENGTH, at
        if length > len(data) - at:
            break
        if count + 2 > len(table) or mark_count + 1 > len(marks):
            return count, mark_count, TABLE_FULL, at
        event_class = int(class_table[data[at + 4]])
        flags = u16(data, at + 17)
        if event_class == c.UNKNOWN and flags & FLAG_IGNORABLE:
            event_class = c.NEUTRAL
        error = _check(data, registers, at, event_class)
        if error:
            return count, mark_count, error, at
        end = at + length
        body_end = end - (0 if event_class == c.DESCRIPTION else registers[CHECKSUM])
        cut = _cuts_open_group(data, registers, at, body_end, event_class, log_name)
        if cut == _NESTED:
            return count, mark_count, PARTIAL_BEFORE_RECONNECT, at
        if cut == ENDS:
            registers[GTID_AT], registers[ROW_EVENTS], registers[FLAGS] = -1, 0, 0
            _emit(table, count, registers, at, 0, log_index)
            count += 1
        if not move_position(data, registers, at, event_class):
            return count, mark_count, BACKWARDS, at
        if event_class == c.DESCRIPTION or (event_class == c.ROTATE and flags & FLAG_RELAY_LOG == 0):
            marks[mark_count, 0], marks[mark_count, 1] = at, 0
            if event_class == c.ROTATE:
                log_name = data[at + HEADER_LENGTH + 8 : body_end]
                marks[mark_count, 1] = len(log_name)
                log_index += 1
            mark_count += 1
        outcome = ENDS
        if registers[PHASE] == IDLE and (
            c.CONTROL <= event_class <= c.DESCRIPTION or event_class in (c.STOP, c.NEUTRAL)
        ):
            _open(registers, IDLE, at, u32(data, at))
            kind = 0
        else:
            outcome = step(data, registers, at, body_end, event_class)
            kind = _kind(registers[FLAGS])
        if outcome >= _NESTED:
            return count, mark_count, NESTED if outcome == _NESTED else SHORT_EVENT, at
        if outcome == ENDS:
            _emit(table, count, registers, end, kind, log_index)
            count += 1
            if kind == _UNKNOWN_KIND or end - begin >= limit:
                break
        at = end
    return count, mark_count, 0, 0
