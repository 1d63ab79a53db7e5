"""Which keys of a table are made when all of its rows are there: one sort instead of a search for each row.

A key stays where something needs it before: it tells rows apart (`target.base.key_of`), numbers them (AUTO_INCREMENT),
or a foreign key stands on it, on either side. Where tables do not lie in the order of their primary key (PostgreSQL),
it is a key like others: rows are told apart by it only when a snapshot goes on with what another one has brought.
Invariant: a table with its late keys is the table that the source has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from rplctl.schema.model import Key, TableModel


def late_keys(model: TableModel, others: Iterable[TableModel], *, primary: bool = False) -> tuple[Key, ...]:
    """`others`: tables that may refer to it. `primary`: whether a primary key may wait, too; none has to number rows
    then.
    """
    needed = {key.columns[0].casefold() for key in model.foreign_keys}
    if not primary:
        needed |= {column.name.casefold() for column in model.columns if column.auto_increment}
    needed |= {
        key.ref_columns[0].casefold()
        for other in others
        for key in other.foreign_keys
        if (key.ref_database, key.ref_table) == (model.database, model.name)
    }
    kinds = {"index"} if model.primary_key is None else {"index", "unique"}
    return tuple(
        key
        for key in model.keys
        if (key.kind in kinds or (primary and key.kind == "primary" and not any(part.length for part in key.parts)))
        and not key.has_expression
        and key.columns[0].casefold() not in needed
    )


def without(model: TableModel, keys: Collection[Key]) -> TableModel:
    return replace(model, keys=tuple(key for key in model.keys if key not in keys))
