"""Which layout a repository table has, and taking it to another one without a moment in which its rows are nowhere.

    wl2775     the worklog's: Master_id, Lines, User, Ssl …, 32-bit positions
    mysql      the shipped server's (8.0.32): Channel_name, Number_of_lines, Enabled_ssl …
    rplctl     that and our columns: Using_gtid … Master_id (UNIQUE), Gtid_executed

Invariant: a rebuild that is killed anywhere is done again, or is done already. SQLite and PostgreSQL do it in the
caller's transaction; MySQL and MariaDB, whose DDL commits, fill a new table and exchange the two in one RENAME.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, MetaData, Table, inspect, select, text

from rplctl.repository.column_types import MYSQL
from rplctl.repository.layout_columns import NAMES, Columns
from rplctl.repository.next_event import drop_next_event_view
from rplctl.repository.tables import schema_of

WL2775, MYSQL_LAYOUT, OURS = "wl2775", "mysql", "rplctl"
COMMENTS = dict(zip(NAMES, ("Master Information", "Relay Log Information"), strict=True))
_OURS_ONLY = {"using_gtid", "gtid_executed"}
_NEW, _OLD = "__rplctl_new", "__rplctl_old"

Row = dict[str, Any]


def layout_of(connection: Connection, name: str) -> str | None:
    """The layout by its columns; None when there is no such table. A damaged table counts as the nearest."""
    dialect = connection.dialect.name
    inspector = inspect(connection)
    if not inspector.has_table(name, schema=schema_of(dialect)):
        return None
    columns = {str(column["name"]).lower() for column in inspector.get_columns(name, schema_of(dialect))}
    if columns & _OURS_ONLY:
        return OURS
    return MYSQL_LAYOUT if "channel_name" in columns else WL2775


def read_rows(connection: Connection, name: str) -> list[Row]:
    """Every row, names in lower case."""
    found = connection.execute(text(f"SELECT * FROM {_qualified(connection, name)}"))
    return [{key.lower(): value for key, value in row.items()} for row in found.mappings()]


def create(connection: Connection, name: str, columns: Columns, rep_engine: str) -> Table:
    """CREATE TABLE with the server's comment, in that engine; everybody may read all but the password on PostgreSQL."""
    dialect = connection.dialect.name
    options: dict[str, Any] = {"comment": COMMENTS[name.partition("__")[0]]}
    if dialect in MYSQL:
        options |= {f"{dialect}_engine": rep_engine or "InnoDB", f"{dialect}_default_charset": "utf8mb4"}
        options |= {f"{dialect}_stats_persistent": "0"} if (rep_engine or "InnoDB").lower() == "innodb" else {}
    if dialect == "postgresql" and rep_engine.upper() == "UNLOGGED":
        options["prefixes"] = ["UNLOGGED"]
    table = Table(name, MetaData(schema=schema_of(dialect)), *columns, **options)
    table.create(connection)
    if dialect == "postgresql":
        _let_everyone_read(connection, table)
    return table


def take_to(
    connection: Connection,
    name: str,
    columns_of: Callable[[str, str], dict[str, Columns]],
    convert: Callable[[Row], Row],
    rep_engine: str,
) -> None:
    """Make the table anew with these columns and its converted rows; its engine stays unless another is given."""
    drop_next_event_view(connection)  # it would hold the table where DROP looks at dependents
    rep_engine = rep_engine or engine_of(connection, name)
    columns = columns_of(connection.dialect.name, rep_engine)[name]
    rows = [convert(row) for row in read_rows(connection, name)]
    if connection.dialect.name not in MYSQL:
        connection.execute(text(f"DROP TABLE {_qualified(connection, name)}"))
        _insert(connection, create(connection, name, columns, rep_engine), rows)
        return
    new, old, now = (_qualified(connection, name + suffix) for suffix in (_NEW, _OLD, ""))
    _insert(connection, create(connection, name + _NEW, columns, rep_engine), rows)
    connection.execute(text("COMMIT"))
    connection.execute(text(f"RENAME TABLE {now} TO {old}, {new} TO {now}"))
    connection.execute(text(f"DROP TABLE {old}"))


def sweep(connection: Connection, name: str) -> None:
    """What a rebuild that was killed left behind: neither table was ever the only one."""
    if connection.dialect.name in MYSQL:
        for suffix in (_NEW, _OLD):
            connection.execute(text(f"DROP TABLE IF EXISTS {_qualified(connection, name + suffix)}"))


def engine_of(connection: Connection, name: str) -> str:
    """What `rep_engine` would have to be to get this table's engine; '' for the default."""
    names = {"schema": schema_of(connection.dialect.name), "name": name}
    if connection.dialect.name in MYSQL:
        query = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :name"
        return str(connection.execute(text(query), names).scalar() or "")
    if connection.dialect.name == "postgresql":
        query = "SELECT relpersistence FROM pg_class WHERE oid = to_regclass(:schema || '.' || :name)"
        return "UNLOGGED" if connection.execute(text(query), names).scalar() in ("u", b"u") else ""
    return ""


def _insert(connection: Connection, table: Table, rows: list[Row]) -> None:
    for row in rows:
        connection.execute(table.insert().values({column: row[column.name.lower()] for column in table.columns}))
    count = connection.execute(select(sa.func.count()).select_from(table)).scalar_one()
    assert count == len(rows), f"{count} of {len(rows)} rows arrived in {table.name}"


def _let_everyone_read(connection: Connection, table: Table) -> None:
    """REQ-1: "any user can read"; all but the password."""
    readable = ", ".join(column.name for column in table.columns if column.name not in ("user_password", "password"))
    connection.execute(text(f"GRANT USAGE ON SCHEMA {table.schema} TO PUBLIC"))
    quoted = ", ".join(f'"{name}"' for name in readable.split(", "))
    connection.execute(text(f"GRANT SELECT ({quoted}) ON {table.schema}.{table.name} TO PUBLIC"))


def _qualified(connection: Connection, name: str) -> str:
    schema = schema_of(connection.dialect.name)
    return f"{schema}.{name}" if schema else name
