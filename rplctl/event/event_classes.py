"""What the group kernel knows about event types and about the few SQL words that bound a transaction.

Words are compared as their first eight bytes in upper case, padded with zeros, read as one little-endian number:
no SQL is parsed, and no Python runs per event.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rplctl.event.header import EventType
from rplctl.event.jit import ByteArray, lean_kernel

# Classes of event types.
UNKNOWN: Final = 0
CONTROL: Final = 1
ROTATE: Final = 2
DESCRIPTION: Final = 3
GTID: Final = 4
MARIADB_GTID: Final = 5
QUERY: Final = 6
COMPRESSED_QUERY: Final = 7
XID: Final = 8
XA_PREPARE: Final = 9
ROWS: Final = 10
TABLE_MAP: Final = 11
NEUTRAL: Final = 12
STATEMENT: Final = 13  # belongs to a statement that follows
STATEMENT_END: Final = 14  # LOAD DATA: is the statement
INCIDENT: Final = 15
PAYLOAD: Final = 16
ENCRYPTION: Final = 17
STOP: Final = 18

_CLASS_OF: dict[EventType, int] = {
    EventType.QUERY: QUERY,
    EventType.STOP: STOP,
    EventType.ROTATE: ROTATE,
    EventType.INTVAR: STATEMENT,
    EventType.RAND: STATEMENT,
    EventType.USER_VAR: STATEMENT,
    EventType.APPEND_BLOCK: STATEMENT,
    EventType.BEGIN_LOAD_QUERY: STATEMENT,
    EventType.DELETE_FILE: STATEMENT_END,
    EventType.EXECUTE_LOAD_QUERY: STATEMENT_END,
    EventType.FORMAT_DESCRIPTION: DESCRIPTION,
    EventType.XID: XID,
    EventType.TABLE_MAP: TABLE_MAP,
    EventType.WRITE_ROWS_V1: ROWS,
    EventType.UPDATE_ROWS_V1: ROWS,
    EventType.DELETE_ROWS_V1: ROWS,
    EventType.INCIDENT: INCIDENT,
    EventType.HEARTBEAT: CONTROL,
    EventType.IGNORABLE: NEUTRAL,
    EventType.ROWS_QUERY: NEUTRAL,
    EventType.WRITE_ROWS: ROWS,
    EventType.UPDATE_ROWS: ROWS,
    EventType.DELETE_ROWS: ROWS,
    EventType.GTID: GTID,
    EventType.ANONYMOUS_GTID: GTID,
    EventType.PREVIOUS_GTIDS: CONTROL,
    EventType.TRANSACTION_CONTEXT: NEUTRAL,
    EventType.VIEW_CHANGE: NEUTRAL,
    EventType.XA_PREPARE: XA_PREPARE,
    EventType.PARTIAL_UPDATE_ROWS: ROWS,
    EventType.TRANSACTION_PAYLOAD: PAYLOAD,
    EventType.HEARTBEAT_V2: CONTROL,
    EventType.GTID_TAGGED: GTID,
    EventType.ANNOTATE_ROWS: NEUTRAL,
    EventType.BINLOG_CHECKPOINT: CONTROL,
    EventType.MARIADB_GTID: MARIADB_GTID,
    EventType.GTID_LIST: CONTROL,
    EventType.START_ENCRYPTION: ENCRYPTION,
    EventType.QUERY_COMPRESSED: COMPRESSED_QUERY,
    EventType.WRITE_ROWS_COMPRESSED_V1: ROWS,
    EventType.UPDATE_ROWS_COMPRESSED_V1: ROWS,
    EventType.DELETE_ROWS_COMPRESSED_V1: ROWS,
    EventType.WRITE_ROWS_COMPRESSED: ROWS,
    EventType.UPDATE_ROWS_COMPRESSED: ROWS,
    EventType.DELETE_ROWS_COMPRESSED: ROWS,
}


def _class_table() -> ByteArray:
    table = np.zeros(256, dtype=np.uint8)
    for event_type, event_class in _CLASS_OF.items():
        table[event_type] = event_class
    table.flags.writeable = False
    return table


CLASS_TABLE: Final = _class_table()

# Words of QUERY events.
WORD_OTHER: Final = 0
WORD_BEGIN: Final = 1
WORD_COMMIT: Final = 2
WORD_ROLLBACK: Final = 3
WORD_SAVEPOINT: Final = 4  # also ROLLBACK TO and RELEASE SAVEPOINT
WORD_XA_START: Final = 5
WORD_XA_END: Final = 6  # also XA PREPARE as text
WORD_XA_FINISH: Final = 7  # XA COMMIT, XA ROLLBACK


def _packed(word: str) -> int:
    return int.from_bytes(word.encode("ascii").ljust(8, b"\0"), "little")


_BEGIN: Final = _packed("BEGIN")
_COMMIT: Final = _packed("COMMIT")
_ROLLBACK: Final = _packed("ROLLBACK")
_SAVEPOINT: Final = _packed("SAVEPOIN")
_RELEASE: Final = _packed("RELEASE ")
_XA_START: Final = _packed("XA START")
_XA_BEGIN: Final = _packed("XA BEGIN")
_XA_END: Final = _packed("XA END ")
_XA_COMMIT: Final = _packed("XA COMMI")
_XA_ROLLBACK: Final = _packed("XA ROLLB")
_XA_PREPARE: Final = _packed("XA PREPA")
_SEVEN_BYTES: Final = (1 << 56) - 1


@lean_kernel
def query_word(data: ByteArray, start: int, end: int) -> int:
    """Which WORD_ the statement `data[start:end]` begins with."""
    word = 0
    for index in range(min(8, end - start)):
        byte = int(data[start + index])
        if 97 <= byte <= 122:
            byte -= 32
        word |= byte << (8 * index)
    if word == _BEGIN:
        return WORD_BEGIN
    if word == _COMMIT:
        return WORD_COMMIT
    if word == _ROLLBACK:
        return WORD_ROLLBACK if end - start == 8 else WORD_SAVEPOINT
    if word in (_SAVEPOINT, _RELEASE):
        return WORD_SAVEPOINT
    if word in (_XA_START, _XA_BEGIN):
        return WORD_XA_START
    if word == _XA_PREPARE or word & _SEVEN_BYTES == _XA_END:
        return WORD_XA_END
    if word in (_XA_COMMIT, _XA_ROLLBACK):
        return WORD_XA_FINISH
    return WORD_OTHER
