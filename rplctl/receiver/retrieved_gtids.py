"""Keep `Retrieved_Gtid_Set` / `Gtid_IO_Pos` up to date while events arrive.

Only show-status uses the set. For a new connection, recovery finds the GTIDs in the relay logs. Invariant: as in the
servers, a GTID counts at the end of its transaction.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_arrays import NUMBER, gtids_at
from rplctl.event.gtid_event import MARIADB_LENGTH, parse_gtid
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.open_group import OpenGroup
from rplctl.event.rows import Ints
from rplctl.event.types import GTIDS, EventType
from rplctl.source import EventBatch
from rplctl.source.base import Bytes

# Lookup tables by type code, because np.isin takes forty times as long for a few events.
_IS_NAMED: Final = np.isin(np.arange(256), sorted(GTIDS - {EventType.ANONYMOUS_GTID}))
_IS_COUNTED: Final = np.isin(np.arange(256), sorted(GTIDS | {EventType.XID}))
_NOTHING: Final = np.empty(0, np.uint8)


class RetrievedGtids:
    """The GTIDs of complete transactions in the relay logs, including those that recovery found."""

    def __init__(self, known: str, *, is_mariadb: bool) -> None:
        self._mysql = MysqlGtidSet() if is_mariadb else MysqlGtidSet.parse(known)
        self._mariadb = MariadbGtidState.parse(known) if is_mariadb else MariadbGtidState()
        self._group = OpenGroup()
        self._awaited = _NOTHING  # the GTID event of the open transaction

    @property
    def text(self) -> str:
        """The set as text, in the notation of MySQL or MariaDB."""
        return str(self._mysql or self._mariadb)

    @property
    def is_open(self) -> bool:
        """True if the last transaction has not ended."""
        return self._group.is_open

    @property
    def open_since(self) -> int:
        """The time of the first event of the incomplete transaction, or 0 if there is none."""
        return self._group.timestamp

    def add(self, batch: EventBatch, first: int, stop: int, description: FormatDescription) -> int:
        """Add the GTIDs of the events `first … stop - 1`, and return how many transactions begin or end in them.

        Anonymous transactions are counted, too. Raises BinlogFormatError for a truncated GTID event.
        """
        starts = batch.offsets[first:stop]
        named = _named(batch, first, stop, description)
        gtid_at, has_ended = self._group.follow(
            batch.data, batch.offsets[first : stop + 1], description.checksum_length
        )
        if has_ended:
            self._count(self._awaited, np.arange(min(1, len(self._awaited))), description)
        self._count(batch.data, named[named != gtid_at], description)
        if gtid_at >= 0:
            self._awaited = batch.data[gtid_at : int(batch.offsets[np.searchsorted(batch.offsets, gtid_at) + 1])].copy()
        elif has_ended:
            self._awaited = _NOTHING
        return int(np.count_nonzero(_IS_COUNTED[batch.data[starts + 4]]))

    def add_whole(self, batch: EventBatch, description: FormatDescription) -> None:
        """Add the GTIDs of complete transactions. The batch has only their GTID events. Raises the errors of `add`."""
        self._count(batch.data, _named(batch, 0, len(batch), description), description)

    def cut(self) -> None:
        """Discard the open transaction, which has no end, because the source's next log begins."""
        self._group.cut()
        self._awaited = _NOTHING

    def _count(self, data: Bytes, offsets: Ints, description: FormatDescription) -> None:
        if not len(offsets):
            return
        mysql, mariadb = gtids_at(data, offsets, lambda _: description)
        if mariadb:
            self._mariadb = self._mariadb.add_last(mariadb.domains)
        if mysql:
            self._mysql = self._mysql.union(mysql)


def _named(batch: EventBatch, first: int, stop: int, description: FormatDescription) -> Ints:
    """Return the offsets of those events that are GTID events.

    Raises BinlogFormatError if such an event is truncated.
    """
    starts = batch.offsets[first:stop]
    codes = batch.data[starts + 4]
    is_named = _IS_NAMED[codes]
    lengths = np.diff(batch.offsets[first : stop + 1]) - description.checksum_length
    least = np.where(codes == EventType.MARIADB_GTID, HEADER_LENGTH + MARIADB_LENGTH, NUMBER.stop)
    for short in np.flatnonzero(is_named & (lengths < least)).tolist():
        parse_gtid(batch.event(first + short), description)
    return starts[is_named]
