"""The classes into which the group kernel divides the event types, as plain numbers for kernels.

`types` has the class of each type.
"""

from __future__ import annotations

from typing import Final

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
STATEMENT: Final = 13  # a part of a statement whose end follows
STATEMENT_END: Final = 14  # the end of LOAD DATA: EXECUTE_LOAD_QUERY or DELETE_FILE
INCIDENT: Final = 15
PAYLOAD: Final = 16
ENCRYPTION: Final = 17
STOP: Final = 18
