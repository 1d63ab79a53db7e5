"""The interface of a target database: transactions, net changes in bulk, single row changes, and DDL.

Invariant (design D2): nothing is upserted. Every change expects a state of the target. INSERT expects that the key is
absent; UPDATE and DELETE expect exactly one row. If the state differs, bulk changes raise `CountMismatch`, and the
applier tries a slower strategy. A single change raises TargetError with MySQL's error number, the table and the key.
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
from rplctl.schema.row_key import key_of
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

COPIES = -1  # in place of a column index: the value counts equal rows (TableChunk.deletes of a table without a key)
_MOST_SHOWN = 64  # an error shows at most this number of characters of a value


@contextlib.contextmanager
def committed(target: Target) -> Iterator[None]:
    """Run the `with` block as one transaction without foreign key checks. Any exception rolls the transaction back."""
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
    """The error for a bulk statement that changed an unexpected number of rows. The applier then tries a slower way."""


def expect_rows(what: str, found: int, expected: int) -> None:
    """Raise CountMismatch if the numbers of rows `found` and `expected` differ. `what` begins the error's text."""
    if found != expected:
        raise CountMismatch(f"{what}: {found} rows, expected {expected}")


class KeylessMismatch(CountMismatch):
    """A CountMismatch in a table without a key. The applier may still succeed if it applies the changes one by one."""

    def __init__(self, database: str, table: str, reason: object = "") -> None:
        super().__init__(f"rows of {database}.{table}, which has no key: {reason}")
        self.table = (database, table)


@dataclass(frozen=True, slots=True)
class RowSet:
    """Rows of one table, each with values for the same columns. `columns` has the columns' indexes in the table."""

    columns: tuple[int, ...]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One change of one row, with the row images. With binlog_row_image MINIMAL or NOBLOB, an image lacks columns."""

    kind: ChangeKind
    before: RowSet | None  # one row
    after: RowSet | None  # one row


class LazyBytes(Protocol):
    """Bytes of known length that are computed piece by piece while they are written."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[memoryview]: ...


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows of a table as one delimited or length-prefixed text (`event.fields`). `columns`: the columns' indexes; in
    updates, the key's columns are last. `keys`: each row's key in 8 bytes, to find rows that later rows overwrite.
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
    """The net changes of one table, encoded as text. In a TableChunk, they replace the lists with the same names."""

    absent: EncodedRows
    deletes: EncodedRows
    updates: EncodedRows
    inserts: EncodedRows

    @property
    def parts(self) -> tuple[EncodedRows, EncodedRows, EncodedRows, EncodedRows]:
        return self.absent, self.deletes, self.updates, self.inserts


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChunk:
    """Net changes of one table in a part of a batch. Each list expects a state of the target (D2).

    In a table with a key, `absent` are keys that no row may have before or after the batch. `deletes` are the keys of
    existing rows. `updates` are new values for existing rows; the key follows the values. `inserts` are rows with a new
    key. In a table without a key, `deletes` has each row once, followed by the number of equal rows to delete (COPIES).
    `inserts` has all new rows. Instead of these lists, `ordered` may have single changes. `bulk` replaces all lists if
    a task encoded the rows. With `has_views`, values may be memoryview or LargeText. `width` is the number of columns
    in the source's table if the target's table may have other columns, else 0.
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
        """True if the chunk deletes from a table without a key. Each row to delete then has a number of copies."""
        return bool(self.deletes or (self.bulk is not None and self.bulk.deletes.count)) and not key_of(model)

    @property
    def net_count(self) -> int:
        """The number of net changes that the target receives."""
        sets = (rows.rows for rows in self.updates + self.inserts)
        encoded = self.bulk.parts if self.bulk is not None else ()
        return sum(map(len, (self.absent, self.deletes, self.ordered, *sets, *encoded)))


class Target(Protocol):
    """A connection to a target database, for one thread at a time. Its methods report errors as TargetError."""

    kind: str  # the kind's name in the registry
    bulk_rows: int  # tasks encode a table's rows from this number of net changes on (`TableChunk.bulk`); 0: never
    takes_length_prefixed: bool  # encoded rows are length-prefixed, except for long rows
    engine: Engine

    @property
    def connection(self) -> Connection:
        """The connection with the open transaction. Code that stores a position in the target also uses it."""

    def mapped_errors(self) -> contextlib.AbstractContextManager[None]: ...  # as in `Dialect`

    def begin(self, *, foreign_keys: bool) -> None:
        """Start a transaction. `foreign_keys=False` turns foreign keys off, as foreign_key_checks=0 on the source."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def fence(self, channel: str) -> None:
        """Lock the channel on the target until the connection ends (D4). Raises LockBusy if it is already locked."""

    def reconnect(self) -> None:
        """Discard the connection, for example after an error with an unknown outcome. The next use opens a new one."""

    def lock_wait(self) -> str: ...  # the lock for which a statement waits, or ''; another thread calls this

    def interrupt(self) -> None:
        """Make the running statement fail, and return at once. Another thread calls this. `rollback` must follow."""

    def abort(self) -> None:
        """End the connections as if this process had died, so that waiting calls fail. Another thread calls this."""

    def is_idle(self) -> bool:
        """True if, after `interrupt` and `rollback`, the target has undone the changes and released the locks."""

    def check_table(self, model: TableModel) -> None:
        """Raise TargetError 1146 if the target lacks the table, or 1677 if the table lacks a column of the model."""

    def takes_multisets(self, model: TableModel) -> bool:
        """True if equal rows of a table without a key are interchangeable, so that the applier only needs their number.
        Columns, triggers or foreign keys that only the target has can prevent this.
        """

    def apply_chunks(self, chunks: Sequence[TableChunk], models: Mapping[tuple[str, str], TableModel]) -> None:
        """Apply the net changes of all chunks: first the deletes, then the updates, then the inserts.

        Raises CountMismatch (for a table without a key: KeylessMismatch) if the target's rows are not as expected.
        """

    def apply_change(self, change: RowChange, model: TableModel) -> None:
        """Apply one change to exactly one row. Raises TargetError 1062 (duplicate), 1032 (no row), 1452 (no parent)."""

    def stored_value(self, image: RowSet, column: int, model: TableModel) -> Value:
        """Return one column of the row that the image identifies. Raises TargetError 1032 if the row is missing."""

    def execute_ddl(self, plan: DdlPlan, catalog: Catalog) -> None:
        """Execute the plan of a DDL statement in the open transaction. `catalog`: all tables before the statement."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SourceStatement:
    """A statement of the source, with all other logged data that its execution needs.

    `variables`: the INTVAR, RAND and USER_VAR events before the statement. `file`: the contents that LOAD DATA reads.
    `server_version` and `system_zone` describe the source. `drops_missing`: DROP TABLE ignores missing tables.
    """

    query: Query | ExecuteLoadQuery
    variables: tuple[Intvar | Rand | UserVar, ...]
    file: tuple[bytes, ...]
    server_version: str
    drops_missing: bool = False
    system_zone: SystemZone | None = None


class Definition(NamedTuple):
    """The state of a table or another object on a server. `text`: a digest of the definition without the name, or '?'
    if the account cannot read it. `identity`: an id that a rename keeps, or ''. `altered`: time of last change, or ''.
    """

    text: str
    identity: str = ""
    altered: str = ""


class StatementTarget(Target, Protocol):
    """A MySQL or MariaDB target, which can execute the source's statements and describe its own tables (D10, D11)."""

    def run_statement(self, statement: SourceStatement) -> Sequence[str]:
        """Execute the statement, and return notes on features that the target lacks. Raises RplError if the result, a
        success or an error, differs from the result on the source.
        """

    def is_ddl(self, query: Query, context: DdlContext) -> bool:
        """True if the statement may do more than change rows, and therefore commits the transaction."""

    def definitions(self, objects: Iterable[ServerObject], *, identity: bool) -> dict[ServerObject, Definition | None]:
        """Return each object's definition, or None if it is missing. `identity`: also set `identity` and `altered`."""

    def row_states(self, tables: Iterable[tuple[str, str]]) -> dict[ServerObject, Definition | None]:
        """Return each table's numbers of rows and bytes (`text`), and when rows last changed (`altered`, or '')."""

    def make_tables(self, statements: Sequence[Sql]) -> None:
        """Execute DDL that SHOW CREATE TABLE printed under sql_mode='', in a separate session. The nearest collation of
        the target replaces a collation that the target lacks.
        """

    def set_primary_key_policy(self, policy: str) -> None:
        """Apply the policy (a value of REQUIRE_TABLE_PRIMARY_KEY_CHECK) to all later statements. Raises TargetError
        1235 if the server does not support the policy.
        """

    def roll_back_to(self, savepoint: str) -> None:
        """Roll back to the savepoint. If DDL has committed and removed the savepoint, roll back to this commit."""

    def check_foreign_keys(self, wanted: bool) -> None:
        """Turn the check of foreign keys on (`wanted`) or off for the next row changes of this transaction."""

    def introduce(self, description: FormatDescription) -> None:
        """Send the source's FORMAT_DESCRIPTION event, before a transaction that may call `replay_rows`."""

    def is_of_vendor(self, description: FormatDescription) -> bool:
        """True if the source has the target's own vendor."""

    def can_replay(self, description: FormatDescription) -> bool:
        """True if the description is of the target's own vendor and, on MySQL, `introduce` has already sent it."""

    def replay_rows(self, table_map: bytes, rows: bytes, description: FormatDescription) -> None:
        """Let the server execute a rows event of the source, with its TABLE_MAP event. Triggers do not fire."""

    def table_model(self, database: str, table: str) -> TableModel | None:
        """Return the current definition of the table, or None if the table does not exist."""

    def wants_replay(self, model: TableModel) -> bool:
        """True if only `replay_rows` is correct for the table, because the table has triggers or keeps its history."""

    def prefers_replay(self, model: TableModel) -> bool:
        """True if `replay_rows` is more exact than SQL, because JSON as text would lose types such as DECIMAL."""

    def is_transactional(self, model: TableModel) -> bool: ...

    def other_nontransactional(self, named: Collection[TableModel], statement: bytes) -> frozenset[tuple[str, str]]:
        """Return nontransactional tables that triggers or functions may change. If `named` is empty, return all."""

    def foreign_keys(self) -> list[tuple[tuple[str, str], tuple[str, str]]]:
        """Return for each foreign key on the server its table and the table to which it refers."""

    def cascading_parents(self) -> frozenset[tuple[str, str]]:
        """Return the parents of foreign keys with CASCADE or SET NULL. Changes of these tables change child rows."""


class TwoPhaseTarget(Target, Protocol):
    """A target that can prepare a transaction, and later commit or roll it back by name (WL#3970)."""

    loads_prepared: bool  # `bulk_rows` also applies to transactions that will be prepared

    def begin(self, *, foreign_keys: bool, xid: str = "") -> None:
        """Start a transaction as Target.begin does. With `xid`, `prepare` can later prepare it under this name."""

    def prepare(self) -> None:
        """Prepare the open transaction. It then outlives the connection, until someone commits it or rolls it back."""


class TwoPhaseVerbs(Protocol):
    """Operations of two-phase commit that need no Target object. The module `two_phase` of a kind implements them."""

    def prepared_xids(self, engine: Engine, prefix: str) -> list[str]: ...

    def end_prepared(self, engine: Engine, verb: str, xid: str) -> None:
        """Commit or roll back (`verb`) a prepared transaction. Do nothing if the transaction has already ended."""

    def check(self, engine: Engine, option: str, branches: int = 1) -> list[str]:
        """Return warnings about settings that weaken two-phase commit. With several worker connections (`branches`), a
        log that is flushed late causes no warning. Raises ConfigError if the server cannot support rplctl's `option`.
        """

    def wait_at_most(self, connection: Connection, seconds: int) -> None:
        """Limit the wait for a lock in the open transaction. Later transactions may keep this limit."""

    def claim(self, connection: Connection, prefix: str) -> None:
        """Mark the connection with the text `prefix`, so that a later start can terminate it. The connection must have
        no open transaction. Raises LockBusy if another connection has the same mark.
        """

    def terminate_sessions(self, engine: Engine, prefix: str) -> None:
        """Terminate the connection that an earlier process marked with `prefix`, and wait until it has ended. The
        caller has the channel's lock, so the earlier process has ended. Raises LockBusy if the connection remains.
        """


@runtime_checkable
class ForeignKeyTarget(Protocol):
    """A target that can turn foreign keys on and off between the changes of one transaction."""

    def follow_foreign_keys(self, wanted: bool, models: Mapping[tuple[str, str], TableModel]) -> bool:
        """Turn the foreign keys of `models` on (`wanted`) or off for the next changes. The transaction began without
        foreign keys. Return False if the target cannot do this.
        """


@runtime_checkable
class Savepoints(Protocol):
    """A target that also keeps state outside of its database connection. `roll_back_to` restores this state, too."""

    def savepoint(self, name: str) -> None: ...

    def roll_back_to(self, name: str) -> None:
        """Undo the row changes in transactional tables since `savepoint(name)`. DDL is not undone."""


def describe_key(image: RowSet | None, model: TableModel) -> str:
    """Return a text such as `id=3, code='a'` that names a row in an error. Without a key, the text has all values."""
    if image is None:
        return ""
    found = dict(zip(image.columns, image.rows[0], strict=False))
    return ", ".join(f"{model.columns[c].name}={_shown(found[c])}" for c in key_of(model) or found if c in found)


def pieces_of(value: bytes | memoryview | LargeText, size: int) -> Iterable[memoryview]:
    """Return a large value in pieces of at most `size` bytes. A LargeText chooses the size of its pieces itself."""
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
    """Convert errors of the `with` block to KeylessMismatch if the table has no key. Transient errors stay unchanged.
    `errors` is the driver's class of errors. `named` converts a driver's error to TargetError.
    """
    expected: tuple[type[Exception], ...] = (CountMismatch, errors)
    try:
        yield
    except expected as error:
        if key_of(model) or (isinstance(error, errors) and named(error).transient):
            raise
        raise KeylessMismatch(chunk.database, chunk.table, error) from error


def inserts_together(changes: Iterable[RowChange]) -> Iterator[RowSet | RowChange]:
    """Yield the changes in order. Combine consecutive inserts that have the same columns into one RowSet."""

    def alike(change: RowChange) -> tuple[int, ...] | None:
        return change.after.columns if change.after is not None and change.before is None else None

    for columns, group in groupby(changes, alike):
        if columns is None:
            yield from group
        else:
            yield RowSet(columns, [change.after.rows[0] for change in group if change.after])


def chunk_model(chunk: TableChunk, models: Mapping[tuple[str, str], TableModel]) -> TableModel:
    """Return the model of the chunk's table. Keys on columns that the source's rows lack do not count as unique."""
    model = models[chunk.database, chunk.table]
    return model.as_known_by(chunk.width) if chunk.width else model


def has_one_unique_key(model: TableModel) -> bool:
    """True if the table has exactly one unique key. A row can then conflict only with the row of the same key."""
    return sum(key.is_unique for key in model.keys) == 1


def check_columns(model: TableModel, present: Collection[str], table: str) -> None:
    """Raise TargetError 1146 if `present` (the target's columns) is empty, 1677 if it lacks a column of the model."""
    if not present:
        raise no_such_table(model.database, model.name)
    for number, column in enumerate(model.columns):
        if column.name not in present:
            raise TargetError(
                f"Column {number} of table '{model.database}.{model.name}' cannot be applied: the target's table "
                f'{table} has no column "{column.name}" (it has {", ".join(sorted(present))})',
                errno=er.SLAVE_CONVERSION_FAILED,
                hint=f"to keep the rows after you have added the column to {table} on the target, run: rplctl start",
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
        hint="to continue after you have ended the other applier, run: rplctl start\nEach instance that writes to this "
        "target needs channel names of its own, because the target has one position for each name",
    )


def no_record(image: RowSet | None, model: TableModel) -> TargetError:
    return TargetError(
        f"Can't find record in '{model.name}'", errno=er.KEY_NOT_FOUND, position=describe_key(image, model)
    )
