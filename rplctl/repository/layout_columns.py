"""The columns of both repository tables in each layout (layout.py), as literal as the servers' own scripts.

Invariant: a layout that was released never changes here; a new one gets a new function and a revision in migrations/.
Different from the servers': Heartbeat is DOUBLE (FLOAT cannot hold 4294967.123), positions are signed BIGINT where the
database has no unsigned ones, and the worklog's PRIMARY KEY (master_id(128)) on an INTEGER, which every server refuses,
is PRIMARY KEY (Master_id).
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from rplctl.repository.column_types import ColumnTypes

NAMES = ("slave_master_info", "slave_relay_log_info")
PK_CHECK = ("STREAM", "ON", "OFF", "GENERATE")
ASSIGN_GTIDS = ("OFF", "LOCAL", "UUID")

Columns = list[sa.Column[Any]]


def worklog_columns(dialect: str, rep_engine: str) -> dict[str, Columns]:
    """WL#2775, its spelling included."""
    t = ColumnTypes(dialect, rep_engine)
    unsigned, text, switch = t.unsigned, t.text, t.switch
    seconds = t.short_seconds
    positions = [
        t.column("Master_log_name", text, null=False),
        t.column("Master_log_pos", unsigned, null=False),
    ]
    master = [
        t.column("Master_id", unsigned, null=False, key=True),
        t.column("Lines", unsigned, null=False),
        *positions,
        *(t.column(name, text) for name in ("Host", "User", "Password")),
        t.column("Port", unsigned, null=False),
        t.column("Connect_retry", unsigned, null=False),
        t.column("Ssl", switch, null=False),
        *(t.column(name, text) for name in ("Ssl_ca", "Ssl_capath", "Ssl_cert", "Ssl_cipher", "Ssl_key")),
        t.column("Ssl_verify_servert_cert", switch, null=False),
        t.column("Heartbeat", seconds, null=False),
        t.column("Ignore_server_ids", text),
        t.column("Retry_count", unsigned, null=False),
    ]
    relay = [
        t.column("Master_id", unsigned, null=False, key=True),
        t.column("Relay_log_name", text),
        t.column("Relay_log_pos", unsigned, null=False),
        t.column("Master_log_name", text, null=False),
        t.column("Master_log_pos", unsigned, null=False),
    ]
    return dict(zip(NAMES, (master, relay), strict=True))


def mysql_columns(dialect: str, rep_engine: str) -> dict[str, Columns]:
    """The server since 8.0.32: one column per line of its files."""
    t = ColumnTypes(dialect, rep_engine)
    return dict(zip(NAMES, (_mysql_master_info(t), _mysql_relay_log_info(t)), strict=True))


def our_columns(dialect: str, rep_engine: str) -> dict[str, Columns]:
    """The server's, then what only MariaDB or rplctl keeps; Master_id is WL#2775's key, unique (REQ-2)."""
    t = ColumnTypes(dialect, rep_engine)
    master = [
        *_mysql_master_info(t),
        t.column("Using_gtid", t.unsigned, null=False),
        t.column("Do_domain_ids", t.text),
        t.column("Ignore_domain_ids", t.text),
        _unique_id(t),
        t.column("Master_server_id", t.unsigned, null=False),
        t.column("Master_binlog_dir", t.text),
        t.column("Flushed_relay_log_name", t.text),
        t.column("Flushed_relay_log_pos", t.position, null=False),
    ]
    relay = [
        *_mysql_relay_log_info(t),
        _unique_id(t),
        t.column("Gtid_executed", t.long_text),
    ]
    return dict(zip(NAMES, (master, relay), strict=True))


def _unique_id(t: ColumnTypes) -> sa.Column[Any]:
    column: sa.Column[Any] = t.column("Master_id", t.unsigned, null=False)
    column.unique = True
    return column


def _mysql_master_info(t: ColumnTypes) -> Columns:
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
        t.column("Channel_name", t.name(64, "utf8mb4_general_ci"), null=False, key=True),
        *(t.column(name, t.text) for name in ("Tls_version", "Public_key_path")),
        t.column("Get_public_key", t.switch, null=False),
        t.column("Network_namespace", t.text),
        t.column("Master_compression_algorithm", t.name(64), null=False),
        t.column("Master_zstd_compression_level", t.unsigned, null=False),
        t.column("Tls_ciphersuites", t.text),
        t.column("Source_connection_auto_failover", t.switch, "0", null=False),
        t.column("Gtid_only", t.switch, "0", null=False),
    ]


def _mysql_relay_log_info(t: ColumnTypes) -> Columns:
    return [
        t.column("Number_of_lines", t.unsigned, null=False),
        t.column("Relay_log_name", t.text),
        t.column("Relay_log_pos", t.position),
        t.column("Master_log_name", t.text),
        t.column("Master_log_pos", t.position),
        t.column("Sql_delay", sa.Integer()),
        t.column("Number_of_workers", t.unsigned),
        t.column("Id", t.unsigned),
        t.column("Channel_name", t.name(64, "utf8mb4_general_ci"), null=False, key=True),
        t.column("Privilege_checks_username", t.name(32)),
        t.column("Privilege_checks_hostname", t.name(255)),
        t.column("Require_row_format", t.switch, null=False),
        t.column("Require_table_primary_key_check", t.choice("pk_check", PK_CHECK), "'STREAM'", null=False),
        t.column(
            "Assign_gtids_to_anonymous_transactions_type", t.choice("assign_gtids", ASSIGN_GTIDS), "'OFF'", null=False
        ),
        t.column("Assign_gtids_to_anonymous_transactions_value", t.text),
    ]
