"""Executes one prepared SELECT at the source, and returns its rows as raw packets, without decoding them.

PyMySQL prepares and executes the statement. From the first row on, this module reads the socket into its own buffer. A
kernel finds the end of the rows in this buffer. Invariants: the module needs the memory of only one buffer, even for
large rows. After the last row, the session is ready for the next statement.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from pymysql import err

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError, SourceError
from rplctl.event.jit import ByteArray
from rplctl.result_set.stream import RowStream
from rplctl.source.base import lost_connection
from rplctl.source.connection import map_errors
from rplctl.sql_text import Sql

PIECE_BYTES: Final = 1 << 20
_COM_STMT_PREPARE: Final = 0x16
_COM_STMT_EXECUTE: Final = 0x17
_COM_STMT_CLOSE: Final = 0x19
_FIXED_FIELDS: Final = struct.Struct("<BHIB")  # in a column definition: length of the fields, charset, length, type
_HEAD_BYTES: Final = 4
_NAMES: Final = 6  # length-encoded texts before the fixed fields


class SelectedRows:
    """The rows of one SELECT. `wire_types`: the type code of each column in the MySQL protocol."""

    def __init__(self, mysql: Any, sql: Sql, address: str) -> None:
        """Prepare and execute the SELECT.

        `mysql`: a session that nobody else uses until all rows are read. `address`: the first words of an error's
        message. Raises SourceError if the source reports an error.
        """
        self._mysql, self._address = mysql, address
        with map_errors(address):
            mysql._execute_command(_COM_STMT_PREPARE, sql)
            answer = mysql._read_packet().get_all_data()
            self._statement = answer[1:5]
            columns, parameters = struct.unpack_from("<HH", answer, 5)
            for _ in range(columns + (columns > 0) + parameters + (parameters > 0)):
                mysql._read_packet()
            mysql._execute_command(_COM_STMT_EXECUTE, self._statement + b"\0" + struct.pack("<I", 1))
            count = mysql._read_packet().get_all_data()[0]
            if count == 0 or count != columns:
                raise ValueError(f"a result set of {count} columns, {columns} were prepared")
            self.wire_types = [_type_of(mysql._read_packet().get_all_data()) for _ in range(count)]
            mysql._read_packet()
        self._stream = RowStream(mysql._next_seq_id)

    @property
    def rows(self) -> int:
        """The number of rows that have arrived completely or in part."""
        return self._stream.rows

    def pieces(self) -> Iterator[ByteArray]:
        """Yield the packets of all rows as parts of a stream of bytes.

        A part may end inside a packet, and the next part overwrites its memory. Raises SourceError if the connection is
        lost, or if the server sends an error, which is possible after some rows.
        """
        buffer = np.empty(PIECE_BYTES, np.uint8)
        held = 0  # number of last bytes that may be the header of the packet after the rows
        while self._stream.end is None:
            count = self._receive(buffer[held:])
            before = self._stream.row_bytes
            try:
                self._stream.take(buffer[held : held + count])
            except BinlogFormatError as error:
                raise SourceError(f"{self._address}: {error.message}", errno=er.CR_MALFORMED_PACKET) from error
            sure = self._stream.row_bytes - before
            if sure:
                yield buffer[:sure]
            held = min(held + count - sure, _HEAD_BYTES)
            buffer[:held] = buffer[sure : sure + held].copy()
        self._finish(self._stream.end)

    def _receive(self, buffer: ByteArray) -> int:
        """Read bytes that have arrived into the buffer, and return their number.

        `read1` returns the bytes that PyMySQL has buffered. `readinto1` would wait for more, which may not arrive.
        """
        with map_errors(self._address):
            piece = self._mysql._rfile.read1(len(buffer))
        if not piece:
            raise lost_connection("the source closed the connection")
        buffer[: len(piece)] = np.frombuffer(piece, np.uint8)
        return len(piece)

    def _finish(self, end: bytes) -> None:
        with map_errors(self._address):
            if end[0] == 0xFF:
                err.raise_mysql_exception(end)
            self._mysql._execute_command(_COM_STMT_CLOSE, self._statement)


def _type_of(definition: bytes) -> int:
    at = 0
    for _ in range(_NAMES):
        at += 1 + definition[at]
    return int(_FIXED_FIELDS.unpack_from(definition, at)[3])
