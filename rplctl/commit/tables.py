"""rplctl's own tables in the target, next to `slave_master_info` and `slave_relay_log_info`.

    rplctl_commit_marker    one row per channel: the position of the last commit while the repository is a FILE
    rplctl_table_models     the MySQL-side model of every replicated table, versioned by source position (design D18)
    rplctl_prepared_xa      events of XA transactions that the source prepared and has not ended yet
    rplctl_next_event       a view: the next event to execute, of each channel (repository/next_event.py)

In SQLite they stand beside the replicated tables, whose names always hold `__`; elsewhere in the schema/database
`rplctl`. Invariant: a table of an older rplctl is brought to the layout below before anything is read from it, by a
revision in migrations/ where the repositories are tables, by `create_own_tables` where they are files; no row is lost.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateSchema

from rplctl.repository.next_event import create_next_event_view
from rplctl.target import dialect_of, mapped_errors

_LONG_TEXT = Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
_OPTIONS: dict[str, Any] = {  # names of channels and tables are told apart bytewise
    f"{dialect}_{name}": value
    for dialect in ("mysql", "mariadb")
    for name, value in (("engine", "InnoDB"), ("default_charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}


def own_schema(engine: Engine) -> str | None:
    """Where our tables live on that target: None is SQLite's only one."""
    return dialect_of(engine.dialect.name).own_schema


def commit_marker(schema: str | None) -> Table:
    return Table(
        "rplctl_commit_marker",
        MetaData(schema=schema),
        Column("Channel_name", String(64), primary_key=True),
        Column("Relay_log_name", String(512), nullable=False),
        Column("Relay_log_pos", BigInteger, nullable=False),
        Column("Master_log_name", String(512), nullable=False),
        Column("Master_log_pos", BigInteger, nullable=False),
        Column("Gtid_executed", _LONG_TEXT, nullable=False),
        # True while file and marker were last seen equal with no applier running: a file that differs then was edited
        # by hand
        Column("File_in_step", Boolean, nullable=False),
        comment="Commit marker of channels whose relay log info repository is a FILE",
        **_OPTIONS,
    )


def table_models(schema: str | None) -> Table:
    return Table(
        "rplctl_table_models",
        MetaData(schema=schema),
        Column("Channel_name", String(64), primary_key=True),
        Column("Database_name", String(64), primary_key=True),
        Column("Table_name", String(64), primary_key=True),
        Column("Master_log_number", Integer, primary_key=True, autoincrement=False),
        Column("Master_log_pos", BigInteger, primary_key=True, autoincrement=False),
        Column("Model", _LONG_TEXT, nullable=True),  # JSON; NULL = the table was dropped here
        comment="MySQL-side table definitions, valid from their position on",
        **_OPTIONS,
    )


def prepared_xa(schema: str | None) -> Table:
    return Table(
        "rplctl_prepared_xa",
        MetaData(schema=schema),
        Column("Channel_name", String(64), primary_key=True),
        Column("Xid", String(300), primary_key=True),  # as XA COMMIT spells it: X'gtrid',X'bqual',format
        Column("Piece", Integer, primary_key=True, autoincrement=False),  # from 0
        Column("Format_description", _LONG_TEXT, nullable=False),  # JSON
        Column("Events", LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb"), nullable=False),
        comment="XA transactions of the source between XA PREPARE and XA COMMIT",
        **_OPTIONS,
    )


def create_own_tables(engine: Engine) -> None:
    """CREATE IF NOT EXISTS; never touches rows. Raises TargetError.

    One at a time, and the lock comes first: a transaction of MySQL keeps what it has looked at, so two that looked and
    then wanted to alter would wait for each other (1213, 3058).
    """
    schema = own_schema(engine)
    with mapped_errors(engine.dialect.name), engine.begin() as connection:
        dialect_of(connection.dialect.name).lock_installation(connection)
        if schema is not None:
            connection.execute(CreateSchema(schema, if_not_exists=True))
        for table in (commit_marker(schema), table_models(schema), prepared_xa(schema)):
            table.create(connection, checkfirst=True)
        add_pieces(connection)
        create_next_event_view(connection)


def add_pieces(connection: Connection) -> None:
    """rplctl_prepared_xa of a rplctl that kept each transaction in one row: that row is its first piece. Nothing when
    there is no such table. One ALTER where DDL commits, else in the caller's transaction.
    """
    if not _lacks_pieces(connection):
        return
    table = prepared_xa(own_schema(connection.engine))
    name = f"{table.schema}.{table.name}" if table.schema else table.name
    if dialect_of(connection.dialect.name).add_key_column(connection, name):
        return
    connection.execute(text(f"ALTER TABLE {name} RENAME TO {table.name}__old"))
    table.create(connection)
    kept = '"Channel_name", "Xid", 0, "Format_description", "Events"'
    connection.execute(text(f"INSERT INTO {name} SELECT {kept} FROM {name}__old"))
    connection.execute(text(f"DROP TABLE {name}__old"))


def _lacks_pieces(connection: Connection) -> bool:
    table = prepared_xa(own_schema(connection.engine))
    inspector = inspect(connection)
    if not inspector.has_table(table.name, table.schema):
        return False
    return all(column["name"] != "Piece" for column in inspector.get_columns(table.name, table.schema))
