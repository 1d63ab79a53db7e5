"""Decides which statements about objects that the target does not support are skipped (on_unsupported_ddl, design D31).

Invariant: with the default of the option, only statements about objects without rows of their own are skipped. Row
events already contain the changes that triggers, routines and events make, and a view only shows rows. A statement that
changes tables or rows is never skipped here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from enum import StrEnum

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.event.query import Query
from rplctl.mask import masked
from rplctl.schema.context import DdlContext
from rplctl.schema.parse import parse_ddl
from rplctl.schema.plan import Catalog
from rplctl.schema.statement import ObjectKind, Unreplicated, tables_of

_MOST_SHOWN = 200  # characters of a statement


class UnsupportedDdl(StrEnum):
    """The values of the option on_unsupported_ddl. The strictest value is the first."""

    STOP_ALL = "stop_all"
    STOP = "stop"
    SKIP_OBJECTS = "skip_objects"
    SKIP = "skip"

    def skips(self, statement: Unreplicated) -> bool:
        """True if this value of the option skips the statement.

        A DROP of an object that the target does not have is always skipped.
        """
        return statement.kind in SKIPPED_KINDS[self] or (statement.is_drop and statement.kind in NOTED_KINDS)


EFFECTS_ARE_ROWS = frozenset(
    {
        ObjectKind.TRIGGER,
        ObjectKind.PROCEDURE,
        ObjectKind.FUNCTION,
        ObjectKind.PACKAGE,
        ObjectKind.LIBRARY,
        ObjectKind.EVENT,
    }
)
_WITHOUT_ROWS = frozenset({ObjectKind.VIEW, ObjectKind.ACCOUNT})
SKIPPED_KINDS: Mapping[UnsupportedDdl, frozenset[ObjectKind]] = {
    UnsupportedDdl.STOP_ALL: frozenset(),
    UnsupportedDdl.STOP: frozenset({ObjectKind.ACCOUNT}),
    UnsupportedDdl.SKIP_OBJECTS: EFFECTS_ARE_ROWS | _WITHOUT_ROWS,
    UnsupportedDdl.SKIP: frozenset(ObjectKind),
}
NOTED_KINDS = EFFECTS_ARE_ROWS | {ObjectKind.VIEW}  # the history and `check` show these; grants would fill both

_UNKNOWN_TABLE = (er.BAD_TABLE_ERROR, er.NO_SUCH_TABLE)
# errors of a server that does not support the statement, or lacks the object
_REFUSED = frozenset(
    {er.PARSE_ERROR, er.UNKNOWN_COLLATION, er.FUNCTION_NOT_DEFINED, er.SP_DOES_NOT_EXIST, er.NOT_SUPPORTED_YET}
)
_ABSENT = frozenset(
    {er.BAD_TABLE_ERROR, er.UNKNOWN_VIEW, er.SP_DOES_NOT_EXIST, er.TRG_DOES_NOT_EXIST, er.EVENT_DOES_NOT_EXIST}
)


def concerns_no_table(query: Query, context: DdlContext, error: RplError, catalog: Catalog) -> bool:
    """True if the failed statement cannot change rows or columns of the target.

    The value `skip` of the option may then skip it. `catalog`: the tables of the target.
    """
    if error.errno == er.NOT_SUPPORTED_YET:
        return True
    if error.errno not in _UNKNOWN_TABLE:
        return False
    actions = parse_ddl(query.sql, query.database, context)
    return not any(name in catalog.tables for action in actions for name in tables_of(action))


def refused_object(
    query: Query, context: DdlContext, error: RplError, skipped: Collection[tuple[str, str, str]], *, copies: bool
) -> Unreplicated | None:
    """Return the statement if the server does not support it, and if it is about a view, trigger, routine or event.

    `error`: the server's error. `skipped`: the objects whose creation was skipped, as (kind, database, name). A DROP is
    returned only for one of these objects. `copies`: True if tables wait for a copy. Then CREATE VIEW is returned if a
    table of the view does not exist yet. Otherwise, return None.
    """
    with suppress(RplError):
        for action in parse_ddl(query.sql, query.database, context):
            if isinstance(action, Unreplicated) and action.kind in NOTED_KINDS:
                numbers = _REFUSED
                if copies and action.kind is ObjectKind.VIEW:
                    numbers |= {er.NO_SUCH_TABLE}
                if action.is_drop:
                    numbers = _ABSENT if any((action.kind, *name) in skipped for name in action.names) else frozenset()
                if error.errno in numbers:
                    return action
    return None


def cannot_execute(statement: Unreplicated, target: str) -> RplError:
    """Return error 1235 for a statement that the target cannot execute, and that on_unsupported_ddl does not skip.

    `target`: the name of the target's product, for example SQLite.
    """
    value = next(policy for policy in UnsupportedDdl if statement.kind in SKIPPED_KINDS[policy])
    why = "row events already contain" if statement.kind in EFFECTS_ARE_ROWS else "the target then lacks"
    return RplError(
        f"cannot execute {statement.title} on a {target} target: {shown(statement)}",
        errno=er.NOT_SUPPORTED_YET,
        hint=f"to skip such statements, whose effects {why} (init changes only this setting), run: rplctl init "
        f"--on-unsupported-ddl {value}; rplctl start",
    )


def shown(statement: Unreplicated) -> str:
    """Return the beginning of the statement on one line, for a message, without secrets."""
    return " ".join(masked(statement.text)[:_MOST_SHOWN].split())
