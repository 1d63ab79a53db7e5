"""Writes SET statements for session variables, and defines the variables of rplctl's own sessions.

Invariant: such a SET statement means the same in every session, because it contains texts as hex.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from rplctl.sql_text import Sql, SqlBytes, as_bytes, joined, utf8_number, word, written

Settings = Mapping[str, Sql]  # session variable → SQL text


literal = utf8_number  # without quotes, whose meaning depends on sql_mode and character_set_client
ON, OFF, DEFAULT = written("1"), written("0"), written("DEFAULT")
_SET, _COMMA = written("SET "), written(", ")

# the variables of rplctl's own session, for row changes and for all other statements of rplctl
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
    """Return one SET statement for all settings. `once`: further assignments as SQL text, which are appended."""
    parts = [part for name, value in settings.items() for part in (_COMMA, _variable(name), value)]
    parts += [part for assignment in once for part in (_COMMA, assignment)]
    return as_bytes(joined("", (_SET, *parts[1:])))


def integer(value: int) -> Sql:
    return written("{}", value)


@cache
def _variable(name: str) -> Sql:
    return written("@@session.{}=", word(name))
