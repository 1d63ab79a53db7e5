"""Executes a prepared statement for many rows of parameters at once: MariaDB's bulk execution.

PyMySQL does not support this command. Invariant: every parameter is sent as a BLOB, so that its bytes are stored
unchanged in any session character set. Rows are length-prefixed (`event.fields`), in packets of about PACKET_BYTES.

    COM_STMT_BULK_EXECUTE (manual of MariaDB)
    1 byte      0xfa
    4 bytes     number of the statement, from the answer to COM_STMT_PREPARE
    2 bytes     flags; 128: types follow
    2 bytes     for each parameter: its type, 0
    …           the rows
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from pymysql import err

from rplctl.event.fields import row_ends
from rplctl.event.jit import byte_view
from rplctl.sql_text import SqlBytes
from rplctl.target.base import EncodedRows
from rplctl.target.mysql.connection import LoadingConnection

PACKET_BYTES = 1 << 20
_PREPARE, _CLOSE, _BULK_EXECUTE = 0x16, 0x19, 0xFA
_TYPES_FOLLOW = 128
_BLOB = b"\xfc\0"
_STATEMENT = slice(1, 5)


@dataclass(frozen=True, slots=True)
class BulkCounts:
    """The counts that the server reports for a bulk statement. `replaced`: the number of new rows that replaced an
    existing row.
    """

    records: int
    replaced: int
    skipped: int
    warnings: int


def execute_length_prefixed(connection: LoadingConnection, sql: SqlBytes, rows: EncodedRows) -> BulkCounts:
    """Execute the statement once for each row, in few packets, and return the server's counts. The statement has one
    parameter for each column of `rows`. The driver's errors are not converted.
    """
    driver: Any = connection
    parameters = len(rows.columns)
    driver._execute_command(_PREPARE, sql)
    statement = driver._read_packet().get_all_data()[_STATEMENT]
    for _ in range(parameters + 1):  # the descriptions of the parameters, and the end-of-list packet
        driver._read_packet()
    head = statement + struct.pack("<H", _TYPES_FOLLOW) + _BLOB * parameters
    records = replaced = warnings = 0
    try:
        for piece in _pieces(rows, min(PACKET_BYTES, connection.most_bytes // 2)):
            driver._execute_command(_BULK_EXECUTE, b"".join((head, piece)))
            affected = driver._read_query_result()
            counts = re.findall(rb": *(\d+)", driver._result.message) or (1, affected - 1)  # a single row: no message
            records += int(counts[0])
            replaced += int(counts[1])
            warnings += driver._result.warning_count
    finally:
        with suppress(err.Error, OSError):  # a lost connection has closed the statement
            driver._execute_command(_CLOSE, statement)
    return BulkCounts(records=records, replaced=replaced, skipped=0, warnings=warnings)


def _pieces(rows: EncodedRows, most_bytes: int) -> Iterator[memoryview]:
    """Yield the rows in pieces of about `most_bytes`, with at least two rows each. If a piece had a single row, the
    server's answer would not say whether the row replaced another row.
    """
    ends = row_ends(byte_view(rows.view), len(rows.columns), length_prefixed=True)
    first = start = 0
    while first < len(ends):
        last = min(len(ends), max(first + 2, int(np.searchsorted(ends, start + most_bytes, "right"))))
        last += last == len(ends) - 1
        end = int(ends[last - 1])
        yield rows.view[start:end]
        first, start = last, end
