"""Decides which errors the applier may skip: `replica_exec_mode=IDEMPOTENT` and `replica_skip_errors` (MySQL manual).

IDEMPOTENT concerns single rows. A row that already exists is overwritten. A row that is missing is skipped, and so is a
row that a foreign key refuses. An error that replica_skip_errors lists skips the rest of its event: the statement, or
all rows after the row that failed. Invariant: some errors are never skipped. These are errors that may not occur in
another attempt (locks, connections), and damage of the log. Each skipped error is counted with its position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from rplctl import mysql_errors as er
from rplctl.config import Config
from rplctl.errors import DifferentErrors, LockBusy, RelayLogError, RplError, TargetError, error_numbers
from rplctl.event.json import text_of_57
from rplctl.schema.model import TableModel
from rplctl.schema.row_key import key_of
from rplctl.sql_run import run
from rplctl.sql_text import written
from rplctl.target import dialect_of
from rplctl.target.base import ChangeKind, RowChange, RowSet, Target

# A changed record, duplicate keys, a missing row, foreign keys in both directions, and duplicates by foreign keys
IDEMPOTENT_ERRORS = frozenset(
    {
        er.CHECKREAD,
        er.DUP_KEY,
        er.KEY_NOT_FOUND,
        er.DUP_ENTRY,
        er.DUP_UNIQUE,
        er.ROW_IS_REFERENCED_2,
        er.NO_REFERENCED_ROW_2,
        er.FOREIGN_DUPLICATE_KEY,
        er.FOREIGN_DUPLICATE_KEY_WITH_CHILD_INFO,
        er.FOREIGN_DUPLICATE_KEY_WITHOUT_CHILD_INFO,
    }
)
DUPLICATE = frozenset({er.DUP_KEY, er.DUP_ENTRY, er.DUP_UNIQUE})
SHOWN = 10  # most messages per batch; other errors are only counted


@dataclass(slots=True)
class PassedOver:
    """Counts the errors and statements that were skipped in one transaction of the target."""

    errors: Counter[int] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)
    statements: int = 0  # skipped because the target cannot execute them (on_unsupported_ddl); these are not errors

    def add(self, error: RplError, at: str) -> None:
        self.errors[error.errno] += 1
        if len(self.messages) < SHOWN:
            self.messages.append(f"ignored at {error.position or at}: {error.message} ({error.errno})")

    @property
    def count(self) -> int:
        return self.errors.total() + self.statements

    def summary(self) -> str:
        parts = ", ".join(f"{errno}: {count}" for errno, count in sorted(self.errors.items()))
        count = self.errors.total()
        return f"{count} errors ignored in this batch ({parts}): the target differs from the source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The rules for errors that may be skipped.

    `idempotent`: True for replica_exec_mode=IDEMPOTENT. `ddl_is_idempotent`: True for replica_ddl_exec_mode=IDEMPOTENT.
    `ignored`: the error numbers of replica_skip_errors, or None for all errors. `again`: True if a crash may have left
    some of the rows on the target.
    """

    idempotent: bool = False
    ddl_is_idempotent: bool = False
    ignored: frozenset[int] | None = frozenset()
    again: bool = False  # True if rows may already be applied (own_tables/group_begun.py)

    @classmethod
    def from_config(cls, config: Config) -> Tolerance:
        return cls(
            idempotent=config.replica_exec_mode == "IDEMPOTENT",
            ddl_is_idempotent=config.replica_ddl_exec_mode == "IDEMPOTENT",
            ignored=error_numbers(config.replica_skip_errors),
        )

    def drops_missing(self, *, is_mariadb: bool) -> bool:
        """True if DROP TABLE skips tables that do not exist, and drops the others.

        `is_mariadb`: True if the source is MariaDB. The result is also True if replica_skip_errors lists 1051, so that
        a DROP TABLE of several tables always drops those that exist.
        """
        return (self.ddl_is_idempotent and is_mariadb) or self.ignored is None or er.BAD_TABLE_ERROR in self.ignored

    @property
    def is_strict(self) -> bool:
        return not self.idempotent and self.ignored == frozenset()

    def ignores(self, error: RplError) -> bool:
        """True if replica_skip_errors lists this error, so that the rest of the failed event is skipped."""
        if error.transient or isinstance(error, RelayLogError | LockBusy):
            return False
        numbers = error.numbers if isinstance(error, DifferentErrors) else {error.errno}
        return self.ignored is None or not self.ignored.isdisjoint(numbers)

    def apply_row(self, target: Target, change: RowChange, model: TableModel) -> TargetError | None:
        """Apply one change. Return the error that IDEMPOTENT mode has tolerated, or None if there was none.

        If an error is returned, the row was overwritten or skipped.
        """
        if self.again:
            self._apply_again(target, change, model)
            return None
        if self.is_strict:
            _apply(target, change, model)
            return None
        try:
            self._try(target, change, model)
        except TargetError as error:
            if not self.idempotent or error.errno not in IDEMPOTENT_ERRORS:
                raise
            if change.kind is ChangeKind.INSERT and error.errno in DUPLICATE:
                self._overwrite(target, change, model)
            return error
        return None

    def _apply_again(self, target: Target, change: RowChange, model: TableModel) -> None:
        """Apply a change that may already have been applied before a crash, together with later changes.

        Afterwards, the row is as it was after the change on the source, and no other row has its keys. If the row moves
        to another key, one row is deleted and one is inserted.
        """
        try:
            return _apply(target, change, model)
        except TargetError as error:
            if error.errno not in {er.KEY_NOT_FOUND, *DUPLICATE}:
                raise
            is_missing = error.errno == er.KEY_NOT_FOUND
        if change.after is None:
            return None
        if change.before is not None and not is_missing:
            _apply(target, RowChange(kind=ChangeKind.DELETE, before=change.before, after=None), model)
        return self._overwrite(target, RowChange(kind=ChangeKind.INSERT, before=None, after=change.after), model)

    def _try(self, target: Target, change: RowChange, model: TableModel) -> None:
        with undone_on_error(target, wanted=dialect_of(target.kind).error_ends_transaction):
            _apply(target, change, model)

    def _overwrite(self, target: Target, change: RowChange, model: TableModel) -> None:
        """Replace all rows that have one of the new row's unique keys.

        Columns that only the target has keep their values. Raises TargetError 1062 if the row image does not identify
        these rows, because a key is over expressions or prefixes.
        """
        assert change.after is not None
        for image in _unique_images(change.after, model):
            try:
                return self._try(target, RowChange(kind=ChangeKind.UPDATE, before=image, after=change.after), model)
            except TargetError as error:
                if error.errno == er.KEY_NOT_FOUND:
                    continue
                if error.errno not in DUPLICATE:
                    raise
            self._try(target, RowChange(kind=ChangeKind.DELETE, before=image, after=None), model)
        self._try(target, change, model)


def _apply(target: Target, change: RowChange, model: TableModel) -> None:
    """Apply the change. If a row without a key is not found, search once more, with JSON as MySQL 5.7 prints it.

    A table that was loaded from a dump of MySQL 5.7 has JSON in this form. MySQL's own replicas find such a row, too.
    """
    try:
        target.apply_change(change, model)
    except TargetError as error:
        loaded = _as_loaded(change, model) if error.errno == er.KEY_NOT_FOUND else change
        if loaded == change:
            raise
        try:
            target.apply_change(loaded, model)
        except TargetError as still:
            raise (error if still.errno == er.KEY_NOT_FOUND else still) from None


def _as_loaded(change: RowChange, model: TableModel) -> RowChange:
    if change.before is None or key_of(model):
        return change
    (row,), columns = change.before.rows, change.before.columns
    kinds = [model.columns[c].type for c in columns]
    values = tuple(text_of_57(v) if k == "json" and isinstance(v, str) else v for k, v in zip(kinds, row, strict=True))
    return replace(change, before=RowSet(columns, [values]))


def _unique_images(row: RowSet, model: TableModel) -> Iterator[RowSet]:
    """Yield, for each unique key of the row, the key's columns with their values.

    The key that identifies rows comes first. A key with a NULL matches no row, so it is not yielded.
    """
    index = {column.name: i for i, column in enumerate(model.columns)}
    at = {column: i for i, column in enumerate(row.columns)}
    keys = [key_of(model)]
    for key in model.keys:
        if key.kind in ("primary", "unique") and not key.has_expression and not any(p.length for p in key.parts):
            keys.append(tuple(index[part.column] for part in key.parts))
    for columns in dict.fromkeys(keys):
        if columns and all(column in at for column in columns):
            values = tuple(row.rows[0][at[column]] for column in columns)
            if None not in values:
                yield RowSet(columns, [values])


@contextmanager
def undone_on_error(target: Target, *, wanted: bool) -> Iterator[None]:
    """Run the block, in a savepoint if `wanted`.

    If the block fails and its error is skipped, the savepoint ensures that no part of its work remains.
    """
    if not wanted:
        yield
        return
    run(target.connection, written("SAVEPOINT rplctl_step"))
    try:
        yield
    except RplError:
        run(target.connection, written("ROLLBACK TO SAVEPOINT rplctl_step"))
        raise
    finally:
        run(target.connection, written("RELEASE SAVEPOINT rplctl_step"))
