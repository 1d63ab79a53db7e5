"""Parse the text of an option's value as mysqld does: sizes with a unit, lists, filter rules.

Invariant: an invalid text gives None or False; the caller names the option in the error.
"""

from __future__ import annotations

_SIZE_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def joined(value: object) -> object:
    """Return a TOML array of texts, or a repeated option, as one text."""
    is_list = isinstance(value, list | tuple) and all(isinstance(part, str) for part in value)
    return ",".join(value) if is_list else value  # type: ignore[arg-type]  # is_list says so


def is_rule(holds: str, rule: str) -> bool:
    """True if `rule` has the parts of a list that `holds` databases, tables, patterns or rewrites."""
    separator = {"databases": "", "rewrites": "->"}.get(holds, ".")
    if not separator:
        return True
    first, _, second = rule.partition(separator)
    return bool(first.strip() and second.strip())


def integer(value: object) -> int | None:
    """Return a number, also from a text such as `64M` (67108864); None for any other value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if not isinstance(value, str) or not value:
        return None
    digits, unit = (value[:-1], value[-1].upper()) if value[-1].upper() in _SIZE_UNITS else (value, "")
    return int(digits) * _SIZE_UNITS.get(unit, 1) if digits.isascii() and digits.isdecimal() else None


def is_clean(text: str) -> bool:
    """True if the text has no control character."""
    return all(ord(c) >= 0x20 and ord(c) != 0x7F for c in text)
