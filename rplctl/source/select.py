"""Executes one prepared SELECT, and reads its rows as raw packets in parts, without decoding.

PyMySQL prepares and executes the statement. From the first row on, this module reads the socket into its own buffer, in
which a kernel looks for the end of the rows. Invariant: the memory is one buffer, for rows of any size. After the last
part, the session is ready for the next statement.
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
_FIXED_FIELDS: Final = struct.Struct("<BHIB")  # of a column definition: length of the fields, charset, length, type
_HEAD_BYTES: Final = 4
_NAMES: Final = 6  # length-encoded texts before the fixed fields


class SelectedRows:
    """The rows of a SELECT. `wire_types`: the type code of each column of the result set."""

    def __init__(self, mysql: Any, sql: Sql, address: str) -> None:
        """Prepare and execute the SELECT. `mysql`: a session that nothing else uses in the meantime. Raises SourceError
        if the source reports an error.
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
        """The number of rows that have arrived, at least in part."""
        return self._stream.rows

    def pieces(self) -> Iterator[ByteArray]:
        """Yield the packets of all rows in parts. A part may end anywhere, and the next part overwrites its memory.

        Raises SourceError if the connection is lost, or if the server sends an error, perhaps after some rows.
        """
        buffer = np.empty(PIECE_BYTES, np.uint8)
        held = 0  # last bytes, which may be the header of the end packet
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

        `readinto1` is not used: it would wait for more bytes than the driver has buffered, and none may arrive.
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
