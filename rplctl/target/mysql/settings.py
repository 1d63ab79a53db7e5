"""Session variables as SQL text, and those of our own sessions. Invariant: every session reads a SET of them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Settings = Mapping[str, str]  # session variable → SQL text


def literal(text: str) -> str:
    """Hexadecimal, with its character set: no quote that sql_mode or character_set_client could read otherwise."""
    return f"_utf8mb4 0x{text.encode().hex()}" if text else "''"


# what rows need, and everything we say ourselves
ROWS: dict[str, str] = {
    "sql_mode": literal("NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,STRICT_ALL_TABLES"),
    "time_zone": literal("+00:00"),
    "foreign_key_checks": "1",
    "unique_checks": "1",
    "sql_auto_is_null": "0",
    "character_set_client": "utf8mb4",
    "collation_connection": "utf8mb4_general_ci",
}
LENIENT = {**ROWS, "sql_mode": literal("NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES")}
OWN_CHARSETS = {name: ROWS[name] for name in ("character_set_client", "collation_connection")}


def assignments(settings: Settings, once: Sequence[str] = ()) -> bytes:
    """One SET of all of them."""
    return ("SET " + ", ".join([*(f"@@session.{name}={value}" for name, value in settings.items()), *once])).encode()
