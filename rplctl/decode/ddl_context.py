"""Describe the session that executed a statement on the source, so that the DDL in the statement can be parsed."""

from __future__ import annotations

from typing import Any

from rplctl.event.charset import charset_of
from rplctl.event.events import Query
from rplctl.event.format_description import FormatDescription
from rplctl.event.table_map import BINARY_COLLATION
from rplctl.schema.context import DdlContext


def ddl_context(query: Query, description: FormatDescription, lower_case_table_names: int) -> DdlContext:
    """Return the session that executed a statement, from the status variables of its event.

    The event does not have lower_case_table_names, so this value is an argument.
    """
    session = query.context
    known: dict[str, Any] = {
        "sql_mode": session.sql_mode,
        "charset": charset_of(session.server_collation) if session.server_collation else None,
        "time_zone": session.time_zone,
    }
    source = DdlContext(server_version=description.server_version)
    explicit = session.has_explicit_defaults(is_mariadb=source.is_mariadb, version=source.version_number)
    increment, offset = session.auto_increment or (1, 1)
    return DdlContext(
        **{name: value for name, value in known.items() if value is not None},
        server_version=description.server_version,
        explicit_defaults_for_timestamp=explicit,
        timestamp=query.timestamp,
        system_zone=description.system_zone,
        microseconds=session.microseconds,
        auto_increment_increment=increment,
        auto_increment_offset=offset,
        lower_case_table_names=lower_case_table_names,
        error_code=query.error_code,
        has_binary_literals=session.connection_collation == BINARY_COLLATION,
    )
