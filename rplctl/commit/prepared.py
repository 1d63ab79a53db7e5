"""XA transactions of the source between XA PREPARE and XA COMMIT: their events wait in the target (mission map 3, row
58).

Invariant: the events are stored in the transaction that moves the position past XA PREPARE, and taken out in the one
that applies or drops them, so they survive every crash and the purge of the relay log, and nothing is visible before
XA COMMIT.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from sqlalchemy import Connection, delete, insert, select

from rplctl.binlog.format_description import FormatDescription
from rplctl.commit.tables import own_schema, prepared_xa


def keep_prepared(
    connection: Connection, channel: str, xid: str, events: bytes, description: FormatDescription
) -> None:
    """Store the events of a prepared transaction; a left-over of the same name is replaced."""
    table = prepared_xa(own_schema(connection.engine))
    connection.execute(delete(table).where(table.c.Channel_name == channel, table.c.Xid == xid))
    text = json.dumps(asdict(description))
    connection.execute(insert(table).values(Channel_name=channel, Xid=xid, Format_description=text, Events=events))


def take_prepared(connection: Connection, channel: str, xid: str) -> tuple[bytes, FormatDescription] | None:
    """The stored events, removed from the store; None when there are none of that name."""
    table = prepared_xa(own_schema(connection.engine))
    where = (table.c.Channel_name == channel, table.c.Xid == xid)
    row = connection.execute(select(table.c.Events, table.c.Format_description).where(*where)).first()
    if row is None:
        return None
    connection.execute(delete(table).where(*where))
    fields = json.loads(row.Format_description)
    fields["header_lengths"] = tuple(fields["header_lengths"])
    return bytes(row.Events), FormatDescription(**fields)


def forget_prepared(connection: Connection, channel: str) -> None:
    """RESET REPLICA ALL."""
    table = prepared_xa(own_schema(connection.engine))
    connection.execute(delete(table).where(table.c.Channel_name == channel))
