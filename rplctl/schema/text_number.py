"""Text as the DOUBLE or FLOAT that MODIFY makes of it, where the target can tell it to the bit.

Servers read a decimal number, blanks around it, and round once. Invariant: what is no such number (a source without
strict mode took what it began with), or has more digits than the target surely rounds alike, is named by the condition.
"""

from __future__ import annotations

_EXACT_DIGITS = 15  # and their power of ten are both exact doubles: one division rounds as the server does


def sqlite_number(value: str) -> tuple[str, str]:
    """SQL of the number, and of the condition that it cannot be told."""
    body = f"substr(trim({value}, ' '), 1 + (substr(trim({value}, ' '), 1, 1) IN ('+', '-')))"
    bad = (
        f"{body} GLOB '*[^0-9.]*'",
        f"{body} NOT GLOB '*[0-9]*'",
        f"{body} GLOB '*.*.*'",
        f"length(replace({body}, '.', '')) > {_EXACT_DIGITS}",
        f"length(CAST({value} AS BLOB)) <> length({value})",  # a NUL, which ends it for GLOB
    )
    return f"CAST({value} AS REAL)", " OR ".join(bad)


def postgresql_number(value: str, *, is_float: bool) -> tuple[str, str]:
    """As `sqlite_number`; PostgreSQL rounds any number right, and refuses what is out of range."""
    exponent = "" if is_float else "([eE][+-]?[0-9]{1,2})?"
    number = f"^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+){exponent} *$"
    shown = f"{value}::double precision{'::real' if is_float else ''}"
    return f"CASE WHEN {value} ~ '{number}' THEN {shown} END", f"{value} !~ '{number}' OR length({value}) > 36"
