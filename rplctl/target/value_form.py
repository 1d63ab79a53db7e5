"""The form in which a kind of target takes its values: chosen before decoding, so that no cell is converted twice.

Pure and imported by Spark tasks: a form loads no driver. Each kind has its own (`form` in its folder); the kind travels
with the split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rplctl.event.column import ColumnFormat
from rplctl.schema.model import Column, TableModel
from rplctl.target.base import Value


@dataclass(frozen=True, slots=True)
class ValueForm:
    """`format_for`: how to decode a column; `stored`: what becomes of the decoded values. `keeps_json_types`: JSON
    there has typed values (DECIMAL, DATE, BLOB) that its text does not show; such documents need the event itself.
    `knows_defaults`: it fills in what an INSERT leaves out, generated columns too.
    `describes_itself`: its tables are their own models, and need not be exactly the source's.
    `takes_views`: large bytes may stay where they are.
    `moves_keys`: an update may name columns of the key, and a key may be deleted and inserted in one chunk.
    `counts_rows`: it takes rows of a table without a key by their numbers, as plain values too.
    `encodes`: tasks encode many rows of such columns for the target's bulk load; `field_text` and `takes_bytes` are
    `event.fields.TextForm`'s. `takes_delimited`: also rows that cannot be framed.
    """

    format_for: Callable[[ColumnFormat, Column], ColumnFormat] = lambda fmt, _column: fmt
    stored: Callable[[list[Value]], list[Value]] = lambda values: values
    keeps_json_types: bool = False
    knows_defaults: bool = False
    describes_itself: bool = False
    takes_views: bool = False
    moves_keys: bool = False
    counts_rows: bool = False
    encodes: Callable[[Sequence[ColumnFormat], TableModel], bool] = lambda _formats, _model: False
    field_text: Callable[[Column, Value], bytes] = lambda _column, value: str(value).encode()
    takes_bytes: bool = False
    takes_delimited: bool = True
