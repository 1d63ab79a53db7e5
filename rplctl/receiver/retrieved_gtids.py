"""`Retrieved_Gtid_Set` / `Gtid_IO_Pos` as it grows: for show-status only; what a connection asks for comes from
recovery.

One kernel finds runs of consecutive GTIDs in a batch; only the ends of a run are parsed. Offsets it reads behind the
header: GTID (33) u8 flags, 16 bytes uuid, i64 number; MARIADB_GTID (162) u64 sequence, u32 domain.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rplctl.event.bytes_at import u32
from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_event import MariadbGtid, parse_gtid
from rplctl.event.jit import kernel
from rplctl.event.types import EventType
from rplctl.source import EventBatch
from rplctl.source.base import Bytes, Offsets

# Plain numbers: a kernel compiles them as constants.
_XID: Final = int(EventType.XID)
_GTID: Final = int(EventType.GTID)
_ANONYMOUS: Final = int(EventType.ANONYMOUS_GTID)
_TAGGED: Final = int(EventType.GTID_TAGGED)
_MARIADB: Final = int(EventType.MARIADB_GTID)


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
        """Note the GTIDs of events `first … stop - 1`; transactions that begin or end there (anonymous too)."""
        starts, ends = np.empty(stop - first, np.int64), np.empty(stop - first, np.int64)
        count, transactions = _gtid_runs(batch.data, batch.offsets, first, stop, starts, ends)
        domains: dict[int, tuple[int, int]] = {}
        intervals: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for run in range(int(count)):
            last = parse_gtid(batch.event(int(ends[run])), description)
            if isinstance(last, MariadbGtid):
                domains[last.domain] = last.server_id, last.sequence
                continue
            begin = parse_gtid(batch.event(int(starts[run])), description)
            if not isinstance(begin, MariadbGtid):
                intervals.setdefault((begin.server_uuid, begin.tag), []).append((begin.number, last.number))
        if domains:  # once a batch: each copy is as long as all that is known
            self._mariadb = self._mariadb.add_last(domains)
        if intervals:
            self._mysql = self._mysql.union(MysqlGtidSet({key: tuple(found) for key, found in intervals.items()}))
        return int(transactions)


@kernel
def _follows(data: Bytes, previous: int, at: int) -> bool:
    """True when the GTID event at `at` continues the run of the one at `previous`."""
    kind = data[at + 4]
    if data[previous + 4] != kind:
        return False
    if kind == _MARIADB:
        return bool(u32(data, previous + 27) == u32(data, at + 27))
    if kind != _GTID:
        return False
    for i in range(20, 36):
        if data[previous + i] != data[at + i]:
            return False
    before = u32(data, previous + 36) | (u32(data, previous + 40) << 32)
    after = u32(data, at + 36) | (u32(data, at + 40) << 32)
    return bool(after == before + 1)


@kernel
def _gtid_runs(  # noqa: PLR0913
    data: Bytes, offsets: Offsets, first: int, stop: int, starts: Offsets, ends: Offsets
) -> tuple[int, int]:
    """(runs, transactions): run i is events `starts[i]` to `ends[i]`."""
    runs, transactions = 0, 0
    for i in range(first, stop):
        at = offsets[i]
        kind = data[at + 4]
        if kind == _ANONYMOUS or kind == _XID:
            transactions += 1
        if kind != _GTID and kind != _TAGGED and kind != _MARIADB:
            continue
        transactions += 1
        long_enough = offsets[i + 1] - at >= (44 if kind == _GTID else 32)
        if runs > 0 and long_enough and _follows(data, offsets[ends[runs - 1]], at):
            ends[runs - 1] = i
            continue
        starts[runs] = i
        ends[runs] = i
        runs += 1
    return runs, transactions
