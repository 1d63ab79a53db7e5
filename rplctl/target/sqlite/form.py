"""Values for SQLite: text as str, ENUM and SET as their labels; integers past 2^63-1 as text."""

from __future__ import annotations

from rplctl.target.base import Value
from rplctl.target.sqlite.ddl_type import LARGEST_INTEGER
from rplctl.target.value_form import ValueForm


def storable(values: list[Value]) -> list[Value]:
    """Integers past SQLite's 64-bit range become their decimal text: exact, in a column without numeric affinity."""
    kind = next((type(v) for v in values if v is not None), None)  # a column has one type
    if kind is not int or max(filter(None, values), default=0) <= LARGEST_INTEGER:  # type: ignore[type-var, operator]
        return values
    return [str(v) if v is not None and v > LARGEST_INTEGER else v for v in values]  # type: ignore[operator]


FORM = ValueForm(stored=storable, takes_views=True, moves_keys=True, counts_rows=True)
