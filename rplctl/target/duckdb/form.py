"""The format of values for DuckDB: text as str, ENUM and SET as labels. `relation` converts them to typed columns.

If there are many rows, they are length-prefixed, and their bytes are unchanged. This format keeps half a surrogate
pair, which is not valid UTF-8, until `relation` refuses the value.
"""

from __future__ import annotations

from typing import Any

from rplctl.schema.model import Column
from rplctl.target.value_form import ValueForm


def _text(_column: Column, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else repr(value).encode("ascii")


FORM = ValueForm(
    moves_keys=True,
    counts_rows=True,
    encodes=lambda _formats, model: not any(column.generated for column in model.columns),
    field_text=_text,
    takes_delimited=False,
)
