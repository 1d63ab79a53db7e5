"""Session variables as SQL text, and those of our own sessions. Invariant: every session reads a SET of them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from rplctl.sql_text import Sql, SqlBytes, as_bytes, joined, utf8_number, word, written

Settings = Mapping[str, Sql]  # session variable → SQL text


literal = utf8_number  # no quote that sql_mode or character_set_client could read otherwise
ON, OFF, DEFAULT = written("1"), written("0"), written("DEFAULT")
_SET, _COMMA = written("SET "), written(", ")

# what rows need, and everything we say ourselves
ROWS: dict[str, Sql] = {
    "sql_mode": literal("NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,STRICT_ALL_TABLES"),
    "time_zone": literal("+00:00"),
    "foreign_key_checks": ON,
    "unique_checks": ON,
    "sql_auto_is_null": OFF,
    "character_set_client": written("utf8mb4"),
    "collation_connection": written("utf8mb4_general_ci"),
}
LENIENT = {**ROWS, "sql_mode": literal("NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES")}
OWN_CHARSETS = {name: ROWS[name] for name in ("character_set_client", "collation_connection")}


def assignments(settings: Settings, once: Sequence[Sql] = ()) -> SqlBytes:
    """One SET of all of them."""
    parts = [part for name, value in settings.items() for part in (_COMMA, _variable(name), value)]
    parts += [part for assignment in once for part in (_COMMA, assignment)]
    return as_bytes(joined("", (_SET, *parts[1:])))


def integer(value: int) -> Sql:
    return written("{}", value)


@cache
def _variable(name: str) -> Sql:
    return written("@@session.{}=", word(name))
