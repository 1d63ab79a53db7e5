"""Literals of a statement after SET NAMES binary: the servers store their bytes in the column without conversion."""

from __future__ import annotations

from dataclasses import replace

from rplctl import mysql_errors as er
from rplctl.errors import BY_HAND, RplError
from rplctl.event.charset import ASCII_COMPATIBLE, decode_text, is_utf8
from rplctl.schema.data_type import takes_charset
from rplctl.schema.model import Column


def read_literals(column: Column) -> Column:
    """Return the column with its labels and its default, which were read as UTF-8, in the column's character set.

    Raises RplError 1235 for a literal in a character set that is not compatible with ASCII, or for bytes that are not
    text in the column's character set.
    """
    charset = column.charset
    if not takes_charset(column) or charset is None or charset == "binary" or is_utf8(charset):
        return column
    quoted = column.default is not None and "'" in column.default
    literals = (*column.labels, column.default or "")
    if charset not in ASCII_COMPATIBLE and (quoted or column.labels):
        raise RplError(
            f"column '{column.name}': cannot read a literal of character set '{charset}' after SET NAMES binary",
            errno=er.NOT_SUPPORTED_YET,
            hint=BY_HAND,
        )
    if all(literal.isascii() for literal in literals):
        return column
    labels = tuple(decode_text(label.encode(), charset) for label in column.labels)
    default = column.default and decode_text(column.default.encode(), charset)
    return replace(column, labels=labels, default=default)
