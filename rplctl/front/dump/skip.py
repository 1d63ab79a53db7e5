"""Decides which events a dump skips: transactions that the replica already has, and events that it does not accept.

A MySQL replica sends a set of GTIDs. A transaction is skipped if its GTID is in this set.
A MariaDB replica sends one GTID for each domain. The transactions of a domain are skipped up to this GTID, including
the transaction with this GTID. All later transactions are sent. A filter may have excluded the transaction with this
GTID from the log. Then the first transaction with a higher number is the first to be sent. But if the replica has
gtid_strict_mode, this is error 1236, as on a server.

Invariant: a transaction is skipped as a whole. Control events between transactions, for example ROTATE, are never
skipped.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_arrays import is_within, numbers_by_source
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.jit import ByteArray
from rplctl.event.types import GTIDS, LOG_EVENTS, EventType
from rplctl.front.dump.request import DumpRequest
from rplctl.front.dump.sendable import LogStart, fatal

Flags = NDArray[np.bool_]
_GTIDS = np.array(sorted(GTIDS), np.uint8)
_CONTROL = np.array(sorted(LOG_EVENTS), np.uint8)


class Skip:
    """The state of one dump that decides which events are skipped. The caller passes all events in their order."""

    def __init__(self, request: DumpRequest, start: LogStart) -> None:
        self._is_strict = request.is_strict
        self._description: FormatDescription = start.description
        self._set = request.gtids if isinstance(request.gtids, MysqlGtidSet) else None
        self._waits: dict[int, tuple[int, int]] = {}  # domain → (server id, number) of the last transaction to skip
        if isinstance(request.gtids, MariadbGtidState):
            begin = MariadbGtidState.parse(start.executed).domains
            self._waits = {domain: gtid for domain, gtid in request.gtids.domains.items() if begin.get(domain) != gtid}
        self._dropped = {EventType.IGNORABLE}  # position records
        if start.description.is_mariadb and not request.has_second_flag:
            self._dropped.add(EventType.ANNOTATE_ROWS)
        self._skips = False

    def next_log(self, description: FormatDescription) -> None:
        self._description = description

    def is_skipped(self, type_code: int) -> bool:
        """True if the next event is skipped. The caller uses this instead of `kept` for an event larger than a chunk.

        The event belongs to the transaction whose first events were in the last call of `kept`.
        """
        return self._skips or type_code in self._dropped

    def kept(self, data: ByteArray, offsets: NDArray[np.int64], types: NDArray[np.uint8]) -> Flags:
        """Return an array that is True for each event to send.

        `data`: a chunk of the log. `offsets`: the offsets of its events in the chunk, and the end of the last event.
        `types`: the types of these events. Raises RplError 1236 if the replica has diverged.
        """
        is_control = np.isin(types, _CONTROL)
        kept = ~np.isin(types, list(self._dropped))
        gtids = np.flatnonzero(np.isin(types, _GTIDS))
        if self._set is None and not self._waits:
            self._skips = False
            return kept
        decided = np.zeros(len(types), np.bool_)  # only the values at the events in `decides` are used
        if len(gtids):
            decided[gtids] = self._had(data, offsets[gtids])
        decides = is_control.copy()
        decides[gtids] = True
        last = np.maximum.accumulate(np.where(decides, np.arange(len(types)), -1))
        skipped = np.where(last >= 0, decided[np.maximum(last, 0)], self._skips)
        if len(skipped):
            self._skips = bool(skipped[-1])
        return kept & ~skipped

    def _had(self, data: ByteArray, at: NDArray[np.int64]) -> Flags:
        """Return an array that is True for each GTID event whose transaction the replica already has.

        `at`: the offsets of the GTID events in `data`.
        """
        if self._set is None:
            return np.array([self._is_before(data, offset) for offset in at.tolist()], np.bool_)
        found = np.zeros(len(at), np.bool_)
        for source, (which, numbers) in numbers_by_source(data, at, lambda _: self._description).items():
            if isinstance(source, tuple) and (spans := self._set.intervals.get(source)):
                found[which] = is_within(numbers, spans)
        return found

    def _is_before(self, data: ByteArray, offset: int) -> bool:
        """True if a MariaDB replica already has the transaction of the GTID event at this offset.

        This is so if the last transaction to skip in the domain is the same transaction or a later one. Raises RplError
        1236 if the replica has diverged.
        """
        server = int.from_bytes(data[offset + 5 : offset + 9].tobytes(), "little")
        body = data[offset + HEADER_LENGTH : offset + HEADER_LENGTH + 12].tobytes()
        number, domain = int.from_bytes(body[:8], "little"), int.from_bytes(body[8:12], "little")
        last = self._waits.get(domain)
        if last is None:
            return False
        if (server, number) == last:
            del self._waits[domain]
            return True
        if number < last[1]:
            return True
        if self._is_strict:
            text = f"the replica begins at GTID {domain}-{last[0]}-{last[1]}, which is not in the master's binlog"
            raise fatal(f"{text}: {domain}-{server}-{number} follows in its place, so the replica has diverged")
        del self._waits[domain]
        return False
