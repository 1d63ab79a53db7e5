"""Converts the parameters of prepared statements to SQL literals, and rows of their answers to the binary format."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.front.charset import ConnectionCharsets, ResultCharset
from rplctl.front.front import PreparedStatement
from rplctl.front.statement import ClientStatement
from rplctl.front.wire import DOUBLE, LONG, LONGLONG, PacketReader, as_bytes, counted, malformed

_INTEGERS = {1: 1, 2: 2, 13: 2, 3: 4, 9: 4, 8: 8}  # column type → size in bytes
_FLOATS = {4: "<f", 5: "<d"}
_NULL, _DATES, _TIME = 6, (7, 10, 12), 11
_UNSIGNED = 0x80


def bound(
    statement: ClientStatement, body: PacketReader, prepared: PreparedStatement, charsets: ConnectionCharsets
) -> str:
    """Return the text of a prepared statement, with a literal in place of each `?`.

    `body`: the rest of the packet COM_STMT_EXECUTE, with the values. If the packet has the types of the parameters,
    they are kept in `prepared`. Raises RplError 1835 if the packet is malformed, and 1210 if the types are unknown.
    """
    nulls = body.take((prepared.count + 7) // 8)
    if body.integer(1):
        prepared.kinds = [(body.integer(1), body.integer(1)) for _ in range(prepared.count)]
    if not prepared.kinds:
        raise RplError("Incorrect arguments to mysqld_stmt_execute", errno=er.WRONG_ARGUMENTS)
    literals = []
    for index, (kind, flags) in enumerate(prepared.kinds):
        if index in prepared.long_data:
            literals.append(quoted(charsets.text(bytes(prepared.long_data[index]))))
        else:
            literals.append("NULL" if nulls[index // 8] >> index % 8 & 1 else _literal(kind, flags, body, charsets))
    return with_literals(statement, literals)


def with_literals(statement: ClientStatement, literals: Sequence[str]) -> str:
    """Return the text of the statement with the first `?` replaced by the first literal, and so on."""
    out, at, waiting = [], 0, iter(literals)
    for token in statement.tokens:
        if token.kind == "symbol" and token.value == "?":
            out += [statement.text[at : token.start], next(waiting)]
            at = token.end
    return "".join(out) + statement.text[at:]


def _literal(kind: int, flags: int, body: PacketReader, charsets: ConnectionCharsets) -> str:
    if kind == _NULL:
        return "NULL"
    if size := _INTEGERS.get(kind):
        return str(int.from_bytes(body.take(size), "little", signed=not flags & _UNSIGNED))
    if form := _FLOATS.get(kind):
        (number,) = struct.unpack(form, body.take(struct.calcsize(form)))
        if number != number or number in (float("inf"), float("-inf")):
            raise malformed()
        return repr(float(number))
    if kind in _DATES:
        return _date(body.counted())
    if kind == _TIME:
        return _time(body.counted())
    return quoted(charsets.text(body.counted()))


def quoted(text: str) -> str:
    """Return the text as an SQL literal in quotes, for a statement that ClientStatement reads."""
    for plain, escaped in (("\\", "\\\\"), ("'", "''"), ("\0", "\\0")):
        text = text.replace(plain, escaped)
    return f"'{text}'"


def _date(data: bytes) -> str:
    if len(data) not in (0, 4, 7, 11):
        raise malformed()
    year, month, day, hour, minute, second, micros = struct.unpack("<HBBBBBI", data.ljust(11, b"\0"))
    return f"'{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{_fraction(micros)}'"


def _time(data: bytes) -> str:
    if len(data) not in (0, 8, 12):
        raise malformed()
    is_negative, days, hour, minute, second, micros = struct.unpack("<BIBBBI", data.ljust(12, b"\0"))
    return f"'{'-' if is_negative else ''}{days * 24 + hour:02}:{minute:02}:{second:02}{_fraction(micros)}'"


def _fraction(micros: int) -> str:
    return f".{micros:06}" if micros else ""


def binary_row(columns: Sequence[tuple[str, int]], row: Sequence[object], charset: ResultCharset) -> bytes:
    nulls = bytearray((len(row) + 9) // 8)
    out = bytearray()
    for index, ((_, kind), value) in enumerate(zip(columns, row, strict=True)):
        if value is None:
            nulls[(index + 2) // 8] |= 1 << (index + 2) % 8
        elif kind in (LONG, LONGLONG):
            number = int(str(value))
            out += number.to_bytes(4 if kind == LONG else 8, "little", signed=number < 0)
        elif kind == DOUBLE:
            out += struct.pack("<d", float(str(value)))
        else:
            out += counted(as_bytes(value, charset))
    return b"\0" + bytes(nulls) + bytes(out)
