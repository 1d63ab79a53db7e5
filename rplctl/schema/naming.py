"""Names in a target with one namespace for all databases: tables `{database}__{table}`, indexes after them.

Index names are chosen for the strictest target: one that compares names without case and keeps tables and indexes in
one namespace. An index keeps its name when its table or key is renamed (`Key.stored_as`): renaming must not cost a
rebuilt index.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rplctl.schema.model import Key, TableModel


def physical_name(database: str, table: str) -> str:
    return f"{database}__{table}"


def fold(name: str) -> str:
    """Return the name as such a target compares it: ASCII letters without case, all other characters exactly."""
    return name.lower() if name.isascii() else "".join(c.lower() if c.isascii() else c for c in name)


def index_name(model: TableModel, key: Key) -> str:
    return key.stored_as or f"{physical_name(model.database, model.name)}::{key.name}"


def keep_index_names(model: TableModel) -> TableModel:
    """Before a table gets a new name: write down what its indexes are called."""
    keys = (k if k.kind == "primary" else replace(k, stored_as=index_name(model, k)) for k in model.keys)
    return replace(model, keys=tuple(keys))


def choose_index_names(model: TableModel, others: Iterable[TableModel]) -> TableModel:
    """Give new keys whose index name is taken (by a table that was renamed away) another one."""
    # an index under its own table's name cannot be in the way of another table's
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
