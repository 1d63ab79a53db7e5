"""Define the event types in one table, which has one row with all properties for each type.

    code            the type code in the header; codes from 160 on are MariaDB's
    name            the name in the manuals
    shown           the name in SHOW RELAYLOG EVENTS; empty: `Unknown`
    event_class     the class of the type in the group kernel (`event_classes`)
    plain_code      for a compressed rows event: the type of the event inside it

All other lists of types are derived from this table. A new type needs one row, and a reader in `events` if its content
is used. Invariant: a code without a row has the class UNKNOWN, which stops the channel (design D12).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from rplctl.event import event_classes as c

if TYPE_CHECKING:
    from rplctl.event.jit import ByteArray


class EventType(IntEnum):
    shown: str
    event_class: int
    plain_code: int

    def __new__(cls, code: int, shown: str = "", event_class: int = c.UNKNOWN, plain_code: int = 0) -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.shown, member.event_class, member.plain_code = shown, event_class, plain_code
        return member

    UNKNOWN = 0
    START_V3 = 1
    QUERY = 2, "Query", c.QUERY
    STOP = 3, "Stop", c.STOP
    ROTATE = 4, "Rotate", c.ROTATE
    INTVAR = 5, "Intvar", c.STATEMENT
    LOAD = 6
    SLAVE = 7
    CREATE_FILE = 8
    APPEND_BLOCK = 9, "Append_block", c.STATEMENT
    EXEC_LOAD = 10
    DELETE_FILE = 11, "Delete_file", c.STATEMENT_END
    NEW_LOAD = 12
    RAND = 13, "RAND", c.STATEMENT
    USER_VAR = 14, "User var", c.STATEMENT
    FORMAT_DESCRIPTION = 15, "Format_desc", c.DESCRIPTION
    XID = 16, "Xid", c.XID
    BEGIN_LOAD_QUERY = 17, "Begin_load_query", c.STATEMENT
    EXECUTE_LOAD_QUERY = 18, "Execute_load_query", c.STATEMENT_END
    TABLE_MAP = 19, "Table_map", c.TABLE_MAP
    PRE_GA_WRITE_ROWS = 20
    PRE_GA_UPDATE_ROWS = 21
    PRE_GA_DELETE_ROWS = 22
    WRITE_ROWS_V1 = 23, "Write_rows_v1", c.ROWS
    UPDATE_ROWS_V1 = 24, "Update_rows_v1", c.ROWS
    DELETE_ROWS_V1 = 25, "Delete_rows_v1", c.ROWS
    INCIDENT = 26, "Incident", c.INCIDENT
    HEARTBEAT = 27, "Heartbeat", c.CONTROL
    IGNORABLE = 28, "Ignorable", c.NEUTRAL
    ROWS_QUERY = 29, "Rows_query", c.NEUTRAL
    WRITE_ROWS = 30, "Write_rows", c.ROWS
    UPDATE_ROWS = 31, "Update_rows", c.ROWS
    DELETE_ROWS = 32, "Delete_rows", c.ROWS
    GTID = 33, "Gtid", c.GTID
    ANONYMOUS_GTID = 34, "Anonymous_Gtid", c.GTID
    PREVIOUS_GTIDS = 35, "Previous_gtids", c.CONTROL
    TRANSACTION_CONTEXT = 36, "Transaction_context", c.NEUTRAL
    VIEW_CHANGE = 37, "View_change", c.NEUTRAL
    XA_PREPARE = 38, "XA_prepare", c.XA_PREPARE
    PARTIAL_UPDATE_ROWS = 39, "Update_rows_partial", c.ROWS
    TRANSACTION_PAYLOAD = 40, "Transaction_payload", c.PAYLOAD
    HEARTBEAT_V2 = 41, "Heartbeat", c.CONTROL
    GTID_TAGGED = 42, "Gtid_tagged", c.GTID
    ANNOTATE_ROWS = 160, "Annotate_rows", c.NEUTRAL
    BINLOG_CHECKPOINT = 161, "Binlog_checkpoint", c.CONTROL
    MARIADB_GTID = 162, "Gtid", c.MARIADB_GTID
    GTID_LIST = 163, "Gtid_list", c.CONTROL
    START_ENCRYPTION = 164, "", c.ENCRYPTION
    QUERY_COMPRESSED = 165, "Query_compressed", c.COMPRESSED_QUERY
    WRITE_ROWS_COMPRESSED_V1 = 166, "Write_rows_compressed_v1", c.ROWS, 23
    UPDATE_ROWS_COMPRESSED_V1 = 167, "Update_rows_compressed_v1", c.ROWS, 24
    DELETE_ROWS_COMPRESSED_V1 = 168, "Delete_rows_compressed_v1", c.ROWS, 25
    WRITE_ROWS_COMPRESSED = 169, "Write_rows_compressed", c.ROWS, 30
    UPDATE_ROWS_COMPRESSED = 170, "Update_rows_compressed", c.ROWS, 31
    DELETE_ROWS_COMPRESSED = 171, "Delete_rows_compressed", c.ROWS, 32


def event_name(type_code: int) -> str:
    """Return the name of an event type, like `QUERY`, or `type 99` for an undefined code."""
    try:
        return EventType(type_code).name
    except ValueError:
        return f"type {type_code}"


def of_classes(*classes: int) -> frozenset[EventType]:
    """Return all event types of these classes."""
    return frozenset(event_type for event_type in EventType if event_type.event_class in classes)


def _class_table() -> ByteArray:
    table = np.zeros(256, dtype=np.uint8)
    for event_type in EventType:
        table[event_type] = event_type.event_class
    table.flags.writeable = False
    return table


CLASS_TABLE: Final = _class_table()  # type code → class
SHOWN: Final = {int(event_type): event_type.shown for event_type in EventType if event_type.shown}

GTIDS: Final = of_classes(c.GTID, c.MARIADB_GTID)
STATEMENT_EVENTS: Final = of_classes(c.STATEMENT, c.STATEMENT_END)
COMPRESSED_ROWS: Final[dict[int, EventType]] = {t: EventType(t.plain_code) for t in EventType if t.plain_code}
ROWS_EVENTS: Final = of_classes(c.ROWS)
PLAIN_ROWS: Final = ROWS_EVENTS - frozenset(COMPRESSED_ROWS)
MARIADB_COMPRESSED: Final = of_classes(c.COMPRESSED_QUERY) | frozenset(COMPRESSED_ROWS)
COMPRESSED: Final = MARIADB_COMPRESSED | of_classes(c.PAYLOAD)
LOG_EVENTS: Final = of_classes(c.CONTROL, c.ROTATE, c.DESCRIPTION, c.STOP)  # events outside transactions
