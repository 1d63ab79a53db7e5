"""Repairs rows that differ, while the channel runs: the target's rows become equal to the source's rows.

The source's rows are read at a position L of its log. As in a verify (`resolve`), they are loaded into a temporary
table of the target, which is called the stage. Then rplctl executes one transaction on the target:

    1  lock the row with the channel's position, so that the applier waits before its next commit (design D4)
    2  apply the relay log's changes between L and the channel's position A to the rows in the stage (`log_rows`)
    3  compare the stage with the table; rows that are equal are not changed
    4  write the undo SQL to a durable file
    5  delete extra rows, update the differing columns of different rows, and insert missing rows, in strict mode
    6  COMMIT

A is after L, and the relay log has everything up to A. So a row that changes all the time can be repaired, too. The
source never waits, and the applier waits at most for this transaction. If the log does not show a row at A (DDL,
statements, partial images without a row), the key of this row is tried again.

In mode xa, the target has no row with the position, so the applier cannot be made to wait. Then all keys that were
changed after L are tried again, and a change during the transaction rolls the transaction back.

Invariant: a row is written only while the target is at a position for which the stage has the source's row. So the
applier need not stop. If a repair is killed, each of its transactions is either committed or rolled back. Foreign keys
are not checked, because the source's rows already include their effects. If foreign keys must be checked, the caller
excludes tables whose rows cascade to other tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rplctl import mysql_errors as er
from rplctl.applier.apply.clone_rows import rows_of_images
from rplctl.errors import LockBusy, RplError, TargetError
from rplctl.event.images import Images
from rplctl.failpoint import crash_point
from rplctl.locks import RwLock
from rplctl.sql_text import Sql
from rplctl.target.base import ChangeKind, Row, RowChange, RowSet, Target
from rplctl.target.registry import undo_sql
from rplctl.verify.key_values import Key
from rplctl.verify.log_keys import ChangedKeys
from rplctl.verify.log_rows import NOT_KNOWN, moved_rows
from rplctl.verify.pair import Pair, keys_of_images
from rplctl.verify.report_file import Kind
from rplctl.verify.resolve import Resolver, Unjudged, by_key
from rplctl.verify.shown import shown_statement
from rplctl.verify.source_side import rows_of_keys
from rplctl.verify.undo import NoUndo, UndoFolder, UndoText

if TYPE_CHECKING:
    from sqlalchemy import Connection

AT_ONCE: Final = 1000
_MOST_REFUSED: Final = 20  # after this number of refused rows, the rest of the transaction is postponed
_MOST_TRIES: Final = 50
_BETWEEN_TRIES_S: Final = 0.05
_IN_MOTION: Final = "changed during each attempt; run: rplctl repair"
_BLOCKED: Final = "a row that is not in the report has their value of a unique key; run: rplctl verify"
_OTHER: Final = "no longer as in the report; run: rplctl verify"
_OF_PARENTS: Final = frozenset({er.ROW_IS_REFERENCED_2, er.NO_REFERENCED_ROW_2})
Suspects = Mapping[Key, Kind]
Cells = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the target to repair.

    `row`: the row on the source. It is None if only the target has the row. `columns`: the indexes of the columns that
    differ, if both sides have the row.
    """

    key: Key
    kind: Kind
    row: Row | None
    columns: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class RepairOutcome:
    """The outcome of a repair for one table, in numbers of keys.

    `equal`: the keys that needed no repair. `blocked`: the keys that the target refused, because another row has the
    same values of a unique key. `left`: each reason why keys were not repaired, with the number of these keys.
    `statements`: the first statements, which a dry run shows instead of executing them.
    """

    equal: int = 0
    inserted: int = 0
    deleted: int = 0
    updated: int = 0
    blocked: dict[Key, Kind] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    statements: list[str] = field(default_factory=list)

    def add(self, faults: Sequence[Fault]) -> None:
        kinds = Counter(fault.kind for fault in faults)
        self.inserted += kinds["missing"]
        self.deleted += kinds["extra"]
        self.updated += kinds["different"]


@dataclass(frozen=True, slots=True)
class _Staged:
    """The source's rows that one attempt of a repair uses.

    `rows`: the rows with these `keys`, with the values that the target stores. `changed`: the keys that the relay log
    has changed since these rows were read. `delete_first`: True to delete and insert differing rows instead of updating
    them. `unknown`: the keys whose present rows on the source are not known.
    """

    pair: Pair
    keys: Collection[Key]
    rows: dict[Key, Row]
    changed: ChangedKeys
    delete_first: bool
    unknown: set[Key] = field(default_factory=set)


class _Refused(Exception):
    """The error for a row that the target refuses to write."""

    def __init__(self, key: Key, error: TargetError) -> None:
        super().__init__(error.message)
        self.key, self.error = key, error


class _KeysChanged(Exception):
    """The error if the source has changed a row that this repair has already written."""


@dataclass(frozen=True, slots=True)
class Repairer:
    """The repair of the target's rows, table by table, while the channel runs.

    `target`: a connection without the channel's lock in the target, which the applier has. `hold`: a function that
    locks the position in the target, so that the applier waits; None in mode xa. `lock`: each transaction holds this
    lock in shared mode, so that `rplctl lock-tables` can block the transaction. `dry_run`: None to repair, or the
    number of statements per table to show instead.
    """

    resolver: Resolver
    target: Target
    hold: Callable[[Connection], None] | None
    undo: UndoFolder
    lock: RwLock
    dry_run: int | None = None

    def repair(self, pair: Pair, keys: Suspects, out: RepairOutcome, *, delete_first: bool = False) -> None:
        """Repair the rows with these keys, and add the result to `out`.

        `keys`: each key with its kind of difference in the report. `delete_first`: True to delete and insert differing
        rows instead of updating them. Raises DefinitionChanged if the table's definition has changed, and LockBusy if
        the stored position was removed. Raises SourceError if the source and TargetError if the target reports an
        error, WaitTimeout if the target does not catch up, and NotRunning on STOP.
        """
        for _ in range(self.resolver.rounds):
            if not keys:
                return
            keys = self._round(pair, keys, out, delete_first=delete_first)
        out.left[_IN_MOTION] += len(keys)

    def finish(self, pair: Pair, out: RepairOutcome) -> None:
        """Repair the rows in `out.blocked`, which `repair` could not write because of a duplicate unique key.

        Rows that differ are now deleted first and then inserted. This is repeated as long as it repairs some rows.
        Raises the errors of `repair`.
        """
        while out.blocked:
            before, out.blocked = out.blocked, {}
            names = list(before)
            for at in range(0, len(names), AT_ONCE):
                self.repair(pair, {key: before[key] for key in names[at : at + AT_ONCE]}, out, delete_first=True)
            if len(out.blocked) >= len(before):
                out.left[_BLOCKED] += len(out.blocked)
                out.blocked = {}

    def _round(self, pair: Pair, keys: Suspects, out: RepairOutcome, *, delete_first: bool) -> Suspects:
        """Try once to repair the rows with these keys, and return the keys that must be tried again.

        These are the keys that the source has changed meanwhile, and keys whose present rows are not known.
        """
        images: list[Images] = []

        def rows(locking: Sql) -> Iterator[Images]:
            for some in rows_of_keys(self.resolver.source, pair, list(keys), locking):
                images.append(some)
                yield some

        try:
            with self.resolver.staged(pair, rows, keys) as changed:
                staged = _Staged(pair, keys, source_rows(pair, images, self.target.kind), changed, delete_first)
                if self.resolver.is_unchanging:  # the target's position is before that of the source's rows
                    staged.unknown.update(changed.keys)
                return self._repaired(staged, dict(keys), out)
        except Unjudged:
            return keys

    def _repaired(self, staged: _Staged, left: dict[Key, Kind], out: RepairOutcome) -> Suspects:
        tries = 0
        while left:
            try:
                return self._transact(staged, left, out)
            except _Refused as refused:
                _leave(left, refused, out, puts_off=not staged.delete_first)
            except _KeysChanged:
                pass
            except (LockBusy, TargetError) as error:
                if error.errno in _OF_PARENTS and not error.transient:
                    return self._halves(staged, left, out, error)
                tries += 1
                if not (error.transient or isinstance(error, LockBusy)) or tries > _MOST_TRIES:
                    raise
                self.target.reconnect()
                self.resolver.stopped(_BETWEEN_TRIES_S)
        return {}

    def _halves(self, staged: _Staged, left: dict[Key, Kind], out: RepairOutcome, error: RplError) -> Suspects:
        """Repair the rows in two transactions instead of one, after a foreign key has made the target refuse them.

        This is repeated until a transaction has only one row. This row violates the foreign key, and is counted in
        `out.left` with the error. Return the keys to try again.
        """
        if len(left) == 1:
            out.left[f"{error.message} {error.hint}".strip()] += 1
            return {}
        names = list(left.items())
        middle = len(names) // 2
        parts = dict(names[:middle]), dict(names[middle:])
        return {key: kind for part in parts for key, kind in self._repaired(staged, part, out).items()}

    def _transact(self, staged: _Staged, keys: Suspects, out: RepairOutcome) -> Suspects:
        """Repair the rows in one transaction of the target, and return the keys that must be tried again.

        The source has changed these keys, or their present rows on the source are not known.
        """
        changed = staged.changed
        with self.lock.shared():
            try:
                self.target.begin(foreign_keys=False)
                if self.hold is not None:  # the position cannot move until this transaction ends
                    self.hold(self.target.connection)
                    self._follow(staged)
                ours, theirs = self.resolver.side.read(staged.pair, list(keys))
                if self.hold is None:
                    self.resolver.look(changed)
                    staged.unknown.update(changed.keys)
                again = {key: kind for key, kind in keys.items() if changed.is_all or key in staged.unknown}
                judged = {key: kind for key, kind in keys.items() if key not in again}
                faults, odd = _faults(staged, judged, by_key(ours), by_key(theirs))
                if self.dry_run is not None:
                    self._show(staged.pair, faults, out)
                elif faults:
                    self._write(staged, faults)
                    self.target.commit()
                    crash_point("crash_repair_after_commit")
            finally:
                self.target.rollback()
        out.add(faults)
        out.equal += len(judged) - len(faults) - odd
        if odd:
            out.left[_OTHER] += odd
        return again

    def _show(self, pair: Pair, faults: Iterable[Fault], out: RepairOutcome) -> None:
        """Add the statements that a dry run shows to `out`: DELETE first, then INSERT, then UPDATE."""
        sql, room = undo_sql(self.target.kind), (self.dry_run or 0) - len(out.statements)
        for fault in sorted(faults, key=lambda one: (one.row is not None, bool(one.columns)))[:room]:
            out.statements.append(shown_statement(sql, pair, fault.key, fault.row, fault.columns))

    def _follow(self, staged: _Staged) -> None:
        """Apply the relay log's changes up to the target's position to the source's rows, in `staged` and in the stage.

        The caller has locked the position, so it does not move meanwhile.
        """
        kept = staged.changed.take(self.resolver.look(staged.changed))
        moved = moved_rows(kept, staged.pair, staged.rows, staged.keys)
        if not moved:
            return
        staged.unknown.update(moved)  # until the stage has these rows
        gone = [key for key in moved if staged.rows.pop(key, None) is not None]
        known = {key: row for key, row in moved.items() if row != NOT_KNOWN}
        staged.rows.update((key, row) for key, row in known.items() if row)
        self.resolver.side.restage(staged.pair, gone, [row for row in known.values() if row])
        staged.unknown.difference_update(known)

    def _write(self, staged: _Staged, faults: Sequence[Fault]) -> None:
        """Write the undo SQL to a file, and then the rows to the target, without a COMMIT.

        Raises _Refused if the target refuses a row, and _KeysChanged if the source has changed a written row. If an
        error is raised, the undo file is removed first.
        """
        inserted, deleted, updated = (
            [fault for fault in faults if fault.kind == kind] for kind in ("missing", "extra", "different")
        )
        pair = staged.pair
        undo = UndoText(undo_sql(self.target.kind), self.target, pair)
        replaced, updated = (updated, []) if staged.delete_first else ([], updated)
        try:
            text = undo.of(_keys(inserted), _keys([*deleted, *replaced]), _keys(updated))
        except NoUndo as error:
            raise _Refused(error.key, TargetError(error.why)) from error
        path = self.undo.write(text)
        crash_point("crash_repair_after_undo")
        try:
            for fault in (*deleted, *replaced):
                self._change(pair, fault, ChangeKind.DELETE, ())
            for fault in updated:
                self._change(pair, fault, ChangeKind.UPDATE, fault.columns)
            for fault in (*replaced, *inserted):
                self._change(pair, fault, ChangeKind.INSERT, tuple(range(pair.width)))
            if self.hold is None:
                staged.changed.look()
                if any(fault.key in staged.changed for fault in faults):
                    raise _KeysChanged
        except BaseException:
            self.undo.drop(path)
            raise
        crash_point("crash_repair_before_commit")

    def _change(self, pair: Pair, fault: Fault, kind: ChangeKind, columns: tuple[int, ...]) -> None:
        before = RowSet(pair.key, [fault.key]) if kind is not ChangeKind.INSERT else None
        after = None
        if fault.row is not None and columns:
            after = RowSet(columns, [tuple(fault.row[c] for c in columns)])
        try:
            self.target.apply_change(RowChange(kind=kind, before=before, after=after), pair.target)
        except TargetError as error:
            if error.transient:
                raise
            raise _Refused(fault.key, error) from error


def _leave(left: dict[Key, Kind], refused: _Refused, out: RepairOutcome, *, puts_off: bool) -> None:
    """Move the key of a refused row from `left`, the keys to repair, into `out`.

    A row that was refused because of a duplicate key is moved to `out.blocked`, so that `finish` can repair it later.
    `puts_off`: True to also move all other keys there, whenever another _MOST_REFUSED rows are blocked.
    """
    kind = left.pop(refused.key)
    if refused.error.errno != er.DUP_ENTRY:
        out.left[refused.error.message] += 1
        return
    out.blocked[refused.key] = kind
    if puts_off and len(out.blocked) % _MOST_REFUSED == 0:
        out.blocked.update(left)
        left.clear()


def _faults(
    staged: _Staged, keys: Suspects, wanted: Mapping[Key, list[Cells]], found: Mapping[Key, list[Cells]]
) -> tuple[list[Fault], int]:
    """Return the rows to repair, and the number of keys that are skipped because they no longer match the report.

    `wanted`, `found`: the rows of the source and of the target by their keys. A row is deleted only if the report calls
    it extra.
    """
    faults, odd = [], 0
    for key, kind in keys.items():
        one, other = wanted.get(key, []), found.get(key, [])
        if Counter(one) == Counter(other):
            continue
        if len(one) > 1 or len(other) > 1 or (key not in staged.rows if one else kind != "extra"):
            odd += 1
        elif not one:
            faults.append(Fault(key, "extra", None))
        elif not other:
            faults.append(Fault(key, "missing", staged.rows[key]))
        else:
            columns = tuple(c for c in range(staged.pair.width) if one[0][c] != other[0][c])
            faults.append(Fault(key, "different", staged.rows[key], columns))
    return faults, odd


def source_rows(pair: Pair, images: Sequence[Images], kind: str) -> dict[Key, Row]:
    """Return the source's rows by their keys, with the values that a target of `kind` stores."""
    columns = pair.selected()
    formats, found = [column.format for column in columns], dict[Key, Row]()
    for some in images:
        keys = keys_of_images(some, formats, pair, np.arange(len(some.cell_start)))
        found.update(zip(keys, rows_of_images(some, columns, pair.target, kind).rows, strict=True))
    return found


def _keys(faults: Sequence[Fault]) -> list[Key]:
    return [fault.key for fault in faults]
