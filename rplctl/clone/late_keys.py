"""The keys of a table that are created after all of its rows are loaded: one sort instead of a search for each row.

A key is created early if it identifies rows (`target.base.key_of`), numbers them (AUTO_INCREMENT), or a foreign key
needs it, on either side. If tables are not stored in the order of their primary key (PostgreSQL), the primary key may
be late, too: it identifies rows only when a snapshot continues another one. Invariant: a table with its late keys
equals the source's table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from rplctl.schema.model import Key, TableModel


def late_keys(model: TableModel, others: Iterable[TableModel], *, primary: bool = False) -> tuple[Key, ...]:
    """Return the keys of a table that are created after its rows are loaded. `others`: tables whose foreign keys may
    refer to it.

    `primary`: True if a primary key may be late. A key of an AUTO_INCREMENT column may then be late, too.
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
