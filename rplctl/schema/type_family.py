"""Types that convert alike, and what a CHAR becomes under sql_mode PAD_CHAR_TO_FULL_LENGTH."""

from __future__ import annotations

from rplctl.schema.context import DdlContext
from rplctl.schema.model import BLOB_BYTES, GEOMETRY_TYPES, INTEGER_BITS, TEXT_BYTES, Column


def family(column: Column) -> str:
    """Types that convert alike have one name."""
    kind = column.type
    if kind in INTEGER_BITS:
        return "integer"
    if kind in TEXT_BYTES or kind == "varchar":
        return "text"
    if kind in BLOB_BYTES or kind in ("varbinary", "binary"):
        return "binary"
    return "geometry" if kind in GEOMETRY_TYPES else kind


def keeps_blanks(old: Column, new: Column, context: DdlContext) -> bool:
    """True when the source's rows keep the blanks at the end that fill up their CHAR."""
    return context.pads_char and old.type == "char" and family(new) in ("text", "binary")


def sqlite_padded(old: Column, value: str) -> str:
    """A CHAR's value filled up; a NUL in it ends what SQLite counts."""
    width = old.length or 1
    return f"({value} || substr('{' ' * width}', 1, {width} - length({value})))"
