"""The view rplctl_next_event: the next event to execute, readable by SQL (WL#4621).

Also made by an applier's start, where the repositories are files (own_tables/tables.py). Down: the view goes, no
row does.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

from alembic import op

from rplctl.repository.next_event import create_next_event_view, drop_next_event_view

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_next_event_view(op.get_bind())


def downgrade() -> None:
    drop_next_event_view(op.get_bind())
