"""Alembic's entry: run the revisions on the connection that rplctl/repository/install.py hands over.

There is no alembic.ini and no URL: the connection, its transaction and its lock are the caller's.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import text

from rplctl.repository.install import VERSION_TABLE
from rplctl.repository.layout import sweep
from rplctl.repository.layout_columns import NAMES
from rplctl.repository.tables import SCHEMA, schema_of

connection = context.config.attributes["connection"]
dialect = connection.dialect.name

if dialect == "postgresql":
    connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
elif dialect in ("mysql", "mariadb"):
    connection.execute(text(f"CREATE DATABASE IF NOT EXISTS {SCHEMA} CHARACTER SET utf8mb4"))
    # an engine that the server lacks is an error, not silently another engine
    connection.execute(text("SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',NO_ENGINE_SUBSTITUTION')"))

for name in NAMES:
    sweep(connection, name)

context.configure(
    connection=connection,
    target_metadata=None,
    version_table=VERSION_TABLE,
    version_table_schema=schema_of(dialect),
)
with context.begin_transaction():
    context.run_migrations()
