"""Parses column types, and converts every spelling of MySQL and MariaDB to the type word of SHOW CREATE TABLE.

This module does not set the charset that a column inherits from its table or database, which only plan.py knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from rplctl.schema.context import REAL_AS_FLOAT
from rplctl.schema.model import (
    BLOB_BYTES,
    CHARACTER_TYPES,
    GEOMETRY_TYPES,
    INTEGER_BITS,
    TEMPORAL_TYPES,
    TEXT_BYTES,
    Column,
)
from rplctl.schema.token_stream import TokenStream

_ALIASES = {
    "INTEGER": "int", "INT1": "tinyint", "INT2": "smallint", "INT3": "mediumint", "MIDDLEINT": "mediumint",
    "INT4": "int", "INT8": "bigint", "NUMERIC": "decimal", "DEC": "decimal", "FIXED": "decimal", "FLOAT4": "float",
    "FLOAT8": "double", "CHARACTER": "char", "VARCHARACTER": "varchar", "GEOMCOLLECTION": "geometrycollection",
}  # fmt: skip
_PLAIN = frozenset(
    {*INTEGER_BITS, *TEXT_BYTES, *BLOB_BYTES, *GEOMETRY_TYPES, "decimal", "float", "double", "bit", "year", "char"}
    | {"varchar", "binary", "varbinary", "enum", "set", "json", "date", "time", "datetime", "timestamp"}
    | {"inet4", "inet6", "uuid", "vector"}
)
_AS_BINARY = {"char": "binary", "varchar": "varbinary", "tinytext": "tinyblob", "text": "blob"} | {
    "mediumtext": "mediumblob",
    "longtext": "longblob",
}
_DISPLAY_WIDTH = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10, "bigint": 20}  # for ZEROFILL without a width
BYTES_OF_A_CHARACTER = {"utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4, "gb18030": 4, "utf8mb3": 3, "utf8": 3,
                        "ujis": 3, "eucjpms": 3, "ucs2": 2, "gbk": 2, "gb2312": 2, "big5": 2, "sjis": 2,
                        "cp932": 2, "euckr": 2}  # fmt: skip


DECIMAL_LIMITS: Final = "65 digits, 38 of them after the point"  # MariaDB's limits; those of MySQL are 65 and 30


def fits_decimal(precision: int, scale: int) -> bool:
    """True if a MySQL or MariaDB server can have a DECIMAL column with this precision and scale."""
    return 0 <= precision <= 65 and 0 <= scale <= 38


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedType:
    """A column that has only its name and type so far.

    `is_serial` and `is_mariadb_json` are True for the spellings SERIAL and MariaDB's JSON, which also imply a
    constraint.
    """

    column: Column
    is_serial: bool = False
    is_mariadb_json: bool = False


def parse_data_type(tokens: TokenStream, name: str) -> ParsedType:
    """Parse a type with its attributes (UNSIGNED, ZEROFILL, CHARACTER SET …) for the column `name`.

    Raises RplError for an unknown type.
    """
    if tokens.accept("SERIAL"):
        return ParsedType(
            column=Column(name=name, type="bigint", unsigned=True, nullable=False, auto_increment=True), is_serial=True
        )
    type_word, column_charset = _type_word(tokens)
    column = Column(name=name, type=type_word, charset=column_charset)
    if type_word in ("enum", "set"):
        column = replace(column, labels=_labels(tokens))
    elif type_word == "boolean":
        column = replace(column, type="tinyint", length=1)
    elif tokens.is_symbol("("):
        column = _with_length(tokens, column)
    if type_word == "decimal" and not fits_decimal(column.length or 0, column.scale or 0):
        tokens.refuse(
            f"decimal({column.length},{column.scale or 0}) exceeds the limits of MySQL and MariaDB: {DECIMAL_LIMITS}"
        )
    column = _with_attributes(tokens, column)
    if type_word == "json" and tokens.context.is_mariadb:
        column = replace(column, type="longtext", charset="utf8mb4", collation=column.collation or "utf8mb4_bin")
        return ParsedType(column=column, is_mariadb_json=True)
    return ParsedType(column=normalize(column))


def _type_word(tokens: TokenStream) -> tuple[str, str | None]:
    """Return the normalized type word, and the charset that the spelling implies (as NCHAR does), or None."""
    national = "utf8mb3" if tokens.accept("NATIONAL") else None
    word = tokens.original(tokens.next()).upper()
    match word:
        case "NCHAR" | "NVARCHAR":
            national = "utf8mb3"
            word = word[1:]
        case "BOOL" | "BOOLEAN":
            return "boolean", None
        case "LONG":
            if tokens.accept("VARBINARY"):
                return "mediumblob", None
            _ = tokens.accept("VARCHAR") or tokens.accept("CHAR VARYING") or tokens.accept("VARCHARACTER")
            return "mediumtext", None
        case "DOUBLE":
            tokens.accept("PRECISION")
        case "REAL":
            word = "FLOAT" if tokens.context.sql_mode & REAL_AS_FLOAT else "DOUBLE"
    word = _ALIASES.get(word, word.lower())
    if word == "char" and tokens.accept("VARYING"):
        word = "varchar"
    if national:
        word = "varchar" if tokens.accept("VARCHAR") or tokens.accept("VARCHARACTER") else word
    if word not in _PLAIN:
        tokens.refuse(f"rplctl does not know the column type '{word}'")
    return word, national


def _labels(tokens: TokenStream) -> tuple[str, ...]:
    return tuple(label.rstrip(" ") for label in tokens.in_parentheses(tokens.string))  # as the server does


def _with_length(tokens: TokenStream, column: Column) -> Column:
    tokens.expect_symbol("(")
    length = tokens.integer()
    scale = tokens.integer() if tokens.accept_symbol(",") else None
    tokens.expect_symbol(")")
    return replace(column, length=length, scale=scale)


def _with_attributes(tokens: TokenStream, column: Column) -> Column:
    while True:
        if tokens.accept("UNSIGNED"):
            column = replace(column, unsigned=True)
        elif tokens.accept("SIGNED"):
            column = replace(column, unsigned=False)
        elif tokens.accept("ZEROFILL"):
            column = replace(column, unsigned=True, zerofill=True)
        elif tokens.accept("COMPRESSED"):  # MariaDB's attribute, perhaps with a method, has no effect on the model
            if tokens.accept_symbol("="):
                tokens.next()
        elif tokens.accept("ASCII"):
            column = replace(column, charset="latin1")
        elif tokens.accept("UNICODE"):
            column = replace(column, charset="ucs2")
        elif tokens.accept("BYTE"):
            column = replace(column, charset="binary")
        elif tokens.accept("BINARY"):
            column = replace(column, collation="_bin")  # the charset is not known yet; structure.py adds it later
        elif (charset := accept_charset(tokens)) is not None:
            column = replace(column, charset=charset)
        elif (collation := accept_collation(tokens)) is not None:
            column = replace(column, collation=collation, charset=column.charset or charset_of(collation))
        else:
            return column


def accept_charset(tokens: TokenStream) -> str | None:
    """Parse `CHARACTER SET x` or `CHARSET = x`, and return the name in lower case, or None if no such clause comes
    next.

    The result for DEFAULT is 'default', and for utf8 it is 'utf8mb3'.
    """
    if not (tokens.accept("CHARACTER SET") or tokens.accept("CHARSET") or tokens.accept("CHAR SET")):
        return None
    tokens.accept_symbol("=")
    name = (tokens.string() if tokens.token.kind == "string" else tokens.identifier()).lower()
    return "utf8mb3" if name == "utf8" else name


def accept_collation(tokens: TokenStream) -> str | None:
    if not tokens.accept("COLLATE"):
        return None
    tokens.accept_symbol("=")
    name = (tokens.string() if tokens.token.kind == "string" else tokens.identifier()).lower()
    return "utf8mb3" + name.removeprefix("utf8") if name.startswith("utf8_") else name


def charset_of(collation: str) -> str | None:
    """Return the charset of a collation: latin1 for `latin1_swedish_ci`.

    Return None if the name does not show the charset. Examples are `uca1400_ai_ci`, and the collation of the attribute
    BINARY.
    """
    if collation.startswith(("uca1400_", "_")):
        return None
    return collation.partition("_")[0]


_WIDE = {"varchar": "text", "varbinary": "blob"}


def normalize(column: Column) -> Column:
    """Return the column with the type that the server would store.

    This applies default lengths, FLOAT(p), sizes of TEXT(n), and binary types for the charset binary.
    """
    kind, length = column.type, column.length
    if column.charset == "binary" and kind in _AS_BINARY:
        column = replace(column, type=_AS_BINARY[kind], charset=None, collation=None)
        kind = column.type
    if kind in ("char", "binary", "bit") and length is None:
        return replace(column, length=1)
    if kind == "decimal":
        return replace(column, length=10 if length is None else length or 10, scale=column.scale or 0)
    if kind == "float" and length is not None and column.scale is None:
        return replace(column, type="double" if length > 24 else "float", length=None)
    if (kind == "year" and length != 2) or (kind in TEMPORAL_TYPES and not length):
        return replace(column, length=None)
    if length is not None and kind in _WIDE and (kind == "varbinary" or column.charset is not None):
        wide = replace(column, type=_WIDE[kind])
        # Servers do this without strict mode.
        return _sized_blob(wide) if _bytes_of(wide) > BLOB_BYTES["blob"] else column
    if length is not None and (kind == "blob" or (kind == "text" and column.charset is not None)):
        return _sized_blob(column)
    if kind == "vector" and length is None:
        return replace(column, length=2048)
    if column.zerofill and kind in _DISPLAY_WIDTH and length is None:
        return replace(column, length=_DISPLAY_WIDTH[kind])
    return column


def _sized_blob(column: Column) -> Column:
    """Return the column with the smallest TEXT or BLOB type that has room for its length, as in TEXT(100) or
    BLOB(100).
    """
    sizes = TEXT_BYTES if column.type == "text" else BLOB_BYTES
    chosen = next((kind for kind, size in sizes.items() if _bytes_of(column) <= size), list(sizes)[-1])
    return replace(column, type=chosen, length=None)


def _bytes_of(column: Column) -> int:
    return (column.length or 65535) * BYTES_OF_A_CHARACTER.get(column.charset or "", 1)


def takes_charset(column: Column) -> bool:
    return column.type in CHARACTER_TYPES
