"""Select the events of a batch that are written to the binary log of applied transactions.

A batch is copied as ranges of bytes. The events keep the GTIDs, server ids and order of the source. Only end_log_pos
and checksums are new. These events are not copied:
* control events
* transactions that the source cut short
* changes that were not applied, because filters exclude them, or because the transaction was skipped or rolled back

If a transaction of a MySQL source is not copied, an empty transaction with its GTID replaces it, as on MySQL servers.
MariaDB's positions may have gaps. Changes that IDEMPOTENT or `replica_skip_errors` skipped are in the log, because they
are events of the source.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, cast

import numpy as np

from rplctl.applied_log.binary_log import BinaryLog, LoggedEvents, no_events
from rplctl.applier.feed.event_range import MAX_UNPACKED
from rplctl.applier.feed.gtids import Assigned, assigned
from rplctl.applier.feed.plan import Batch, BatchKind
from rplctl.config import Config
from rplctl.decode.event_filter import filtered
from rplctl.decode.filter_rules import OWN_DATABASE, ReplicationFilter, mentions_own
from rplctl.decode.row_stream import EventRun, read_run
from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.format_description import FormatDescription
from rplctl.event.header import CHECKSUM_LENGTH
from rplctl.event.jit import ByteArray
from rplctl.event.payload import unpack_event, unpack_payload
from rplctl.event.relocate import relocated
from rplctl.event.rows import Ints
from rplctl.event.scan import GroupKind, event_offsets, scan_events
from rplctl.event.types import COMPRESSED, GTIDS, LOG_EVENTS, EventType
from rplctl.info import RelayLogInfo

_PIECE_BYTES = 32 << 20
_GTIDS = np.array(sorted(GTIDS), np.uint8)
_NUMBERED = (EventType.GTID, EventType.GTID_TAGGED)
_CONTROL = np.array(sorted(LOG_EVENTS), np.uint8)
_COMPRESSED = np.array(sorted(COMPRESSED), np.uint8)
_NONE_GIVEN = Assigned("")


def stage(log: BinaryLog | None, batch: Batch, config: Config, rules: ReplicationFilter, at: RelayLogInfo) -> None:
    """Pass the events of the next commit to the log, which writes them together with the commit.

    `at` is the position at which the commit begins. Raises RelayLogError 1598 if the log cannot be written. The caller
    must then not commit.
    """
    if log is not None:
        log.stage(logged_events(batch, rules, assigned(at, config)), at)


def logged_events(batch: Batch, rules: ReplicationFilter, given: Assigned = _NONE_GIVEN) -> LoggedEvents:
    """Return the events of this batch that are written to the log. `given` assigns GTIDs to anonymous transactions."""
    scan, part = batch.scan, slice(batch.first, batch.last)
    timestamp = int(scan.timestamp[batch.last - 1])
    is_transaction = (scan.kind[part] != GroupKind.CONTROL) | (scan.gtid_offset[part] >= 0)
    if batch.groups.format_description is None or not is_transaction.any():
        return LoggedEvents(batch.groups.format_description, timestamp, False, no_events)
    if batch.kind is BatchKind.SKIP:
        offsets = scan.gtid_offset[part]
        return LoggedEvents(
            batch.description,
            timestamp,
            False,
            lambda position: _of_bytes(
                _empty(batch, offsets[offsets >= 0], replace(given)), position, batch.description
            ),
        )
    numbers = np.flatnonzero(is_transaction) + batch.first
    breaks = np.flatnonzero(scan.start[numbers[1:]] != scan.end[numbers[:-1]])
    starts = scan.start[numbers[np.concatenate(([0], breaks + 1))]].tolist()
    ends = scan.end[numbers[np.concatenate((breaks, [len(numbers) - 1]))]].tolist()
    spans = list(zip(starts, ends, strict=True))
    if rules == ReplicationFilter() and not _may_hold_own(batch, spans):
        return LoggedEvents(
            batch.description, timestamp, True, lambda position: _copied(batch, spans, position, replace(given))
        )
    return LoggedEvents(
        batch.description,
        timestamp,
        True,
        lambda position: _of_bytes(_kept(batch, spans, rules, replace(given)), position, batch.description),
    )


def _may_hold_own(batch: Batch, spans: Sequence[tuple[int, int]]) -> bool:
    """True if the events in these spans may change rplctl's own database, because they contain its name.

    The filters exclude changes of this database, so such a batch must be filtered.
    """
    data = batch.groups.data
    for start, end in spans:
        for at in range(start, end, _PIECE_BYTES):
            if mentions_own(data[at : min(end, at + _PIECE_BYTES + len(OWN_DATABASE))].tobytes()):
                return True
    return batch.unpacks and any(_unpacks_to_own(data[start:end], batch.description) for start, end in spans)


class _OwnName(io.RawIOBase):
    """A file object that stores nothing. It only searches the written bytes for the name of rplctl's own database."""

    found = False
    _end = b""

    def write(self, piece: Any) -> int:
        text = self._end + bytes(piece)
        self.found = self.found or mentions_own(text)
        self._end = text[-len(OWN_DATABASE) :]
        return len(piece)


def _unpacks_to_own(events: ByteArray, description: FormatDescription) -> bool:
    """True if compressed events contain the name of rplctl's own database.

    Raises BinlogFormatError for damaged events.
    """
    offsets, types = event_offsets(events)
    for number in np.flatnonzero(np.isin(types, _COMPRESSED)).tolist():
        event, out = events[offsets[number] : offsets[number + 1]], _OwnName()
        if types[number] == EventType.TRANSACTION_PAYLOAD:
            unpack_payload(event, description, cast("BinaryIO", out), MAX_UNPACKED)
        else:
            unpack_event(event, description, cast("BinaryIO", out))
        if out.found:
            return True
    return False


def _copied(batch: Batch, spans: Sequence[tuple[int, int]], position: int, given: Assigned) -> Iterator[ByteArray]:
    """Yield copies of the events in the spans, in parts. In the log, the copies begin at `position`."""
    has_checksum = batch.description.checksum_length > 0
    for start, end in spans:
        while start < end:
            piece = batch.groups.data[start : min(end, start + _PIECE_BYTES)]
            index = scan_events(piece)
            if not len(index):  # one event is larger than _PIECE_BYTES
                length = int.from_bytes(piece[9:13].tobytes(), "little")
                index = scan_events(batch.groups.data[start : start + length])
                piece = batch.groups.data[start : start + length]
            kept = ~np.isin(index.type_codes, _CONTROL)
            starts, lengths = index.offsets[:-1][kept], np.diff(index.offsets)[kept]
            piece = given.take_all(piece, starts)
            copy = relocated(piece, starts, lengths, position, has_checksum=has_checksum)
            yield copy
            position += len(copy)
            start += index.end


def _kept(batch: Batch, spans: Sequence[tuple[int, int]], rules: ReplicationFilter, given: Assigned) -> Iterator[bytes]:
    """Yield those events of the spans that the filters accept, one by one.

    The events have no checksums, and compressed transactions are unpacked.
    """
    for start, end in spans:
        run = filtered(read_run(batch.groups.data, start, end, batch.description), rules)
        bare = _bare_gtids(run)
        checksum = run.description.checksum_length
        for number, code in enumerate(run.types.tolist()):
            event = run.event(number)
            event = event[: len(event) - checksum]
            if code == EventType.ANONYMOUS_GTID and given.uuid:
                event = given.take(event)
            if number not in bare:
                if code not in _CONTROL:
                    yield event
            elif event[4] in _NUMBERED:
                yield event
                yield from _begin_and_commit(event)


def _bare_gtids(run: EventRun) -> set[int]:
    """Return the indexes in the run of the GTID events whose transactions have no other event in the run."""
    numbers = np.flatnonzero(~np.isin(run.types, _CONTROL))
    is_gtid = np.isin(run.types[numbers], _GTIDS)
    return set(numbers[is_gtid & np.append(is_gtid[1:], True)].tolist())


def _empty(batch: Batch, offsets: Ints, given: Assigned) -> Iterator[bytes]:
    """Yield an empty transaction, without checksums, for each GTID event of MySQL at these offsets.

    `given` assigns GTIDs to anonymous transactions.
    """
    data, checksum = batch.groups.data, batch.description.checksum_length
    for at in offsets.tolist():
        length = int.from_bytes(data[at + 9 : at + 13].tobytes(), "little")
        gtid = data[at : at + length - checksum].tobytes()
        if gtid[4] == EventType.ANONYMOUS_GTID and given.uuid:
            gtid = given.take(gtid)
        if gtid[4] in _NUMBERED:
            yield gtid
            yield from _begin_and_commit(gtid)


def _begin_and_commit(gtid: bytes) -> Iterator[bytes]:
    """Yield BEGIN and COMMIT as QUERY events, with the header fields of the GTID event `gtid`.

    The body is u32 thread, u32 seconds, u8 database length, u16 error, u16 length of the variables, NUL, text.
    """
    for text in (b"BEGIN", b"COMMIT"):
        yield gtid[:4] + bytes([EventType.QUERY]) + gtid[5:17] + bytes(2) + bytes(14) + text


def _of_bytes(events: Iterator[bytes], position: int, description: FormatDescription) -> Iterator[ByteArray]:
    """Yield these events, which have no checksums, as they are in the log. The first event begins at `position`."""
    for event in events:
        length = len(event) + description.checksum_length
        position += length
        placed = bytearray(event)
        placed[9:13] = length.to_bytes(4, "little")
        placed[13:17] = (position & 0xFFFFFFFF).to_bytes(4, "little")
        whole = append_checksum(bytes(placed)) if description.checksum_length == CHECKSUM_LENGTH else bytes(placed)
        yield np.frombuffer(whole, np.uint8)
