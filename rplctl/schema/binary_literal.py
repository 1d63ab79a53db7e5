"""Reads literals of a statement after SET NAMES binary: the servers store their bytes in the column without
conversion.
"""

from __future__ import annotations

import re
from dataclasses import replace

from rplctl import mysql_errors as er
from rplctl.errors import BY_HAND, RplError
from rplctl.event.charset import ASCII_COMPATIBLE, decode_text, is_utf8
from rplctl.schema.data_type import takes_charset
from rplctl.schema.model import Column

# The bytes of a character: MariaDB 10.11 and MySQL 9.7 put zeros in front of a literal until it has whole characters
_WIDE = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}
_PLAIN = re.compile(r"'((?:[^'\\]|'')*)'")


def read_literals(column: Column) -> Column:
    """Return the column with its labels and its default read in the column's character set. They were read as UTF-8
    before.

    Raises RplError 1235 for a default that is not a plain literal, in a character set that is not compatible with
    ASCII; for bytes that are not text in the column's character set, the error of the character set.
    """
    charset = column.charset
    if not takes_charset(column) or charset is None or charset == "binary" or is_utf8(charset):
        return column
    default = column.default
    if charset not in ASCII_COMPATIBLE and default is not None and "'" in default:
        match = _PLAIN.fullmatch(default)
        text = _decoded(match[1].replace("''", "'"), charset) if match is not None else "\\"
        if "\\" in text:
            raise RplError(
                f"column '{column.name}': cannot read a literal of character set '{charset}' after SET NAMES binary",
                errno=er.NOT_SUPPORTED_YET,
                hint=BY_HAND,
            )
        default = "'{}'".format(text.replace("'", "''"))
    elif default is not None and not default.isascii():
        default = _decoded(default, charset)
    return replace(column, labels=tuple(_decoded(label, charset) for label in column.labels), default=default)


def _decoded(text: str, charset: str) -> str:
    """Return the text that a literal's bytes are in the character set."""
    raw, width = text.encode(), _WIDE.get(charset, 1)
    return decode_text(raw.rjust(-(-len(raw) // width) * width, b"\0"), charset)
