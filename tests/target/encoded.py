"""Net changes as a task encodes them for a bulk load, made from plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rplctl.event.fields import EncodedText, text_fields
from rplctl.schema.model import TableModel
from rplctl.schema.row_key import key_of
from rplctl.target.base import COPIES, BulkRows, EncodedRows, Row, RowSet, TableChunk
from rplctl.target.registry import value_form


def in_bulk(chunk: TableChunk, model: TableModel, kind: str, *, length_prefixed: bool = False) -> TableChunk:
    """The same chunk, encoded; one whose rows are not all whole stays as it is."""
    length_prefixed = length_prefixed and not any(column.generated for column in model.columns)
    key = key_of(model)
    whole = tuple(range(len(model.columns)))
    full = all(set(rows.columns) | set(key) == set(whole) for rows in chunk.updates)
    if not full or not value_form(kind).encodes((), model) or not all(rows.columns == whole for rows in chunk.inserts):
        return chunk
    gone = key or (*whole, COPIES)
    values_then_key = tuple(c for c in whole if c not in key) + key
    updates = [row for rows in chunk.updates for row in _in_order(rows, key, values_then_key)]
    bulk = BulkRows(
        absent=encoded(key, chunk.absent, model, kind, length_prefixed=length_prefixed),
        deletes=encoded(gone, chunk.deletes, model, kind, length_prefixed=length_prefixed),
        updates=encoded(values_then_key, updates, model, kind, length_prefixed=length_prefixed),
        inserts=encoded(
            whole, [row for rows in chunk.inserts for row in rows.rows], model, kind, length_prefixed=length_prefixed
        ),
    )
    return replace(chunk, absent=[], deletes=[], updates=[], inserts=[], bulk=bulk)


def _in_order(rows: RowSet, key: tuple[int, ...], wanted: tuple[int, ...]) -> list[Row]:
    at = {column: i for i, column in enumerate(rows.columns + key)}
    return [tuple(row[at[column]] for column in wanted) for row in rows.rows]


def encoded(
    columns: tuple[int, ...], rows: Sequence[Row], model: TableModel, kind: str, *, length_prefixed: bool = False
) -> EncodedRows:
    if not rows:
        return EncodedRows(columns, 0, b"")
    fields = []
    for place, column in enumerate(columns):
        if column == COPIES:
            fields.append(text_fields([str(row[place]).encode() for row in rows]))
            continue
        text_of = partial(value_form(kind).field_text, model.columns[column])
        fields.append(text_fields([None if row[place] is None else text_of(row[place]) for row in rows]))
    return EncodedRows(
        columns,
        len(rows),
        b"".join(EncodedText(fields, length_prefixed=length_prefixed)),
        length_prefixed=length_prefixed,
    )
