"""Reads and writes packets of the MySQL protocol and their parts.

Invariant: each packet has one deadline, which begins with its first byte. A client that sends a packet in small parts
does not get more time. The length in the header of a packet is compared with the limit before memory is allocated.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.front.charset import BINARY, UTF8MB4, ResultCharset

PACKET_S = 10.0  # the time from the first to the last byte of a packet, and for sending an answer
WHOLE: Final = 0xFFFFFF
_LONGEST_KEPT: Final = 64  # characters of a name
LONG, DOUBLE, LONGLONG, VAR_STRING, BLOB = 3, 5, 8, 253, 252  # column types
_NUMBER = 0x8000  # flag of a column
STATUS_AUTOCOMMIT: Final = 2

LONG_PASSWORD, FOUND_ROWS, LONG_FLAG, CONNECT_WITH_DB = 1, 2, 4, 8
PROTOCOL_41, SSL, TRANSACTIONS, SECURE_CONNECTION = 0x200, 0x800, 0x2000, 0x8000
PLUGIN_AUTH, CONNECT_ATTRIBUTES, LENENC_AUTH = 0x80000, 0x100000, 0x200000
OFFERED: Final = (
    LONG_PASSWORD | FOUND_ROWS | LONG_FLAG | CONNECT_WITH_DB | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION
    | PLUGIN_AUTH | CONNECT_ATTRIBUTES | LENENC_AUTH
)  # fmt: skip

_STATES = {
    er.ACCESS_DENIED_ERROR: "28000",
    er.CON_COUNT_ERROR: "08004",
    er.UNKNOWN_COM_ERROR: "08S01",
    er.NET_PACKET_TOO_LARGE: "08S01",
    er.MALFORMED_PACKET: "HY000",
    er.PARSE_ERROR: "42000",
    er.EMPTY_QUERY: "42000",
    er.SPECIFIC_ACCESS_DENIED_ERROR: "42000",
    er.NOT_SUPPORTED_YET: "42000",
    er.BAD_DB_ERROR: "42000",
    er.NO_DB_ERROR: "3D000",
    er.NONEXISTING_GRANT: "42000",
    er.UNKNOWN_CHARACTER_SET: "42000",
    er.WRONG_VALUE_FOR_VAR: "42000",
    er.COLLATION_CHARSET_MISMATCH: "42000",
    er.WRONG_PARAMCOUNT_TO_NATIVE_FCT: "42000",
    er.UNKNOWN_TABLE: "42S02",
    er.SP_DOES_NOT_EXIST: "42000",
    er.NO_SUCH_TABLE: "42S02",
    er.BAD_FIELD_ERROR: "42S22",
    er.QUERY_INTERRUPTED: "70100",
}


_OF_CLIENTS: Final = range(2000, 3000)


class Closed(Exception):
    """The exception that ends a connection: the client disconnected, was too slow, or sent invalid data."""


class ClientConnection:
    """One connection to a client, on which packets are read and sent."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.sequence = 0
        self.deadline: float | None = None  # of the whole sign-in, as time.monotonic()

    def read(self, most: int, idle_s: float = PACKET_S) -> bytes:
        """Read one packet, and return its payload.

        `most`: the largest accepted payload in bytes. `idle_s`: seconds to wait for the first byte, if `deadline` is
        not set. Raises Closed if the connection ends or the client is too slow. Raises RplError 1153 if the packet is
        too large.
        """
        deadline = self.deadline
        self.connection.settimeout(idle_s if deadline is None else _left(deadline))
        head = self._receive(1)
        deadline = time.monotonic() + PACKET_S if deadline is None else deadline
        head += self._take(3, deadline)
        length = int.from_bytes(head[:3], "little")
        self.sequence = (head[3] + 1) & 0xFF
        if length > most or length == WHOLE:
            raise RplError("Got a packet bigger than 'max_allowed_packet' bytes", errno=er.NET_PACKET_TOO_LARGE)
        return self._take(length, deadline)

    def _take(self, length: int, deadline: float) -> bytes:
        found = bytearray()
        while len(found) < length:
            self.connection.settimeout(_left(deadline))
            found += self._receive(min(length - len(found), 1 << 16))
        return bytes(found)

    def _receive(self, most: int) -> bytes:
        try:
            data = self.connection.recv(most)
        except (OSError, ValueError) as error:  # ValueError: closed by another thread
            raise Closed from error
        if not data:
            raise Closed
        return data

    def send(self, *payloads: bytes, patience_s: float = PACKET_S) -> None:
        """Send each payload as a packet, and all packets in one write.

        Raises Closed if the connection ends, or if the client does not accept the packets within `patience_s` seconds.
        """
        out = bytearray()
        for payload in payloads:
            view = memoryview(payload)
            while True:
                part, view = view[:WHOLE], view[WHOLE:]
                out += len(part).to_bytes(3, "little") + bytes((self.sequence,)) + part
                self.sequence = (self.sequence + 1) & 0xFF
                if len(part) < WHOLE:
                    break
        try:
            self.connection.settimeout(patience_s if self.deadline is None else _left(self.deadline))
            self.connection.sendall(out)
        except (OSError, ValueError) as error:
            raise Closed from error

    def write(self, data: memoryview, patience_s: float) -> None:
        """Send bytes that already have the form of packets.

        Raises Closed if the connection ends, or if the client accepts no byte for `patience_s` seconds.
        """
        try:
            self.connection.settimeout(patience_s)
            while data:
                data = data[self.connection.send(data) :]
        except (OSError, ValueError) as error:
            raise Closed from error


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise Closed
    return left


class PacketReader:
    """A reader that returns the parts of one packet in their order.

    Its methods raise RplError 1835 if the packet is too short.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, length: int) -> bytes:
        if length > self.left:
            raise malformed()
        self.at += length
        return self.data[self.at - length : self.at]

    def integer(self, length: int) -> int:
        return int.from_bytes(self.take(length), "little")

    def until_zero(self) -> bytes:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise malformed()
        found = self.data[self.at : end]
        self.at = end + 1
        return found

    def length(self) -> int:
        first = self.integer(1)
        if first < 0xFB:
            return first
        if first in (0xFB, 0xFF):
            raise malformed()
        return self.integer({0xFC: 2, 0xFD: 3, 0xFE: 8}[first])

    def counted(self) -> bytes:
        return self.take(self.length())

    def rest(self) -> bytes:
        return self.take(self.left)


def malformed() -> RplError:
    return RplError("Malformed communication packet.", errno=er.MALFORMED_PACKET)


def counted(data: bytes) -> bytes:
    """Return the bytes with their encoded length before them (a length-encoded string of the MySQL protocol)."""
    size = len(data)
    if size < 0xFB:
        return bytes((size,)) + data
    if size <= 0xFFFF:
        return b"\xfc" + size.to_bytes(2, "little") + data
    if size <= WHOLE:
        return b"\xfd" + size.to_bytes(3, "little") + data
    return b"\xfe" + size.to_bytes(8, "little") + data


def length_encoded(number: int) -> bytes:
    if number < 0xFB:
        return bytes((number,))
    return b"\xfc" + number.to_bytes(2, "little") if number <= 0xFFFF else b"\xfe" + number.to_bytes(8, "little")


def ok(warnings: int = 0) -> bytes:
    return b"\0\0\0" + struct.pack("<HH", STATUS_AUTOCOMMIT, warnings)


def eof(warnings: int = 0) -> bytes:
    return b"\xfe" + struct.pack("<HH", warnings, STATUS_AUTOCOMMIT)


def error(errno: int, text: str, charset: ResultCharset = UTF8MB4) -> bytes:
    if errno in _OF_CLIENTS:  # an error of a target's driver; no server sends such a number
        errno = er.UNKNOWN_ERROR
    state = _STATES.get(errno, "HY000")
    return b"\xff" + struct.pack("<H", errno) + b"#" + state.encode() + charset.error(text)[:2000]


def column(name: str, kind: int, charset: ResultCharset = UTF8MB4) -> bytes:
    """Return the packet that describes a column of an answer. `kind`: the type of the column.

    The packets of short names are cached, because SHOW REPLICA STATUS has 60 columns.
    """
    return _kept_column(name, kind, charset) if len(name) <= _LONGEST_KEPT else _column(name, kind, charset)


def _column(name: str, kind: int, charset: ResultCharset) -> bytes:
    is_number = kind not in (VAR_STRING, BLOB)
    parts = b"".join(counted(charset.encode(text)) for text in ("def", "", "", "", name, ""))
    collation = BINARY if is_number else charset.collation
    length = {LONG: 11, LONGLONG: 20, DOUBLE: 22}.get(kind, 65535)
    flags = _NUMBER if is_number else 0
    decimals = 31 if kind == DOUBLE else 0
    return parts + b"\x0c" + struct.pack("<HIBHB2x", collation, length, kind, flags, decimals)


_kept_column = lru_cache(2048)(_column)


def text_row(values: Iterable[object], charset: ResultCharset = UTF8MB4) -> bytes:
    return b"".join(b"\xfb" if value is None else counted(as_bytes(value, charset)) for value in values)


def as_bytes(value: object, charset: ResultCharset = UTF8MB4) -> bytes:
    return value if isinstance(value, bytes) else charset.encode(str(value))
