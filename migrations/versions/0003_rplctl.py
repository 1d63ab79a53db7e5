"""Our layout: MySQL's, MariaDB's GTID settings, and what makes a channel one of many and safe.

    Master_id                            WL#2775's key, UNIQUE (REQ-2)
    Master_server_id                     of the source last seen: the wrong-server guard
    Flushed_relay_log_name, …_pos        where the relay log ended when the row was written (WL#9452)
    Gtid_executed                        moves with the position

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from alembic import context, op

from rplctl.repository.layout import MYSQL_LAYOUT, OURS, Row, layout_of, read_rows, take_to
from rplctl.repository.layout_columns import NAMES, mysql_columns, our_columns

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NEW: Row = {
    "using_gtid": 0, "do_domain_ids": "0", "ignore_domain_ids": "0", "master_server_id": 0, "master_binlog_dir": "",
    "flushed_relay_log_name": "", "flushed_relay_log_pos": 0, "gtid_executed": "",
}  # fmt: skip


def upgrade() -> None:
    connection = op.get_bind()
    rep_engine = context.config.attributes.get("rep_engine", "")
    old = [name for name in NAMES if layout_of(connection, name) == MYSQL_LAYOUT]
    ids = {
        row["channel_name"]: row["master_id"]
        for name in NAMES
        if name not in old
        for row in read_rows(connection, name)
    }
    for channel in sorted({row["channel_name"] for name in old for row in read_rows(connection, name)} - set(ids)):
        ids[channel] = max(ids.values(), default=0) + 1
    for name in old:
        take_to(
            connection, name, our_columns, lambda row: {**row, **NEW, "master_id": ids[row["channel_name"]]}, rep_engine
        )


def downgrade() -> None:
    connection = op.get_bind()
    for name in NAMES:
        if layout_of(connection, name) == OURS:
            take_to(connection, name, mysql_columns, lambda row: row, "")
