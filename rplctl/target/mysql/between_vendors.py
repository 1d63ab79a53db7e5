"""Pairs of column types between which MariaDB and MySQL convert all stored values alike (design D32).

If source and target have different vendors, only these pairs allow MODIFY and CHANGE of columns with values. The tests
in tests/target/mysql compare each pair on servers of both vendors.
"""

from __future__ import annotations

from rplctl.schema.model import Column
from rplctl.target.conversion import type_class

_STRINGS = frozenset({"text", "char", "binary"})
_REAL = frozenset({"float", "double"})
_NUMBERS = _REAL | {"integer", "decimal"}
_DATES = frozenset({"date", "datetime", "timestamp"})
_TIMES = _DATES | {"time"}
# TIME is missing, because the vendors read '2024-01-02T03:04:05' as different times
_OF_TEXT = _STRINGS | _REAL | _DATES | {"decimal", "enum", "json"}
_ALIKE = {
    "integer": _NUMBERS | _STRINGS | {"bit", "year", "enum"},
    "year": _NUMBERS | _STRINGS | {"bit"},
    "decimal": _NUMBERS | _STRINGS,
    "float": _REAL | _STRINGS | {"decimal"},  # MySQL converts a number that is too large to the smallest integer
    "double": _NUMBERS | _STRINGS,
    "bit": frozenset({"integer", "decimal"}),  # for FLOAT and DOUBLE, MariaDB reads 64 bits as a signed number
    "text": _OF_TEXT,
    "char": _OF_TEXT,
    "binary": _REAL | _DATES | {"decimal", "binary"},  # for bytes that are not text, MariaDB stores '?', MySQL ''
    "date": _STRINGS | {"datetime", "timestamp", "integer", "decimal"},
    "time": _STRINGS | {"decimal"},
    "datetime": _STRINGS | _TIMES | {"decimal"},
    "timestamp": _STRINGS | _TIMES | {"decimal"},
    "enum": _STRINGS | {"integer", "decimal"},
    "set": _STRINGS | {"integer", "decimal"},
}
# in a mode that is not strict, MariaDB cuts '1.5' to the integer 1, and MySQL rounds it
_ALIKE_IF_STRICT = {
    "text": frozenset({"integer", "set"}),
    "char": frozenset({"integer", "set"}),
    "binary": frozenset({"integer", "text", "char"}),
}


def converts_alike(old: Column, new: Column, *, is_strict: bool) -> bool:
    """True if MySQL and MariaDB convert every value of the old column to the same new value. `is_strict`: True if the
    source executed the statement in strict mode.
    """
    before, after = type_class(old), type_class(new)
    if before == after or after in _ALIKE.get(before, ()):
        return True
    if after == "integer" and before in _TIMES:
        return not old.fraction_digits  # MariaDB cuts and MySQL rounds, in any sql_mode
    return is_strict and after in _ALIKE_IF_STRICT.get(before, ())
