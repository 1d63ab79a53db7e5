"""Defines how PostgreSQL stores the source's values: declared types, literals, quoted and shortened names.

| MySQL | declared | stored as |
|---|---|---|
| TINYINT, SMALLINT, MEDIUMINT, INT, BIGINT | smallint, smallint, integer, integer, bigint | the number |
| the same UNSIGNED | smallint, integer, integer, bigint, numeric(20,0) | the number |
| YEAR, BIT(n), DECIMAL(p,s) | smallint, bit(n), numeric(p,s) | the number |
| FLOAT, DOUBLE | real, double precision | the number |
| DATE, DATETIME(n), TIMESTAMP(n) | date, timestamp(n), timestamptz(n) | the same; the zero date is -infinity |
| TIME(n) | interval(n) | hours, minutes, seconds, never converted to days |
| CHAR(n), VARCHAR(n) | varchar(n) | UTF-8 |
| TEXT kinds, ENUM, SET | text | UTF-8; labels |
| JSON, UUID, INET4, INET6 | json (the text is unchanged), uuid, inet | the same |
| BINARY, VARBINARY, BLOB, geometries, VECTOR | bytea | bytes |

In MySQL, the zero date is less than every other date, like -infinity here. No other value becomes -infinity.
PostgreSQL cannot store dates with a zero as month or day ('2024-00-07') and NUL characters in text. A row with such a
value stops the channel.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from rplctl import mysql_errors as er
from rplctl.errors import BY_HAND, EXCLUDE, OLD_NAME, OR_EXCLUDE, OTHER_KIND, TargetError
from rplctl.schema.model import BINARY_TYPES, GEOMETRY_TYPES, INTEGER_BITS, Column, Key, TableModel
from rplctl.schema.naming import index_name
from rplctl.schema.value import Value
from rplctl.sql_text import NULL, Sql, number, standard_literal, written
from rplctl.target.ddl_parts import is_zero_date, quote

LONGEST_NAME = 63  # bytes (NAMEDATALEN - 1)
MOST_COLUMNS = 1600
_SYSTEM_COLUMNS = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
ZERO_DATE = written("-infinity")
DATED = frozenset({"date", "datetime", "timestamp"})

_SMALL, _INTEGER, _BIG = written("smallint"), written("integer"), written("bigint")
_INTEGERS = {"tinyint": _SMALL, "smallint": _SMALL, "mediumint": _INTEGER, "int": _INTEGER}
_UNSIGNED = {"tinyint": _SMALL, "smallint": _INTEGER, "mediumint": _INTEGER, "int": _BIG}
_PLAIN = {
    "year": _SMALL, "float": written("real"), "double": written("double precision"), "date": written("date"),
    "json": written("json"), "uuid": written("uuid"), "inet4": written("inet"), "inet6": written("inet"),
}  # fmt: skip
_WITH_FRACTION = {"time": written("interval"), "datetime": written("timestamp"), "timestamp": written("timestamptz")}


def declared(column: Column) -> Sql:
    """Return the type that the column has in PostgreSQL, as in the table of the module."""
    kind, length = column.type, column.length
    if kind in INTEGER_BITS:
        names = _UNSIGNED if column.unsigned else _INTEGERS
        return names.get(kind, written("numeric(20,0)") if column.unsigned else _BIG)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _WITH_FRACTION:
        return written("{}({})", _WITH_FRACTION[kind], column.fraction_digits)
    if kind == "decimal":
        return written("numeric({},{})", length or 10, column.scale or 0)
    if kind == "bit":
        return written("bit({})", length or 1)
    if kind in BINARY_TYPES or kind in GEOMETRY_TYPES or kind == "vector":
        return written("bytea")
    return written("varchar({})", length) if kind in ("char", "varchar") and length else written("text")


def is_odd_date(value: Value, column: Column) -> bool:
    """True if the value is a date that PostgreSQL cannot store, for example '2024-00-07'.

    The zero date is stored as -infinity, so the result for the zero date is False.
    """
    if column.type not in DATED or not isinstance(value, str) or is_zero_date(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return True
    return False


def literal(value: Value, column: Column) -> Sql:
    """Return a value of the column as an SQL literal. Raises TargetError for text that PostgreSQL cannot store."""
    match value:
        case None:
            return NULL
        case bytes():
            return written("{}::bytea", standard_literal(f"\\x{value.hex()}"))
        case str() if column.type in DATED and is_zero_date(value):
            return standard_literal(ZERO_DATE)
        case str():
            return text_literal(value)
        case int() if column.type == "bit":
            return written("B{}", standard_literal(f"{value:0{column.length or 1}b}"))
        case int() | float():
            return number(value)


def text_literal(text: str) -> Sql:
    """Return the text as an SQL string literal, for sessions with standard_conforming_strings=on.

    Raises TargetError 1366 for text with a NUL character.
    """
    if "\0" in text:
        raise TargetError(
            "PostgreSQL's text cannot contain the character NUL, which a statement of the source contains",
            errno=er.TRUNCATED_WRONG_VALUE_FOR_FIELD,
            hint=BY_HAND,
        )
    return standard_literal(text)


def table(model: TableModel) -> Sql:
    """Return the table's quoted name, with the schema."""
    return written("{}.{}", quote(model.database), quote(model.name))


def short_name(name: str) -> str:
    """Return the name of an index or constraint. A name of more than LONGEST_NAME bytes is cut, and a hash is added."""
    raw = name.encode()
    if len(raw) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(raw).hexdigest()[:12]
    return raw[: LONGEST_NAME - 13].decode("utf-8", "ignore") + "~" + digest


def index_of(model: TableModel, key: Key) -> str:
    """Return the unquoted name of the index for a key. The name is unique in its schema, as PostgreSQL requires."""
    return short_name(index_name(model, key))


def check_names(model: TableModel) -> None:
    """Check that PostgreSQL can have the names and the number of columns of the table.

    Raises TargetError 1059 for a name that PostgreSQL would truncate, and 1117 for too many columns. Raises TargetError
    1166 for a column with the name of a system column.
    """
    for name in (model.database, model.name):
        if len(name.encode()) > LONGEST_NAME:
            raise TargetError(
                f"Identifier name '{name}' is too long: PostgreSQL's limit is {LONGEST_NAME} bytes (table "
                f"{model.qualified_name})",
                errno=er.TOO_LONG_IDENT,
                hint=EXCLUDE,
            )
    for column in model.columns:
        if len(column.name.encode()) > LONGEST_NAME:
            raise TargetError(
                f"Identifier name '{column.name}' is too long: PostgreSQL's limit is {LONGEST_NAME} bytes (column of "
                f"{model.qualified_name})",
                errno=er.TOO_LONG_IDENT,
                hint="to copy the table again after you have given the column a shorter name on the source, "
                f"{OLD_NAME}{OR_EXCLUDE}",
            )
    if taken := next((column.name for column in model.columns if column.name in _SYSTEM_COLUMNS), ""):
        raise TargetError(
            f"Incorrect column name '{taken}': every table of PostgreSQL has a system column with this name"
            f" ({model.qualified_name})",
            errno=er.WRONG_COLUMN_NAME,
            hint=f"to copy the table again after you have renamed the column on the source, {OLD_NAME}{OR_EXCLUDE}",
        )
    if len(model.columns) > MOST_COLUMNS:
        raise TargetError(
            f"Too many columns: {model.qualified_name} has {len(model.columns)}, PostgreSQL allows {MOST_COLUMNS}",
            errno=er.TOO_MANY_FIELDS,
            hint=f"{OTHER_KIND}{OR_EXCLUDE}",
        )
