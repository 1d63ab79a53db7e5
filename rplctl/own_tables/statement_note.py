"""The note about a statement with an implicit commit, which rplctl stores in the target before it executes the
statement.

After a crash, the note shows whether the statement was executed (commit/noted.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from sqlalchemy import Connection, Delete, Insert, bindparam, delete, insert, select

from rplctl.own_tables.tables import statement_note, stored_state
from rplctl.position import BinlogPosition
from rplctl.schema.affected import ServerObject
from rplctl.target import mapped_errors
from rplctl.target.base import Definition

Definitions = Mapping[ServerObject, Definition | None]


class NoteState(StrEnum):
    SENT = "sent"  # the statement was sent, so it may have been executed
    DONE = "done"  # exactly the events before `events_done` are committed
    WHOLE = "whole"  # the transaction is committed
    CUT = "cut"  # tables without transactions may have a part of it; `definitions` describes their rows


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementNote:
    """The note about one statement of the source that commits implicitly.

    `before`: the position before the statement's transaction. `executed`: the GTIDs that are executed after this
    transaction. `definitions`: the definitions, before the change, of the objects that the statement changes.
    """

    before: BinlogPosition
    executed: str
    state: NoteState
    events_done: int = 0
    statement_hash: str = ""
    definitions: Definitions = field(default_factory=dict)


def keep_note(connection: Connection, channel: str, note: StatementNote, *, is_first: bool = False) -> None:
    """Store the note in place of the channel's previous one.

    `is_first`: True if the channel has no previous note, so that no DELETE is necessary.
    """
    if not is_first:
        forget_note(connection, channel)
    values = {
        "Channel_name": channel,
        "Master_log_name": note.before.log_name,
        "Master_log_pos": note.before.log_pos,
        "Gtid_executed": note.executed,
        "Events_done": note.events_done,
        "State": note.state.value,
        "Statement_hash": note.statement_hash,
        "Definitions": json.dumps(list(note.definitions.items())),
    }
    with mapped_errors(connection.dialect.name):
        connection.execute(_insert(connection.dialect.name), values)


def kept_note(connection: Connection, channel: str) -> StatementNote | None:
    """Return the channel's note, or None if there is none. Raises TargetError if the note has an unknown state."""
    table = statement_note(connection.dialect.name)
    with mapped_errors(connection.dialect.name):
        row = connection.execute(select(table).where(table.c.Channel_name == channel)).one_or_none()
    if row is None:
        return None
    definitions = {
        ServerObject(*found): None if definition is None else Definition(*definition)
        for found, definition in json.loads(row.Definitions)
    }
    return StatementNote(
        before=BinlogPosition(row.Master_log_name, row.Master_log_pos),
        executed=row.Gtid_executed,
        state=stored_state(NoteState, row.State, table.name),
        events_done=row.Events_done,
        statement_hash=row.Statement_hash,
        definitions=definitions,
    )


def forget_note(connection: Connection, channel: str) -> None:
    with mapped_errors(connection.dialect.name):
        connection.execute(_delete(connection.dialect.name), {"channel": channel})


@cache
def _insert(dialect: str) -> Insert:
    """Return the INSERT statement for a note.

    The statement is cached, because building it for each DDL statement would take as long as executing it.
    """
    return insert(statement_note(dialect))


@cache
def _delete(dialect: str) -> Delete:
    table = statement_note(dialect)
    return delete(table).where(table.c.Channel_name == bindparam("channel"))
