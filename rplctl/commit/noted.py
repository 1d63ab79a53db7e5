"""Ensures that a statement with an implicit commit is executed exactly once, on MySQL and MariaDB targets (D28).

Before such a statement runs, a note about it is committed to the target. The note has the position, a hash of the
statement, and the definitions of all objects that the statement changes. These are the steps, with crash points between
them:
note → COMMIT → the statement, which commits → … → one transaction that moves the position and removes the note.

Invariant: if an applier finds a note at its position after a crash, it compares the definitions in the note with the
current ones:

* The definitions are equal: The applier executes the statement.
* The current definitions differ as the statement changes them: The statement was executed, and only the position moves.
* A table of CREATE OR REPLACE is missing: The applier executes the statement, because a MySQL target receives it as a
  DROP and a CREATE.
* In all other cases, the channel stops and shows the differences.

If the target has answered the statement and the transaction fails later, the note says how many events are committed.
In mode xa, the position is not part of the target's transaction. The note in this transaction then says that the whole
transaction is committed. The note is removed after the position has moved.

In these cases, the definitions do not show the outcome, and the channel stops after a crash:

- A server without atomic DDL (MariaDB before 10.6, MySQL before 8) executed a part of RENAME TABLE.
- A RENAME swaps tables that rplctl cannot distinguish: MyISAM tables created in the same second, partitions without
  InnoDB, and InnoDB tables if the account lacks the privilege PROCESS.
- A statement reorders the columns of a table of MariaDB that was also altered in the second before.
- rplctl cannot parse the statement, or its account may not see the changed objects.
- Statements, or rows that cannot be applied again, change nontransactional tables, and the server does not show that
  the tables are unchanged. Only MyISAM shows this, for tables that were not changed in the same second.

In mode xa, a logged ROLLBACK that is committed together with other transactions has no note. After a crash, its changes
of MyISAM tables may be repeated. Statements that may be executed twice (TRUNCATE, GRANT, ALTER SEQUENCE) have no note
(schema/affected.py).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from enum import Enum

from rplctl import mysql_errors as er
from rplctl.errors import SHOW_TRANSACTION, RplError, TargetError
from rplctl.failpoint import crash_point
from rplctl.info import RelayLogInfo
from rplctl.mask import masked
from rplctl.own_tables.statement_note import (
    Definitions,
    NoteState,
    StatementNote,
    forget_note,
    keep_note,
    kept_note,
)
from rplctl.schema.affected import Affected, DefinitionOutcome, ServerObject
from rplctl.schema.statement import TableName
from rplctl.target.base import StatementTarget

_CLIENT_ERRORS = range(2000, 3000)  # errors of the client library, after which the statement's outcome is unknown
_LONGEST_SHOWN = 200
_HINT = (
    f"{SHOW_TRANSACTION}\n"
    "To skip the whole transaction if the target has all its changes, run: rplctl skip --yes; rplctl start\n"
    "To apply it again after you have undone {} on the target, first run on the target: "
    "DELETE FROM rplctl.rplctl_statement_note WHERE Channel_name='{}'\n"
    "Then, to continue, run: rplctl start"
)
log = logging.getLogger(__name__)


class Decision(Enum):
    """How to continue with a statement that an earlier applier may have executed."""

    EXECUTE = "execute"
    FINISH = "finish"  # execute a DROP of several objects again, for the objects that still exist
    MOVE_ON = "move on"  # the statement was executed
    STOP = "stop"


def decide(affected: Affected, before: Definitions, now: Definitions) -> Decision:
    """Decide how to continue with a statement that an earlier applier may have executed.

    `affected`: the objects that the statement changes, and how. `before`: their definitions in the note. `now`: their
    present definitions in the target.
    """
    if not affected.outcomes or before.keys() != affected.outcomes.keys():
        return Decision.STOP
    if any(definition is not None and definition.text == "?" for definition in (*before.values(), *now.values())):
        return Decision.STOP
    changed = {found for found in before if _differ(found, affected, before, now)}
    if not changed:
        return Decision.STOP if _may_look_alike(affected, before) else Decision.EXECUTE
    if all(_fits(found, affected, before, now, found in changed) for found in before):
        return Decision.MOVE_ON
    if affected.is_drop and all(now[found] is None for found in changed):
        return Decision.FINISH
    if affected.replaces and all(now[found] is None for found in changed):
        return Decision.EXECUTE  # the crash was between its DROP and its CREATE
    return Decision.STOP


def _differ(found: ServerObject, affected: Affected, before: Definitions, now: Definitions) -> bool:
    old, new = before[found], now[found]
    if old is None or new is None:
        return old is not new
    if (old.text, old.identity) != (new.text, new.identity):
        return True
    return affected.may_look_alike and bool(old.altered) and old.altered != new.altered


def _may_look_alike(affected: Affected, before: Definitions) -> bool:
    """True if the definitions may be the same before and after the statement.

    Equal definitions then do not show whether the statement was executed.
    """
    there = [definition for definition in before.values() if definition is not None]
    if affected.may_look_alike:
        return not all(definition.altered for definition in there)
    if affected.wants_identity and not affected.pairs:
        return not all("=" in definition.identity for definition in there)  # "=" precedes InnoDB's table id
    return affected.wants_identity and _renamed(affected, before) == _identities(before)


def _fits(found: ServerObject, affected: Affected, before: Definitions, now: Definitions, is_changed: bool) -> bool:
    if affected.wants_identity and affected.pairs:
        return _renamed(affected, before)[found] == _identities(now)[found]
    match affected.outcomes[found]:
        case DefinitionOutcome.ABSENT:
            return now[found] is None
        case DefinitionOutcome.PRESENT:
            return now[found] is not None
        case DefinitionOutcome.OTHER:
            return now[found] is not None and is_changed
        case DefinitionOutcome.CHANGED:
            return is_changed


def _identities(definitions: Definitions) -> dict[ServerObject, str | None]:
    return {found: None if definition is None else definition.identity for found, definition in definitions.items()}


def _renamed(affected: Affected, before: Definitions) -> dict[ServerObject, str | None]:
    """Return the identity that each name has after the statement RENAME TABLE. A name without an object has None.

    The identity of a table stays the same when the table gets another name (InnoDB's table id, for example).
    """
    found = _identities(before)
    for old, new in affected.pairs:
        found[new], found[old] = found[old], None
    return found


class StatementNotes:
    """The reader and writer of one channel's note, which also executes the statements that need a note.

    `event`: the number of the current event in its transaction, counted from 0. The caller sets it.
    """

    def __init__(self, target: StatementTarget, channel: str, info: RelayLogInfo, *, position_follows: bool) -> None:
        """Remove a note that is not for the position `info`, from which the applier starts.

        `position_follows`: True if the position is stored after the target's transaction, not in it (mode xa).
        """
        self._target = target
        self._channel = channel
        self._position_follows = position_follows
        self._step: tuple[RelayLogInfo, RelayLogInfo] | None = None  # set only inside commit_after
        self._foreign_keys = True
        self._kept: StatementNote | None = None
        self._has_row = False  # True if the target has a note, even of another position
        self._is_known = False  # True if `_kept` and `_has_row` are up to date
        self._answered: int | None = None  # the number of events that are certainly committed; None if unknown
        self.event = 0
        self._forget_old(info)

    def _forget_old(self, info: RelayLogInfo) -> None:
        """Remove a note that is for another position than `info`.

        With GTIDs, positions alone do not decide, because they differ between sources. The note is then removed only if
        `info` has exactly the GTIDs that are executed after the note's transaction.
        """
        with self._target.mapped_errors(), self._target.engine.begin() as connection:
            note = kept_note(connection, self._channel)
            is_elsewhere = note is not None and note.before != info.exec_position
            if note is not None and is_elsewhere and note.executed in ("", info.gtid_executed):
                forget_note(connection, self._channel)

    @property
    def is_whole(self) -> bool:
        """True if the target has committed the whole transaction of the step, but the position has not moved."""
        return self._kept is not None and self._kept.state is NoteState.WHOLE

    @property
    def events_done(self) -> int:
        """The number of events of the current transaction that the target has already committed."""
        return 0 if self._kept is None else self._kept.events_done

    def open(self, before: RelayLogInfo, after: RelayLogInfo, *, foreign_keys: bool) -> None:
        """Begin a step from `before` to `after`, and read the note that an earlier attempt at this step has left.

        The caller has begun the target's transaction that moves the position.
        """
        self._step, self._foreign_keys, self._answered = (before, after), foreign_keys, None
        if not self._is_known:
            note = kept_note(self._target.connection, self._channel)
            self._kept = note if note is not None and is_of(note, before, after) else None
            self._has_row, self._is_known = note is not None, True

    def carry_out(self, sql: bytes, affected: Affected, send: Callable[[bool], None]) -> None:
        """Write the note and execute the statement. If an earlier note shows that it was executed, do neither.

        `send` executes the statement. Its argument is True to execute a DROP again as DROP … IF EXISTS, because only
        some of its objects were dropped before a crash. Raises RplError 1593 if the definitions do not show whether the
        statement was executed. The errors of `send` are also raised.
        """
        if self._step is None:  # not inside commit_after
            return send(False)
        digest = hashlib.sha256(sql).hexdigest()[:32]
        decision = Decision.EXECUTE
        now = self._target.definitions(affected.outcomes, identity=affected.wants_identity)
        if self._kept is not None and self._kept.state is NoteState.SENT:
            decision = self._decide(sql, digest, affected, now)
        else:
            self._keep(NoteState.SENT, self.event, digest, now)
            crash_point("crash_statement_after_note")
        if decision is not Decision.MOVE_ON:
            self._send(send, decision is Decision.FINISH)
            crash_point("crash_statement_after_commit")
        self._answered = self.event + 1

    def begin_nontransactional(self, tables: Collection[TableName]) -> None:
        """Write a note before the first event of a transaction that changes the nontransactional `tables`.

        A crash or a rollback keeps the changes of such tables. Raises RplError 1593 if the note of an earlier applier
        exists, and the target does not show that the tables are unchanged since.
        """
        now, kept = self._target.row_states(tables), self._kept
        if kept is None or (kept.state is NoteState.DONE and not kept.events_done):
            return self._keep(NoteState.CUT, 0, "", now)
        is_reported = all(state is not None and state.altered for state in kept.definitions.values())
        if kept.state is not NoteState.CUT or kept.definitions != now or not is_reported:
            raise RplError(
                "the applier stopped during a transaction that changes nontransactional tables; these tables may "
                f"contain some or all of its changes: {', '.join(f'{database}.{name}' for database, name in tables)}",
                errno=er.SLAVE_FATAL_ERROR,
                hint=_HINT.format("its changes of these tables", self._channel),
            )

    def record_no_change(self) -> None:
        """Record that the transaction has failed before it changed a row of a nontransactional table.

        `failed` then writes to the note that no event is committed.
        """
        if self._answered is None and self._kept is not None and self._kept.state is NoteState.CUT:
            self._answered = 0

    def _decide(self, sql: bytes, digest: str, affected: Affected, now: Definitions) -> Decision:
        assert self._kept is not None
        before = self._kept.definitions
        is_this = (self._kept.events_done, self._kept.statement_hash) == (self.event, digest)
        decision = decide(affected, before, now) if is_this else Decision.STOP
        if decision is Decision.STOP:
            raise self._stop(sql, affected, before, now)
        if decision is Decision.MOVE_ON:
            log.info("the statement was executed before the applier ended, so only the position moves")
        return decision

    def _send(self, send: Callable[[bool], None], is_rest: bool) -> None:
        try:
            send(is_rest)
        except RplError as error:
            if not error.transient and error.errno not in _CLIENT_ERRORS:
                self._answered = self.event
            raise

    def close(self) -> None:
        """Remove the note in the step's last transaction, after all changes.

        In mode xa, the note is not removed. It then says that the whole transaction is committed.
        """
        connection, self._is_known = self._target.connection, False
        if self._position_follows and not self.is_whole:
            self._kept = self._note(NoteState.WHOLE)
            keep_note(connection, self._channel, self._kept)
        elif self._has_row and not self._position_follows:
            forget_note(connection, self._channel)
        self._step = None

    def committed(self) -> None:
        """Remove the note of mode xa after the position has moved."""
        if self._position_follows and self._kept is not None:
            self._in_transaction(lambda: forget_note(self._target.connection, self._channel))
        self._kept, self._has_row, self._is_known = None, False, True

    def failed(self) -> None:
        """Write to the note how many events of a transaction are committed, although its rest is rolled back.

        Called after the rollback. If the target does not answer, the old note remains.
        """
        self._is_known = False
        if self._step is not None and self._answered is not None:
            note = replace(self._note(NoteState.DONE), events_done=self._answered)
            with suppress(TargetError):
                self._in_transaction(lambda: keep_note(self._target.connection, self._channel, note))
        self._step = None

    def _keep(self, state: NoteState, events_done: int, digest: str, definitions: Definitions) -> None:
        """Write a note for the current step, commit it, and begin the next transaction of the target.

        The COMMIT includes all earlier changes of the transaction, which the statement with an implicit commit would
        also commit. The parameters become the fields of the note.
        """
        note, is_first = self._note(state), not self._has_row
        self._has_row = True
        self._kept = replace(note, events_done=events_done, statement_hash=digest, definitions=definitions)
        keep_note(self._target.connection, self._channel, self._kept, is_first=is_first)
        self._target.commit()
        self._target.begin(foreign_keys=self._foreign_keys)

    def _note(self, state: NoteState) -> StatementNote:
        assert self._step is not None
        before, after = self._step
        return StatementNote(before=before.exec_position, executed=after.gtid_executed, state=state)

    def _in_transaction(self, work: Callable[[], None]) -> None:
        self._target.begin(foreign_keys=True)
        try:
            work()
            self._target.commit()
        finally:
            self._target.rollback()

    def _stop(self, sql: bytes, affected: Affected, before: Definitions, now: Definitions) -> RplError:
        said = [f"{found} {_compared(before.get(found), now[found])}" for found in affected.outcomes]
        text = masked(sql.decode("utf-8", "replace"))[:_LONGEST_SHOWN]
        return RplError(
            "the applier stopped while the target executed a statement with an implicit commit, and the definitions do "
            f"not show whether the target executed it ({', '.join(said) or 'the statement cannot be parsed'}): {text}",
            errno=er.SLAVE_FATAL_ERROR,
            hint=_HINT.format("the executed part of the statement", self._channel),
        )


def is_of(note: StatementNote, before: RelayLogInfo, after: RelayLogInfo) -> bool:
    """True if the note is for the step from `before` to `after`.

    The note then has the position of `before`, or the executed GTIDs of `after`. The GTIDs are compared, too, because
    two sources have different positions for one transaction.
    """
    return note.before == before.exec_position or (note.executed or None) == after.gtid_executed


def _compared(before: object, now: object) -> str:
    if before == now:
        return "is as before"
    return "is gone" if now is None else "is new" if before is None else "differs"
