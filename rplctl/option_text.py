"""Parses the texts of option values as mysqld does: sizes with a unit, lists, filter rules.

Invariant: for an invalid text, a function returns None or False. The caller raises the error, which names the option.
"""

from __future__ import annotations

_SIZE_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def joined(value: object) -> object:
    """Return the elements of a TOML array, or the values of a repeated option, as one text with commas.

    Any other value is returned unchanged.
    """
    is_list = isinstance(value, list | tuple) and all(isinstance(part, str) for part in value)
    return ",".join(value) if is_list else value  # type: ignore[arg-type]  # is_list says so


def is_rule(holds: str, rule: str) -> bool:
    """True if one element of a list option has the form that its kind requires.

    `holds`: the kind, which is `databases` (any text), `tables` or `patterns` (A.B), or `rewrites` (A->B).
    """
    separator = {"databases": "", "rewrites": "->"}.get(holds, ".")
    if not separator:
        return True
    first, _, second = rule.partition(separator)
    return bool(first.strip() and second.strip())


def integer(value: object) -> int | None:
    """Return the value of a number or of a text such as `64M` (67108864). Return None for any other value."""
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
