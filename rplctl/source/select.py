"""One prepared SELECT: its rows as the raw packets they come in, piece by piece, never decoded here.

PyMySQL prepares and executes; from the first row on its socket is read into a buffer of ours, which a kernel steps over
to find the end. Invariant: memory is one buffer, whatever the size of a row; when the last piece is out the session
is ready for the next statement.
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
_FIXED_FIELDS: Final = struct.Struct("<BHIB")  # of a column definition: their length, charset, length, type
_HEAD_BYTES: Final = 4
_NAMES: Final = 6  # length-encoded texts before them


class SelectedRows:
    """`wire_types`: the type code of each column of the result set."""

    def __init__(self, mysql: Any, sql: Sql, address: str) -> None:
        """Prepare and execute. `mysql`: a session that nobody else uses meanwhile. Raises SourceError."""
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
        """So many have begun to come."""
        return self._stream.rows

    def pieces(self) -> Iterator[ByteArray]:
        """The packets of all rows; each piece may end anywhere, and its memory is used again for the next. Raises
        SourceError, also for an error that the server ends the rows with.
        """
        buffer = np.empty(PIECE_BYTES, np.uint8)
        held = 0  # bytes of a head that may be the end's
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
        """Return the bytes that have arrived. `readinto1` waits for more bytes than the driver has read ahead, and none
        may come.
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
