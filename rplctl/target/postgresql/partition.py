"""PostgreSQL's SQL of what partitions are told apart by (`target.partition`).

Zero dates are -infinity here: TO_DAYS of one is NULL on the source, UNIX_TIMESTAMP 0, and YEAR below all others.
"""

from __future__ import annotations

from rplctl.schema.model import INTEGER_BITS, Column
from rplctl.target.ddl_parts import quote

_FIRST_DAY = 366  # TO_DAYS('0001-01-01')


def value_sql(function: str, column: Column, *, by_columns: bool) -> str | None:
    value, kind = quote(column.name), column.type
    day = f"({value}::date - DATE '0001-01-01' + {_FIRST_DAY})"
    if not function and kind in INTEGER_BITS and not column.is_unsigned_64:
        return value
    if not function and kind in ("date", "datetime") and by_columns:
        return value
    if function == "YEAR" and kind in ("date", "datetime"):
        return f"EXTRACT(year FROM {value})"
    if function == "TO_DAYS" and kind in ("date", "datetime"):
        return f"CASE WHEN isfinite({value}) THEN {day} END"
    if function == "TO_SECONDS" and kind == "datetime":
        second = f"floor(EXTRACT(epoch FROM {value}::time))"
        return f"CASE WHEN isfinite({value}) THEN {day} * 86400::bigint + {second} END"
    if function == "UNIX_TIMESTAMP" and kind == "timestamp":
        return f"CASE WHEN isfinite({value}) THEN floor(EXTRACT(epoch FROM {value})) ELSE 0 END"
    return None
