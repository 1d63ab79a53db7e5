"""Defines the form in which decoded values are passed to PostgreSQL: text as str, and ENUM and SET as labels.

The module values.py then converts all values to the text that PostgreSQL reads.
"""

from __future__ import annotations

from rplctl.schema.model import Column
from rplctl.target.base import Value
from rplctl.target.postgresql.values import NulInText, parameter
from rplctl.target.value_form import ValueForm


def _text(column: Column, value: Value) -> bytes:
    return (parameter(value, column, NulInText.KEEP) or "").encode()


FORM = ValueForm(
    takes_views=True,
    moves_keys=True,
    encodes=lambda _formats, model: not any(column.generated for column in model.columns),
    field_text=_text,
)
