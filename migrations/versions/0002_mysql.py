"""The layout that MySQL ships (8.0.32): Channel_name is the key, 64-bit positions, one column per line of the file.

WL#2775's names map so: Master_id → Channel_name ('' for the smallest, `master-ID` for others), Lines → Number_of_lines,
User → User_name, Password → User_password, Ssl → Enabled_ssl, Ssl_verify_servert_cert → Ssl_verify_server_cert,
Ignore_server_ids → Ignored_server_ids; the other names are the same. PostgreSQL: names in lower case.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

from alembic import context, op
from sqlalchemy import Connection, Integer

from rplctl.errors import RplError
from rplctl.repository.layout import (
    MYSQL_LAYOUT,
    NAMES,
    WL2775,
    Columns,
    ColumnTypes,
    Row,
    layout_of,
    read_rows,
    rebuild_table,
)
from rplctl.repository.table import channels_of_ids

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

PK_CHECK = ("STREAM", "ON", "OFF", "GENERATE")
ASSIGN_GTIDS = ("OFF", "LOCAL", "UUID")
WORKLOG_LINES = 19  # the worklog's columns, written as a file
MAX_WORKLOG_POSITION = (1 << 32) - 1
RENAMED = {
    "user": "user_name",
    "password": "user_password",
    "ssl": "enabled_ssl",
    "ssl_verify_servert_cert": "ssl_verify_server_cert",
    "ignore_server_ids": "ignored_server_ids",
}
NEW_IN_MASTER_INFO: Row = {
    "bind": "", "uuid": "", "ssl_crl": "", "ssl_crlpath": "", "enabled_auto_position": False, "tls_version": "",
    "public_key_path": "", "get_public_key": False, "network_namespace": "",
    "master_compression_algorithm": "uncompressed", "master_zstd_compression_level": 3, "tls_ciphersuites": None,
    "source_connection_auto_failover": False, "gtid_only": False,
}  # fmt: skip
NEW_IN_RELAY_LOG_INFO: Row = {
    "sql_delay": 0, "number_of_workers": 0, "id": 1, "privilege_checks_username": None,
    "privilege_checks_hostname": None, "require_row_format": False, "require_table_primary_key_check": "STREAM",
    "assign_gtids_to_anonymous_transactions_type": "OFF", "assign_gtids_to_anonymous_transactions_value": "",
}  # fmt: skip


def columns(dialect: str, rep_engine: str) -> dict[str, Columns]:
    """The server since 8.0.32: one column per line of its files."""
    t = ColumnTypes(dialect, rep_engine)
    return dict(zip(NAMES, (_master_info(t), _relay_log_info(t)), strict=True))


def _master_info(t: ColumnTypes) -> Columns:
    return [
        t.column("Number_of_lines", t.unsigned, null=False),
        t.column("Master_log_name", t.text, null=False),
        t.column("Master_log_pos", t.position, null=False),
        t.column("Host", t.name(255)),
        t.column("User_name", t.text),
        t.column("User_password", t.text),
        t.column("Port", t.unsigned, null=False),
        t.column("Connect_retry", t.unsigned, null=False),
        t.column("Enabled_ssl", t.switch, null=False),
        *(t.column(name, t.text) for name in ("Ssl_ca", "Ssl_capath", "Ssl_cert", "Ssl_cipher", "Ssl_key")),
        t.column("Ssl_verify_server_cert", t.switch, null=False),
        t.column("Heartbeat", t.seconds, null=False),
        *(t.column(name, t.text) for name in ("Bind", "Ignored_server_ids", "Uuid")),
        t.column("Retry_count", t.position, null=False),
        *(t.column(name, t.text) for name in ("Ssl_crl", "Ssl_crlpath")),
        t.column("Enabled_auto_position", t.switch, null=False),
        t.column("Channel_name", t.name(64, "utf8mb4_general_ci"), null=False, primary_key=True),
        *(t.column(name, t.text) for name in ("Tls_version", "Public_key_path")),
        t.column("Get_public_key", t.switch, null=False),
        t.column("Network_namespace", t.text),
        t.column("Master_compression_algorithm", t.name(64), null=False),
        t.column("Master_zstd_compression_level", t.unsigned, null=False),
        t.column("Tls_ciphersuites", t.text),
        t.column("Source_connection_auto_failover", t.switch, "0", null=False),
        t.column("Gtid_only", t.switch, "0", null=False),
    ]


def _relay_log_info(t: ColumnTypes) -> Columns:
    return [
        t.column("Number_of_lines", t.unsigned, null=False),
        t.column("Relay_log_name", t.text),
        t.column("Relay_log_pos", t.position),
        t.column("Master_log_name", t.text),
        t.column("Master_log_pos", t.position),
        t.column("Sql_delay", Integer()),
        t.column("Number_of_workers", t.unsigned),
        t.column("Id", t.unsigned),
        t.column("Channel_name", t.name(64, "utf8mb4_general_ci"), null=False, primary_key=True),
        t.column("Privilege_checks_username", t.name(32)),
        t.column("Privilege_checks_hostname", t.name(255)),
        t.column("Require_row_format", t.switch, null=False),
        t.column("Require_table_primary_key_check", t.choice("pk_check", PK_CHECK), "'STREAM'", null=False),
        t.column(
            "Assign_gtids_to_anonymous_transactions_type", t.choice("assign_gtids", ASSIGN_GTIDS), "'OFF'", null=False
        ),
        t.column("Assign_gtids_to_anonymous_transactions_value", t.text),
    ]


def upgrade() -> None:
    connection = op.get_bind()
    rep_engine = context.config.attributes.get("rep_engine", "")
    ids = sorted({row["master_id"] for name in NAMES for row in _rows_in(connection, name, WL2775)})
    channels = dict(zip(ids, channels_of_ids(ids), strict=True))

    def from_worklog(row: Row) -> Row:
        is_master = "lines" in row
        new = {RENAMED.get(key, key): value for key, value in row.items() if key not in ("master_id", "lines")}
        added = NEW_IN_MASTER_INFO if is_master else NEW_IN_RELAY_LOG_INFO
        lines = 33 if is_master else 14
        return {**new, **added, "number_of_lines": lines, "channel_name": channels[row["master_id"]]}

    for name in NAMES:
        if layout_of(connection, name) == WL2775:
            rebuild_table(connection, name, columns, from_worklog, rep_engine)


def downgrade() -> None:
    """What the worklog has no column for is lost; a position beyond its 32 bits is refused."""
    connection = op.get_bind()
    names = sorted({row["channel_name"] for name in NAMES for row in _rows_in(connection, name, MYSQL_LAYOUT)})
    ids = {channel: number for number, channel in enumerate(names, 1)}
    back = {new: old for old, new in RENAMED.items()}
    worklog_columns = context.script.get_revision(down_revision).module.columns

    def to_worklog(row: Row) -> Row:
        position = max(row["master_log_pos"] or 0, row.get("relay_log_pos") or 0)
        if position > MAX_WORKLOG_POSITION:
            raise RplError(f"position {position} does not fit into WL#2775's INTEGER UNSIGNED: nothing was changed")
        old = {back.get(key, key): value for key, value in row.items()}
        old["master_log_name"] = row["master_log_name"] or ""
        if "retry_count" in old:
            old["retry_count"] = min(old["retry_count"], MAX_WORKLOG_POSITION)
        return {**old, "master_id": ids[row["channel_name"]], "lines": WORKLOG_LINES}

    for name in NAMES:
        if layout_of(connection, name) == MYSQL_LAYOUT:
            rebuild_table(connection, name, worklog_columns, to_worklog, "")


def _rows_in(connection: Connection, name: str, layout: str) -> list[Row]:
    return read_rows(connection, name) if layout_of(connection, name) == layout else []
