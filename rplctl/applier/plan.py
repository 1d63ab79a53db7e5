"""What to apply next: groups of the relay log cut into batches at every barrier (design D1.1).

Invariant: a batch begins and ends at group (transaction) boundaries, lies in one relay log file, and is either BULK
(only row transactions: net changes, one Spark job) or SINGLE (one group that must be carried out in order: DDL,
statements, savepoints, XA). UNTIL and the delay cut a batch so that nothing past them is ever decoded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from rplctl.binlog.format_description import FormatDescription
from rplctl.binlog.scan import GroupKind, GroupScan
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.reader import RelayGroups


class BatchKind(Enum):
    BULK = "bulk"
    SINGLE = "single"
    SKIP = "skip"  # nothing to apply: control events, rolled back groups, what the operator skips


_BULK_KINDS = np.array([GroupKind.CONTROL, GroupKind.ROWS, GroupKind.ROLLED_BACK])
_EMPTY_KINDS = np.array([GroupKind.CONTROL, GroupKind.ROLLED_BACK])


@dataclass(frozen=True, slots=True)
class Batch:
    """Groups first..last (exclusive) of a scan; positions are those after the batch."""

    kind: BatchKind
    groups: RelayGroups
    first: int
    last: int

    @property
    def path(self) -> Path:
        return self.groups.path

    @property
    def scan(self) -> GroupScan:
        return self.groups.scan

    @property
    def description(self) -> FormatDescription:
        """Of every event in the batch; batches with something to apply always have one."""
        assert self.groups.format_description is not None
        return self.groups.format_description

    @property
    def start(self) -> int:
        return int(self.scan.start[self.first])

    @property
    def end(self) -> int:
        return int(self.scan.end[self.last - 1])

    @property
    def relay_position(self) -> RelayLogPosition:
        return RelayLogPosition(self.groups.log_name, self.end)

    @property
    def source_position(self) -> BinlogPosition:
        return self.scan.source_position(self.last - 1)

    @property
    def transaction_count(self) -> int:
        return int((self.scan.kind[self.first : self.last] != GroupKind.CONTROL).sum())

    @property
    def has_payload(self) -> bool:
        """True when some of the groups are compressed: what is in them is not known before they are read."""
        return bool(self.scan.has_payload[self.first : self.last].any())

    @property
    def first_timestamp(self) -> int:
        """Of the first real transaction; 0 when there is none."""
        kinds = self.scan.kind[self.first : self.last]
        real = np.flatnonzero(kinds != GroupKind.CONTROL)
        return int(self.scan.timestamp[self.first + real[0]]) if len(real) else 0

    def one_by_one(self) -> Iterator[Batch]:
        """The same groups, each alone (control events joined to the group before them cost nothing extra)."""
        for number in range(self.first, self.last):
            empty = self.scan.kind[number] in _EMPTY_KINDS
            yield Batch(BatchKind.SKIP if empty else BatchKind.SINGLE, self.groups, number, number + 1)


def plan_batches(
    groups: RelayGroups, stop: int, skip: int = 0, *, skipped: Collection[int] = (), has_rollbacks: bool = False
) -> Iterator[Batch]:
    """Cut groups 0..stop of a scan into batches; the first `skip` transactions are passed over
    (sql_slave_skip_counter), and so are the `skipped` groups, each alone. `has_rollbacks`: the target may have tables
    that a ROLLBACK does not touch (MyISAM), so rolled back groups are carried out too.
    """
    kinds = groups.scan.kind[:stop]
    bulk = np.isin(kinds, _BULK_KINDS)
    bulk[[number for number in skipped if number < stop]] = False
    if has_rollbacks:
        bulk &= kinds != GroupKind.ROLLED_BACK
    number = 0
    if skip and stop:
        real = np.flatnonzero(kinds != GroupKind.CONTROL)
        number = int(real[skip - 1]) + 1 if len(real) >= skip else stop
        yield Batch(BatchKind.SKIP, groups, 0, number)
    while number < stop:
        if not bulk[number]:
            yield Batch(BatchKind.SKIP if number in skipped else BatchKind.SINGLE, groups, number, number + 1)
            number += 1
            continue
        barriers = np.flatnonzero(~bulk[number:])
        last = number + int(barriers[0]) if len(barriers) else stop
        empty = bool(np.isin(kinds[number:last], _EMPTY_KINDS).all())
        yield Batch(BatchKind.SKIP if empty else BatchKind.BULK, groups, number, last)
        number = last


def groups_due(scan: GroupScan, stop: int, delay: int, now: float) -> tuple[int, float]:
    """How many of the first `stop` groups are at least `delay` seconds old, and how long until the next one is."""
    if delay <= 0 or not stop:
        return stop, 0.0
    real = (scan.kind[:stop] != GroupKind.CONTROL) & (scan.timestamp[:stop] > 0)
    early = np.flatnonzero(real & (scan.timestamp[:stop].astype(np.float64) + delay > now))
    if not len(early):
        return stop, 0.0
    first = int(early[0])
    return first, float(scan.timestamp[first]) + delay - now
