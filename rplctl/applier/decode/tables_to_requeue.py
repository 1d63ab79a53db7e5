"""Tables that a statement draws into a copy: it changes them, and names others whose rows are not there yet.

A swap by RENAME (gh-ost, pt-online-schema-change), `CREATE TABLE … LIKE`, a foreign key: none can be carried out while
one of its tables waits to be copied. Invariant: what cannot be read draws nothing in; who carries it out says why.
"""

from __future__ import annotations

import numpy as np

from rplctl.applier.decode.ddl_context import ddl_context
from rplctl.applier.decode.filter_rules import ReplicationFilter
from rplctl.applier.decode.row_stream import EventRun
from rplctl.errors import RplError
from rplctl.event.query import parse_query
from rplctl.event.table_map import parse_table_map
from rplctl.event.types import EventType
from rplctl.schema.statement import TableName
from rplctl.schema.updated_names import named_tables


def tables_to_requeue(run: EventRun, rules: ReplicationFilter) -> list[TableName]:
    """By our names; those that are replicated and do not wait."""
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


def table_at(run: EventRun, number: int, lower_case: int) -> TableName | None:
    """The table of a table map, or of a CREATE, ALTER or RENAME TABLE by the name that it gives; None where the event
    does not tell one table.
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
