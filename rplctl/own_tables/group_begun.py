"""Transactions on tables without transactions that are being applied together: which, while they are (WL#3970).

What is done to a MyISAM table stays done when the applier dies, so one commit for many of the source's transactions
leaves open which of them are there. Invariant: from before the first of a group is applied until the position after
the last is committed, the target says where the group begins and ends. An applier that finds that and is positioned at
its begin applies the group once more, whatever part of it is there already.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from rplctl.own_tables.tables import group_begun
from rplctl.position import BinlogPosition
from rplctl.target import mapped_errors


def keep_group(connection: Connection, channel: str, begin: BinlogPosition, end: BinlogPosition) -> None:
    """Store the group, in place of one that is kept."""
    forget_group(connection, channel)
    table = group_begun(connection.dialect.name)
    places = {"Begin_log_name": begin.log_name, "Begin_log_pos": begin.log_pos}
    places |= {"End_log_name": end.log_name, "End_log_pos": end.log_pos}
    with mapped_errors(connection.dialect.name):
        connection.execute(insert(table).values(Channel_name=channel, **places))


def kept_group(connection: Connection, channel: str) -> tuple[BinlogPosition, BinlogPosition] | None:
    """Return (begin, end) of the stored group, of which nobody knows how much is applied; None for no group."""
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
