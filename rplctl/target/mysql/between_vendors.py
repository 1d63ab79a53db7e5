"""Pairs of types between which MariaDB and MySQL convert every stored value alike (design D32).

A MODIFY or CHANGE of the other vendor is executed as it was logged only for these pairs; tests/target/mysql compares
each of them on servers of both vendors.
"""

from __future__ import annotations

from rplctl.schema.model import Column
from rplctl.target.conversion import type_class

_STRINGS = frozenset({"text", "char", "binary"})
_REAL = frozenset({"float", "double"})
_NUMBERS = _REAL | {"integer", "decimal"}
_DATES = frozenset({"date", "datetime", "timestamp"})
_TIMES = _DATES | {"time"}
_OF_TEXT = _STRINGS | _REAL | _DATES | {"decimal", "enum", "json"}  # they read '2024-01-02T03:04:05' as other TIMEs
_ALIKE = {
    "integer": _NUMBERS | _STRINGS | {"bit", "year", "enum"},
    "year": _NUMBERS | _STRINGS | {"bit"},
    "decimal": _NUMBERS | _STRINGS,
    "float": _REAL | _STRINGS | {"decimal"},  # MySQL makes the smallest integer of a number that is too large
    "double": _NUMBERS | _STRINGS,
    "bit": frozenset({"integer", "decimal"}),  # MariaDB takes 64 bits for a signed number where FLOAT or DOUBLE is new
    "text": _OF_TEXT,
    "char": _OF_TEXT,
    "binary": _REAL | _DATES | {"decimal", "binary"},  # of bytes that are not text MariaDB makes '?', MySQL nothing
    "date": _STRINGS | {"datetime", "timestamp", "integer", "decimal"},
    "time": _STRINGS | {"decimal"},
    "datetime": _STRINGS | _TIMES | {"decimal"},
    "timestamp": _STRINGS | _TIMES | {"decimal"},
    "enum": _STRINGS | {"integer", "decimal"},
    "set": _STRINGS | {"integer", "decimal"},
}
# lax, MariaDB cuts '1.5' to the integer 1 and MySQL rounds it
_ALIKE_IF_STRICT = {
    "text": frozenset({"integer", "set"}),
    "char": frozenset({"integer", "set"}),
    "binary": frozenset({"integer", "text", "char"}),
}


def converts_alike(old: Column, new: Column, *, is_strict: bool) -> bool:
    """True if both vendors make the same new value of every value of the old column."""
    before, after = type_class(old), type_class(new)
    if before == after or after in _ALIKE.get(before, ()):
        return True
    if after == "integer" and before in _TIMES:
        return not old.fraction_digits  # MariaDB cuts, MySQL rounds, whatever their sql_mode says
    return is_strict and after in _ALIKE_IF_STRICT.get(before, ())
