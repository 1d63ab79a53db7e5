"""slave_master_info and slave_relay_log_info as the worklog WL#2775 defines them, typos and all.

But for its PRIMARY KEY (master_id(128)) on an INTEGER, which every server refuses: it is PRIMARY KEY (Master_id).

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from alembic import context, op

from rplctl.repository.layout import NAMES, Columns, ColumnTypes, create, layout_of
from rplctl.repository.next_event import drop_next_event_view
from rplctl.target.registry import dialect_of

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def columns(dialect: str, rep_engine: str) -> dict[str, Columns]:
    t = ColumnTypes(dialect, rep_engine)
    unsigned, text, switch = t.unsigned, t.text, t.switch
    seconds = t.short_seconds
    positions = [
        t.column("Master_log_name", text, null=False),
        t.column("Master_log_pos", unsigned, null=False),
    ]
    master = [
        t.column("Master_id", unsigned, null=False, primary_key=True),
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
        t.column("Master_id", unsigned, null=False, primary_key=True),
        t.column("Relay_log_name", text),
        t.column("Relay_log_pos", unsigned, null=False),
        t.column("Master_log_name", text, null=False),
        t.column("Master_log_pos", unsigned, null=False),
    ]
    return dict(zip(NAMES, (master, relay), strict=True))


def upgrade() -> None:
    """Tables that are there, in whatever layout, stay as they are: each later revision knows which it has to change."""
    connection = op.get_bind()
    rep_engine = context.config.attributes.get("rep_engine", "")
    for name, its_columns in columns(connection.dialect.name, rep_engine).items():
        if layout_of(connection, name) is None:
            create(connection, name, its_columns, rep_engine)


def downgrade() -> None:
    connection = op.get_bind()
    drop_next_event_view(connection)
    for name in reversed(NAMES):
        if layout_of(connection, name) is not None:
            op.drop_table(name, schema=dialect_of(connection.dialect.name).own_schema)
