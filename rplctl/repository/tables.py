"""The two repository tables as SQLAlchemy Core objects, and the schema that contains them.

The columns have MySQL's names. migrations/versions (alembic) contains their DDL. The tables are here:
    SQLite           the main schema of the target
    MySQL, MariaDB   the database `rplctl`
    PostgreSQL       the schema `rplctl`

PostgreSQL's columns are in lower case, so that `SELECT Relay_log_pos FROM rplctl.slave_relay_log_info` works on every
server.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Connection, Engine, Float, MetaData, Table, Text, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from rplctl.repository.base import Info
from rplctl.repository.fields import Field, Number, OnOff, Seconds
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO, OlderLayout, Record
from rplctl.target.asked_once import answer, is_answered
from rplctl.target.registry import dialect_of

NUMBER_OF_LINES = "Number_of_lines"
KEY = "Channel_name"


@cache
def info_tables(dialect: str) -> dict[str, Table]:
    """Return the tables of MasterInfo and RelayLogInfo by their names.

    `dialect`: `engine.dialect.name`. For every database, the keys of the columns are MySQL's names.
    """
    metadata = MetaData(schema=dialect_of(dialect).own_schema)
    return {record.table: _table(record, metadata, dialect) for record in (MASTER_INFO, RELAY_LOG_INFO)}


def _table(record: Record[Any], metadata: MetaData, dialect: str) -> Table:
    columns = [Column(dialect_of(dialect).stored_name(NUMBER_OF_LINES), BigInteger, key=NUMBER_OF_LINES)]
    for field in record.fields:
        name = dialect_of(dialect).stored_name(field.column)
        columns.append(Column(name, _type(field), key=field.column, primary_key=field.column == KEY))
    return Table(record.table, metadata, *columns)


def _type(field: Field) -> Any:
    if isinstance(field.notation, Number):
        return BigInteger
    if isinstance(field.notation, OnOff):
        return Boolean
    return Float(53) if isinstance(field.notation, Seconds) else Text


def qualified_name(dialect: str, table: str) -> str:
    """Return the table's name as the server's messages show it: `rplctl.slave_master_info`, or `main.…` on SQLite."""
    return f"{dialect_of(dialect).own_schema or 'main'}.{table}"


def table_exists(connection: Connection, record: Record[Info]) -> bool:
    return own_table_exists(connection, record.table)


def is_known_to_lack(engine: Engine, record: Record[Info]) -> bool:
    """True if the current command already knows that the target lacks the table.

    target/asked_once.py caches such answers for a command about many channels.
    """
    return is_answered(engine, record.table, by=False)


def own_table_exists(connection: Connection, name: str) -> bool:
    schema = dialect_of(connection.dialect.name).own_schema
    return answer(connection.engine, name, lambda: inspect(connection).has_table(name, schema=schema))


def has_channels(connection: Connection, record: Record[Info]) -> bool:
    """True if the table has a column with channel names.

    False for the layout of WL#2775, which identifies a source only by its Master_id.
    """
    columns = inspect(connection).get_columns(record.table, dialect_of(connection.dialect.name).own_schema)
    return any(str(column["name"]).lower() == KEY.lower() for column in columns)


def check_definition(connection: Connection, record: Record[Info], channel: str) -> None:
    """Raise RplError 1201 (MasterInfo) or 1872 (RelayLogInfo), with the server's text, if rplctl cannot use the table.

    The reason is a missing table, a missing column, or another primary key. OlderLayout is raised for an older layout.
    """
    dialect, inspector = connection.dialect.name, inspect(connection)
    where = qualified_name(dialect, record.table)
    if not table_exists(connection, record):
        why = f"Info table is not ready to be used. Table '{where}' cannot be opened."
        raise record.damaged(channel, why, "to create the table, run: rplctl init")
    schema = dialect_of(dialect).own_schema
    present = {str(column["name"]).lower() for column in inspector.get_columns(record.table, schema)}
    missing = [f.column for f in record.fields if f.column.lower() not in present]
    if missing and is_older_layout(present):
        why = f"Table '{where}' has the layout of an older version"
        hint = (
            "To upgrade the table, run: rplctl start\n"
            "To change its engine, too (init changes only this setting), run: rplctl init --rep-engine NAME"
        )
        raise record.damaged(channel, why, hint, OlderLayout)
    if missing:
        why = f"Corrupted table {where}. Check out table definition. It has no column '{missing[0]}'."
        raise record.damaged(channel, why, _repair_hint(connection, record, channel, where))
    key = inspector.get_pk_constraint(record.table, schema)["constrained_columns"]
    if [column.lower() for column in key] != [KEY.lower()]:
        found = ", ".join(key) or "no key"
        why = (
            "Info table has a problem with its key field(s). "
            f"Table '{where}' expected field #1 to be '{KEY}' but found '{found}' instead."
        )
        raise record.damaged(channel, why, _repair_hint(connection, record, channel, where))


def is_older_layout(columns: set[str]) -> bool:
    """True if these columns (in lower case) belong to the layout of WL#2775, or to MySQL's layout without rplctl's
    columns.

    False for a table that has only lost a single column.
    """
    is_worklog = "master_id" in columns and "channel_name" not in columns
    return is_worklog or ({"number_of_lines", "channel_name"} <= columns and "master_id" not in columns)


def _repair_hint(connection: Connection, record: Record[Info], channel: str, where: str) -> str:
    """Return the commands that replace a damaged table, for the hint of an error.

    The commands drop the table, create it again, and write the row of each channel with the values of the old table.
    """
    # CASCADE also drops the view rplctl_next_event, and `rplctl init` creates the view again.
    cascade = dialect_of(connection.dialect.name).cascade
    c = info_tables(connection.dialect.name)[record.table].c
    is_master = record.name == "master-info"
    known: dict[str, tuple[Any, Any]] = {}
    names = [channel]
    with suppress(SQLAlchemyError):  # the names come first, because on PostgreSQL an error ends the transaction
        found = sorted(str(name) for name in connection.execute(select(c[KEY])).scalars())
        names += [name for name in found if name.casefold() != channel.casefold()]
        wanted = (c.Host, c.Port) if is_master else (c.Master_log_name, c.Master_log_pos)
        known = {str(row[0]): (row[1], row[2]) for row in connection.execute(select(c[KEY], *wanted))}
    commands: list[str] = [_again(name, known.get(name), is_master=is_master) for name in names]
    kept = " (the executed positions are kept elsewhere)" if is_master else ""
    return "; ".join([f"DROP TABLE {where}{cascade}", "rplctl init", *commands]) + kept


def _again(channel: str, known: tuple[Any, Any] | None, *, is_master: bool) -> str:
    """Return the `rplctl change-master` command that writes the channel's row to the new table.

    `known`: the host and port (MasterInfo) or the log name and position (RelayLogInfo) in the old table. None if the
    old table has no row of the channel.
    """
    name = f" --channel {shlex.quote(channel)}" if channel else ""
    if is_master:
        host, port = known or ("HOST", "PORT")
        where = f"--master-host {host or 'HOST'} --master-port {port} --master-user USER --ask-password"
        return f"rplctl change-master{name} {where}"
    file, position = known or ("FILE", "POS")
    return f"rplctl change-master{name} --master-log-file {file} --master-log-pos {position}"
