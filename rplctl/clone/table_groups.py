"""Divides tables into table groups. A table group has all tables that foreign keys link, directly or indirectly.

One snapshot must show all tables of a group, because the log does not contain the cascades of foreign keys. So the rows
of a child and of its parent must be from one position. After this position, the applier follows the foreign keys of
both tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from rplctl.schema.model import TableModel
from rplctl.schema.statement import TableName

_MOST_BYTES: Final = 1 << 30  # the limit for groups that share a snapshot, because the applier waits for their rows
_MOST_TABLES: Final = 200  # the same limit in tables, because the applier waits while their definitions are read


def table_groups(models: Mapping[TableName, TableModel]) -> list[list[TableName]]:
    """Divide the tables of `models` into table groups, in the order of `models`.

    Each table is in exactly one group. A foreign key to a table that is not in `models` is ignored.
    """
    table_group = {name: [name] for name in models}
    for name, model in models.items():
        for parent in _parents(model):
            if parent in table_group and table_group[parent] is not table_group[name]:
                table_group[name] += table_group[parent]
                for member in table_group[parent]:
                    table_group[member] = table_group[name]
    return list({id(members): members for members in table_group.values()}.values())


def linked(names: Iterable[TableName], keys: Iterable[tuple[TableName, TableName]]) -> list[TableName]:
    """Return `names`, and all tables that foreign keys link with them, also through other tables.

    `keys`: for each foreign key, its table and the table to which it refers.
    """
    neighbours: dict[TableName, list[TableName]] = {}
    for child, parent in keys:
        neighbours.setdefault(child, []).append(parent)
        neighbours.setdefault(parent, []).append(child)
    found = dict.fromkeys(names)
    waiting = list(found)
    while waiting:
        more = [name for name in neighbours.get(waiting.pop(), ()) if name not in found]
        found.update(dict.fromkeys(more))
        waiting += more
    return list(found)


def together(found: Iterable[list[TableName]], bytes_of: Callable[[TableName], int]) -> Iterator[list[TableName]]:
    """Join small table groups to larger ones, and yield the result, so that the copy needs fewer snapshots.

    The applier waits for each snapshot, and the tables of one snapshot are loaded in parallel. `bytes_of` returns the
    approximate size of a table.
    """
    members: list[TableName] = []
    size = 0
    for table_group in found:
        more = sum(map(bytes_of, table_group))
        if members and (size + more > _MOST_BYTES or len(members) + len(table_group) > _MOST_TABLES):
            yield members
            members, size = [], 0
        members, size = members + table_group, size + more
    if members:
        yield members


def parents_first(models: Mapping[TableName, TableModel]) -> list[TableModel]:
    """Return the tables in an order in which parents come before the children whose foreign keys refer to them.

    In a cycle of foreign keys, one table comes before its parent.
    """
    ordered: dict[TableName, TableModel] = {}

    def add(names: Iterable[TableName], above: frozenset[TableName]) -> None:
        for name in names:
            if name in models and name not in ordered and name not in above:
                add(_parents(models[name]), above | {name})
                ordered[name] = models[name]

    add(models, frozenset())
    return list(ordered.values())


def _parents(model: TableModel) -> list[TableName]:
    return [(key.ref_database, key.ref_table) for key in model.foreign_keys]
