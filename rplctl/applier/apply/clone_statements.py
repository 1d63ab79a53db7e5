"""The DDL that creates the tables of a copy on a server target (MySQL, MariaDB), from the source's own definitions.

Invariant: all old tables of a snapshot are dropped before the first new one is created, because the names of foreign
keys and of CHECK constraints are unique in a database, and an old table may have the names of another new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rplctl.clone.folder import CopiedTable, StoredSnapshot
from rplctl.clone.late_keys import late_keys
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.schema.definition import copied_definition, create_database
from rplctl.schema.model import Key as TableKey
from rplctl.schema.source_catalog import quote
from rplctl.schema.statement import TableName
from rplctl.sql_text import Sql, written


def server_late_keys(table: CopiedTable, found: StoredSnapshot) -> tuple[TableKey, ...]:
    """Return the keys of the table that are created after its rows are loaded."""
    return late_keys(table.model, [other.model for other in found.tables])


def drop_statements(names: Iterable[TableName]) -> list[Sql]:
    return [written("DROP TABLE IF EXISTS {}", quote(*name)) for name in names]


def create_statements(tables: Iterable[CopiedTable], found: StoredSnapshot, rules: ReplicationFilter) -> list[Sql]:
    """Return the statements that create the tables of the snapshot `found` empty, without their late keys."""
    places = [(rules.rewritten(table.model.database), table) for table in tables]
    made = [create_database(replace(table.database, name=database)) for database, table in places]
    made += drop_statements((database, table.model.name) for database, table in places)
    for database, table in places:
        create = copied_definition(table.create, table.model.name).create(server_late_keys(table, found))
        made += [written("USE {}", quote(database)), create]
    return made
