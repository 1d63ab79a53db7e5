"""Plans the next work: divides groups of the relay log into batches (design D1).

A *group* is one transaction, or events without changes (CONTROL). Invariant: a batch begins and ends between groups,
and is in one relay log file. A BULK batch has only transactions with row events. One Spark job can decode it into net
changes. A SINGLE batch is one group that must be applied in order (DDL, statements, savepoints, XA). A batch also ends
where UNTIL or MASTER_DELAY stops the applier, so that no later event is decoded. No task decodes the events of a
skipped batch, so this module verifies them (`check_passed_over`) before the position moves past them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from rplctl import mysql_errors as er
from rplctl.decode.row_stream import intact_events
from rplctl.errors import OR_SKIP, UPGRADE, BinlogFormatError, RplError
from rplctl.event.format_description import CHECKSUM_OFF, FormatDescription
from rplctl.event.gtid_arrays import commit_times
from rplctl.event.query import parse_query
from rplctl.event.scan import GroupKind, GroupScan
from rplctl.event.types import GTIDS, EventType
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.reader import RelayGroups


class BatchKind(Enum):
    BULK = "bulk"
    SINGLE = "single"
    COMMIT_GROUP = "commit group"  # groups that would each be SINGLE: one COMMIT, and savepoints between them
    SKIP = "skip"  # only the position moves: control events, rolled back groups, groups that the operator skips


_KINDS = np.arange(max(GroupKind) + 1)  # for lookup tables, which are forty times as fast as np.isin for few groups
_IS_BULK = np.isin(_KINDS, [GroupKind.CONTROL, GroupKind.ROWS, GroupKind.ROLLED_BACK])
_IS_EMPTY = np.isin(_KINDS, [GroupKind.CONTROL, GroupKind.ROLLED_BACK])
_GROUPED_KINDS = np.array([GroupKind.STATEMENT, GroupKind.ORDERED, GroupKind.ROLLED_BACK])
STATEMENTS_PER_COMMIT = 100  # from WL#3970's "10, 100"; limits how long a stop and other sessions of the target wait
_XID_LENGTH = 27  # without the checksum
_CHANGES_ROWS = re.compile(rb"\s*(BEGIN|INSERT|UPDATE|DELETE|REPLACE|SAVEPOINT|ROLLBACK\s+TO)\b", re.IGNORECASE)
_BEGINNINGS = GTIDS | {EventType.QUERY}  # events that begin a transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A part of the groups of a scan, from `first` to `last` (exclusive).

    `relay_position` and `source_position` are the positions after the batch. `start` and `end` are offsets in the relay
    log.
    """

    kind: BatchKind
    groups: RelayGroups
    first: int
    last: int

    @property
    def scan(self) -> GroupScan:
        return self.groups.scan

    @property
    def description(self) -> FormatDescription:
        """The format description of the batch's events. Each batch with changes has a format description."""
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
        """True if some groups are compressed transactions, whose events are unknown until they are unpacked."""
        return bool(self.scan.has_payload[self.first : self.last].any())

    @property
    def unpacks(self) -> bool:
        """True if some groups have compressed events, which may need far more memory than their size."""
        return bool(self.scan.unpacks[self.first : self.last].any())

    @property
    def first_timestamp(self) -> int:
        """The Unix time of the first transaction in the batch, or 0 if the batch has no transaction."""
        kinds = self.scan.kind[self.first : self.last]
        real = np.flatnonzero(kinds != GroupKind.CONTROL)
        return int(self.scan.timestamp[self.first + real[0]]) if len(real) else 0

    @property
    def last_timestamp(self) -> int:
        """The Unix time of the last transaction in the batch, or 0 if the batch has no transaction."""
        kinds = self.scan.kind[self.first : self.last]
        real = np.flatnonzero(kinds != GroupKind.CONTROL)
        return int(self.scan.timestamp[self.first + real[-1]]) if len(real) else 0

    def one_by_one(self) -> Iterator[Batch]:
        """Yield each group (transaction) of the batch as a batch of its own."""
        for number in range(self.first, self.last):
            empty = self.kind is not BatchKind.COMMIT_GROUP and _IS_EMPTY[self.scan.kind[number]]
            yield Batch(
                kind=BatchKind.SKIP if empty else BatchKind.SINGLE, groups=self.groups, first=number, last=number + 1
            )

    def parts(self, transactions: int, size: int) -> Iterator[Batch]:
        """Yield the batch in parts of at most `transactions` groups and `size` bytes of the log.

        A group of more bytes is a part of its own.
        """
        first = self.first
        while first < self.last:
            within = int(np.searchsorted(self.scan.end, self.scan.start[first] + size, side="right"))
            last = min(max(within, first + 1), first + transactions, self.last)
            yield replace(self, first=first, last=last)
            first = last

    def halves(self) -> tuple[Batch, Batch]:
        middle = (self.first + self.last) // 2
        return replace(self, last=middle), replace(self, first=middle)

    def left(self, begun: RelayLogInfo, now: RelayLogInfo) -> Batch:
        """Return the part of the batch that a failed attempt has not committed.

        `begun`, `now`: the committed positions before and after the attempt.
        """
        if now is begun:
            return self
        done = int(np.searchsorted(self.scan.end, now.relay_log_pos, side="right"))
        return replace(self, first=max(self.first, done))


def skipped_first(groups: RelayGroups, stop: int, skip: int) -> int:
    """Return how many of the first `stop` groups the operator's number of transactions `skip` removes."""
    if not (skip and stop):
        return 0
    real = np.flatnonzero(groups.scan.kind[:stop] != GroupKind.CONTROL)
    return int(real[skip - 1]) + 1 if len(real) >= skip else stop


def plan_batches(  # noqa: PLR0913 - what surrounds a plan, by keyword
    groups: RelayGroups,
    stop: int,
    skip: int = 0,
    *,
    skipped: Collection[int] = (),
    has_rollbacks: bool = False,
    per_commit: Callable[[], int] = lambda: 0,
) -> Iterator[Batch]:
    """Divide the first `stop` groups of a scan into batches.

    `skip`: the number of transactions to skip at the beginning (sql_slave_skip_counter). `skipped`: the indexes of
    groups to skip, each in a batch of its own. `has_rollbacks`: True if the target may have tables that a ROLLBACK does
    not undo (MyISAM). Groups that end in ROLLBACK are then applied, too, and several groups with statements may share
    one COMMIT. `per_commit`: returns the largest number of transactions per COMMIT, for the next batch. 0 means no
    limit for rows, and STATEMENTS_PER_COMMIT for statements.

    Raises BinlogFormatError 1594 or 1743 during the iteration if an event is damaged. This is possible after the reader
    found the groups complete, because a recovery may truncate the log.
    """
    kinds = groups.scan.kind[:stop]
    bulk = _IS_BULK[kinds]
    # Skipped groups are batches of their own, because their events must not be read with others. A control group
    # with a GTID is MariaDB's START ALTER or ROLLBACK ALTER, which a batch in order would execute.
    half_alters = (kinds == GroupKind.CONTROL) & (groups.scan.gtid_offset[:stop] >= 0)
    skipped = {*skipped, *np.flatnonzero(half_alters).tolist()}
    if not has_rollbacks:
        skipped = {*skipped, *np.flatnonzero(kinds == GroupKind.ROLLED_BACK).tolist()}
    bulk[[number for number in skipped if number < stop]] = False
    if has_rollbacks:
        bulk &= kinds != GroupKind.ROLLED_BACK
    if number := skipped_first(groups, stop, skip):
        yield Batch(kind=BatchKind.SKIP, groups=groups, first=0, last=number)
    while number < stop:
        if not bulk[number]:
            last = number + 1
            if number not in skipped and has_rollbacks:
                last = _group_end(groups, number, min(stop, number + (per_commit() or STATEMENTS_PER_COMMIT)), skipped)
            alone = BatchKind.SKIP if number in skipped else BatchKind.SINGLE
            yield Batch(
                kind=BatchKind.COMMIT_GROUP if last > number + 1 else alone, groups=groups, first=number, last=last
            )
            number = last
            continue
        barriers = np.flatnonzero(~bulk[number:])
        last = number + int(barriers[0]) if len(barriers) else stop
        real = np.flatnonzero(kinds[number:last] != GroupKind.CONTROL)
        if 0 < (most := per_commit()) < len(real):
            last = number + int(real[most - 1]) + 1
        empty = bool(_IS_EMPTY[kinds[number:last]].all())
        yield Batch(kind=BatchKind.SKIP if empty else BatchKind.BULK, groups=groups, first=number, last=last)
        number = last


def _group_end(groups: RelayGroups, first: int, stop: int, skipped: Collection[int]) -> int:
    """Return the index after the last group that can share one transaction of the target with the group `first`.

    DDL shares its transaction with no other group. The same holds for statements that the source committed without a
    transaction, so that their COMMIT is not an XID event. A group that ends in ROLLBACK must be the last group of the
    transaction. If a later group failed, the changes of MyISAM tables in this group would be repeated.
    """
    number = first
    while number < stop and number not in skipped and _may_share(groups, number):
        number += 1
        if not _ends_in_xid(groups, number - 1):
            break
    return max(number, first + 1)


def _may_share(groups: RelayGroups, number: int) -> bool:
    kind = groups.scan.kind[number]
    if kind not in _GROUPED_KINDS or groups.scan.has_payload[number]:
        return False
    return bool(kind == GroupKind.ROLLED_BACK) or _ends_in_xid(groups, number) or _rolls_back_changes(groups, number)


def _ends_in_xid(groups: RelayGroups, number: int) -> bool:
    assert groups.format_description is not None
    length = _XID_LENGTH + groups.format_description.checksum_length
    start = int(groups.scan.end[number]) - length
    event = bytes(groups.data[start : start + 13])
    return event[4] == EventType.XID and int.from_bytes(event[9:13], "little") == length


def _rolls_back_changes(groups: RelayGroups, number: int) -> bool:
    """True if the group ends in ROLLBACK, and each statement before it only changes rows.

    Any other statement may be DDL, which would also commit the groups before this group. Raises BinlogFormatError 1594
    or 1743 if an event is damaged.
    """
    description = groups.format_description
    assert description is not None
    start, end = int(groups.scan.start[number]), int(groups.scan.end[number])
    text_end = end - description.checksum_length
    if bytes(groups.data[text_end - len("ROLLBACK") : text_end]).upper() != b"ROLLBACK":
        return False
    offsets, types = intact_events(groups.data, start, end, description.checksum_algorithm)
    if types[-1] != EventType.QUERY or EventType.QUERY_COMPRESSED in types:
        return False
    for event in np.flatnonzero(types == EventType.QUERY).tolist():
        try:
            text = parse_query(groups.data[offsets[event] : offsets[event + 1]].tobytes(), description).sql_bytes
        except BinlogFormatError:  # raised again when the group is applied
            return False
        if not _CHANGES_ROWS.match(text) and (event < len(types) - 1 or text.upper() != b"ROLLBACK"):
            return False
    return True


def groups_due(groups: RelayGroups, stop: int, delay: int, now: float) -> tuple[int, float]:
    """Return how many of the first `stop` groups are at least `delay` seconds old at the time `now`.

    The second value is the number of seconds until the next group is so old. As on a server, the age begins with the
    commit on the direct source, in whole seconds rounded up, if the source logs this time (MySQL 8.0). Otherwise, it
    begins with the timestamp of the group's events, which SET TIMESTAMP changes.
    """
    if delay <= 0 or not stop:
        return stop, 0.0
    scan = groups.scan
    begun = scan.timestamp[:stop].astype(np.float64)
    with_gtid = np.flatnonzero(scan.gtid_offset[:stop] >= 0)
    times = commit_times(groups.data, scan.gtid_offset[with_gtid], scan.description_at)
    begun[with_gtid[times > 0]] = np.ceil(times[times > 0] / 1e6)
    real = (scan.kind[:stop] != GroupKind.CONTROL) & (begun > 0)
    early = np.flatnonzero(real & (begun + delay > now))
    if not len(early):
        return stop, 0.0
    first = int(early[0])
    return first, float(begun[first]) + delay - now


def check_passed_over(batch: Batch) -> None:
    """Verify the checksums of events that no task decodes, before the position moves past them.

    An event whose type is damaged may look like a control event, which is not applied. Such an event may also look like
    the end or the beginning of a log. The open transaction then seems to be cut short by the source, so the event after
    this transaction is verified, too. Groups that the operator skips are not verified. Raises BinlogFormatError 1594 if
    the last event is incomplete, and 1743 if a checksum does not match.
    """
    data, end, kinds = batch.groups.data, batch.end, batch.scan.kind[batch.first : batch.last]
    if batch.kind is BatchKind.SKIP and _IS_EMPTY[kinds].all():
        _check_intact(batch, batch.start, end)
    if kinds[-1] == GroupKind.CONTROL and data[int(batch.scan.start[batch.last - 1]) + 4] in _BEGINNINGS:
        following = end + int.from_bytes(data[end + 9 : end + 13].tobytes(), "little")
        if end < following <= len(data):
            _check_intact(batch, end, following)


def _check_intact(batch: Batch, start: int, end: int) -> None:
    description = batch.scan.description_at(start)
    algorithm = description.checksum_algorithm if description is not None else CHECKSUM_OFF
    intact_events(batch.groups.data, start, end, algorithm)


def refuse_unknown(batch: Batch) -> None:
    """Raise an error if the first group of the batch cannot be applied (D12).

    Raises RplError 1590 if the source reports that its log lacks events, and BinlogFormatError 1594 if the group has an
    event of an unknown type. If the type is unknown because the event is damaged, raises as `check_passed_over` does.
    """
    kind = batch.scan.kind[batch.first]
    if kind in (GroupKind.INCIDENT, GroupKind.UNKNOWN):
        _check_intact(batch, batch.start, batch.end)
    dump = batch.groups.data[batch.start : min(batch.end, batch.start + 64)].tobytes()
    at = str(batch.scan.source_position(batch.first))
    if kind == GroupKind.INCIDENT:
        raise RplError(
            "The incident LOST_EVENTS occurred on the master: its binary log lacks events",
            errno=er.SLAVE_INCIDENT,
            position=at,
            hint="to skip the incident alone, and to repair the rows that then differ from the source, run: rplctl "
            "skip --yes; rplctl start --until-synced; rplctl verify; rplctl repair; rplctl verify; rplctl start\n"
            "To copy all tables again, which replaces all their rows in the target, run: rplctl stop; rplctl reset "
            "--forget-gtids --yes; rplctl clone --replace --yes; rplctl start",
        )
    if kind == GroupKind.UNKNOWN:
        raise BinlogFormatError(
            f"unknown event type {dump[4]} at relay log offset {batch.start}: {dump.hex(' ')}",
            errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
            position=at,
            hint=f"{UPGRADE}{OR_SKIP}",
        )
