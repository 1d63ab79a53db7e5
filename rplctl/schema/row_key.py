"""Finds the columns that identify a row of a table.

Invariant: the values of these columns are the same for every session of the source, and none of them is NULL.
"""

from __future__ import annotations

from rplctl.schema.generated import columns_by_time_zone
from rplctl.schema.model import Key, TableModel


def key_of(model: TableModel) -> tuple[int, ...]:
    """Return the column indexes of the primary key, else of the first UNIQUE key without nullable columns, else ()."""
    index = {column.name: i for i, column in enumerate(model.columns)}
    for kind in ("primary", "unique"):
        for key in model.keys:
            if key.kind != kind or key.has_expression or any(part.length for part in key.parts):
                continue
            columns = tuple(index[name] for name in key.columns)
            if kind == "primary":
                return columns
            if not any(model.columns[i].nullable for i in columns) and not is_by_time_zone(key, model):
                return columns
    return ()


def is_by_time_zone(key: Key, model: TableModel) -> bool:
    """True if a column of the key has another value in each time zone, so that a target cannot check that it is unique.

    Such columns are those of `columns_by_time_zone`.
    """
    return not {model.columns[i].name for i in columns_by_time_zone(model)}.isdisjoint(key.columns)
