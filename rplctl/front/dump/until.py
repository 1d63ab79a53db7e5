"""Ends a dump at the GTIDs of `START SLAVE UNTIL master_gtid_pos`, as a MariaDB source does.

The replica sets @slave_until_gtid to a list with one GTID for each domain. For SQL_BEFORE_GTIDS, MariaDB 11.3 and later
also sets @slave_gtid_until_before_gtids to 1. The dump of each domain ends at the GTID of this domain. Domains that are
not in the list are not sent. When all domains have ended, the source sends an artificial GTID_LIST event with a flag,
and ends the dump. This event stops the threads of the replica.

Invariant: a transaction is sent as a whole or not at all.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.gtid import MariadbGtidState
from rplctl.event.header import CHECKSUM_LENGTH, FLAG_ARTIFICIAL, HEADER_LENGTH, EventHeader, build_header
from rplctl.event.jit import ByteArray
from rplctl.event.types import LOG_EVENTS, EventType
from rplctl.front.dump.request import DumpRequest

_REACHED: Final = 1 << 28  # a flag of the GTID_LIST event, in the field with the number of its GTIDs
_BETWEEN: Final = np.array(sorted({*LOG_EVENTS, EventType.IGNORABLE, EventType.MARIADB_GTID}), np.uint8)


class DumpEnd:
    """The state of one dump that decides where the dump ends.

    `executed`: the GTIDs of all transactions before the log file at which the dump begins.
    """

    def __init__(self, request: DumpRequest, executed: str) -> None:
        assert request.until is not None
        self._wanted, self._is_before = request.until, request.is_until_before
        self._left = dict(request.until.domains)
        had = MariadbGtidState.parse(executed if ":" not in executed else "").domains
        for domain, (_, number) in request.until.domains.items():
            places = [had.get(domain)]
            if isinstance(request.gtids, MariadbGtidState):
                places.append(request.gtids.domains.get(domain))
            if any(place is not None and place[1] >= number - self._is_before for place in places):
                del self._left[domain]
        self.is_skipped = False  # True if the transaction in transfer is skipped
        self.is_at_end = not self._left  # True if all domains have ended and no transaction is in transfer

    def sent(
        self, data: ByteArray, offsets: NDArray[np.int64], types: NDArray[np.uint8]
    ) -> tuple[NDArray[np.bool_], int | None]:
        """Return an array that is True for each event to send, and the index of the first event after the end.

        The index is None if the end of the dump is not in these events. The parameters are those of `Skip.kept`.
        """
        may = np.ones(len(types), np.bool_)
        begin = 0
        for number in np.flatnonzero(np.isin(types, _BETWEEN)).tolist():
            may[begin:number] = not self.is_skipped
            begin = number
            if not self._left:
                may[number:] = False
                self.is_at_end = True
                return may, number
            self.is_skipped = types[number] == EventType.MARIADB_GTID and self._ends(data, int(offsets[number]))
        may[begin:] = not self.is_skipped
        return may, None

    def _ends(self, data: ByteArray, offset: int) -> bool:
        """True if the transaction of the GTID event at this offset comes after the end of its domain."""
        server = int.from_bytes(data[offset + 5 : offset + 9].tobytes(), "little")
        body = data[offset + HEADER_LENGTH : offset + HEADER_LENGTH + 12].tobytes()
        number, domain = int.from_bytes(body[:8], "little"), int.from_bytes(body[8:12], "little")
        last = self._left.get(domain)
        if last is None:
            return True
        if server != last[0] or number < last[1]:
            return False
        del self._left[domain]
        return number > last[1] or self._is_before

    def event(self, server_id: int, position: int, *, checksum: bool) -> bytes:
        """Return the GTID_LIST event that stops the threads of the replica.

        `position`: the offset in the log. `checksum`: True to add a checksum.
        """
        gtids = sorted(self._wanted.domains.items())
        body = (len(gtids) | _REACHED).to_bytes(4, "little")
        for domain, (server, number) in gtids:
            body += domain.to_bytes(4, "little") + server.to_bytes(4, "little") + number.to_bytes(8, "little")
        header = EventHeader(
            timestamp=0,
            type_code=EventType.GTID_LIST,
            server_id=server_id,
            event_length=HEADER_LENGTH + len(body) + CHECKSUM_LENGTH * checksum,
            end_log_pos=position & 0xFFFFFFFF,
            flags=FLAG_ARTIFICIAL,
        )
        event = build_header(header) + body
        return append_checksum(event) if checksum else event
