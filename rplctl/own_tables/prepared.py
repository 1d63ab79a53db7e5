"""Stores the events of the source's XA transactions in the target, from XA PREPARE to XA COMMIT.

The events are stored in parts, so that neither memory nor the target's row size limits a transaction. Invariant: the
events are stored in the same transaction of the target that moves the position past XA PREPARE. They are deleted in the
transaction that applies or drops them. So they survive every crash and the purge of the relay log, and nothing is
visible before XA COMMIT.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import BinaryIO

from sqlalchemy import Connection, delete, insert, select

from rplctl.event.format_description import FormatDescription
from rplctl.own_tables.tables import prepared_xa
from rplctl.system_zone import SystemZone

PIECE_BYTES = 4 << 20  # less than the smallest default of max_allowed_packet


def keep_prepared(
    connection: Connection, channel: str, xid: str, events: Iterable[bytes], description: FormatDescription
) -> None:
    """Store the events of a prepared transaction, together with the format description that is necessary to read them.

    An older transaction with the same XID is replaced.
    """
    table = prepared_xa(connection.dialect.name)
    connection.execute(delete(table).where(table.c.Channel_name == channel, table.c.Xid == xid))
    text = json.dumps(asdict(description))
    for number, piece in enumerate(_pieces(events)):
        row = {"Channel_name": channel, "Xid": xid, "Piece": number, "Format_description": text, "Events": piece}
        connection.execute(insert(table).values(row))


def _pieces(events: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of all events in parts of PIECE_BYTES each. The last part may be shorter.

    An event may span several parts. If there are no events, there is one empty part.
    """
    waiting = bytearray()
    for event in events:
        waiting += event
        while len(waiting) > PIECE_BYTES:
            yield bytes(waiting[:PIECE_BYTES])
            del waiting[:PIECE_BYTES]
    yield bytes(waiting)


def take_prepared(connection: Connection, channel: str, xid: str, out: BinaryIO | None) -> FormatDescription | None:
    """Write the stored events of the transaction `xid` to `out`, delete them, and return their format description.

    If `out` is None, the events are only deleted. Return None if no events are stored for this XID.
    """
    table = prepared_xa(connection.dialect.name)
    where = (table.c.Channel_name == channel, table.c.Xid == xid)
    text = connection.execute(select(table.c.Format_description).where(*where, table.c.Piece == 0)).scalar()
    if text is None:
        return None
    number = 0
    one = select(table.c.Events).where(*where)
    while out is not None and (piece := connection.execute(one.where(table.c.Piece == number)).scalar()) is not None:
        out.write(piece)
        number += 1
    connection.execute(delete(table).where(*where))
    fields = json.loads(text)
    fields["header_lengths"] = tuple(fields["header_lengths"])
    if zone := fields.pop("system_zone", None):
        fields["system_zone"] = SystemZone(tuple((second, offset) for second, offset in zone["changes"]))
    return FormatDescription(**fields)
