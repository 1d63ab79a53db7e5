"""Prepared XA transactions of the source in pieces: `Piece` becomes part of rplctl_prepared_xa's key.

Only where an applier has made that table; a new one has the column (own_tables/tables.py). Down: nothing, an older
rplctl could not read what several pieces hold.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from alembic import op

from rplctl.own_tables.tables import add_pieces

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_pieces(op.get_bind())


def downgrade() -> None:
    """See above."""
