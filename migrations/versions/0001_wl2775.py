"""slave_master_info and slave_relay_log_info as the worklog WL#2775 defines them, typos and all.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from alembic import context, op

from rplctl.repository.layout import create, layout_of
from rplctl.repository.layout_columns import NAMES, worklog_columns
from rplctl.repository.next_event import drop_next_event_view
from rplctl.target.registry import dialect_of

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Tables that are there, in whatever layout, stay as they are: each later revision knows which it has to change."""
    connection = op.get_bind()
    rep_engine = context.config.attributes.get("rep_engine", "")
    for name, columns in worklog_columns(connection.dialect.name, rep_engine).items():
        if layout_of(connection, name) is None:
            create(connection, name, columns, rep_engine)


def downgrade() -> None:
    connection = op.get_bind()
    drop_next_event_view(connection)
    for name in reversed(NAMES):
        if layout_of(connection, name) is not None:
            op.drop_table(name, schema=dialect_of(connection.dialect.name).own_schema)
