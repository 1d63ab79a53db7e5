"""Converts decoded column values to the text that PostgreSQL reads, for COPY and for parameters.

The module does not import the driver, so that Spark tasks can use it. The text depends on the column's type:

    BIT                  binary digits, as many as the column has bits
    FLOAT, DOUBLE        the shortest digits that restore the same number
    DATE … TIMESTAMP     the source's format (TIMESTAMP in UTC); the zero date is -infinity
    BINARY … VECTOR      \\x and hex
    other types          the source's format

In the text format of COPY, columns are separated by tabs, a row ends with a line feed, and NULL is \\N. Backslash, tab,
line feed and carriage return are escaped (manual of PostgreSQL: COPY, Text Format).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from rplctl import mysql_errors as er
from rplctl.errors import CORRECT_VALUE, OR_EXCLUDE, OTHER_KIND, TargetError
from rplctl.event.large_text import LargeText, checked_text
from rplctl.schema.model import INTEGER_BITS, Column
from rplctl.target.base import Row, Value
from rplctl.target.ddl_parts import is_zero_date
from rplctl.target.postgresql.ddl_type import DATED, ZERO_DATE

LARGEST_HEX = 1 << 20  # bytes; longer values are sent as bytes
LARGEST_PARAMETER = 16 << 20  # characters or bytes; longer values are sent in pieces
MOST_MESSAGE_BYTES = (1 << 30) - (1 << 16)  # PostgreSQL closes the connection after a longer message
ROWS_PER_PIECE = 2000  # rows of COPY text in memory at a time

_UNESCAPED = frozenset({*INTEGER_BITS, "year", "bit", "decimal", "float", "double", "time", "uuid", "inet4", "inet6"})
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


_NO_NUL = "PostgreSQL's text cannot contain the character NUL"
_COPY_HINT = f"{CORRECT_VALUE}{OR_EXCLUDE}"
_NUL_HINT = (
    "to store U+FFFD in the place of each NUL (init changes only this setting), run: "
    "rplctl init --nul-in-text replace; rplctl start"
)
_REPLACEMENT = "\ufffd"
_MAY_BE_NUL = re.compile(rb"\\0")
_NUL = re.compile(rb"((?<!\\)(?:\\\\)*)\\0")  # a NUL as \0 in COPY's text, in which a backslash is doubled


class NulInText(Enum):
    """The treatment of the character NUL, which PostgreSQL's text cannot contain (the option nul_in_text)."""

    STOP = "stop"
    REPLACE = "replace"  # with U+FFFD
    KEEP = "keep"  # for tasks, which do not know the option; `without_nul` then applies it


@dataclass(frozen=True, slots=True)
class LargeBytes:
    """A large value that is sent in the protocol's binary format.

    Hexadecimal digits would need twice the memory, and halve the size of the largest value that PostgreSQL accepts.
    """

    raw: bytes | memoryview | LargeText  # text only if it is longer than LARGEST_PARAMETER


def parameter(value: Value, column: Column, nul: NulInText = NulInText.STOP) -> str | None:
    """Return a column's value as the text of a parameter, or None for NULL.

    PostgreSQL infers the parameter's type from the statement. `nul`: the treatment of NUL characters. Raises
    TargetError if PostgreSQL cannot store the value.
    """
    if value is None:
        return None
    return _storable(_text_of(column)(value), column, nul)


def _storable(text: str, column: Column, nul: NulInText) -> str:
    if "\0" in text and nul is NulInText.REPLACE:
        text = text.replace("\0", _REPLACEMENT)
    if ("\0" in text and nul is NulInText.STOP) or not _is_encodable(text):
        raise _unstorable(text, column)
    return text


def without_nul(lines: Iterable[bytes | memoryview], nul: NulInText) -> Iterator[bytes | memoryview]:
    """Yield the pieces of COPY text in `lines`, with each NUL replaced by U+FFFD if `nul` is REPLACE. Each escape
    sequence must be complete within one piece. Raises TargetError 1366 if there is a NUL and `nul` is not REPLACE.
    """
    for piece in lines:
        if _MAY_BE_NUL.search(piece) is not None and _NUL.search(piece) is not None:
            if nul is not NulInText.REPLACE:
                raise TargetError(_NO_NUL, errno=er.TRUNCATED_WRONG_VALUE_FOR_FIELD, hint=_NUL_HINT)
            piece = _NUL.sub(rb"\1" + _REPLACEMENT.encode(), bytes(piece))
        yield piece


def parameters(
    values: Sequence[Value], columns: Sequence[Column], nul: NulInText = NulInText.STOP
) -> Iterator[str | LargeBytes | None]:
    """Yield the values of a row as parameters: large values as LargeBytes, and others as text (see `parameter`).

    Raises TargetError if PostgreSQL cannot store a value, and TargetError 1153 for a row that is too long for a message
    of the protocol.
    """
    sizes = (len(value) for value in values if isinstance(value, str | bytes | memoryview | LargeText))
    if sum(sizes) > MOST_MESSAGE_BYTES:
        raise TargetError(
            "Got a packet bigger than 'max_allowed_packet' bytes: PostgreSQL accepts only rows of less than 1 GB, and "
            "no setting changes this limit",
            errno=er.NET_PACKET_TOO_LARGE,
            hint=f"{OTHER_KIND}{OR_EXCLUDE}",
        )
    for value, column in zip(values, columns, strict=True):
        if isinstance(value, bytes | memoryview) and len(value) > LARGEST_HEX:
            yield LargeBytes(value)
        elif isinstance(value, LargeText) and len(value) > LARGEST_PARAMETER:
            for piece in value:
                if b"\0" in bytes(piece):
                    value = checked_text(_storable(str(value), column, nul))
                    break
            yield LargeBytes(value)
        else:
            text = parameter(value, column, nul)
            is_large = text is not None and len(text) > LARGEST_PARAMETER
            yield LargeBytes(checked_text(text)) if is_large and text is not None else text


def copy_lines(columns: Sequence[Column], rows: Sequence[Row], nul: NulInText = NulInText.STOP) -> Iterator[bytes]:
    """Yield rows as COPY text, in pieces of ROWS_PER_PIECE rows.

    Raises TargetError 1366 for text that PostgreSQL cannot store.
    """
    for start in range(0, len(rows), ROWS_PER_PIECE):
        piece = rows[start : start + ROWS_PER_PIECE]
        pairs = zip(columns, zip(*piece, strict=True), strict=True)
        cells = [_cells(column, values, nul) for column, values in pairs]
        yield ("\n".join(map("\t".join, zip(*cells, strict=True))) + "\n").encode()


def _cells(column: Column, values: Sequence[Value], nul: NulInText) -> list[str]:
    """Return the escaped values of one column for COPY, one for each row."""
    to_text = _text_of(column)
    texts = ["\\N" if value is None else to_text(value) for value in values]
    if column.type in _UNESCAPED or column.type in DATED:
        return texts
    joined = "".join(texts)
    if "\0" in joined or not _is_encodable(joined):
        texts = [_storable(text, column, nul) for text in texts]
    if "\\" not in joined and not any(c in joined for c in "\t\n\r"):
        return texts
    escaped = zip(values, texts, strict=True)
    return ["\\N" if value is None else text.translate(_ESCAPES) for value, text in escaped]


def _text_of(column: Column) -> Callable[[Value], str]:
    kind = column.type
    if kind == "bit":
        return _bits(column.length or 1)
    if kind in DATED:
        return _date_text
    if kind in ("float", "double"):
        return repr
    return _plain_text


def _plain_text(value: Value) -> str:
    return "\\x" + value.hex() if isinstance(value, bytes | memoryview) else str(value)


def _bits(width: int) -> Callable[[Value], str]:
    def digits(value: Value) -> str:
        assert isinstance(value, int)
        return f"{value:0{width}b}"

    return digits


def _date_text(value: Value) -> str:
    text = str(value)
    return ZERO_DATE if is_zero_date(text) else text


def _is_encodable(text: str) -> bool:
    """True if the text can be encoded in UTF-8.

    A text with half of a surrogate pair, which MySQL's character set ucs2 permits, cannot be encoded.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unstorable(text: str, column: Column) -> TargetError:
    shown = f"Incorrect string value: {text[:40]!r} for column '{column.name}'"
    if "\0" in text:
        return TargetError(f"{shown}: {_NO_NUL}", errno=er.TRUNCATED_WRONG_VALUE_FOR_FIELD, hint=_NUL_HINT)
    return TargetError(
        f"{shown}: PostgreSQL's text cannot contain half a surrogate pair",
        errno=er.TRUNCATED_WRONG_VALUE_FOR_FIELD,
        hint=_COPY_HINT,
    )
