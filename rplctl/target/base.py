"""The interface of a target database: one transaction at a time, net changes in bulk, single changes strictly, DDL.

Invariant (design D2): nothing is upserted. Every change knows what it expects of the target (INSERT → key absent,
UPDATE/DELETE → exactly one row). A target that differs raises: in bulk `CountMismatch`, after which the applier applies
one source transaction at a time; singly a TargetError with MySQL's errno, table and key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

Value = int | float | str | bytes | memoryview | LargeText | None  # views and LargeText: where they lie in a file
Row = tuple[Value, ...]

COPIES = -1  # in place of a column: how many of a row (TableChunk.deletes of a table without a key)
_MOST_SHOWN = 64  # characters of a value, in an error's position


@contextlib.contextmanager
def committed(target: Target) -> Iterator[None]:
    """Run the block as one transaction, without foreign keys; an exception rolls it back. Raises TargetError."""
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
    """A bulk statement changed another number of rows than the source's changes say. Never leaves the applier."""


def expect_rows(what: str, found: int, expected: int) -> None:
    """Raise CountMismatch unless `found` equals `expected`."""
    if found != expected:
        raise CountMismatch(f"{what}: {found} rows, expected {expected}")


class KeylessMismatch(CountMismatch):
    """A mismatch in a table without a key whose changes came as numbers of rows: in their order they may fit."""

    def __init__(self, database: str, table: str, reason: object = "") -> None:
        super().__init__(f"rows of {database}.{table}, which has no key: {reason}")
        self.table = (database, table)


@dataclass(frozen=True, slots=True)
class RowSet:
    """Rows that carry the same columns. `columns` are indexes into the table's columns; rows are in that order."""

    columns: tuple[int, ...]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change of one row. Images hold the columns the source logged (MINIMAL and NOBLOB leave some out)."""

    kind: ChangeKind
    before: RowSet | None  # one row
    after: RowSet | None  # one row


class Pieces(Protocol):
    """Bytes that are made while they are written."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[memoryview]: ...


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows as text (`event.fields`: delimited, framed). `columns` as in RowSet; in updates the key is last. `text` is
    pieces where it is made. `keys`: 8 bytes of each row that a later change may overwrite, or none.
    """

    columns: tuple[int, ...]
    count: int
    text: bytes | memoryview | Pieces
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
    """A keyed table's net changes, encoded: what the lists of a TableChunk hold otherwise. All rows are whole."""

    absent: EncodedRows
    deletes: EncodedRows
    updates: EncodedRows
    inserts: EncodedRows

    @property
    def parts(self) -> tuple[EncodedRows, EncodedRows, EncodedRows, EncodedRows]:
        return self.absent, self.deletes, self.updates, self.inserts


@dataclass(frozen=True, slots=True)
class TableChunk:
    """Net changes of one table over a piece of a batch, with what each expects (D2).

    Keyed tables: `absent` keys must be absent and stay; `deletes` are keys of rows that must exist; `updates`
    replace columns of rows that must exist (RowSet.columns name the columns set, the key columns follow in each row);
    `inserts` are rows whose key must be absent. Tables without a key: whole rows, in `deletes` each once and after its
    values how many of it must go (COPIES), in `inserts` as often as they come; or `ordered` changes, one by one.
    `bulk`: many rows, encoded by the task; the lists are empty then. `has_views`: values may be views and LargeText.
    `width`: columns of the source's table, where the target's may have another number of them. `by_spark`: a task of
    Spark decoded it.
    """

    database: str
    table: str
    absent: list[Row]
    deletes: list[Row]
    updates: list[RowSet]
    inserts: list[RowSet]
    ordered: list[RowChange]
    change_count: int  # row changes of the source that this chunk stands for
    foreign_keys_off: bool  # some of them ran under foreign_key_checks=0
    cascades_logged: bool = False  # what foreign keys made of them on the source is in the log too (MySQL 9.6)
    bulk: BulkRows | None = None
    width: int = 0
    has_views: bool = False
    by_spark: bool = False

    def takes_copies(self, model: TableModel) -> bool:
        """True if the chunk deletes rows of a table without a key by the number of their copies."""
        return bool(self.deletes or (self.bulk is not None and self.bulk.deletes.count)) and not key_of(model)

    @property
    def net_count(self) -> int:
        """The number of rows that the target gets."""
        sets = (rows.rows for rows in self.updates + self.inserts)
        encoded = self.bulk.parts if self.bulk is not None else ()
        return sum(map(len, (self.absent, self.deletes, self.ordered, *sets, *encoded)))


class Target(Protocol):
    """One connection to one target database; used by one thread at a time."""

    kind: str  # its name in the registry
    bulk_rows: int  # net changes of a table from which on it wants them encoded (`TableChunk.bulk`); 0: never
    takes_frames: bool  # framed, but for long rows
    engine: Engine

    @property
    def connection(self) -> Connection:
        """The connection that holds the open transaction; repositories write through it."""

    def mapped_errors(self) -> contextlib.AbstractContextManager[None]: ...  # as its dialect's

    def begin(self, *, foreign_keys: bool) -> None:
        """Start a transaction. `foreign_keys=False` is the source's foreign_key_checks=0."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def fence(self, channel: str) -> None:
        """Be the channel's only committer for as long as the connection lives (D4). Raises LockBusy, TargetError."""

    def reconnect(self) -> None:
        """Throw the connection away and open another (after an error whose outcome is not known)."""

    def lock_wait(self) -> str: ...  # which lock of another session a statement waits for; called from another thread

    def interrupt(self) -> None:
        """Make the statement that is running fail at once; called from another thread. The transaction must be rolled
        back after it, which is not waited for.
        """

    def abort(self) -> None:
        """Cut off the target as if this process had died; called from another thread. Calls that wait then fail."""

    def is_idle(self) -> bool:
        """True if, after `interrupt` and `rollback`, the interrupted changes are undone and hold no lock any more."""

    def check_table(self, model: TableModel) -> None:
        """Check the columns. Raises TargetError 1146 when the table is missing, 1677 when a column of the model is."""

    def takes_multisets(self, model: TableModel) -> bool:
        """True if equal rows of the table, which has no key, are interchangeable: nothing of the target's own depends
        on a row (a column, a trigger, a foreign key) and would be lost when the row is deleted and inserted again.
        """

    def apply_chunks(self, chunks: Sequence[TableChunk], models: Mapping[tuple[str, str], TableModel]) -> None:
        """Apply net changes: per chunk sequence all deletes, then updates, then inserts.

        Raises CountMismatch, KeylessMismatch, TargetError.
        """

    def apply_change(self, change: RowChange, model: TableModel) -> None:
        """Apply one change exactly. Raises TargetError 1062, 1032, 1452 …"""

    def stored_value(self, image: RowSet, column: int, model: TableModel) -> Value:
        """Return one column of the row that an image identifies. Raises TargetError 1032."""

    def execute_ddl(self, plan: DdlPlan, catalog: Catalog) -> None:
        """Carry out a parsed DDL statement in the open transaction."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the source with everything it depends on.

    `variables`: its INTVAR, RAND and USER_VAR events. `file`: what LOAD DATA reads; `query`: its EXECUTE_LOAD_QUERY.
    `server_version`, `system_zone`: the source's. `drops_missing`: DROP TABLE ignores tables that are missing here.
    """

    query: Query | ExecuteLoadQuery
    variables: tuple[Intvar | Rand | UserVar, ...]
    file: tuple[bytes, ...]
    server_version: str
    drops_missing: bool = False
    system_zone: SystemZone | None = None


class Definition(NamedTuple):
    """An object as a server reports it. `text`: a digest of the definition without its name; '?' if the account may not
    see it. `identity`: stays the same in a rename; or ''. `altered`: the last change; '' while that may still be now.
    """

    text: str
    identity: str = ""
    altered: str = ""


class StatementTarget(Target, Protocol):
    """A MySQL or MariaDB server: executes the source's statements as they are and knows its own tables (D10, D11)."""

    def run_statement(self, statement: Statement) -> Sequence[str]:
        """Execute the statement; return notes on what the target lacks. Raises errors that the source did not have."""

    def is_ddl(self, query: Query, context: DdlContext) -> bool:
        """True if the statement, as the source executed it, may do more than change rows: it then commits by itself."""

    def definitions(self, objects: Iterable[ServerObject], *, identity: bool) -> dict[ServerObject, Definition | None]:
        """Return the definitions as they are now; None for an object that is absent. With `identity`, all fields of a
        Definition are filled in. Raises TargetError.
        """

    def row_states(self, tables: Iterable[tuple[str, str]]) -> dict[ServerObject, Definition | None]:
        """Return the state of the tables' rows; `altered`: of the last change, '' if the server does not report it."""

    def make_tables(self, statements: Sequence[Sql]) -> None:
        """Execute DDL as SHOW CREATE TABLE prints it under sql_mode='', in a session of its own: each statement commits
        by itself. A collation that only the source's vendor has becomes the nearest that the target has.
        """

    def judge_primary_keys(self, policy: str) -> None:
        """Apply REQUIRE_TABLE_PRIMARY_KEY_CHECK to the statements that follow. Raises TargetError 1235 if the target
        has no such setting.
        """

    def roll_back_to(self, savepoint: str) -> None:
        """Roll back to the savepoint; if DDL has committed since then and removed the savepoint, to that commit."""

    def check_foreign_keys(self, wanted: bool) -> None:
        """Check foreign keys or not (`wanted`) for the row changes that follow in this transaction."""

    def introduce(self, description: FormatDescription) -> None:
        """Name the source of the events, before a transaction that may call `replay_rows`."""

    def can_replay(self, description: FormatDescription) -> bool:
        """False for events of the other vendor, or when it is too late to introduce them."""

    def replay_rows(self, table_map: bytes, rows: bytes, description: FormatDescription) -> None:
        """Apply a rows event as the server's own applier does, without firing triggers. Raises TargetError."""

    def table_model(self, database: str, table: str) -> TableModel | None:
        """Return the table as it is now; None if the table does not exist."""

    def wants_replay(self, model: TableModel) -> bool:
        """True when only the server itself can apply the table's rows: it has triggers or keeps its own history."""

    def prefers_replay(self, model: TableModel) -> bool:
        """True when the server itself is more exact with some rows: typed values in JSON have no text of their own."""

    def is_transactional(self, model: TableModel) -> bool: ...

    def may_also_change(self, named: Collection[TableModel], statement: bytes) -> frozenset[tuple[str, str]]:
        """Return tables without transactions that a statement may change as well as `named`; if none is named, all."""

    def cascading_parents(self) -> frozenset[tuple[str, str]]:
        """Tables that a foreign key with an action points at: deleting or updating them changes other rows."""


class TwoPhaseTarget(Target, Protocol):
    """A target whose transactions can be prepared, and then committed or rolled back by name (WL#3970)."""

    loads_prepared: bool  # `bulk_rows` holds for them, too

    def begin(self, *, foreign_keys: bool, xid: str = "") -> None:
        """Start a transaction as Target.begin does; a name makes it one branch of a transaction in two phases."""

    def prepare(self) -> None:
        """Prepare the transaction: it then outlives the connection, and ends by its name or by `commit`."""


class TwoPhaseVerbs(Protocol):
    """The further operations that two-phase commit needs from a kind of server: the `two_phase` modules."""

    def prepared_xids(self, engine: Engine, prefix: str) -> list[str]: ...

    def end_prepared(self, engine: Engine, verb: str, xid: str) -> None:
        """Commit or roll back (`verb`) from outside; a transaction that is gone is done. Raises TargetError."""

    def check(self, engine: Engine, option: str, branches: int = 1) -> list[str]:
        """Return the settings of this server that weaken two-phase commit. With several `branches`, its own log has all
        decisions in order, flushed or not. Raises ConfigError if the server cannot support the option as it is set.
        """

    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        """Limit the wait for a lock, in the transaction that has begun and maybe in later ones of the connection."""

    def claim(self, connection: Connection, prefix: str) -> None:
        """Mark that connection, outside of a transaction, as this instance's, so that a later start knows whom to end.
        Raises LockBusy.
        """

    def terminate_sessions(self, engine: Engine, prefix: str) -> None:
        """End the connection of a predecessor (stopped or cut off, not gone), and wait until it is gone. The caller
        holds the channel's lock on this host, so nobody else of this instance can be at work. Raises LockBusy.
        """


@runtime_checkable
class ForeignKeyTarget(Protocol):
    """A target that carries out foreign key actions for some changes of a transaction and not for others."""

    def follow_foreign_keys(self, wanted: bool, models: Mapping[tuple[str, str], TableModel]) -> bool:
        """Make changes follow the foreign keys of `models` from now on, or not (`wanted`), in a transaction that began
        without them. Return False if that is impossible.
        """


@runtime_checkable
class Savepoints(Protocol):
    """A target that keeps some state outside of its connection; a rollback of the connection undoes it too."""

    def savepoint(self, name: str) -> None: ...

    def roll_back_to(self, name: str) -> None:
        """Undo the rows since the savepoint, in tables that can undo; DDL stays."""


def key_of(model: TableModel) -> tuple[int, ...]:
    """Indexes of the columns that identify a row: the primary key, else the first UNIQUE key without NULLs, else ()."""
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
    """Return `id=3, code='a'` for the row of an error; the whole image where the table has no key."""
    if image is None:
        return ""
    found = dict(zip(image.columns, image.rows[0], strict=False))
    return ", ".join(f"{model.columns[c].name}={_shown(found[c])}" for c in key_of(model) or found if c in found)


def pieces_of(value: bytes | memoryview | LargeText, size: int) -> Iterable[memoryview]:
    """Return a large value in pieces of at most `size` bytes; a text has pieces of its own."""
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
    """Raise KeylessMismatch if the block fails on a table without a key. `errors` are the driver's, `named` makes them
    TargetErrors; errors that are transient are raised as they are.
    """
    expected: tuple[type[Exception], ...] = (CountMismatch, errors)
    try:
        yield
    except expected as error:
        if key_of(model) or (isinstance(error, errors) and named(error).transient):
            raise
        raise KeylessMismatch(chunk.database, chunk.table, error) from error


def inserts_together(changes: Iterable[RowChange]) -> Iterator[RowSet | RowChange]:
    """Yield the changes in their order; consecutive inserts that carry the same columns come as one set of rows."""

    def alike(change: RowChange) -> tuple[int, ...] | None:
        return change.after.columns if change.after is not None and change.before is None else None

    for columns, group in groupby(changes, alike):
        if columns is None:
            yield from group
        else:
            yield RowSet(columns, [change.after.rows[0] for change in group if change.after])


def chunk_model(chunk: TableChunk, models: Mapping[tuple[str, str], TableModel]) -> TableModel:
    """Return the model to apply the chunk with."""
    model = models[chunk.database, chunk.table]
    return model.as_known_by(chunk.width) if chunk.width else model


def has_one_unique_key(model: TableModel) -> bool:
    """True if a row can conflict with no row but the one that has the same key."""
    return sum(key.is_unique for key in model.keys) == 1


def check_columns(model: TableModel, present: Collection[str], table: str) -> None:
    """Check that `present`, the columns of the target's `table`, include the model's. Raises as Target.check_table."""
    if not present:
        raise no_such_table(model.database, model.name)
    for number, column in enumerate(model.columns):
        if column.name not in present:
            raise TargetError(
                f"Column {number} of table '{model.database}.{model.name}' cannot be applied: the target's table "
                f'{table} has no column "{column.name}" (it has {", ".join(sorted(present))})',
                errno=er.SLAVE_CONVERSION_FAILED,
                hint=f"add the column to {table}, or rebuild the table from the source",
            )


def no_such_table(database: str, table: str) -> TargetError:
    return TargetError(
        f"Table '{database}.{table}' doesn't exist on the target",
        errno=er.NO_SUCH_TABLE,
        hint="copy the table with its rows, as INITIAL COPY in rplctl(1) shows: rplctl load-schema alone makes it "
        "empty, and the rows that the source had before are nowhere",
    )


def another_applier(channel: str, lock: str) -> LockBusy:
    return LockBusy(
        f"another applier of channel '{channel}' is connected to the target ({lock})",
        channel=channel,
        hint="stop it there, or give this channel another name: the target keeps one position per channel",
    )


def no_record(image: RowSet | None, model: TableModel) -> TargetError:
    return TargetError(
        f"Can't find record in '{model.name}'", errno=er.KEY_NOT_FOUND, position=describe_key(image, model)
    )
