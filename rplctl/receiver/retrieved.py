"""`Retrieved_Gtid_Set` / `Gtid_IO_Pos` as it grows: for show-status only; what a connection asks for comes from recovery.

    GTID (33)          header, u8 flags, 16 bytes uuid, i64 number
    GTID_TAGGED (42)   fields with lengths: left to the parser
    MARIADB_GTID (162) header (with the server id), u64 sequence, u32 domain, u8 flags
"""

from __future__ import annotations

import struct
import uuid

import numpy as np

from rplctl.binlog.bytes_at import u32
from rplctl.binlog.header import HEADER_LENGTH, EventType
from rplctl.binlog.jit import kernel
from rplctl.source import EventBatch
from rplctl.source.base import Bytes, Offsets

_UUID = slice(HEADER_LENGTH + 1, HEADER_LENGTH + 17)
_NUMBER = HEADER_LENGTH + 17


class RetrievedGtids:
    """GTIDs fetched so far, those of recovery included; `text` in the vendor's notation."""

    def __init__(self, known: str) -> None:
        self._intervals: dict[str, list[tuple[int, int]]] = {}  # `uuid[:tag]` → ascending, apart from each other
        self._domains: dict[int, str] = {}
        for part in filter(None, known.split(",")):
            self._learn(part)

    @property
    def text(self) -> str:
        if self._domains:
            return ",".join(self._domains[domain] for domain in sorted(self._domains))
        return ",".join(
            key + "".join(f":{a}" if a == b else f":{a}-{b}" for a, b in self._intervals[key]) for key in sorted(self._intervals)
        )

    def add(self, batch: EventBatch, first: int, stop: int) -> int:
        """Note the GTIDs of events `first … stop - 1`; how many transactions begin there (anonymous ones too)."""
        size = stop - first
        starts, ends = np.empty(size, np.int64), np.empty(size, np.int64)
        count, transactions = _gtid_runs(batch.data, batch.offsets, first, stop, starts, ends)
        for run in range(int(count)):
            self._add_run(batch.event(int(starts[run])), batch.event(int(ends[run])))
        return int(transactions)

    def _add_run(self, first: bytes, last: bytes) -> None:
        if first[4] == EventType.MARIADB_GTID:
            sequence, domain = struct.unpack_from("<QI", last, HEADER_LENGTH)
            self._domains[domain] = f"{domain}-{int.from_bytes(last[5:9], 'little')}-{sequence}"
        elif first[4] == EventType.GTID:
            key = str(uuid.UUID(bytes=first[_UUID]))
            self._add_interval(key, _number(first), _number(last))
        else:
            from rplctl.relay_log.gtid import tagged_gtid

            key, number = tagged_gtid(first)
            self._add_interval(key, number, number)

    def _add_interval(self, key: str, first: int, last: int) -> None:
        """Merge; the usual case extends the last interval."""
        intervals = self._intervals.setdefault(key, [])
        intervals.append((first, last))
        if len(intervals) > 1 and first <= intervals[-2][1] + 1:
            intervals.sort()
            merged = intervals[:1]
            for low, high in intervals[1:]:
                if low <= merged[-1][1] + 1:
                    merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
                else:
                    merged.append((low, high))
            self._intervals[key] = merged

    def _learn(self, part: str) -> None:
        pieces = part.strip().split(":")
        if len(pieces) == 1:
            self._domains[int(part.split("-")[0])] = part.strip()
            return
        key = pieces[0]
        for piece in pieces[1:]:
            if not piece[:1].isdigit():
                key = f"{pieces[0]}:{piece}"
                continue
            low, _, high = piece.partition("-")
            self._add_interval(key, int(low), int(high or low))


def _number(event: bytes) -> int:
    return int.from_bytes(event[_NUMBER : _NUMBER + 8], "little")


@kernel
def _follows(data: Bytes, previous: int, at: int) -> bool:
    """True when the GTID event at `at` continues the run of the one at `previous`."""
    kind = data[at + 4]
    if data[previous + 4] != kind:
        return False
    if kind == 162:
        return u32(data, previous + 27) == u32(data, at + 27)
    if kind != 33:
        return False
    for i in range(20, 36):
        if data[previous + i] != data[at + i]:
            return False
    before = np.int64(u32(data, previous + 36)) | (np.int64(u32(data, previous + 40)) << 32)
    after = np.int64(u32(data, at + 36)) | (np.int64(u32(data, at + 40)) << 32)
    return after == before + 1


@kernel
def _gtid_runs(  # noqa: PLR0913
    data: Bytes, offsets: Offsets, first: int, stop: int, starts: Offsets, ends: Offsets
) -> tuple[int, int]:
    runs, transactions = 0, 0
    for i in range(first, stop):
        at = offsets[i]
        kind = data[at + 4]
        if kind == 34 or kind == 16:
            transactions += 1
        if kind != 33 and kind != 42 and kind != 162:
            continue
        if offsets[i + 1] - at < 44 and kind == 33 or offsets[i + 1] - at < 32:
            continue
        transactions += 1
        if runs > 0 and _follows(data, offsets[ends[runs - 1]], at):
            ends[runs - 1] = i
            continue
        starts[runs] = i
        ends[runs] = i
        runs += 1
    return runs, transactions
