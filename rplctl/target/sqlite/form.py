"""Values for SQLite: text as str, ENUM and SET as their labels; integers past 2^63-1 as text."""

from __future__ import annotations

from rplctl.target.sqlite.values import storable
from rplctl.target.value_form import ValueForm

FORM = ValueForm(lambda fmt, _column: fmt, storable, takes_views=True, moves_keys=True, counts_rows=True)
