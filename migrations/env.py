"""Alembic's entry: run the revisions on the connection that rplctl/repository/install.py hands over.

There is no alembic.ini and no URL: the connection, its transaction and its lock are the caller's.
"""

from __future__ import annotations

from alembic import context

from rplctl.repository.install import VERSION_TABLE
from rplctl.repository.layout import NAMES, sweep
from rplctl.target.registry import dialect_of

connection = context.config.attributes["connection"]
dialect = connection.dialect.name

dialect_of(dialect).make_own_schema(connection)

for name in NAMES:
    sweep(connection, name)

context.configure(
    connection=connection,
    target_metadata=None,
    version_table=VERSION_TABLE,
    version_table_schema=dialect_of(dialect).own_schema,
)
with context.begin_transaction():
    context.run_migrations()
