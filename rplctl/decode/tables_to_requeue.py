"""Find tables that must be added to a copy, because a statement also names tables that are not yet copied.

For example, such a statement is a swap by RENAME (gh-ost, pt-online-schema-change), `CREATE TABLE … LIKE`, or a foreign
key. It cannot be executed while one of its tables is not copied. Invariant: a statement that cannot be parsed adds no
tables. The applier reports the error when it executes the statement.
"""

from __future__ import annotations

import numpy as np

from rplctl.decode.ddl_context import ddl_context
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.decode.row_stream import EventRun
from rplctl.errors import RplError
from rplctl.event.query import parse_query
from rplctl.event.table_map import parse_table_map
from rplctl.event.types import EventType
from rplctl.schema.statement import TableName
from rplctl.schema.updated_names import named_tables


def tables_to_requeue(run: EventRun, rules: ReplicationFilter) -> list[TableName]:
    """Return the tables that must be added to the copy.

    If a statement of the run names a table that is not yet copied, the result has all tables that this statement
    changes. It has only tables that the filters accept, with their names on the target.
    """
    found: dict[TableName, None] = {}
    for number in np.flatnonzero(run.types == EventType.QUERY).tolist():
        query = parse_query(run.event(number), run.description)
        database = rules.rewritten(query.database)
        try:
            context = ddl_context(query, run.description, rules.lower_case)
            updated, referred = named_tables(query.sql, database, context)
        except RplError:
            continue
        if rules.accepts_database(database) and not rules.waiting.isdisjoint((*updated, *referred)):
            found.update((name, None) for name in updated if rules.accepts_rows(*name))
    return list(found)


def default_database(run: EventRun) -> str:
    """Return the default database of the first statement of the run, on the source. Return '' if there is none."""
    for number in np.flatnonzero(run.types == EventType.QUERY).tolist():
        return parse_query(run.event(number), run.description).database
    return ""


def table_at(run: EventRun, number: int, lower_case: int) -> TableName | None:
    """Return the table of a table map, or the table that a CREATE, ALTER or RENAME TABLE creates.

    Return None for any other event.
    """
    if run.types[number] == EventType.TABLE_MAP:
        table_map = parse_table_map(run.event(number), run.description)
        return (table_map.database, table_map.table)
    if run.types[number] != EventType.QUERY:
        return None
    query = parse_query(run.event(number), run.description)
    try:
        names, _ = named_tables(query.sql, query.database, ddl_context(query, run.description, lower_case))
    except RplError:
        return None
    return names[-1] if len(names) in (1, 2) else None
