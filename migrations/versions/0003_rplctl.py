"""Our layout: MySQL's, MariaDB's GTID settings, and what makes a channel one of many and safe.

    Master_id                            WL#2775's key, UNIQUE (REQ-2)
    Master_server_id                     of the source last seen: the wrong-server guard
    Flushed_relay_log_name, …_pos        where the relay log ended when the row was written (WL#9452)
    Gtid_executed                        moves with the position

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from collections.abc import Callable

from alembic import context, op

from rplctl.repository.layout import (
    MYSQL_LAYOUT,
    NAMES,
    OURS,
    Columns,
    ColumnTypes,
    Row,
    layout_of,
    read_rows,
    rebuild_table,
)

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NEW: Row = {
    "using_gtid": 0, "do_domain_ids": "0", "ignore_domain_ids": "0", "master_server_id": 0, "master_binlog_dir": "",
    "flushed_relay_log_name": "", "flushed_relay_log_pos": 0, "gtid_executed": "",
}  # fmt: skip


def columns(dialect: str, rep_engine: str) -> dict[str, Columns]:
    """The server's, then what only MariaDB or rplctl keeps."""
    t = ColumnTypes(dialect, rep_engine)
    master, relay = _mysql_columns(dialect, rep_engine).values()
    master += [
        t.column("Using_gtid", t.unsigned, null=False),
        t.column("Do_domain_ids", t.text),
        t.column("Ignore_domain_ids", t.text),
        t.column("Master_id", t.unsigned, null=False, unique=True),
        t.column("Master_server_id", t.unsigned, null=False),
        t.column("Master_binlog_dir", t.text),
        t.column("Flushed_relay_log_name", t.text),
        t.column("Flushed_relay_log_pos", t.position, null=False),
    ]
    relay += [
        t.column("Master_id", t.unsigned, null=False, unique=True),
        t.column("Gtid_executed", t.long_text),
    ]
    return dict(zip(NAMES, (master, relay), strict=True))


def _mysql_columns(dialect: str, rep_engine: str) -> dict[str, Columns]:
    columns_of: Callable[[str, str], dict[str, Columns]] = context.script.get_revision(down_revision).module.columns
    return columns_of(dialect, rep_engine)


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
        rebuild_table(
            connection, name, columns, lambda row: {**row, **NEW, "master_id": ids[row["channel_name"]]}, rep_engine
        )


def downgrade() -> None:
    connection = op.get_bind()
    for name in NAMES:
        if layout_of(connection, name) == OURS:
            rebuild_table(connection, name, _mysql_columns, lambda row: row, "")
