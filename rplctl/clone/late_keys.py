"""Chooses the keys of a table that are created after all rows are loaded.

One sort of all rows then builds the index, which is faster than one search for each row. Three kinds of keys must exist
before the rows are loaded:

* the key that identifies rows (`target.base.key_of`)
* the key of an AUTO_INCREMENT column
* a key that a foreign key needs, in the child or in the parent

Some targets do not store a table in the order of its primary key (PostgreSQL). There, the primary key may also be
created late, except if a snapshot continues an unfinished one. Such a snapshot needs the primary key before, to delete
changed rows. Invariant: with its late keys, the table has all keys of the source's table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from rplctl.schema.model import Key, TableModel


def late_keys(model: TableModel, others: Iterable[TableModel], *, primary: bool = False) -> tuple[Key, ...]:
    """Return the keys of a table that are created after its rows are loaded.

    `others`: the tables whose foreign keys may refer to this table. `primary`: True if the primary key, and a key of an
    AUTO_INCREMENT column, may be created late, too.
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
