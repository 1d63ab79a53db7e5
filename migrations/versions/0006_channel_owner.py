"""The table rplctl_channel_owner: which instance and source a channel's rows in the target belong to.

Also made by an applier's start, where the repositories are files (own_tables/tables.py). The first start of each
channel fills its row in. Down: the table goes, and rows have no owner again.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

from alembic import op

from rplctl.own_tables.tables import channel_owner

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    channel_owner(connection.dialect.name).create(connection, checkfirst=True)


def downgrade() -> None:
    connection = op.get_bind()
    channel_owner(connection.dialect.name).drop(connection, checkfirst=True)
