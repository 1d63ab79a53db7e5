"""Write the events of one connection to the relay log, and record their source position (MySQL's `queue_event`).

Invariants:
* Events are appended unchanged. Excluded events are dropped, and so are heartbeats, which are not events of the log.
  A dropped transaction with a GTID becomes an empty one (dropped_gtids.py).
* Every event's checksum is verified before the event is appended.
* The position is the one after the last event that was appended or dropped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.event.checksum import verify_events
from rplctl.event.format_description import parse_format_description
from rplctl.event.header import CHECKSUM_LENGTH, HEADER_LENGTH, EventHeader, parse_header
from rplctl.event.types import EventType
from rplctl.failpoint import crash_point
from rplctl.info import MasterInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, can_begin_at, is_log_name
from rplctl.receiver.event_runs import EventFilter, follow, next_run
from rplctl.receiver.reporter import Reporter
from rplctl.receiver.retrieved_gtids import RetrievedGtids
from rplctl.recovery import RecoveryResult
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.log_file import artificial_rotate
from rplctl.relay_log.purge import relay_log_space
from rplctl.relay_log.writer import RelayLogWriter
from rplctl.repository.base import InfoRepository
from rplctl.source import EventBatch, ReplicaIdentity, SourceIdentity, SourceStream
from rplctl.source.base import COPY_AGAIN, NOT_THE_PROTOCOL, fatal_reading_binlog
from rplctl.source_zones import SourceZones
from rplctl.system_zone import SystemZone

_ROTATE_FIXED: Final = 8
_CONTROL: Final = frozenset(
    {EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT, EventType.HEARTBEAT_V2}
)
SILENT_S: Final = 0.05  # after this time without an event, the status file shows the events that were read


class Pull:
    """A writer of the events of one stream.

    It writes to a new relay log, or continues the relay log at the end that recovery has found.
    """

    def __init__(self, config: Config, channel: Channel, replica: ReplicaIdentity, reporter: Reporter) -> None:
        self._config = config
        self._channel = channel
        self._server_id = replica.server_id
        self._reporter = reporter
        self._writer = RelayLogWriter(channel, config, replica.server_id)
        self._position = BinlogPosition("", 0)
        self._algorithm = 1  # checksums: 1 = CRC32, 0 = none
        self._is_open = False
        self._zone: SystemZone | None = None  # the source's time zone, if it differs from the recorded one
        self._left_out = False  # the position is past dropped events that the relay log does not show yet
        self.transactions = 0

    def begin(
        self,
        info: MasterInfo,
        repository: InfoRepository[MasterInfo],
        source: SourceIdentity,
        recovered: RecoveryResult,
        *,
        resume: bool,
    ) -> None:
        """Prepare for the first batch: record the identity of the source, and find where the relay log continues.

        The next connection compares the identity, to detect that it reads from another server. With `resume`, the
        existing relay log continues if this is possible.
        """
        known = replace(info, uuid=source.uuid, master_server_id=source.server_id)
        if known != info:  # before the first event, so that a kill does not lose the source of the relay logs
            repository.flush(known, force=True)
        self._flusher = MasterInfoFlusher(repository, known)
        own = () if self._config.replicate_same_server_id else (self._server_id,)
        self._filter = EventFilter((*own, *info.ignored_server_ids), info.do_domain_ids, info.ignore_domain_ids)
        self._gtids = RetrievedGtids(recovered.retrieved_gtid_set, is_mariadb=source.is_mariadb)
        self._algorithm = 1 if source.has_checksums else 0
        self._continues_at = recovered.continues_at
        zones = SourceZones(self._channel, self._config)
        self._zone = source.system_zone if source.system_zone not in (None, zones.last) else None
        resume = resume and not recovered.needs_new_relay_log and self._zone is None
        self._recovered = recovered if resume else None
        self._known_log = known_log(info, recovered)

    def step(self, stream: SourceStream, timeout_s: float) -> None:
        """Wait for a batch, and write it to the relay log.

        Raises SourceError if the source reports an error or sends a damaged event, and RelayLogError if the relay log
        cannot be written.
        """
        batch = stream.read_batch(min(timeout_s, SILENT_S) if self._reporter.has_news else timeout_s)
        if batch is None:
            self._reporter.silent()
            return
        self._verify(batch)
        queued, i = 0, 0
        while i < len(batch):
            if int(batch.data[batch.offsets[i] + 4]) in _CONTROL:
                queued += self._control(batch.event(i))
                i += 1
            else:
                i, kept = self._queue(self._up_to_limit(batch, i), i)
                queued += kept
                if i < len(batch) and self._is_open and self._writer.should_rotate:
                    self.rotate()
        if queued and self._is_open:
            self._flusher.after_events(self._position, self._writer, queued)
            if self._writer.should_rotate:
                self.rotate()
        self._reporter.received(self._position, self._gtids, _last_timestamp(batch), self._writer.end)

    @property
    def can_rotate(self) -> bool:
        """True if there is an open relay log that ends with a complete transaction, or with a small part of one."""
        return self._is_open and self._writer.can_rotate

    def rotate(self) -> None:
        """Begin the next relay log, and write MasterInfo (REQ-3 (i)).

        The caller does this because of the size of the relay log, FLUSH RELAY LOGS, or the space limit.
        """
        if self._is_open:
            with self._flusher.guard():  # an unfinished transaction moves, so MasterInfo must change
                self._writer.rotate()
                self._flusher.force(self._position, self._writer)

    def finish(self, *, flush: bool) -> None:
        """End the work for the connection. With `flush`, make the relay log and MasterInfo durable (REQ-3 (iii))."""
        if self._is_open:
            self._is_open = False
            try:
                if flush:
                    self._flusher.force(self._position, self._writer)
            finally:
                self._writer.close()

    def is_over_space_limit(self) -> bool:
        """True if the relay logs exceed `relay_log_space_limit`, so that the receiver must wait for the applier.

        False if the applier must wait for the rows of a copy, because the receiver and the applier would then wait for
        each other.
        """
        limit = self._config.relay_log_space_limit
        if not limit or relay_log_space(self._channel) <= limit:
            return False
        return not any(self._channel.clone_folder.glob("*/claim.json"))

    def holds_all_space(self) -> bool:
        """True if only the open relay log exists, so that purging can free no more space."""
        return RelayLogIndex(self._channel).names() == [self._writer.end.log_name]

    def _verify(self, batch: EventBatch) -> None:
        bad = verify_events(batch.data, batch.offsets, self._algorithm)
        if bad >= 0:
            raise SourceError(
                "Replication event checksum verification failed while reading from network.",
                errno=er.NETWORK_READ_EVENT_CHECKSUM_FAILURE,
                position=str(self._position),
                hint="to read the event again, run: rplctl start\n"
                "To copy all tables again if the error comes again, because the source's binary log is then damaged at "
                f"this position, run: {COPY_AGAIN}",
            )

    def _up_to_limit(self, batch: EventBatch, first: int) -> EventBatch:
        """Return the batch up to the event that fills the current relay log. Events before `first` are already written.

        A batch may be larger than max_relay_log_size, and is then divided among several relay logs.
        """
        limit = int(batch.offsets[first]) + self._writer.room
        stop = max(first + 1, int(np.searchsorted(batch.offsets, limit, side="right")) - 1)
        return batch if stop >= len(batch) else EventBatch(batch.data, batch.offsets[: stop + 1])

    def _queue(self, batch: EventBatch, first: int) -> tuple[int, int]:
        """Append the events from `first` on, up to the next event that the receiver handles itself.

        Return (index of the next event, number of appended events).
        """
        if not self._is_open:
            raise SourceError(
                "the source sent events before the FORMAT_DESCRIPTION event of their log",
                errno=er.SLAVE_RELAY_LOG_WRITE_FAILURE,
                hint=NOT_THE_PROTOCOL,
            )
        checksum_length = self._description.checksum_length
        run = next_run(batch, first, self._position.log_pos, self._filter, checksum_length)
        if run.kept:
            self._writer.append(run.data, run.kept)
        self._position = BinlogPosition(self._position.log_name, run.position)
        self._left_out = run.ends_dropped
        self.transactions += self._gtids.add(batch, first, run.stop, self._description)
        appended = run.kept
        if run.ends_dropped and not self._gtids.is_open:
            appended += self._mark_position()
        return run.stop, appended

    def _control(self, event: bytes) -> int:
        """Handle one ROTATE, FORMAT_DESCRIPTION or heartbeat, and return the number of appended events."""
        header = parse_header(event)
        if header.type_code == EventType.ROTATE:
            return self._rotate_event(event, header)
        if header.type_code == EventType.FORMAT_DESCRIPTION:
            return self._format_description(event, header)
        return self._heartbeat(header)

    def _rotate_event(self, event: bytes, header: EventHeader) -> int:
        end = len(event) - (CHECKSUM_LENGTH if self._algorithm else 0)
        given = event[HEADER_LENGTH + _ROTATE_FIXED : end]
        name = given.decode("utf-8", "surrogateescape")  # a name that is not UTF-8 could not be requested again
        position = int.from_bytes(event[HEADER_LENGTH : HEADER_LENGTH + _ROTATE_FIXED], "little")
        if not name.isprintable() or not is_log_name(name) or not can_begin_at(position):
            raise SourceError(
                f"the source sent an invalid binary log name or position: {given!r} at {position}",
                errno=er.SLAVE_RELAY_LOG_WRITE_FAILURE,
                hint=NOT_THE_PROTOCOL,
            )
        self._left_out = False
        if self._gtids.is_open:
            self._filter.dropped.cut()
        self._gtids.cut()
        begins_log = name != self._position.log_name
        self._position = BinlogPosition(name, position)
        if not self._is_open:
            return 0  # the new relay log begins with this position
        empty, count = self._filter.dropped.take(CHECKSUM_LENGTH if self._algorithm else 0)
        self._writer.append(empty + event, count + 1)
        if begins_log:
            self._flusher.force(self._position, self._writer)
        return count + 1

    def _format_description(self, event: bytes, header: EventHeader) -> int:
        self._gtids.cut()
        if not self._is_open:
            refuse_rewritten_log(self._known_log, event, self._position)
            self._open(event)
        else:
            self._writer.append(event, 1)
        self._description = parse_format_description(event)
        self._algorithm = self._description.checksum_algorithm
        artificial = header.is_artificial or not header.end_log_pos
        log_pos = follow(self._position.log_pos, header.end_log_pos, header.event_length, artificial=artificial)
        self._position = BinlogPosition(self._position.log_name, log_pos)
        return 1

    def _open(self, format_description: bytes) -> None:
        if not self._position.log_name:
            raise SourceError(
                "the source sent a FORMAT_DESCRIPTION event before the ROTATE event with the name of its log",
                errno=er.SLAVE_RELAY_LOG_WRITE_FAILURE,
                hint=NOT_THE_PROTOCOL,
            )
        if self._recovered is None:
            self._open_new(format_description)
        else:
            in_force = self._recovered.format_description
            algorithm = parse_format_description(in_force).checksum_algorithm if in_force else 1
            self._writer.resume(self._recovered.relay_end)
            self._writer.append(artificial_rotate(self._server_id, self._position, algorithm) + format_description, 2)
        self._is_open = True
        self._flusher.force(self._position, self._writer)

    def _open_new(self, format_description: bytes) -> None:
        """Begin a new relay log, at the source position at which the previous relay log ended.

        If the source continues at another position, an artificial ROTATE to that position follows. So a reader sees
        that no relay log is missing before this one, and from where the positions of another source apply.
        """
        begins = self._continues_at if self._continues_at.log_name else self._position
        self._writer.open_new(begins, format_description)
        if begins != self._position:
            algorithm = parse_format_description(format_description).checksum_algorithm
            self._writer.append(artificial_rotate(self._server_id, self._position, algorithm), 1)
        if self._zone is not None:
            name, names = self._writer.end.log_name, RelayLogIndex(self._channel).names()
            SourceZones(self._channel, self._config).note(name, self._zone, names[0] if names else name)

    def _heartbeat(self, header: EventHeader) -> int:
        """Handle a heartbeat, which means that the source has no more events at the moment.

        If the heartbeat has a higher position than the receiver, the source has skipped events, and the receiver moves
        to the higher position. Return the number of appended events.
        """
        self._reporter.heartbeat()
        ahead = (header.end_log_pos - self._position.log_pos) & 0xFFFFFFFF
        if header.end_log_pos and 0 < ahead < 1 << 31:
            self._position = BinlogPosition(self._position.log_name, self._position.log_pos + ahead)
            self._left_out = True
        if self._left_out and self._is_open:
            return self._mark_position()
        return 0

    def _mark_position(self) -> int:
        """Append to the relay log an artificial ROTATE with the current position. Return the number of appended events.

        The applier then moves its position past events that the receiver did not write. The GTIDs of dropped
        transactions are appended before.
        """
        empty, count = self._filter.dropped.take(CHECKSUM_LENGTH if self._algorithm else 0)
        self._writer.append(empty + artificial_rotate(self._server_id, self._position, self._algorithm), count + 1)
        self._left_out = False
        return count + 1


def _last_timestamp(batch: EventBatch) -> int:
    """Return the time of the batch's last event by the source's clock, or 0 if this is a control event.

    The time in a control event may be the time at which its log began.
    """
    last = int(batch.offsets[-2])
    if int(batch.data[last + 4]) in _CONTROL:
        return 0
    return int.from_bytes(batch.data[last : last + 4].tobytes(), "little")


class MasterInfoFlusher:
    """The writer of MasterInfo, which decides when MasterInfo is due (WL#2775 REQ-3).

    MasterInfo is due at a rotation of the relay log or of the source's log, at a stop, and after every
    `sync_master_info` events. If `sync_master_info` is 0, the number of events does not count.

    A FILE is written at every position, and synced to the disk when MasterInfo is due. A TABLE is only written when
    MasterInfo is due. The repository counts the events and decides when to write, because only the repository knows its
    own kind. Invariant: before a forced flush, the relay log is synced up to the position in MasterInfo.
    """

    def __init__(self, repository: InfoRepository[MasterInfo], info: MasterInfo) -> None:
        self._repository = repository
        self.info = info
        self.guard = repository.guard  # the channel's data lock (WL#9452)

    def after_events(self, position: BinlogPosition, writer: RelayLogWriter, events: int) -> None:
        """Count events that were appended, and write MasterInfo if it is due.

        All events before `position` must be in the relay log.
        """
        self._describe(position, writer)
        self._repository.flush(self.info, force=False, events=events)

    def force(self, position: BinlogPosition, writer: RelayLogWriter) -> None:
        """Sync the relay log, and then write MasterInfo (WL#2775 REQ-3).

        The receiver does this at a rotation, at a stop and at a new connection.
        """
        writer.sync()
        self._describe(position, writer)
        crash_point("crash_before_flush_master_info")
        self._repository.flush(self.info, force=True)

    def _describe(self, position: BinlogPosition, writer: RelayLogWriter) -> None:
        end = writer.end
        self.info = replace(
            self.info.with_read_position(position),
            flushed_relay_log_name=end.log_name,
            flushed_relay_log_pos=end.log_pos,
        )


def known_log(info: MasterInfo, recovered: RecoveryResult) -> bytes:
    """Return the FORMAT_DESCRIPTION of the source's log that has the next event, for `refuse_rewritten_log`.

    RESET MASTER gives a new log the name of an old one, so only the time at which a log began identifies the log. The
    source itself refuses a position after the new log's end (1236). But it would silently continue from a position
    inside the new log, in the middle of other transactions. Return b'' to compare nothing: with GTIDs, or if the relay
    log does not end with a complete transaction at the position.
    """
    by_gtid = info.enabled_auto_position or info.using_gtid != 0
    return b"" if by_gtid or recovered.needs_new_relay_log else recovered.format_description


def refuse_rewritten_log(known: bytes, sent: bytes, position: BinlogPosition) -> None:
    """Raise SourceError 1236 if the source has begun the log again since the last dump.

    `known` is the FORMAT_DESCRIPTION of the log in the last dump, and `sent` the one in the dump from `position` on.
    The log must have begun at the same time in both (resolution: a second). If `known` is b'', nothing is compared.
    """
    if not known or position.log_pos <= FIRST_EVENT_POSITION:
        return
    if parse_header(known).timestamp == parse_header(sent).timestamp:
        return
    raise fatal_reading_binlog(
        f"{position.log_name} is not the log that was read up to {position.log_pos}: the source has written it again",
        hint=f"to copy all tables again, which replaces all their rows in the target, run: {COPY_AGAIN}",
    )
