"""Convert MySQL's binary JSON to the server's text, and apply partial updates to documents.

    type  value
    00    small object (2-byte sizes)
    01    large object (4-byte sizes)
    02    small array (2-byte sizes)
    03    large array (4-byte sizes)
    04    literal: 0 null, 1 true, 2 false
    05    int16
    06    uint16
    07    int32
    08    uint32
    09    int64
    0a    uint64
    0b    double
    0c    string: length in 7-bit groups, UTF-8
    0f    opaque: column type, length in 7-bit groups, bytes

An object or array has these parts, in this order (WL#8132; partial updates: WL#2955):
* the number of elements, and the size in bytes
* for each element of an object: key offset, 2-byte key length
* for each element: type, and offset or inlined value
* the keys and the values

Offsets count from the first byte of the first part.

Invariant: keys stay in stored order (by length, then bytes), and numbers keep their kind (1 is not 1.0). So the text
equals the output of SELECT. Each offset is checked before use, and no document may have more nodes than bytes.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError
from rplctl.event.decimal import decimal_size, decimal_text
from rplctl.event.table_map import ColumnType
from rplctl.event.temporal import packed_date_text, packed_datetime_text, packed_time_text

# A str is the printed text of a scalar value
Node: TypeAlias = "dict[str, Node] | list[Node] | str"

_LITERALS: Final = {0: "null", 1: "true", 2: "false"}
_INTEGERS: Final = {5: (2, True), 6: (2, False), 7: (4, True), 8: (4, False), 9: (8, True), 10: (8, False)}
_MAX_DEPTH: Final = 100
_MOST_PLAIN_DIGITS: Final = 15  # DBL_DIGITS: larger and smaller numbers are printed with an exponent
_BASE64_LINE: Final = 76
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_DOUBLES: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(-?\d+)\.0(?![\deE])')  # whole doubles; strings match unchanged
_LEG: Final = re.compile(
    r'\.(?P<bare>[^.\["]+)|\."(?P<quoted>(?:[^"\\]|\\.)*)"|\[(?P<index>\d+)\]|\[last(?:-(?P<back>\d+))?\]'
)
REPLACE, INSERT, REMOVE = 0, 1, 2


@dataclass(slots=True)
class _Reader:
    raw: bytes
    nodes: int = 0
    has_typed: bool = False  # a value of a type that JSON's text lacks was read
    doubles: list[float] = field(default_factory=list)  # those that were read

    def fail(self, what: str) -> BinlogFormatError:
        return BinlogFormatError(f"invalid JSON value: {what}: {self.raw[:64].hex(' ')}", errno=er.INVALID_JSON_TEXT)

    def take(self, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0 or offset + length > len(self.raw):
            raise self.fail(f"{length} bytes at {offset} do not fit into its {len(self.raw)} bytes")
        return self.raw[offset : offset + length]

    def integer(self, offset: int, width: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(offset, width), "little", signed=signed)

    def counted(self, offset: int) -> bytes:
        """Read a length of up to 5 groups of 7 bits at `offset`, and return so many bytes after it."""
        length = 0
        for group in range(5):
            byte = self.integer(offset + group, 1)
            length |= (byte & 0x7F) << (7 * group)
            if byte < 0x80:
                return self.take(offset + group + 1, length)
        raise self.fail("a length of more than 5 bytes")

    def text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise self.fail("a string that is not UTF-8") from None

    def value(self, kind: int, offset: int, depth: int) -> Node:
        self.nodes += 1
        if self.nodes > len(self.raw) + 1 or depth > _MAX_DEPTH:
            raise self.fail("too deep, or more values than bytes")
        if kind <= 3:
            return self.container(offset, is_object=kind < 2, width=4 if kind & 1 else 2, depth=depth)
        if kind == 4:
            literal = _LITERALS.get(self.integer(offset, 1))
            if literal is None:
                raise self.fail("an unknown literal")
            return literal
        if kind in _INTEGERS:
            width, signed = _INTEGERS[kind]
            return str(self.integer(offset, width, signed=signed))
        if kind == 11:
            number: float = struct.unpack("<d", self.take(offset, 8))[0]
            self.doubles.append(number)
            return double_text(number)
        if kind == 12:
            return quoted(self.text(self.counted(offset)))
        if kind == 15:
            self.has_typed = True
            return self.opaque(self.integer(offset, 1), self.counted(offset + 1))
        raise self.fail(f"unknown type {kind:#04x}")

    def container(self, start: int, *, is_object: bool, width: int, depth: int) -> Node:
        count = self.integer(start, width)
        size = self.integer(start + width, width)
        values_at = start + 2 * width + (count * (width + 2) if is_object else 0)
        self.take(start, size)
        if values_at + count * (1 + width) > start + size:
            raise self.fail(f"{count} elements in {size} bytes")
        children: list[Node] = []
        for index in range(count):
            entry = values_at + index * (1 + width)
            kind = self.integer(entry, 1)
            inlined = kind in (4, 5, 6) or (width == 4 and kind in (7, 8))
            at = entry + 1 if inlined else start + self.integer(entry + 1, width)
            children.append(self.value(kind, at, depth + 1))
        if not is_object:
            return children
        keys = []
        for index in range(count):
            entry = start + 2 * width + index * (width + 2)
            key = self.take(start + self.integer(entry, width), self.integer(entry + width, 2))
            keys.append(self.text(key))
        return dict(zip(keys, children, strict=True))

    def opaque(self, column_type: int, value: bytes) -> str:
        if column_type == ColumnType.NEWDECIMAL and len(value) > 2:
            precision, scale = value[0], value[1]
            if scale > precision or decimal_size(precision, scale) != len(value) - 2:
                raise self.fail("a decimal of the wrong size")
            return decimal_text(value[2:], precision, scale)
        if len(value) == 8:
            packed = int.from_bytes(value, "little", signed=True)
            if column_type == ColumnType.DATE:
                return f'"{packed_date_text(packed)}"'
            if column_type in (ColumnType.DATETIME, ColumnType.TIMESTAMP):
                return f'"{packed_datetime_text(packed)}"'
            if column_type == ColumnType.TIME:
                return f'"{packed_time_text(packed)}"'
        encoded = base64.b64encode(value).decode("ascii")
        lines = [encoded[i : i + _BASE64_LINE] for i in range(0, len(encoded), _BASE64_LINE)]
        return quoted(f"base64:type{column_type}:" + "\n".join(lines))


def parse_json(raw: bytes) -> Node:
    """Return the document in one cell. Empty bytes are JSON null. Raises BinlogFormatError if the cell is damaged."""
    if not raw:
        return "null"
    return _Reader(raw).value(raw[0], 1, 0)


def text_of_57(text: str) -> str:
    """Return the text of a document as MySQL 5.7 prints it, with the DOUBLE 3.0 printed as 3.

    `text` is the document as later versions of MySQL print it.
    """
    return _DOUBLES.sub(lambda found: found[1] or found[0], text)


def print_json(node: Node) -> str:
    """Return the server's text of a document, for example `{"a": 1, "b": [true]}`."""
    if isinstance(node, dict):
        return "{" + ", ".join(f"{quoted(key)}: {print_json(value)}" for key, value in node.items()) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(print_json(value) for value in node) + "]"
    return node


class _Number(str):
    """The text of a number. The type distinguishes it from the text of a JSON string."""


def parse_text(text: str) -> Node:
    """Parse the JSON text that a server printed. Numbers keep all their digits.

    Raises ValueError if the text is not JSON.
    """
    return _nodes(json.JSONDecoder(parse_float=_Number, parse_int=_Number).decode(text))


def _nodes(value: object) -> Node:
    if isinstance(value, dict):
        return {key: _nodes(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_nodes(item) for item in value]
    if isinstance(value, _Number):
        return str(value)
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def json_text(raw: bytes) -> str:
    """Return the server's text of the document in one cell. Raises BinlogFormatError if the cell is damaged."""
    return print_json(parse_json(raw))


_EXACT_DIGITS, _EXACT_POWER = 15, 22


def is_exact_as_text(raw: bytes) -> bool:
    """True if MySQL surely makes the same document of the document's text.

    Text loses the types of typed ("opaque") values, such as DECIMAL. The parser of MySQL 8.0 and 8.4 reads only doubles
    of at most 15 digits and with a power of ten of at most 22 exactly: it reads 9088544342.689999 as 9088544342.69.
    The result is False for a diff (PARTIAL_JSON), which is no document.
    """
    reader = _Reader(raw)
    try:
        if raw:
            reader.value(raw[0], 1, 0)
    except BinlogFormatError:
        return False
    return not reader.has_typed and all(map(_is_exact, reader.doubles))


def _is_exact(value: float) -> bool:
    mantissa, _, exponent = double_text(abs(value)).partition("e")
    whole, _, part = mantissa.partition(".")
    part = part.rstrip("0")
    power = int(exponent or 0) - len(part)
    return len((whole + part).lstrip("0")) <= _EXACT_DIGITS and abs(power) <= _EXACT_POWER


def quoted(text: str) -> str:
    """Return the text as a JSON string, with quotes and with the escapes of the server."""
    return '"' + _ESCAPED.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}", text) + '"'


def double_text(value: float) -> str:
    """Return the text of a double in the server's JSON, with the shortest exact digits: `1.0`, `1e20`, `1.5e-7`."""
    mantissa, _, exponent = f"{value!r}e0".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, part = mantissa.lstrip("-").partition(".")
    point = len(whole) + int(exponent.removesuffix("e0") or 0)
    digits = whole + part
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0") or "0"
    if digits == "0":
        return f"{sign}0.0"
    if -_MOST_PLAIN_DIGITS < point <= _MOST_PLAIN_DIGITS or 0 < point < len(digits):
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1}"


@dataclass(frozen=True, slots=True)
class _FromEnd:
    """A leg [last-N] of a path, which counts the elements of an array from its end."""

    back: int


_Leg: TypeAlias = "str | int | _FromEnd"


def apply_diffs(document: Node, raw: bytes) -> Node:
    """Apply the diffs in one cell of a PARTIAL_UPDATE_ROWS event to `document`, and return the new document.

    `document` is changed in place. A diff has an operation (0 replace, 1 insert, 2 remove), a path and, except for
    remove, a value. A length-encoded length precedes the path and the value. Raises BinlogFormatError if a path does
    not exist in the document.
    """
    reader = _Reader(raw)
    position = 0
    while position < len(raw):
        operation = raw[position]
        path, position = _counted(reader, position + 1)
        value: Node = "null"
        if operation in (REPLACE, INSERT):
            binary, position = _counted(reader, position)
            value = parse_json(binary)
        elif operation != REMOVE:
            raise reader.fail(f"unknown diff operation {operation}")
        document = _apply(reader, document, operation, _legs(reader, reader.text(path)), value)
    return document


def _counted(reader: _Reader, position: int) -> tuple[bytes, int]:
    first = reader.integer(position, 1)
    width = {252: 2, 253: 3, 254: 8}.get(first, 0)
    length = reader.integer(position + 1, width) if width else first
    if first in (251, 255):
        raise reader.fail(f"{first} is not a length-encoded integer")
    start = position + 1 + width
    return reader.take(start, length), start + length


def _legs(reader: _Reader, path: str) -> list[_Leg]:
    """Return the legs of a JSON path. The legs of `$.a."b c"[3][last-1]` are ["a", "b c", 3, _FromEnd(1)]."""
    legs: list[_Leg] = []
    position = 1
    while position < len(path) and path[0] == "$":
        match = _LEG.match(path, position)
        if match is None:
            break
        if match["index"] is not None:
            legs.append(int(match["index"]))
        elif match[0].startswith("[last"):
            legs.append(_FromEnd(int(match["back"] or 0)))
        else:
            legs.append(match["bare"] if match["quoted"] is None else _unescaped(match["quoted"]))
        position = match.end()
    if position != len(path) or not path.startswith("$"):
        raise reader.fail(f"path {path!r}")
    return legs


def _unescaped(text: str) -> str:
    codes = {escape[1]: character for character, escape in _ESCAPES.items()}
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda match: chr(int(match[1], 16)) if match[1] else codes.get(match[2], match[2]),
        text,
        flags=re.DOTALL,
    )


def _apply(reader: _Reader, document: Node, operation: int, legs: list[_Leg], value: Node) -> Node:
    if not legs:
        if operation != REPLACE:
            raise reader.fail("only a replace may change the whole document")
        return value
    parent = document
    for leg in legs[:-1]:
        parent = _child(reader, parent, leg)
    last = _resolved(parent, legs[-1])
    if isinstance(parent, dict) and isinstance(last, str) and (operation == INSERT) != (last in parent):
        if operation == REMOVE:
            del parent[last]
        else:
            parent[last] = value
        if operation == INSERT:
            _sort_keys(parent)
    elif isinstance(parent, list) and isinstance(last, int) and (operation == INSERT or 0 <= last < len(parent)):
        if operation == INSERT:
            parent.insert(max(last, 0), value)  # an index after the end appends the value
        elif operation == REPLACE:
            parent[last] = value
        else:
            del parent[last]
    else:
        raise reader.fail(f"a diff for {last!r}, which the document does not have")
    return document


def _resolved(parent: Node, leg: _Leg) -> str | int:
    """Return the key or the index of the leg in `parent`. The index is negative if it is before the first element."""
    if not isinstance(leg, _FromEnd):
        return leg
    return len(parent) - 1 - leg.back if isinstance(parent, list) else 0


def _child(reader: _Reader, parent: Node, step: _Leg) -> Node:
    leg = _resolved(parent, step)
    if isinstance(parent, dict) and isinstance(leg, str) and leg in parent:
        return parent[leg]
    if isinstance(parent, list) and isinstance(leg, int) and 0 <= leg < len(parent):
        return parent[leg]
    raise reader.fail(f"a diff through {leg!r}, which the document does not have")


def _sort_keys(node: dict[str, Node]) -> None:
    """Sort the keys of an object in the server's order: shorter keys first, then by bytes."""
    ordered = sorted(node.items(), key=lambda item: (len(item[0].encode()), item[0].encode()))
    node.clear()
    node.update(ordered)
