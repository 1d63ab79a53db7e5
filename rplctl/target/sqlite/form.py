"""Defines the form in which decoded values are passed to SQLite.

Text is str, ENUM and SET are labels, and integers above 2^63-1 are decimal text.
"""

from __future__ import annotations

from rplctl.target.base import Value
from rplctl.target.sqlite.ddl_type import LARGEST_INTEGER
from rplctl.target.value_form import ValueForm


def storable(values: list[Value]) -> list[Value]:
    """Convert the integers of a column that are above 2^63-1 to decimal text, and leave other values unchanged.

    SQLite's integers end at 2^63-1. A column without a type affinity stores the text exactly.
    """
    kind = next((type(v) for v in values if v is not None), None)  # all values of a column have the same type
    if kind is not int or max(filter(None, values), default=0) <= LARGEST_INTEGER:  # type: ignore[type-var, operator]
        return values
    return [str(v) if v is not None and v > LARGEST_INTEGER else v for v in values]  # type: ignore[operator]


FORM = ValueForm(stored=storable, takes_views=True, moves_keys=True, counts_rows=True)
