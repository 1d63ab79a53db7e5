"""Stores the begin and end of a group of transactions on nontransactional tables, while the group is applied (WL#3970).

If the applier is killed, its changes of a MyISAM table remain in the target. Because one commit covers many
transactions of the source, the next start cannot know which of them are already applied.

Invariant: the target stores the begin and the end of the group before the first transaction of the group is applied. It
keeps them until the position after the last transaction is committed. An applier that is positioned at the begin of a
stored group applies the whole group again. Some of its transactions may then be applied twice.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from rplctl.own_tables.tables import group_begun
from rplctl.position import BinlogPosition
from rplctl.target import mapped_errors


def keep_group(connection: Connection, channel: str, begin: BinlogPosition, end: BinlogPosition) -> None:
    """Store the begin and end of a group in place of those of the previous group."""
    forget_group(connection, channel)
    table = group_begun(connection.dialect.name)
    places = {"Begin_log_name": begin.log_name, "Begin_log_pos": begin.log_pos}
    places |= {"End_log_name": end.log_name, "End_log_pos": end.log_pos}
    with mapped_errors(connection.dialect.name):
        connection.execute(insert(table).values(Channel_name=channel, **places))


def kept_group(connection: Connection, channel: str) -> tuple[BinlogPosition, BinlogPosition] | None:
    """Return the begin and end of the stored group, or None if no group is stored. The group may be applied in part."""
    table = group_begun(connection.dialect.name)
    with mapped_errors(connection.dialect.name):
        row = connection.execute(select(table).where(table.c.Channel_name == channel)).one_or_none()
    if row is None:
        return None
    return BinlogPosition(row.Begin_log_name, row.Begin_log_pos), BinlogPosition(row.End_log_name, row.End_log_pos)


def forget_group(connection: Connection, channel: str) -> None:
    table = group_begun(connection.dialect.name)
    with mapped_errors(connection.dialect.name):
        connection.execute(delete(table).where(table.c.Channel_name == channel))
