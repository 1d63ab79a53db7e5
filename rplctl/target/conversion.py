"""What ALTER TABLE … MODIFY makes of stored values, as far as it is the same in every kind of target."""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.schema.context import DdlContext
from rplctl.schema.model import BLOB_BYTES, GEOMETRY_TYPES, INTEGER_BITS, TEXT_BYTES, Column

ASCII_CHARSETS = frozenset("ascii latin1 latin2 latin5 latin7 utf8mb3 utf8mb4 cp1250 cp1251 cp1256 cp1257 cp850 cp852 "
                            "cp866 greek hebrew koi8r koi8u macce macroman keybcs2 geostd8 armscii8 tis620 dec8 hp8 "
                            "gbk gb2312 gb18030 big5 euckr ujis eucjpms".split())  # fmt: skip
UTF8_CHARSETS = frozenset({"utf8mb3", "utf8mb4", "ascii"})


@dataclass(frozen=True, slots=True)
class Conversion:
    """`expression` gives the new value; rows for which `impossible` holds cannot be converted, `why` says so."""

    expression: str
    impossible: str = ""
    why: str = ""


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


def integer_range(column: Column) -> tuple[int, int]:
    """Smallest and largest value of an integer or BIT column."""
    if column.type == "bit":
        return 0, (1 << (column.length or 1)) - 1
    bits = INTEGER_BITS[column.type]
    return (0, (1 << bits) - 1) if column.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
