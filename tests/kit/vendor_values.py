"""Our values as the vendors' dump tools print them, for a comparison of texts (`tests/kit/vendor_dump.py`)."""

from __future__ import annotations

import calendar
import json
import re
import struct
from collections.abc import Callable
from typing import Any

from rplctl.event.cursor import EventCursor
from rplctl.event.json import json_text

_BITS = {"TINYINT": 8, "SHORTINT": 16, "MEDIUMINT": 24, "INT": 32, "LONGINT": 64}
_MYSQL_ESCAPES = {0x09: b"\\t", 0x0A: b"\\n", 0x0D: b"\\r", 0x5C: b"\\\\", 0x27: b"\\'", 0x08: b"\\b", 0x0C: b"\\f"}


def printed(word: str, value: Any, raw: bytes, vendor: str) -> bytes:
    """One cell that is not NULL: the decoded value, and the cell's bytes for what tools print without a charset."""
    if word in _BITS:
        return _integer(value, _BITS[word])
    if word == "SET":
        return _members(value, len(raw))
    show = _SHOW.get(word)
    if show is not None:
        return show(value).encode()
    if word == "JSON":
        return _quoted(value.encode() if not value.startswith('"') else json.loads(value).encode(), vendor)
    return _quoted(raw, vendor)


def diffs_printed(raw: bytes, column: int) -> bytes:
    """The diffs of one JSON cell as the functions that MySQL's tool makes of them."""
    shown, last, position = f"@{column + 1}".encode(), 0, 0
    names = {0: b"JSON_REPLACE", 1: b"JSON_INSERT", 2: b"JSON_REMOVE"}
    cursor = EventCursor(raw)
    while cursor.remaining:
        operation = cursor.unsigned(1)
        path = cursor.take(cursor.packed_length())
        arguments = b", " + _quoted(path, "mysql")
        if operation != 2:
            arguments += b", " + _diff_value(json_text(cursor.take(cursor.packed_length())))
        if position and operation == last:  # one call may hold many changes
            shown = shown[:-1] + arguments + b")"
        else:
            name = b"JSON_ARRAY_INSERT" if operation == 1 and path.endswith(b"]") else names[operation]
            shown = name + b"(" + shown + arguments + b")"
        last, position = operation, position + 1
    return shown


def _diff_value(text: str) -> bytes:
    if text.startswith('"'):
        return _quoted(json.loads(text).encode(), "mysql")
    if re.fullmatch(r"-?\d+(\.\d+)?|true|false", text):
        return text.encode()
    return b"CAST(" + _quoted(text.encode(), "mysql") + b" AS JSON)"


def _integer(value: int, bits: int) -> bytes:
    signed = value - (1 << bits) if value >> (bits - 1) > 0 else value
    return f"{signed} ({signed + (1 << bits)})".encode() if signed < 0 else str(signed).encode()


def _quoted(raw: bytes, vendor: str) -> bytes:
    escapes = _MYSQL_ESCAPES if vendor == "mysql" else {}
    out = bytearray(b"'")
    for byte in raw:
        out += escapes.get(byte) or (b"\\x%02x" % byte if byte < 0x20 else bytes([byte]))
    return bytes(out + b"'")


def _members(text: str, width: int) -> bytes:
    """A SET whose members are named by their numbers from 1 on: its bytes from the lowest, bit by bit."""
    number = sum(1 << int(member) - 1 for member in text.split(",") if member)
    return "".join(f"{byte:08b}" for byte in number.to_bytes(width, "little")).lstrip("0").encode() or b"0"


def _vector(raw: bytes) -> str:
    return f"[{','.join(f'{number:.5e}' for (number,) in struct.iter_unpack('<f', raw))}]"


def _timestamp(text: str) -> str:
    if text.startswith("0000"):
        return "0" + text[19:]
    numbers = [int(part) for part in re.split(r"[- :]", text[:19])]
    return f"{calendar.timegm((numbers[0], numbers[1], numbers[2], *numbers[3:]))}{text[19:]}"


_SHOW: dict[str, Callable[[Any], str]] = {
    "FLOAT": lambda v: f"{v:g}",
    "DOUBLE": lambda v: f"{v:.20g}",
    "DECIMAL": str,
    "BIT": lambda v: f"{v:b}",  # without leading zeros
    "ENUM": lambda v: v or "0",  # members named by their numbers
    "VECTOR": _vector,
    "YEAR": lambda v: str(v or 1900),
    "DATE": lambda v: f"'{v.replace('-', ':')}'",
    "TIME": lambda v: f"'{v}'",
    "DATETIME": lambda v: f"'{v}'",
    "TIMESTAMP": _timestamp,
}
