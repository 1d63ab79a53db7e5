"""`Retrieved_Gtid_Set` / `Gtid_IO_Pos` as it grows: for show-status only; what a connection asks for comes from
recovery.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_arrays import NUMBER, gtids_at
from rplctl.event.gtid_event import MARIADB_LENGTH, parse_gtid
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.types import GTIDS, EventType
from rplctl.source import EventBatch

_NAMED: Final = sorted(GTIDS - {EventType.ANONYMOUS_GTID})
_COUNTED: Final = sorted(GTIDS | {EventType.XID})


class RetrievedGtids:
    """GTIDs fetched so far, those of recovery included."""

    def __init__(self, known: str, *, is_mariadb: bool) -> None:
        self._mysql = MysqlGtidSet() if is_mariadb else MysqlGtidSet.parse(known)
        self._mariadb = MariadbGtidState.parse(known) if is_mariadb else MariadbGtidState()

    @property
    def text(self) -> str:
        """In the vendor's notation."""
        return str(self._mysql or self._mariadb)

    def add(self, batch: EventBatch, first: int, stop: int, description: FormatDescription) -> int:
        """Note the GTIDs of events `first … stop - 1`; transactions that begin or end there (anonymous too).

        Raises BinlogFormatError for a GTID event that is cut short.
        """
        starts = batch.offsets[first:stop]
        codes = batch.data[starts + 4]
        is_named = np.isin(codes, _NAMED)
        lengths = np.diff(batch.offsets[first : stop + 1]) - description.checksum_length
        least = np.where(codes == EventType.MARIADB_GTID, HEADER_LENGTH + MARIADB_LENGTH, NUMBER.stop)
        for short in np.flatnonzero(is_named & (lengths < least)).tolist():
            parse_gtid(batch.event(first + short), description)
        mysql, mariadb = gtids_at(batch.data, starts[is_named], lambda _: description)
        if mariadb:
            self._mariadb = self._mariadb.add_last(mariadb.domains)
        if mysql:
            self._mysql = self._mysql.union(mysql)
        return int(np.isin(codes, _COUNTED).sum())
