"""Maps MySQL's types to DuckDB's types, and writes literals and quoted names for DuckDB.

| MySQL | declared | stored as |
|---|---|---|
| TINYINT, SMALLINT, MEDIUMINT, INT, BIGINT | TINYINT, SMALLINT, INTEGER, INTEGER, BIGINT | the number |
| the same UNSIGNED | UTINYINT, USMALLINT, UINTEGER, UINTEGER, UBIGINT | the number |
| YEAR, BIT(n) | SMALLINT, UBIGINT | the number |
| DECIMAL(p,s) | DECIMAL(p,s); VARCHAR above 38 digits | the number; its digits |
| FLOAT, DOUBLE | FLOAT, DOUBLE | the number |
| DATE, DATETIME, TIMESTAMP | DATE, TIMESTAMP, TIMESTAMPTZ | the same; the zero date is -infinity |
| TIME | INTERVAL | hours, minutes, seconds, never converted to days |
| CHAR, VARCHAR, TEXT, ENUM, SET, INET4, INET6 | VARCHAR | UTF-8; labels; the printed address |
| JSON, UUID | JSON (the text is unchanged), UUID | the same |
| BINARY, VARBINARY, BLOB, geometries, VECTOR | BLOB | bytes |

DuckDB compares text byte by byte, without the column's collation. So keys that are unique on the source are also unique
here. DuckDB cannot store a date with month or day zero ('2024-00-07'), so a row with such a date stops the channel.
"""

from __future__ import annotations

from datetime import date

from rplctl.schema.model import BINARY_TYPES, GEOMETRY_TYPES, INTEGER_BITS, Column, TableModel
from rplctl.schema.value import Value
from rplctl.sql_text import NOTHING, NULL, Sql, number, word, written
from rplctl.target.ddl_parts import is_zero_date, quote, text_literal
from rplctl.target.dialect import OWN_SCHEMA

CATALOG = "replica"  # the catalog name of the attached file in all connections of rplctl
DATED = frozenset({"date", "datetime", "timestamp"})
ZERO_DATE = written("-infinity")
MOST_DIGITS = 38

_INTEGERS = {"mediumint": written("INTEGER"), "int": written("INTEGER")}
_PLAIN = {
    "year": written("SMALLINT"), "bit": written("UBIGINT"), "float": written("FLOAT"), "double": written("DOUBLE"),
    "date": written("DATE"), "datetime": written("TIMESTAMP"), "timestamp": written("TIMESTAMPTZ"),
    "time": written("INTERVAL"), "json": written("JSON"), "uuid": written("UUID"),
}  # fmt: skip


def declared(column: Column) -> Sql:
    """Return the SQL type that the column has in DuckDB."""
    kind = column.type
    if kind in INTEGER_BITS:
        name = _INTEGERS.get(kind, word(kind.upper()))
        return written("U{}", name) if column.unsigned else name
    if kind == "decimal":
        digits = column.length or 10
        return written("DECIMAL({},{})", digits, column.scale or 0) if digits <= MOST_DIGITS else written("VARCHAR")
    return _PLAIN.get(kind, written("BLOB") if is_binary(column) else written("VARCHAR"))


def is_binary(column: Column) -> bool:
    return column.type in BINARY_TYPES or column.type in GEOMETRY_TYPES or column.type == "vector"


def typed(column: Column, value: Sql, *, is_text: bool = False, tries: bool = False) -> Sql:
    """Return SQL that converts a decoded value to the column's type in DuckDB. `is_text`: True if an operator has
    changed the type of the date column to VARCHAR, which can store all dates. `tries`: True if the SQL returns NULL
    instead of an error for a value that cannot be converted.
    """
    if column.type in DATED:
        zone = written(" || '+00'") if column.type == "timestamp" and not is_text else NOTHING
        value = written(
            "CASE WHEN regexp_full_match({}, '0000-00-00[0:. ]*') THEN {} ELSE {}{} END",
            value,
            text_literal(ZERO_DATE),
            value,
            zone,
        )
    cast = written("TRY_CAST") if tries else written("CAST")
    return written("{}({} AS {})", cast, value, written("VARCHAR") if is_text else declared(column))


def is_odd_date(value: Value, column: Column) -> bool:
    """True if DuckDB cannot store this date, because it is not in the calendar. The zero date is an exception, because
    -infinity represents it.
    """
    if column.type not in DATED or not isinstance(value, str) or is_zero_date(value):
        return False
    try:
        date.fromisoformat(value[:10])
    except ValueError:
        return True
    return False


def literal(value: Value, column: Column) -> Sql:
    """Return a value of the column as an SQL constant. ADD COLUMN needs a constant as default. For any other default,
    DuckDB updates the rows, and then cannot create an index or NOT NULL in the same transaction.
    """
    match value:
        case None:
            return NULL
        case bytes():
            text = text_literal("".join(f"\\x{byte:02X}" for byte in value))
        case str() if column.type in DATED:
            text = text_literal(ZERO_DATE if is_zero_date(value) else value + "+00" * (column.type == "timestamp"))
        case str():
            text = text_literal(value)
        case _:
            text = number(value)
    return written("CAST({} AS {})", text, declared(column))


def table(model: TableModel) -> Sql:
    """Return the table's quoted name with catalog and schema. A model with the database name `rplctl` is a temporary
    table (`compared`); a table of the source cannot have this database name (`ddl`).
    """
    if model.database == OWN_SCHEMA:
        return written("temp.main.{}", quote(model.name))
    return written("{}.{}.{}", quote(CATALOG), quote(model.database), quote(model.name))
