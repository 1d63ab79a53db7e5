"""Lists the tables of a source before a copy, with their estimated sizes and the privileges that the account lacks.

Invariant: a table that the account may not read is reported with the GRANT that permits reading it, and never excluded
silently. Tables may be created and dropped meanwhile. So the catalog is read before and after the log position `end`,
until both readings have the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from rplctl import mysql_errors as er
from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.schema.plan import Catalog
from rplctl.schema.source_catalog import SYSTEM_DATABASES, quote, read_catalog, unless_gone
from rplctl.schema.statement import ObjectKind, TableName
from rplctl.secret import reveal
from rplctl.skipped_objects import SkippedObject
from rplctl.source.rights import Rights, may_select, read_rights
from rplctl.source.snapshot import SnapshotKind, SourcePosition, lets_ddl_pass, settled_end, step_of
from rplctl.source.survey import Ask, survey
from rplctl.sql_text import written

_PATIENCE_S = 10.0  # the longest wait for the end of COMMITs that are running on the source
_MOST_LOOKS = 3  # attempts while tables are created and dropped
_REPLICATION = ("REPLICATION SLAVE", "REPLICATION CLIENT")
_OBJECTS = (
    written("SELECT 'VIEW', table_schema, table_name FROM information_schema.views"),
    written("SELECT 'TRIGGER', trigger_schema, trigger_name FROM information_schema.triggers"),
    written("SELECT 'EVENT', event_schema, event_name FROM information_schema.events"),
    written("SELECT routine_type, routine_schema, routine_name FROM information_schema.routines"),
)
_KINDS = {
    "VIEW": ObjectKind.VIEW,
    "TRIGGER": ObjectKind.TRIGGER,
    "EVENT": ObjectKind.EVENT,
    "PROCEDURE": ObjectKind.PROCEDURE,
    "FUNCTION": ObjectKind.FUNCTION,
    "PACKAGE": ObjectKind.PACKAGE,
    "PACKAGE BODY": ObjectKind.PACKAGE,
    "LIBRARY": ObjectKind.LIBRARY,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The choice of tables to copy, by the source's names.

    `accepts`: True if the channel's filters accept the database and the table with these names. `databases`: the only
    databases to copy from; () = any. `named`: the only tables to copy; () = all tables that `accepts` accepts.
    """

    accepts: Callable[[str, str], bool]
    databases: tuple[str, ...] = ()
    named: tuple[TableName, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """The storage engine of a table, and its number of rows and bytes as the source estimates them."""

    engine: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A privilege that the channel's account lacks on the source.

    If `table` is '', the privilege is for all tables of the database. If `database` is '', it is for all databases.
    `right`: the name of the privilege. `grant`: the statement that gives it.
    """

    database: str
    table: str
    right: str
    grant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTables:
    """The tables of a source that can be copied, and the facts that a clone shows or needs.

    `end`: the end of the source's log; None if the account may not query it. `gtids`: the GTIDs of all transactions
    before `end`. `step`: the best snapshot method of the source. `facts`: the sizes of the tables. `missing`: the
    privileges without which the copy fails. `wished`: a GRANT without which DDL on the source waits for the copy; '' if
    it is not needed. `objects`: views, triggers and others that are not copied, as far as the account sees them.
    """

    catalog: Catalog
    end: BinlogPosition | None
    gtids: str
    step: SnapshotKind
    facts: dict[TableName, TableSize]
    sequences: dict[TableName, str]  # MariaDB's CREATE SEQUENCE statements
    missing: tuple[Missing, ...]
    wished: str
    objects: tuple[SkippedObject, ...] = ()


def read_source_tables(config: Config, master: MasterInfo, wanted: Wanted, *, is_new: bool) -> SourceTables:
    """Return the tables to copy, and what the account lacks for the copy.

    `is_new`: True if the channel has no position yet. Raises SourceError if the source reports an error. For a new
    channel, SourceError is also raised if the source has prepared XA transactions.
    """
    with survey(master, reveal(master.user_password, config.datadir), config) as query:
        if is_new and _prepared(query):
            raise SourceError(
                "the source has prepared XA transactions, whose rows are in its log before this position",
                hint="to list these transactions, run on the source: XA RECOVER\n"
                "To copy the tables after you have ended each of them with XA COMMIT or XA ROLLBACK, run: rplctl clone",
            )
        rights = read_rights(query)
        refused: set[TableName] = set()

        def is_wanted(database: str, table: str) -> bool:
            if not wanted.accepts(database, table) or (database, table) in refused:
                return False
            if may_select(query, database, table):
                return True
            refused.add((database, table))
            return False

        step = step_of(query)
        for _ in range(_MOST_LOOKS):
            before = read_catalog(query, is_wanted=is_wanted)
            end = _end(query, step)
            catalog = read_catalog(query, is_wanted=is_wanted)
            if before.tables.keys() == catalog.tables.keys():
                break
        both = Catalog({**before.tables, **catalog.tables}, {**before.databases, **catalog.databases})
        sequences = {
            name: str(rows[0][1])
            for name, model in catalog.tables.items()
            if model.is_sequence and (rows := unless_gone(query, written("SHOW CREATE SEQUENCE {}", quote(*name))))
        }
        missing = (*_missing(rights, wanted, both.tables, refused), *_of_replication(rights, end.position))
        wished = "" if lets_ddl_pass(query, step) else rights.grant("BINLOG ADMIN")
        return SourceTables(
            catalog=both,
            end=end.position,
            gtids=end.gtids,
            step=step,
            facts=_facts(query),
            sequences=sequences,
            missing=missing,
            wished=wished,
            objects=_objects(query, wanted),
        )


def _objects(query: Ask, wanted: Wanted) -> tuple[SkippedObject, ...]:
    """Return the views, triggers, routines and events in the databases to copy.

    Return () if single tables are copied.
    """
    if wanted.named:
        return ()
    found = {
        (_KINDS[str(kind)], str(database), str(name))
        for statement in _OBJECTS
        for kind, database, name in query(statement)
        if str(kind) in _KINDS
    }
    return tuple(
        (kind, database, name)
        for kind, database, name in sorted(found)
        if database.lower() not in SYSTEM_DATABASES
        and (not wanted.databases or database in wanted.databases)
        and wanted.accepts(database, name)
    )


def _prepared(query: Ask) -> bool:
    """True if the source lists prepared XA transactions. A later XA COMMIT of them would stop the channel.

    Without the privilege XA_RECOVER_ADMIN, MySQL does not list them, and the result is False.
    """
    try:
        return bool(query(written("XA RECOVER")))
    except SourceError as error:
        if error.errno not in (er.XAER_RMERR, er.SPECIFIC_ACCESS_DENIED_ERROR):
            raise
        return False


def _end(query: Ask, step: SnapshotKind) -> SourcePosition:
    try:
        return settled_end(query, step, _PATIENCE_S)
    except SourceError as error:
        if error.errno != er.SPECIFIC_ACCESS_DENIED_ERROR:
            raise
        return SourcePosition(None)


def _facts(query: Ask) -> dict[TableName, TableSize]:
    rows = query(
        written("SELECT table_schema, table_name, engine, table_rows, data_length FROM information_schema.tables")
    )
    return {(str(d), str(t)): TableSize(engine=str(engine or ""), rows=int(n or 0), bytes=int(size or 0))
            for d, t, engine, n, size in rows}  # fmt: skip


def _of_replication(rights: Rights, end: BinlogPosition | None) -> Iterator[Missing]:
    for right, is_there in zip(_REPLICATION, (rights.may_replicate(), end is not None), strict=True):
        if not is_there:
            yield Missing(database="", table="", right=right, grant=rights.grant(right))


def _missing(
    rights: Rights, wanted: Wanted, seen: Collection[TableName], refused: Iterable[TableName]
) -> Iterator[Missing]:
    """Yield the SELECT privileges that the account lacks.

    If single tables are copied, yield a privilege for each table that the account does not see. If all databases are
    copied, and the account may not read all of them, yield one privilege for all databases. Otherwise, yield one for
    each database that the account may not read, and for each table in `refused`.
    """
    if wanted.named:
        for name in wanted.named:
            if name not in seen and not rights.reads_all_of(name[0]):
                yield Missing(database=name[0], table=name[1], right="SELECT", grant=rights.grant("SELECT", *name))
        return
    if not wanted.databases and not rights.reads_all():
        yield Missing(database="", table="", right="SELECT", grant=rights.grant("SELECT"))
        return
    hidden = {name: 0 for name in wanted.databases if not rights.reads_all_of(name) and name not in SYSTEM_DATABASES}
    for database in hidden:
        yield Missing(database=database, table="", right="SELECT", grant=rights.grant("SELECT", database))
    for database, table in sorted(refused):
        if database not in hidden and (not wanted.databases or database in wanted.databases):  # partly visible tables
            yield Missing(database=database, table=table, right="SELECT", grant=rights.grant("SELECT", database, table))
