"""rplctl's internal tables in the target, next to `slave_master_info` and `slave_relay_log_info`.

    rplctl_commit_marker    one row per channel: the position of the last commit while the repository is a FILE
    rplctl_table_models     the MySQL model of every replicated table, versioned by source position (design D18)
    rplctl_prepared_xa      events of XA transactions that are prepared but not ended on the source
    rplctl_group_begun      the transactions on MyISAM tables that are being applied, in case of a crash
    rplctl_statement_note   the statement with an implicit commit that is being executed (statement_note.py)
    rplctl_clone            the tables that are copied from the source, and the progress of each (clones.py)
    rplctl_branches         the last decided batch of several committing connections (commit/branches.py)
    rplctl_channel_owner    the instance and the source of a channel's rows (owner.py)
    rplctl_lake_batch       the batch that several tables of a lake receive, in lakes only (lake_batch.py)
    rplctl_next_event       a view: the next event to execute, of each channel (repository/next_event.py)

In SQLite, they are next to the replicated tables, whose names always contain `__`. In other databases, they are in the
schema or database `rplctl`. Invariant: a table that an older rplctl created gets the layout below before it is read. If
the repositories are tables, a revision in migrations/ changes the layout. If they are files, `create_own_tables`
changes it. No row is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    inspect,
    select,
)
from sqlalchemy.schema import CreateSchema

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.repository.next_event import create_next_event_view, lacks_next_event_view
from rplctl.repository.tables import KEY, info_tables
from rplctl.sql_run import ask
from rplctl.sql_text import word, written
from rplctl.target import dialect_of, mapped_errors

State = TypeVar("State", bound=StrEnum)


@cache
def commit_marker(dialect: str) -> Table:
    return _own_table(
        dialect,
        "rplctl_commit_marker",
        "Commit marker of channels whose relay log info repository is a FILE",
        Column("Relay_log_name", String(512), nullable=False),
        Column("Relay_log_pos", BigInteger, nullable=False),
        Column("Master_log_name", String(512), nullable=False),
        Column("Master_log_pos", BigInteger, nullable=False),
        Column("Gtid_executed", _long_text(dialect), nullable=False),
        # True if file and marker were equal when they were last compared and no applier has run since. If they differ
        # later, somebody has edited the file.
        Column("File_in_step", Boolean, nullable=False),
    )


@cache
def table_models(dialect: str) -> Table:
    return _own_table(
        dialect,
        "rplctl_table_models",
        "MySQL-side table definitions, valid from their position on",
        Column("Database_name", String(64), primary_key=True),
        Column("Table_name", String(64), primary_key=True),
        Column("Master_log_number", Integer, primary_key=True, autoincrement=False),
        Column("Master_log_pos", BigInteger, primary_key=True, autoincrement=False),
        Column("Model", _long_text(dialect), nullable=True),  # JSON; NULL = the table was dropped here
    )


@cache
def prepared_xa(dialect: str) -> Table:
    return _own_table(
        dialect,
        "rplctl_prepared_xa",
        "XA transactions of the source between XA PREPARE and XA COMMIT",
        Column("Xid", String(300), primary_key=True),  # the text for XA COMMIT: X'gtrid',X'bqual',format
        Column("Piece", Integer, primary_key=True, autoincrement=False),  # part number from 0
        Column("Format_description", _long_text(dialect), nullable=False),  # JSON
        Column("Events", dialect_of(dialect).own_types().large_binary, nullable=False),
    )


@cache
def group_begun(dialect: str) -> Table:
    return _own_table(
        dialect,
        "rplctl_group_begun",
        "Source transactions on tables without transactions that are being applied",
        Column("Begin_log_name", String(512), nullable=False),
        Column("Begin_log_pos", BigInteger, nullable=False),
        Column("End_log_name", String(512), nullable=False),
        Column("End_log_pos", BigInteger, nullable=False),
    )


@cache
def statement_note(dialect: str) -> Table:
    return _own_table(
        dialect,
        "rplctl_statement_note",
        "The statement that commits by itself and is being executed, and what it touches",
        # The next two columns are the position before the transaction.
        Column("Master_log_name", String(512), nullable=False),
        Column("Master_log_pos", BigInteger, nullable=False),
        Column("Gtid_executed", _long_text(dialect), nullable=False),  # the GTIDs after the transaction
        Column("Events_done", Integer, nullable=False),  # events of the transaction before the statement
        Column("State", String(16), nullable=False),
        Column("Statement_hash", String(32), nullable=False),
        Column("Definitions", _long_text(dialect), nullable=False),  # JSON: definitions before the statement
    )


@cache
def cloned_tables(dialect: str) -> Table:
    return _own_table(
        dialect,
        "rplctl_clone",
        "Tables whose rows are copied from the source (rplctl clone)",
        Column("Database_name", String(64), primary_key=True),
        Column("Table_name", String(64), primary_key=True),
        Column("Source_database", String(64), nullable=False),  # another name only if rewrite_db renames the database
        Column("Family", Integer, nullable=False),  # number of the group of tables that one snapshot reads
        Column("State", String(16), nullable=False),  # waiting, copying, done, left out
        Column("Epoch", BigInteger, nullable=False),  # the snapshot whose chunks are loaded; 0 = none yet
        Column("Chunks", Integer, nullable=False),  # number of loaded chunks
        Column("Row_count", BigInteger, nullable=False),
        Column("Byte_count", BigInteger, nullable=False),  # bytes received from the source
        Column("Position", String(600), nullable=False),  # the snapshot's position, FILE:POS; '' = none
        Column("Expected_rows", BigInteger, nullable=False),  # the source's estimate when the copy was requested
        Column("Expected_bytes", BigInteger, nullable=False),
    )


@cache
def branches_decided(dialect: str) -> Table:
    return _own_table(
        dialect,
        "rplctl_branches",
        "The last batch that several committers of a channel were to commit",
        Column("Batch", String(16), nullable=False),
    )


@cache
def channel_owner(dialect: str) -> Table:
    return _own_table(
        dialect,
        "rplctl_channel_owner",
        "The rplctl instance and the source that the rows of a channel belong to",
        Column("Instance_id", String(16), nullable=False),
        Column("Instance_place", String(512), nullable=False),
        Column("Source_uuid", String(36), nullable=False),
        Column("Source_server_id", BigInteger, nullable=False),
        Column("Source_place", String(512), nullable=False),
        Column("Kept_by", String(16), nullable=False),
    )


@cache
def lake_batch(dialect: str) -> Table:
    return _own_table(
        dialect,
        "rplctl_lake_batch",
        "The last batch that tables of a lake take one after another",
        Column("Number", BigInteger, nullable=False),
        Column("Is_open", Boolean, nullable=False),
        Column("Before_it", _long_text(dialect), nullable=False),  # JSON, the position
        Column("After_it", _long_text(dialect), nullable=False),
        Column("Tables", _long_text(dialect), nullable=False),  # JSON, files by table
    )


def _own_table(dialect: str, name: str, comment: str, *columns: Column[Any]) -> Table:
    """Return the definition of an internal table. The first column of its key is the channel's name.

    The table is in rplctl's own schema, if the target has such a schema.
    """
    by_channel = Column("Channel_name", String(64), primary_key=True)
    schema, options = dialect_of(dialect).own_schema, dialect_of(dialect).own_types().options
    return Table(name, MetaData(schema=schema), by_channel, *columns, comment=comment, **options)


def _long_text(dialect: str) -> Any:
    return dialect_of(dialect).own_types().long_text


_ALL = (
    commit_marker,
    table_models,
    prepared_xa,
    group_begun,
    statement_note,
    cloned_tables,
    branches_decided,
    channel_owner,
)


def stored_state(kind: type[State], value: str, table: str) -> State:
    """Return the state that `value` means in a row of this internal table. Raises TargetError if no state has this
    value.
    """
    try:
        return kind(value)
    except ValueError:
        states = ", ".join(f"'{state}'" for state in kind)
        raise TargetError(
            f"a row of the table {table} in the target has the unknown state '{value[:40]}'",
            errno=er.SLAVE_FATAL_ERROR,
            hint=f"to continue after you have written one of {states} into the column State, run: rplctl start\n"
            "To install the newest rplctl, if a newer rplctl wrote the row, run: pip install --upgrade rplctl; "
            "rplctl start",
        ) from None


def forget_channel(connection: Connection, channel: str) -> None:
    """Delete all rows of the channel in all existing internal tables, for RESET REPLICA ALL."""
    for table in _tables_there(connection):
        connection.execute(table.delete().where(table.c[KEY] == channel))


def rename_channel(connection: Connection, old: str, new: str) -> None:
    """Rename the channel in the rows of all existing internal tables and repository tables.

    The caller's transaction commits the change.
    """
    for table in _tables_there(connection, *info_tables(connection.dialect.name).values()):
        name = table.c[KEY]
        connection.execute(table.update().where(name == old).values({name: new}))


def has_rows(connection: Connection, channel: str) -> bool:
    """True if any internal table has a row of the channel."""
    asked = (select(table.c[KEY]).where(table.c[KEY] == channel).limit(1) for table in _tables_there(connection))
    return any(connection.execute(question).first() is not None for question in asked)


def _tables_there(connection: Connection, *others: Table) -> Iterator[Table]:
    """Return an iterator over the existing internal tables with a channel column, and the existing tables of
    `others`.
    """
    inspector = inspect(connection)
    tables = (*(make(connection.dialect.name) for make in (*_ALL, lake_batch)), *others)
    return (table for table in tables if inspector.has_table(table.name, table.schema))


def channels_in(connection: Connection, table: Table) -> frozenset[str]:
    """Return the names, in lower case, of the channels that have a row in this internal table."""
    names = connection.execute(select(table.c.Channel_name).distinct()).scalars()
    return frozenset(name.casefold() for name in names)


def create_own_tables(engine: Engine) -> None:
    """Create the internal tables that are missing. Existing rows never change.

    Only one process at a time creates the tables, under a lock in the target (`lock_installation`). Without this lock,
    two processes could wait for each other on MySQL (1213, 3058). The reason is that a transaction keeps metadata locks
    of the tables that it has read, and both processes want to alter them. If all tables exist, no lock is taken,
    because hundreds of channels may start at the same time. Raises TargetError if the target reports an error.
    """
    dialect = engine.dialect.name
    try:
        with mapped_errors(dialect), engine.connect() as connection:
            if _is_complete(connection):
                return
    except TargetError as error:
        if error.errno != er.WARN_I_S_SKIPPED_TABLE:  # 1684: another process is altering a table
            raise
    with mapped_errors(dialect), engine.begin() as connection:
        dialect_of(dialect).lock_installation(connection)
        if _is_complete(connection):  # another process was first
            return
        if schema := dialect_of(dialect).own_schema:
            connection.execute(CreateSchema(schema, if_not_exists=True))
        for make in _ALL:
            make(dialect).create(connection, checkfirst=True)
        add_pieces(connection)
        create_next_event_view(connection)


def _is_complete(connection: Connection) -> bool:
    schema, inspector = dialect_of(connection.dialect.name).own_schema, inspect(connection)
    if schema is not None and schema not in inspector.get_schema_names():
        return False
    names = inspector.get_table_names(schema)
    wanted = {make(connection.dialect.name).name for make in _ALL}
    return wanted <= set(names) and not _lacks_pieces(connection) and not lacks_next_event_view(connection)


def add_pieces(connection: Connection) -> None:
    """Convert the table rplctl_prepared_xa of an older rplctl, which stored each transaction in only one row.

    This row becomes the first part of the transaction. If the table is missing or already converted, nothing happens.
    If DDL commits implicitly in the target, the conversion is one ALTER. Otherwise, it is part of the caller's
    transaction.
    """
    if not _lacks_pieces(connection):
        return
    table, dialect = prepared_xa(connection.dialect.name), dialect_of(connection.dialect.name)
    name = dialect.own_name(table.name)
    if dialect.add_key_column(connection, name):
        return
    ask(connection, written("ALTER TABLE {} RENAME TO {}__old", name, word(table.name)))
    table.create(connection)
    kept = written('"Channel_name", "Xid", 0, "Format_description", "Events"')
    ask(connection, written("INSERT INTO {} SELECT {} FROM {}__old", name, kept, name))
    ask(connection, written("DROP TABLE {}__old", name))


def _lacks_pieces(connection: Connection) -> bool:
    table = prepared_xa(connection.dialect.name)
    inspector = inspect(connection)
    if not inspector.has_table(table.name, table.schema):
        return False
    return all(column["name"] != "Piece" for column in inspector.get_columns(table.name, table.schema))
