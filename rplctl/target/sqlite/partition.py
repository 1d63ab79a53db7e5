"""SQLite's SQL of what partitions are told apart by (`target.partition`)."""

from __future__ import annotations

from rplctl.schema.model import INTEGER_BITS, Column
from rplctl.target.ddl_parts import quote

_TO_DAYS_OF_JULIAN_DAY = 1721059.5


def value_sql(function: str, column: Column, *, by_columns: bool) -> str | None:
    value, kind = quote(column.name), column.type
    day = f"CAST(julianday(substr({value}, 1, 10)) - {_TO_DAYS_OF_JULIAN_DAY} AS INTEGER)"
    if not function and kind in INTEGER_BITS and not column.is_unsigned_64:
        return value
    if not function and kind in ("date", "datetime") and by_columns:
        return value
    if function == "YEAR" and kind in ("date", "datetime"):
        return f"CAST(substr({value}, 1, 4) AS INTEGER)"
    if function == "TO_DAYS" and kind in ("date", "datetime"):
        return day
    if function == "TO_SECONDS" and kind == "datetime":
        return f"({day} * 86400 + strftime('%s', '1970-01-01 ' || substr({value}, 12, 8)))"
    if function == "UNIX_TIMESTAMP" and kind == "timestamp":
        return f"CAST(strftime('%s', substr({value}, 1, 19)) AS INTEGER)"
    return None
