"""Names of tables and indexes for a target that has one namespace for all databases.

Tables are named `{database}__{table}`, and the names of indexes begin with the name of their table. Such a target
compares index names without case, and has the same namespace for tables and indexes. A rename of a table or a key must
not rebuild an index. So the index then keeps its old name in the target (`Key.stored_as`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from rplctl.schema.model import Key, TableModel


def physical_name(database: str, table: str) -> str:
    return f"{database}__{table}"


def fold(name: str) -> str:
    """Return a name in the form in which a target with one namespace compares names.

    ASCII letters are compared without case, and all other characters exactly.
    """
    return name.lower() if name.isascii() else "".join(c.lower() if c.isascii() else c for c in name)


def index_name(model: TableModel, key: Key) -> str:
    return key.stored_as or f"{physical_name(model.database, model.name)}::{key.name}"


def keep_index_names(model: TableModel) -> TableModel:
    """Return the model with the current names of its indexes in `Key.stored_as`, before the table gets a new name."""
    keys = (k if k.kind == "primary" else replace(k, stored_as=index_name(model, k)) for k in model.keys)
    return replace(model, keys=tuple(keys))


def renamed(model: TableModel, database: str, name: str) -> TableModel:
    """Return the model of a table that gets a new name. Names such as `old_ibfk_1`, which servers have generated for
    foreign keys, follow the table's name. The indexes keep their names in the target.
    """
    generated = re.compile(re.escape(model.name) + r"_ibfk_\d+", re.ASCII)
    foreign_keys = tuple(
        replace(key, name=name + key.name[len(model.name) :]) if generated.fullmatch(key.name) else key
        for key in model.foreign_keys
    )
    return replace(keep_index_names(model), database=database, name=name, foreign_keys=foreign_keys)


def choose_index_names(model: TableModel, others: Iterable[TableModel]) -> TableModel:
    """Return the model with index names that no index of another table has.

    Indexes keep their names if their table is renamed. So a new table that gets the old name of a renamed table may
    need other index names. `others`: the models of all other tables.
    """
    # Only names in `stored_as` can conflict: a name that begins with the table's current name is unique.
    taken = {fold(key.stored_as) for other in others for key in other.keys if key.stored_as}
    keys = []
    for key in model.keys:
        plain = name = index_name(model, key)
        number = 1
        while fold(name) in taken:
            number += 1
            name = f"{plain}~{number}"
        taken.add(fold(name))
        keys.append(key if name == plain else replace(key, stored_as=name))
    return replace(model, keys=tuple(keys))
