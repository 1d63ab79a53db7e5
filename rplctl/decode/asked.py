"""The request of a program that reads logs: it names the changes that the program needs.

Other changes need not be decoded. Invariant: the request is only a hint. A requested change is never excluded, but more
changes may be decoded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from rplctl.schema.statement import DdlAction, DropDatabase, TableName, tables_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for the changes of some databases, tables and times.

    `since` and `until` are in seconds since 1970, and both are included. If `databases` or `names` is empty, the
    request includes all databases or all table names.
    """

    databases: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    since: float = -math.inf
    until: float = math.inf

    @classmethod
    def table(cls, name: TableName | None) -> Asked:
        """Return a request for all changes of one table. None requests all tables."""
        return cls(databases=frozenset([name[0]]), names=frozenset([name[1]])) if name else cls()

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
        """True if the request includes tables of this database."""
        return not self.databases or database in self.databases

    def concerns(self, names: Sequence[TableName], database: str) -> bool:
        """True if the request includes a statement that names the tables `names`.

        `database` is the current database of the statement. A statement that names no table, or several tables, is also
        included if the request includes all tables of `database`.
        """
        return any(name in self for name in names) or (len(names) != 1 and (database, "") in self)

    def concerns_ddl(self, actions: Sequence[DdlAction], database: str) -> bool:
        """True if the request includes a statement with these actions, by the rules of `concerns`.

        DROP DATABASE concerns all tables of its database.
        """
        if any(isinstance(action, DropDatabase) and self.has_of(action.name) for action in actions):
            return True
        return self.concerns([name for action in actions for name in tables_of(action)], database)
