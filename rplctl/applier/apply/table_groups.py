"""Divides the tables of a batch among several connections, which apply them in parallel (design D24).

Invariant: all tables that foreign keys link form one group. A group belongs to one connection for the whole batch. The
target may link tables in other ways, by a trigger or by a foreign key that the source lacks. Two connections may then
come into conflict. After the first conflict, all tables that the batch has changed are one group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rplctl.schema.plan import Catalog
from rplctl.schema.statement import TableName
from rplctl.target.base import CountMismatch, TableChunk


class ConflictingGroups(CountMismatch):
    """The error if two worker connections were in conflict.

    Their tables are now one group, so the batch may be tried again at once.
    """


class TableGroups:
    """Assigns table groups to `count` connections. The tables of a group are linked by foreign keys.

    The name of one of the tables is also the name of the group.
    """

    def __init__(self, count: int) -> None:
        self._met: list[tuple[TableName, TableName]] = []  # pairs of tables that were in conflict
        self._changed: set[TableName] = set()
        self._catalog: Catalog | None = None
        self._links: dict[TableName, TableName] = {}  # table → another one; the end of such a chain names the group
        self._loads = [0] * count
        self._branches: dict[TableName, int] = {}  # group → branch, in this batch

    def begin(self, catalog: Catalog) -> None:
        """Begin a batch, with the table groups that the catalog's foreign keys form."""
        self._loads = [0] * len(self._loads)
        self._branches.clear()
        self._changed.clear()
        self._follow(catalog)

    @property
    def are_shared(self) -> bool:
        """True if at least two worker connections have received rows of this batch."""
        return len(set(self._branches.values())) > 1

    def join_changed(self) -> list[TableName]:
        """Join all tables that this batch has changed into one group, and return their names.

        The reason is a conflict between connections.
        """
        first, *others = names = sorted(self._changed)
        for other in others:
            self._met.append((first, other))
            self._link(first, other)
        return names

    def are_several(self, chunks: Sequence[TableChunk], least: int) -> bool:
        """True if several connections are worthwhile for these chunks.

        For this, the tables outside of the largest group must have at least `least` rows.
        """
        loads = self._loads_of(chunks)
        return len(loads) > 1 and loads.total() - max(loads.values()) >= least

    def split(self, chunks: Sequence[TableChunk], catalog: Catalog) -> dict[int, list[TableChunk]]:
        """Return the chunks for each connection, in order. A new group gets the connection with the fewest rows.

        Raises ConflictingGroups if a foreign key of a table that is new in the catalog links tables of two connections.
        """
        self._follow(catalog)
        for group, load in self._loads_of(chunks).most_common():
            branch = self._branches.setdefault(group, self._loads.index(min(self._loads)))
            self._loads[branch] += load
        shares: dict[int, list[TableChunk]] = {}
        for chunk in chunks:
            self._changed.add((chunk.database, chunk.table))
            branch = self._branches[self._group(chunk.database, chunk.table)]
            shares.setdefault(branch, []).append(chunk)
        return shares

    def _follow(self, catalog: Catalog) -> None:
        if catalog is self._catalog:
            return
        self._catalog = catalog
        self._links.clear()
        for name, model in catalog.tables.items():
            for key in model.foreign_keys:
                self._link(name, (key.ref_database, key.ref_table))
        for name, other in self._met:
            self._link(name, other)
        before, self._branches = self._branches, {}
        for group, branch in before.items():
            if self._branches.setdefault(self._group(*group), branch) != branch:
                raise ConflictingGroups(f"{'.'.join(group)}: a new table links it with tables of another connection")

    def _loads_of(self, chunks: Sequence[TableChunk]) -> Counter[TableName]:
        loads = Counter[TableName]()
        for chunk in chunks:
            loads[self._group(chunk.database, chunk.table)] += chunk.net_count
        return loads

    def _group(self, database: str, table: str) -> TableName:
        name = (database, table)
        while (link := self._links.get(name, name)) != name:
            name = link
        return name

    def _link(self, name: TableName, other: TableName) -> None:
        group, joined = self._group(*name), self._group(*other)
        if group != joined:
            self._links[joined] = group
