"""Alembic's entry: run the revisions on the connection that rplctl/repository/install.py hands over.

There is no alembic.ini and no URL: the connection, its transaction and its lock are the caller's.
"""

from __future__ import annotations

from alembic import context
from alembic.ddl import DefaultImpl

from rplctl.repository.install import VERSION_TABLE
from rplctl.repository.layout import NAMES, create, layout_of, sweep
from rplctl.target.registry import dialect_of

NEWEST_LAYOUT = "0003"  # the last revision that changed a column

connection = context.config.attributes["connection"]
dialect = connection.dialect.name

try:
    DefaultImpl.get_by_dialect(connection.dialect)
except KeyError:  # Alembic does not know each kind of target, and the revisions need none of its special cases
    type("KindImpl", (DefaultImpl,), {"__dialect__": dialect})  # a subclass registers itself under this name

dialect_of(dialect).make_own_schema(connection)

for name in NAMES:
    sweep(connection, name)
if context.get_revision_argument() == context.get_head_revision():
    # a table that is not there needs no older layout first: the revisions that change columns leave it as it is
    rep_engine = context.config.attributes.get("rep_engine", "")
    newest = context.script.get_revision(NEWEST_LAYOUT).module.columns(dialect, rep_engine)
    for name in NAMES:
        if layout_of(connection, name) is None:
            create(connection, name, newest[name], rep_engine)

context.configure(
    connection=connection,
    target_metadata=None,
    version_table=VERSION_TABLE,
    version_table_schema=dialect_of(dialect).own_schema,
)
with context.begin_transaction():
    context.run_migrations()
