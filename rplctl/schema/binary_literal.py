"""Reads the literals of a statement that was executed after SET NAMES binary.

The servers store the bytes of such literals in the column without a conversion.
"""

from __future__ import annotations

import re
from dataclasses import replace

from rplctl import mysql_errors as er
from rplctl.errors import BY_HAND, RplError
from rplctl.event.charset import ASCII_COMPATIBLE, decode_text, is_utf8
from rplctl.schema.data_type import takes_charset
from rplctl.schema.model import Column

# The bytes of one character. MariaDB 10.11 and MySQL 9.7 put zeros before a literal until it has whole characters.
_WIDE = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}
_PLAIN = re.compile(r"'((?:[^'\\]|'')*)'")


def read_literals(column: Column) -> Column:
    """Decode the labels and the default of a column, and return the column with these texts.

    The parser has read the bytes of the literals as UTF-8. This function reads them in the column's character set.
    Raises RplError 1235 if the character set is not compatible with ASCII and the default is not a plain literal.
    Raises the error of `decode_text` if the bytes are not valid in the character set.
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
    """Return the text that the bytes of a literal represent in the character set. `text`: the bytes, read as UTF-8."""
    raw, width = text.encode(), _WIDE.get(charset, 1)
    return decode_text(raw.rjust(-(-len(raw) // width) * width, b"\0"), charset)
