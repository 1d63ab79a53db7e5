"""Values for DuckDB: text as str, ENUM and SET as their labels; `relation` makes typed columns of all."""

from __future__ import annotations

from rplctl.target.value_form import ValueForm

FORM = ValueForm(lambda fmt, _column: fmt, lambda values: values, moves_keys=True, counts_rows=True)
