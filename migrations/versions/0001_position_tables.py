"""slave_master_info and slave_relay_log_info, as MySQL 8.0.32 defines them, plus our columns (WL#2775).

Kept: the server's column names, order, defaults and PRIMARY KEY (Channel_name). Different: Heartbeat is DOUBLE
(FLOAT cannot hold 4294967.123), positions are signed BIGINT where the database has no unsigned ones.
WL#2775's names map so: Master_id → Master_id (UNIQUE, ours), Lines → Number_of_lines, User → User_name,
Password → User_password, Ssl → Enabled_ssl, Ssl_verify_servert_cert → Ssl_verify_server_cert,
Ignore_server_ids → Ignored_server_ids; the other names are the same. PostgreSQL: names in lower case.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context, op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SCHEMA = "rplctl"
PK_CHECK = ("STREAM", "ON", "OFF", "GENERATE")
ASSIGN_GTIDS = ("OFF", "LOCAL", "UUID")


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    _create("slave_master_info", "Master Information", _master_info_columns(dialect), dialect)
    _create("slave_relay_log_info", "Relay Log Information", _relay_log_info_columns(dialect), dialect)


def downgrade() -> None:
    schema = None if op.get_bind().dialect.name == "sqlite" else SCHEMA
    op.drop_table("slave_relay_log_info", schema=schema)
    op.drop_table("slave_master_info", schema=schema)


def _create(name: str, comment: str, columns: list[sa.Column[Any]], dialect: str) -> None:
    rep_engine = context.config.attributes.get("rep_engine", "")
    options: dict[str, Any] = {"comment": comment, "if_not_exists": True}
    if dialect in ("mysql", "mariadb"):
        options |= {f"{dialect}_engine": rep_engine or "InnoDB", f"{dialect}_default_charset": "utf8mb4"}
        options |= {f"{dialect}_stats_persistent": "0"} if not rep_engine or rep_engine.lower() == "innodb" else {}
    if dialect == "postgresql" and rep_engine.upper() == "UNLOGGED":
        options["prefixes"] = ["UNLOGGED"]
    schema = None if dialect == "sqlite" else SCHEMA
    op.create_table(name, *columns, schema=schema, **options)
    if dialect == "postgresql":
        _let_everyone_read(name, columns)


def _let_everyone_read(name: str, columns: list[sa.Column[Any]]) -> None:
    """REQ-1: "any user can read"; all but the password."""
    readable = ", ".join(column.name for column in columns if column.name != "user_password")
    op.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC")
    op.execute(f"GRANT SELECT ({readable}) ON {SCHEMA}.{name} TO PUBLIC")


class _Types:
    """The server's types in each dialect."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.is_mysql = dialect in ("mysql", "mariadb")
        self.text: Any = mysql.TEXT(charset="utf8mb4", collation="utf8mb4_bin") if self.is_mysql else sa.Text()
        self.long_text: Any = mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin") if self.is_mysql else sa.Text()
        self.unsigned: Any = mysql.INTEGER(unsigned=True) if self.is_mysql else sa.BigInteger()
        self.position: Any = mysql.BIGINT(unsigned=True) if self.is_mysql else sa.BigInteger()
        self.switch: Any = sa.Boolean(create_constraint=False)
        self.seconds: Any = mysql.DOUBLE() if self.is_mysql else sa.Float(53)

    def name(self, length: int, collation: str = "") -> Any:
        if self.is_mysql:
            return mysql.VARCHAR(length, charset="utf8mb4", collation=collation or "utf8mb4_bin")
        return sa.String(length, collation="NOCASE" if collation and self.dialect == "sqlite" else None)

    def choice(self, name: str, words: tuple[str, ...]) -> Any:
        return (
            mysql.ENUM(*words)
            if self.is_mysql
            else sa.Enum(*words, name=name, native_enum=False, create_constraint=True)
        )

    def column(self, name: str, type_: Any, default: str | None = None, *, null: bool = True, key: bool = False) -> Any:
        stored = name.lower() if self.dialect == "postgresql" else name
        literal = (
            None if default is None else sa.text("false" if (default, self.dialect) == ("0", "postgresql") else default)
        )
        return sa.Column(stored, type_, nullable=null, server_default=literal, primary_key=key, autoincrement=False)


def _unique_id(t: _Types) -> sa.Column[Any]:
    column = t.column("Master_id", t.unsigned, null=False)
    column.unique = True
    return column  # type: ignore[no-any-return]


def _master_info_columns(dialect: str) -> list[sa.Column[Any]]:
    t = _Types(dialect)
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
        t.column("Using_gtid", t.unsigned, null=False),
        t.column("Do_domain_ids", t.text),
        t.column("Ignore_domain_ids", t.text),
        _unique_id(t),
        t.column("Master_server_id", t.unsigned, null=False),
        t.column("Master_binlog_dir", t.text),
        t.column("Flushed_relay_log_name", t.text),
        t.column("Flushed_relay_log_pos", t.position, null=False),
    ]


def _relay_log_info_columns(dialect: str) -> list[sa.Column[Any]]:
    t = _Types(dialect)
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
        _unique_id(t),
        t.column("Gtid_executed", t.long_text),
    ]
