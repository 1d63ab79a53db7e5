"""The interface of a target database: transactions, net changes in bulk, single row changes, and DDL.

Invariant (design D2): nothing is upserted. Every change expects a state of the target (INSERT: the key is absent,
UPDATE and DELETE: exactly one row). If the target differs, bulk changes raise `CountMismatch`, and the applier then
applies one source transaction at a time; a single change raises TargetError with MySQL's errno, table and key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from rplctl import mysql_errors as er
from rplctl.errors import LockBusy, TargetError
from rplctl.event.large_text import LargeText
from rplctl.schema.model import TableModel
from rplctl.sql_text import Sql
from rplctl.system_zone import SystemZone

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from rplctl.event.events import Intvar, Rand, UserVar
    from rplctl.event.format_description import FormatDescription
    from rplctl.event.query import ExecuteLoadQuery, Query
    from rplctl.schema.affected import ServerObject
    from rplctl.schema.context import DdlContext
    from rplctl.schema.plan import Catalog, DdlPlan

Value = int | float | str | bytes | memoryview | LargeText | None  # memoryview and LargeText refer to a file
Row = tuple[Value, ...]

COPIES = -1  # stands for a column that counts equal rows (TableChunk.deletes of a table without a key)
_MOST_SHOWN = 64  # characters of a value that an error's position shows


@contextlib.contextmanager
def committed(target: Target) -> Iterator[None]:
    """Run the block as one transaction without foreign key checks; an exception rolls the transaction back."""
    target.begin(foreign_keys=False)
    try:
        yield
    except BaseException:
        target.rollback()
        raise
    target.commit()


class ChangeKind(IntEnum):
    INSERT = 1
    UPDATE = 2
    DELETE = 3


class CountMismatch(Exception):
    """The error if a bulk statement changed an unexpected number of rows. It never leaves the applier."""


def expect_rows(what: str, found: int, expected: int) -> None:
    """Raise CountMismatch with the text `what` unless `found` rows are `expected` rows."""
    if found != expected:
        raise CountMismatch(f"{what}: {found} rows, expected {expected}")


class KeylessMismatch(CountMismatch):
    """A CountMismatch in a table without a key. The changes may fit if they are applied one by one, in their order."""

    def __init__(self, database: str, table: str, reason: object = "") -> None:
        super().__init__(f"rows of {database}.{table}, which has no key: {reason}")
        self.table = (database, table)


@dataclass(frozen=True, slots=True)
class RowSet:
    """Rows with values of the same columns. `columns` are indexes into the table's columns, in the order of values."""

    columns: tuple[int, ...]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One change of one row. An image has the columns that the source logged (MINIMAL and NOBLOB omit some)."""

    kind: ChangeKind
    before: RowSet | None  # one row
    after: RowSet | None  # one row


class LazyBytes(Protocol):
    """Bytes that are computed while they are written."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[memoryview]: ...


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows as text, delimited or length-prefixed (`event.fields`). `columns` is as in RowSet; in updates the key is
    last. `text` may be Pieces. `keys`: 8 bytes for each row that a later change may overwrite, or no bytes.
    """

    columns: tuple[int, ...]
    count: int
    text: bytes | memoryview | LazyBytes
    keys: bytes = b""
    length_prefixed: bool = False

    def __len__(self) -> int:
        return self.count

    @property
    def view(self) -> memoryview:
        assert isinstance(self.text, bytes | memoryview)
        return memoryview(self.text)

    @property
    def pieces(self) -> Iterable[bytes | memoryview]:
        return (self.text,) if isinstance(self.text, bytes | memoryview) else self.text


@dataclass(frozen=True, slots=True)
class BulkRows:
    """The encoded net changes of a table with a key; they replace the lists of a TableChunk. All rows are complete."""

    absent: EncodedRows
    deletes: EncodedRows
    updates: EncodedRows
    inserts: EncodedRows

    @property
    def parts(self) -> tuple[EncodedRows, EncodedRows, EncodedRows, EncodedRows]:
        return self.absent, self.deletes, self.updates, self.inserts


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChunk:
    """Net changes of one table in a part of a batch, with the state that each change expects of the target (D2).

    Table with a key: `absent` are keys that must be absent and remain so; `deletes` are keys of rows that must exist;
    `updates` set columns of rows that must exist (RowSet.columns names the columns, the key's values follow in each
    row); `inserts` are rows whose key must be absent. Table without a key: `deletes` has each complete row once,
    followed by the number of copies to delete (COPIES); `inserts` repeats equal rows; or `ordered` has single changes.
    `bulk`: many rows that the task encoded; the lists are then empty. `has_views`: values may be memoryview and
    LargeText. `width`: number of columns of the source's table if the target's may differ, else 0.
    """

    database: str
    table: str
    absent: list[Row] = field(default_factory=list)
    deletes: list[Row] = field(default_factory=list)
    updates: list[RowSet] = field(default_factory=list)
    inserts: list[RowSet] = field(default_factory=list)
    ordered: list[RowChange] = field(default_factory=list)
    change_count: int  # row changes of the source that this chunk represents
    foreign_keys_off: bool  # some of the changes ran under foreign_key_checks=0
    cascades_logged: bool = False  # the source also logged the changes of foreign key actions (MySQL 9.6)
    bulk: BulkRows | None = None
    width: int = 0
    has_views: bool = False
    by_spark: bool = False  # a Spark task decoded the chunk

    def takes_copies(self, model: TableModel) -> bool:
        """True if the chunk deletes rows of a table without a key by the number of their copies."""
        return bool(self.deletes or (self.bulk is not None and self.bulk.deletes.count)) and not key_of(model)

    @property
    def net_count(self) -> int:
        """The number of rows that the target receives."""
        sets = (rows.rows for rows in self.updates + self.inserts)
        encoded = self.bulk.parts if self.bulk is not None else ()
        return sum(map(len, (self.absent, self.deletes, self.ordered, *sets, *encoded)))


class Target(Protocol):
    """A connection to a target database, for one thread at a time. An error of the target is a TargetError."""

    kind: str  # the kind's name in the registry
    bulk_rows: int  # a table with at least so many net changes is sent encoded (`TableChunk.bulk`); 0: never
    takes_frames: bool  # encoded rows are length-prefixed, except for long rows
    engine: Engine

    @property
    def connection(self) -> Connection:
        """The connection that holds the open transaction; repositories write through it."""

    def mapped_errors(self) -> contextlib.AbstractContextManager[None]: ...  # as in `Dialect`

    def begin(self, *, foreign_keys: bool) -> None:
        """Start a transaction. `foreign_keys=False` stands for the source's foreign_key_checks=0."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def fence(self, channel: str) -> None:
        """Lock the channel on the target until the connection ends (design D4). Raises LockBusy if it is locked."""

    def reconnect(self) -> None:
        """Discard the connection after an error with an unknown outcome; the next use opens a new connection."""

    def lock_wait(self) -> str: ...  # which lock of another session a statement waits for; called from another thread

    def interrupt(self) -> None:
        """Make the running statement fail, without waiting. Another thread calls this. The caller then rolls back."""

    def abort(self) -> None:
        """End the connections as if this process had died, so that waiting calls fail. Another thread calls this."""

    def is_idle(self) -> bool:
        """True if, after `interrupt` and `rollback`, the changes are undone and their locks are released."""

    def check_table(self, model: TableModel) -> None:
        """Check the table's columns. Raises TargetError 1146 for a missing table, 1677 for a missing column."""

    def takes_multisets(self, model: TableModel) -> bool:
        """True if equal rows of the keyless table are interchangeable: no column, trigger or foreign key that only the
        target has would lose something if a row is deleted and inserted again.
        """

    def apply_chunks(self, chunks: Sequence[TableChunk], models: Mapping[tuple[str, str], TableModel]) -> None:
        """Apply the net changes of all chunks: first the deletes, then the updates, then the inserts.

        Raises CountMismatch or KeylessMismatch if the target's rows are not as expected.
        """

    def apply_change(self, change: RowChange, model: TableModel) -> None:
        """Apply one change to exactly one row. Raises TargetError 1062 (duplicate), 1032 (no row), 1452 (no parent)."""

    def stored_value(self, image: RowSet, column: int, model: TableModel) -> Value:
        """Return `column` of the row that the image identifies. Raises TargetError 1032 if there is no such row."""

    def execute_ddl(self, plan: DdlPlan, catalog: Catalog) -> None:
        """Execute a parsed DDL statement in the open transaction."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SourceStatement:
    """A statement of the source with everything on which the statement depends.

    `variables`: its INTVAR, RAND and USER_VAR events. `file`: the contents that LOAD DATA reads. `server_version` and
    `system_zone` are the source's. `drops_missing`: DROP TABLE ignores tables that are missing on the target.
    """

    query: Query | ExecuteLoadQuery
    variables: tuple[Intvar | Rand | UserVar, ...]
    file: tuple[bytes, ...]
    server_version: str
    drops_missing: bool = False
    system_zone: SystemZone | None = None


class Definition(NamedTuple):
    """An object as a server reports it. `text`: a digest of the definition without its name; '?' if it is not visible.
    `identity`: an id that a rename keeps, or ''. `altered`: the time of the last change, or ''.
    """

    text: str
    identity: str = ""
    altered: str = ""


class StatementTarget(Target, Protocol):
    """A MySQL or MariaDB server, which executes the source's statements and reports its own tables (D10, D11)."""

    def run_statement(self, statement: SourceStatement) -> Sequence[str]:
        """Execute the statement; return notes on missing features. Raises errors that the source did not have."""

    def is_ddl(self, query: Query, context: DdlContext) -> bool:
        """True if the statement, as the source executed it, may do more than change rows; such a statement commits."""

    def definitions(self, objects: Iterable[ServerObject], *, identity: bool) -> dict[ServerObject, Definition | None]:
        """Return the objects' current definitions; None for a missing object. `identity`: True to set all fields."""

    def row_states(self, tables: Iterable[tuple[str, str]]) -> dict[ServerObject, Definition | None]:
        """Return the state of the tables' rows; `altered` is '' if the server does not report the last change."""

    def make_tables(self, statements: Sequence[Sql]) -> None:
        """Execute DDL that SHOW CREATE TABLE printed under sql_mode='', in a session of its own. A collation that only
        the source's vendor has is replaced by the target's nearest one.
        """

    def judge_primary_keys(self, policy: str) -> None:
        """Apply the policy REQUIRE_TABLE_PRIMARY_KEY_CHECK to all later statements. Raises TargetError 1235 if the
        server does not support it.
        """

    def roll_back_to(self, savepoint: str) -> None:
        """Roll back to the savepoint, or to the last commit if DDL has committed and removed the savepoint."""

    def check_foreign_keys(self, wanted: bool) -> None:
        """Turn the check of foreign keys on or off for the next row changes of this transaction."""

    def introduce(self, description: FormatDescription) -> None:
        """Send the source's FORMAT_DESCRIPTION, before a transaction that may call `replay_rows`."""

    def can_replay(self, description: FormatDescription) -> bool:
        """True if the server accepts events with this description: those of its own vendor and, on MySQL, those for
        which `introduce` was called.
        """

    def replay_rows(self, table_map: bytes, rows: bytes, description: FormatDescription) -> None:
        """Apply a rows event as the server's own applier does, without firing triggers."""

    def table_model(self, database: str, table: str) -> TableModel | None:
        """Return the current definition of the table; None if the table does not exist."""

    def wants_replay(self, model: TableModel) -> bool:
        """True if only the server can apply the table's rows: the table has triggers or keeps its own history."""

    def prefers_replay(self, model: TableModel) -> bool:
        """True if the server itself applies some rows more exactly: JSON as text loses types such as DECIMAL."""

    def is_transactional(self, model: TableModel) -> bool: ...

    def may_also_change(self, named: Collection[TableModel], statement: bytes) -> frozenset[tuple[str, str]]:
        """Return the further nontransactional tables that the statement may change; all of them if `named` is empty."""

    def cascading_parents(self) -> frozenset[tuple[str, str]]:
        """Return the tables that a foreign key with an action references: changing them changes other rows."""


class TwoPhaseTarget(Target, Protocol):
    """A target that can prepare a transaction, and later commit or roll it back by name (WL#3970)."""

    loads_prepared: bool  # `bulk_rows` also applies to transactions that will be prepared

    def begin(self, *, foreign_keys: bool, xid: str = "") -> None:
        """Start a transaction as Target.begin does; with `xid`, it can later be prepared under this name."""

    def prepare(self) -> None:
        """Prepare the transaction. It then outlives the connection until it is committed or rolled back."""


class TwoPhaseVerbs(Protocol):
    """The operations of two-phase commit besides those of TwoPhaseTarget (the `two_phase` module of a kind)."""

    def prepared_xids(self, engine: Engine, prefix: str) -> list[str]: ...

    def end_prepared(self, engine: Engine, verb: str, xid: str) -> None:
        """Commit or roll back (`verb`) a prepared transaction, unless it has already ended."""

    def check(self, engine: Engine, option: str, branches: int = 1) -> list[str]:
        """Return the settings of this server that weaken two-phase commit. With several `branches`, the server's own
        log has all decisions in order, flushed or not. Raises ConfigError if the server cannot support `option`.
        """

    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        """Limit the wait for locks in the open transaction, and perhaps in later ones of the connection."""

    def claim(self, connection: Connection, prefix: str) -> None:
        """Mark the connection as this instance's, outside of a transaction, so that a later start can terminate it.
        Raises LockBusy if another connection has the mark.
        """

    def terminate_sessions(self, engine: Engine, prefix: str) -> None:
        """Terminate a predecessor's connection and wait for its end. The caller holds the channel's lock on this host,
        so no other process of this instance is running. Raises LockBusy if the connection does not end in time.
        """


@runtime_checkable
class ForeignKeyTarget(Protocol):
    """A target that can execute foreign key actions for some changes of a transaction and not for others."""

    def follow_foreign_keys(self, wanted: bool, models: Mapping[tuple[str, str], TableModel]) -> bool:
        """Turn the foreign keys of `models` on or off (`wanted`) for the next changes, in a transaction that began
        without foreign keys. Return False if that is impossible.
        """


@runtime_checkable
class Savepoints(Protocol):
    """A target with state outside of its connection; a rollback to a savepoint must also undo this state."""

    def savepoint(self, name: str) -> None: ...

    def roll_back_to(self, name: str) -> None:
        """Undo the row changes since the savepoint in transactional tables. DDL is not undone."""


def key_of(model: TableModel) -> tuple[int, ...]:
    """Return the indexes of the primary key's columns, else of the first UNIQUE key without NULLs, else ()."""
    index = {column.name: i for i, column in enumerate(model.columns)}
    for kind in ("primary", "unique"):
        for key in model.keys:
            if key.kind != kind or key.has_expression or any(part.length for part in key.parts):
                continue
            columns = tuple(index[name] for name in key.columns)
            if all(kind == "primary" or not model.columns[i].nullable for i in columns):
                return columns
    return ()


def describe_key(image: RowSet | None, model: TableModel) -> str:
    """Return a text such as `id=3, code='a'` that identifies a row; all values of the image if there is no key."""
    if image is None:
        return ""
    found = dict(zip(image.columns, image.rows[0], strict=False))
    return ", ".join(f"{model.columns[c].name}={_shown(found[c])}" for c in key_of(model) or found if c in found)


def pieces_of(value: bytes | memoryview | LargeText, size: int) -> Iterable[memoryview]:
    """Return a large value in pieces of at most `size` bytes; a LargeText determines the size of its pieces itself."""
    if isinstance(value, LargeText):
        return value
    view = memoryview(value)
    return (view[at : at + size] for at in range(0, len(view), size))


def _shown(value: Value) -> str:
    value = str(next(iter(value)), "utf-8") if isinstance(value, LargeText) else value
    value = bytes(value[: _MOST_SHOWN + 1]) if isinstance(value, memoryview) else value
    long = isinstance(value, str | bytes) and len(value) > _MOST_SHOWN
    return f"{value[:_MOST_SHOWN]!r}…" if long else repr(value)  # type: ignore[index]


@contextlib.contextmanager
def keyless_mismatch(
    chunk: TableChunk, model: TableModel, errors: type[Exception], named: Callable[[Any], TargetError]
) -> Iterator[None]:
    """Raise KeylessMismatch if the block fails on a table without a key. `errors` is the driver's class of errors;
    `named` converts such an error to TargetError. Transient errors are raised unchanged.
    """
    expected: tuple[type[Exception], ...] = (CountMismatch, errors)
    try:
        yield
    except expected as error:
        if key_of(model) or (isinstance(error, errors) and named(error).transient):
            raise
        raise KeylessMismatch(chunk.database, chunk.table, error) from error


def inserts_together(changes: Iterable[RowChange]) -> Iterator[RowSet | RowChange]:
    """Yield the changes in order; consecutive inserts with the same columns are combined into one RowSet."""

    def alike(change: RowChange) -> tuple[int, ...] | None:
        return change.after.columns if change.after is not None and change.before is None else None

    for columns, group in groupby(changes, alike):
        if columns is None:
            yield from group
        else:
            yield RowSet(columns, [change.after.rows[0] for change in group if change.after])


def chunk_model(chunk: TableChunk, models: Mapping[tuple[str, str], TableModel]) -> TableModel:
    """Return the model of the chunk's table; a key is unique only if the source's rows have all of its columns."""
    model = models[chunk.database, chunk.table]
    return model.as_known_by(chunk.width) if chunk.width else model


def has_one_unique_key(model: TableModel) -> bool:
    """True if the table has exactly one unique key, so that a row can only conflict with the row of the same key."""
    return sum(key.is_unique for key in model.keys) == 1


def check_columns(model: TableModel, present: Collection[str], table: str) -> None:
    """Raise the errors of Target.check_table if `present`, the columns of `table`, lack a column of the model."""
    if not present:
        raise no_such_table(model.database, model.name)
    for number, column in enumerate(model.columns):
        if column.name not in present:
            raise TargetError(
                f"Column {number} of table '{model.database}.{model.name}' cannot be applied: the target's table "
                f'{table} has no column "{column.name}" (it has {", ".join(sorted(present))})',
                errno=er.SLAVE_CONVERSION_FAILED,
                hint=f"to keep the rows, add the column to {table} on the target, then run: rplctl start",
            )


def no_such_table(database: str, table: str) -> TargetError:
    return TargetError(
        f"Table '{database}.{table}' doesn't exist on the target",
        errno=er.NO_SUCH_TABLE,
        hint="to create the table without its earlier rows, run: rplctl load-schema --from-source; rplctl start\n"
        "To copy it from a dump, read section INITIAL COPY of: man 1 rplctl",
    )


def another_applier(channel: str, lock: str) -> LockBusy:
    return LockBusy(
        f"another applier of channel '{channel}' is connected to the target ({lock})",
        channel=channel,
        hint="end the other applier, then run: rplctl start. Each instance that writes to this target needs channel "
        "names of its own, because the target has one position for each name",
    )


def no_record(image: RowSet | None, model: TableModel) -> TargetError:
    return TargetError(
        f"Can't find record in '{model.name}'", errno=er.KEY_NOT_FOUND, position=describe_key(image, model)
    )
