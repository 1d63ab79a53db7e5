"""The temporary tables of the source's sessions that statements have created in the applier's session on the target.

A server keeps them over STOP SLAVE. rplctl loses them at a stop, because the session ends with the process. The applier
then reports their names, so that a later error 1146 has an explanation.
"""

from __future__ import annotations

from contextlib import suppress

from rplctl.errors import RplError
from rplctl.event.query import Query
from rplctl.schema.context import DdlContext
from rplctl.schema.token_stream import TokenStream


class TemporaryTables:
    """The open temporary tables, by the source's session (`thread_id`)."""

    def __init__(self) -> None:
        self._open: set[tuple[int, str]] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The names as database.table, in alphabetical order."""
        return tuple(sorted(name for _, name in self._open))

    def follow(self, query: Query, context: DdlContext) -> None:
        """Take note of CREATE TEMPORARY TABLE and DROP TABLE after the target has executed the statement."""
        if not (query.uses_temporary_tables or self._open):
            return
        with suppress(RplError):  # not a statement about tables
            tokens = TokenStream(query.sql_bytes.decode("latin-1"), context, query.charset)
            is_create = tokens.accept("CREATE")
            if not is_create and not tokens.accept("DROP"):
                return
            tokens.accept("OR REPLACE")
            is_temporary = tokens.accept("TEMPORARY")
            if not tokens.accept_any("TABLE", "TABLES") or (is_create and not is_temporary):
                return
            tokens.accept("IF NOT EXISTS" if is_create else "IF EXISTS")
            while True:
                name = (query.thread_id, ".".join(tokens.table_name(query.database)))
                if is_create:
                    self._open.add(name)
                    return
                self._open.discard(name)
                if not tokens.accept_symbol(","):
                    return
