"""What a reader of logs asks for; what it does not ask for need not be decoded.

Invariant: a hint. What is left out is never of a table and a time that are asked for; more than that may be read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from rplctl.schema.statement import DdlAction, DropDatabase, TableName, tables_of


@dataclass(frozen=True, slots=True)
class Asked:
    """Changes of tables in these databases, of these names, of these times (seconds since 1970, both included).

    What is empty asks for all of them.
    """

    databases: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    since: float = -math.inf
    until: float = math.inf

    @classmethod
    def table(cls, name: TableName | None) -> Asked:
        """None: all tables."""
        return cls(frozenset([name[0]]), frozenset([name[1]])) if name else cls()

    def __contains__(self, name: object) -> bool:
        database, table = cast("TableName", name)
        return self.has_of(database) and (not self.names or table in self.names)

    @property
    def all_tables(self) -> bool:
        return not (self.databases or self.names)

    @property
    def any_time(self) -> bool:
        return self.since == -math.inf and self.until == math.inf

    def has_of(self, database: str) -> bool:
        """Whether a table of it may be asked for."""
        return not self.databases or database in self.databases

    def concerns(self, names: Sequence[TableName], database: str) -> bool:
        """Whether a statement that names these tables is asked for; `database`: the one that it ran in, which it is of,
        with no table's name, unless it names one table alone.
        """
        return any(name in self for name in names) or (len(names) != 1 and (database, "") in self)

    def concerns_ddl(self, actions: Sequence[DdlAction], database: str) -> bool:
        """As `concerns`; a database takes its tables along."""
        if any(isinstance(action, DropDatabase) and self.has_of(action.name) for action in actions):
            return True
        return self.concerns([name for action in actions for name in tables_of(action)], database)
