"""Writes the changes of a repair as SQL statements that a dry run shows to people.

Long values are cut, and text that a driver returns as bytes is shown as text. So the statements are not for execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rplctl.errors import RplError
from rplctl.event.charset import decode_text
from rplctl.event.large_text import LargeText
from rplctl.schema.model import CHARACTER_TYPES, Column
from rplctl.sql_text import standard_literal, text_literal
from rplctl.target.base import Row
from rplctl.target.undo import UndoSql
from rplctl.verify.key_values import Key
from rplctl.verify.pair import Pair

_LONGEST: Final = 60  # characters of a value


def shown_statement(sql: UndoSql, pair: Pair, key: Key, row: Row | None, changed: Sequence[int]) -> str:
    """Return the statement that repairs the target's row with this key, for people to read.

    It is a DELETE if `row` is None, an UPDATE if `changed` has the indexes of columns, and otherwise an INSERT. `row`:
    the source's row.
    """
    columns, name = pair.target.columns, sql.table(pair.target)

    def terms(numbers: Sequence[int], values: Sequence[Any]) -> list[str]:
        pairs = zip(numbers, values, strict=True)
        return [f"{sql.column(columns[c])} = {_literal(sql, value, columns[c])}" for c, value in pairs]

    where = " AND ".join(terms(pair.key, key))
    if row is None:
        return f"DELETE FROM {name} WHERE {where}"
    if changed:
        return f"UPDATE {name} SET {', '.join(terms(changed, [row[c] for c in changed]))} WHERE {where}"
    own = columns[: pair.width]
    cells = ", ".join(_literal(sql, value, column) for value, column in zip(row, own, strict=True))
    return f"INSERT INTO {name} ({', '.join(map(sql.column, own))}) VALUES ({cells})"


def _literal(sql: UndoSql, value: Any, column: Column) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, LargeText):
        value = bytes(next(iter(value)))[: 4 * _LONGEST].decode("utf-8", "replace")
    if isinstance(value, bytes | memoryview):
        if (text := _text(value, column)) is None:
            return f"x'{_cut(bytes(value[:_LONGEST]).hex())}'"
        value = text
    return text_literal(_cut(value)) if sql.has_backslashes else standard_literal(_cut(value))


def _text(raw: bytes | memoryview, column: Column) -> str | None:
    if column.type not in CHARACTER_TYPES or len(raw) > 1 << 20:
        return None
    try:
        return decode_text(bytes(raw), column.charset or "utf8mb4")
    except RplError:
        return None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
