"""Names in a target with one namespace for all databases (SQLite): tables `{database}__{table}`, indexes after them.

Invariant: two tables never share a name; a collision is an error (design D10). SQLite compares names without case, and
keeps tables and indexes in one namespace. An index keeps its name when its table or key is renamed (`Key.stored_as`):
renaming must not cost a rebuilt index.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rplctl.errors import TargetError
from rplctl.schema.model import Key, TableModel


def physical_name(database: str, table: str) -> str:
    return f"{database}__{table}"


def fold(name: str) -> str:
    """As SQLite compares names: ASCII letters without case, all else exactly."""
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


def check_collisions(models: Iterable[TableModel]) -> None:
    """Raises TargetError when two tables have the same name in the target, or one that SQLite keeps to itself."""
    seen: dict[str, TableModel] = {}
    for model in models:
        name = fold(physical_name(model.database, model.name))
        if name.startswith("sqlite_"):
            raise TargetError(
                f"Table {model.qualified_name} cannot be named '{name}' in SQLite: the prefix is reserved"
            )
        other = seen.setdefault(name, model)
        if other is not model:
            raise TargetError(
                f"Tables {model.qualified_name} and {other.qualified_name} would share the name '{name}' in the target",
                hint=f"leave one out (replicate_ignore_table={model.qualified_name}) or use another kind of target",
            )
