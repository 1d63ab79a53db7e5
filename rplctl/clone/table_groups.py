"""Table groups: tables that foreign keys link, directly or not, which one snapshot must show together.

Cascades of foreign keys are not in the log. Rows of a child and of its parent must therefore be from one position,
after which the applier follows the foreign keys of both tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from rplctl.schema.model import TableModel
from rplctl.schema.statement import TableName

_MOST_BYTES: Final = 1 << 30  # of groups that share a snapshot: the applier waits while they are read
_MOST_TABLES: Final = 200  # of groups that share a snapshot: the applier waits while their definitions are read


def table_groups(models: Mapping[TableName, TableModel]) -> list[list[TableName]]:
    """Return the table groups, in the order of `models`.

    Each table is in one group. A foreign key to a table that is not in `models` links nothing.
    """
    table_group = {name: [name] for name in models}
    for name, model in models.items():
        for parent in _parents(model):
            if parent in table_group and table_group[parent] is not table_group[name]:
                table_group[name] += table_group[parent]
                for member in table_group[parent]:
                    table_group[member] = table_group[name]
    return list({id(members): members for members in table_group.values()}.values())


def together(found: Iterable[list[TableName]], bytes_of: Callable[[TableName], int]) -> Iterator[list[TableName]]:
    """Join small groups, and yield the larger groups. Each snapshot makes the applier wait, so few snapshots are
    better, and the tables of one snapshot are loaded in parallel.

    `bytes_of`: returns the approximate size of a table.
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
    """Return the tables, each after the tables that its foreign keys refer to, as far as these keys form no cycle."""
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
