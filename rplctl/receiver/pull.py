"""One connection's work: batches of events into the relay log, and the source position that goes with it
(`queue_event`).

Invariants: bytes are appended as they came (but left-out events, and heartbeats, which are no events of the log);
every event's checksum is verified before it is appended; the position is that behind the last event appended or left
out.
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
from rplctl.source.base import COPY_AGAIN, fatal_reading_binlog
from rplctl.source_zones import SourceZones
from rplctl.system_zone import SystemZone

_ROTATE_FIXED: Final = 8
_CONTROL: Final = frozenset(
    {EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT, EventType.HEARTBEAT_V2}
)
SILENT_S: Final = 0.05  # a source that sent nothing for so long pauses: what is read of it is told
# no transaction is open behind these: where one is left out, the relay log may say how far the source is
_AT_AN_END: Final = frozenset({EventType.XID, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD, EventType.GTID_LIST})


class Pull:
    """Queues what one stream brings. `append_to` says where: None = a new relay log, else after recovery's end."""

    def __init__(self, config: Config, channel: Channel, replica: ReplicaIdentity, reporter: Reporter) -> None:
        self._config = config
        self._channel = channel
        self._server_id = replica.server_id
        self._reporter = reporter
        self._writer = RelayLogWriter(channel, config, replica.server_id)
        self._position = BinlogPosition("", 0)
        self._algorithm = 1  # checksums: 1 CRC32, 0 none
        self._is_open = False
        self._zone: SystemZone | None = None  # of the source, if it is another one than was noted
        self._left_out = False  # the position is past left-out events that the relay log does not know of
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
        """Before the first batch: remember the source (the wrong-server guard) and where the relay log goes on."""
        known = replace(info, uuid=source.uuid, master_server_id=source.server_id)
        if known != info:  # before the first event: a kill does not forget which server the relay logs are of
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
        """Wait for a batch and queue it. Raises SourceError, RelayLogError."""
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

    def rotate(self) -> None:
        """Begin the next relay log (size, FLUSH RELAY LOGS, space limit); REQ-3 (i): MasterInfo is written."""
        if self._is_open:
            with self._flusher.guard():  # an unfinished transaction moves: the coordinates in MasterInfo must follow
                self._writer.rotate()
                self._flusher.force(self._position, self._writer)

    def finish(self, *, flush: bool) -> None:
        """The end of the connection; with `flush` relay log and MasterInfo are made durable (REQ-3 (iii))."""
        if self._is_open:
            self._is_open = False
            try:
                if flush:
                    self._flusher.force(self._position, self._writer)
            finally:
                self._writer.close()

    def is_over_space_limit(self) -> bool:
        """Never while the applier stands still for rows of a copy: it would wait for us, and we for it."""
        limit = self._config.relay_log_space_limit
        if not limit or relay_log_space(self._channel) <= limit:
            return False
        return not any(self._channel.clone_folder.glob("*/claim.json"))

    def holds_all_space(self) -> bool:
        """True when only the open relay log is left: waiting longer would wait for ourselves."""
        return RelayLogIndex(self._channel).names() == [self._writer.end.log_name]

    def _verify(self, batch: EventBatch) -> None:
        bad = verify_events(batch.data, batch.offsets, self._algorithm)
        if bad >= 0:
            raise SourceError(
                "Replication event checksum verification failed while reading from network.",
                errno=er.NETWORK_READ_EVENT_CHECKSUM_FAILURE,
                position=str(self._position),
                hint="rplctl start; if it comes again, the source's binary log is damaged there",
            )

    def _up_to_limit(self, batch: EventBatch, first: int) -> EventBatch:
        """The batch up to where the relay log is full: a batch is megabytes, max_relay_log_size may be less."""
        limit = int(batch.offsets[first]) + self._writer.room
        stop = max(first + 1, int(np.searchsorted(batch.offsets, limit, side="right")) - 1)
        return batch if stop >= len(batch) else EventBatch(batch.data, batch.offsets[: stop + 1])

    def _queue(self, batch: EventBatch, first: int) -> tuple[int, int]:
        """Append the run of plain events from `first` on; (next event, events appended)."""
        if not self._is_open:
            raise SourceError(
                "the source sent events before their FORMAT_DESCRIPTION", errno=er.SLAVE_RELAY_LOG_WRITE_FAILURE
            )
        run = next_run(batch, first, self._position.log_pos, self._filter)
        if run.kept:
            self._writer.append(run.data, run.kept)
        self._position = BinlogPosition(self._position.log_name, run.position)
        self._left_out = run.ends_dropped
        self.transactions += self._gtids.add(batch, first, run.stop, self._description)
        appended = run.kept
        if run.ends_dropped and int(batch.data[batch.offsets[run.stop - 1] + 4]) in _AT_AN_END:
            appended += self._mark_position()
        return run.stop, appended

    def _control(self, event: bytes) -> int:
        """One ROTATE, FORMAT_DESCRIPTION or heartbeat; events appended for it."""
        header = parse_header(event)
        if header.type_code == EventType.ROTATE:
            return self._rotate_event(event, header)
        if header.type_code == EventType.FORMAT_DESCRIPTION:
            return self._format_description(event, header)
        return self._heartbeat(header)

    def _rotate_event(self, event: bytes, header: EventHeader) -> int:
        end = len(event) - (CHECKSUM_LENGTH if self._algorithm else 0)
        given = event[HEADER_LENGTH + _ROTATE_FIXED : end]
        name = given.decode("utf-8", "surrogateescape")  # what is no UTF-8 could not be asked for again
        position = int.from_bytes(event[HEADER_LENGTH : HEADER_LENGTH + _ROTATE_FIXED], "little")
        if not name.isprintable() or not is_log_name(name) or not can_begin_at(position):
            raise SourceError(
                f"the source sent an invalid binary log name or position: {given!r} at {position}",
                errno=er.SLAVE_RELAY_LOG_WRITE_FAILURE,
            )
        self._left_out = False
        self._gtids.cut()
        begins_log = name != self._position.log_name
        self._position = BinlogPosition(name, position)
        if not self._is_open:
            return 0  # the new relay log begins with it
        self._writer.append(event, 1)
        if begins_log:
            self._flusher.force(self._position, self._writer)
        return 1

    def _format_description(self, event: bytes, header: EventHeader) -> int:
        self._gtids.cut()
        if not self._is_open:
            refuse_log_begun_anew(self._known_log, event, self._position)
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
                "the source sent no ROTATE before its FORMAT_DESCRIPTION", errno=er.SLAVE_RELAY_LOG_WRITE_FAILURE
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
        """It begins where the one before it ended, even if another source goes on elsewhere: no reader misses a file
        in between, or takes one source's position for another's.
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
        """Nothing more to send. When it is ahead of us, events were left out there: the relay log is told."""
        self._reporter.heartbeat()
        ahead = (header.end_log_pos - self._position.log_pos) & 0xFFFFFFFF
        if header.end_log_pos and 0 < ahead < 1 << 31:
            self._position = BinlogPosition(self._position.log_name, self._position.log_pos + ahead)
            self._left_out = True
        if self._left_out and self._is_open:
            return self._mark_position()
        return 0

    def _mark_position(self) -> int:
        """An artificial ROTATE to here: executed position and recovery follow past events that were left out."""
        self._writer.append(artificial_rotate(self._server_id, self._position, self._algorithm), 1)
        self._left_out = False
        return 1


def _last_timestamp(batch: EventBatch) -> int:
    """By the source's clock; 0 where a control event ends the batch: it may have the time at which a log began."""
    last = int(batch.offsets[-2])
    if int(batch.data[last + 4]) in _CONTROL:
        return 0
    return int.from_bytes(batch.data[last : last + 4].tobytes(), "little")


class MasterInfoFlusher:
    """When MasterInfo is written (WL#2775 REQ-3): on relay log rotation, at the source's next log, on stop, and every
    `sync_master_info` events.

    FILE takes every position at once into the operating system's cache and fsyncs by the period; TABLE is not touched
    before the period is reached; with period 0 only rotation of either log, CHANGE MASTER and stop write it. The
    repository keeps the count (it knows its kind); this says when and with what. Invariant: a forced flush follows the
    sync of the relay log that it describes.
    """

    def __init__(self, repository: InfoRepository[MasterInfo], info: MasterInfo) -> None:
        self._repository = repository
        self.info = info
        self.guard = repository.guard  # the channel's data lock (WL#9452)

    def after_events(self, position: BinlogPosition, writer: RelayLogWriter, events: int) -> None:
        """Events up to `position` are in the relay log."""
        self._describe(position, writer)
        self._repository.flush(self.info, force=False, events=events)

    def force(self, position: BinlogPosition, writer: RelayLogWriter) -> None:
        """Rotation, stop, a new connection: relay log first, then the record (WL#2775 REQ-3)."""
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
    """FORMAT_DESCRIPTION of the source's log that the next event is in; b'' when it is not known or does not matter.

    A log is known by when it was begun: RESET MASTER begins the names anew. A position beyond the new log's end the
    source refuses itself (1236); one within it would be read on from, silently, in the middle of other transactions.
    The timestamp (resolution: a second) is asked by position only, and only when the relay log ends whole, there.
    """
    by_gtid = info.enabled_auto_position or info.using_gtid != 0
    return b"" if by_gtid or recovered.needs_new_relay_log else recovered.format_description


def refuse_log_begun_anew(known: bytes, sent: bytes, position: BinlogPosition) -> None:
    """Raises SourceError 1236 when the log that is sent from `position` on was not begun when the known one was."""
    if not known or position.log_pos <= FIRST_EVENT_POSITION:
        return
    if parse_header(known).timestamp == parse_header(sent).timestamp:
        return
    raise fatal_reading_binlog(
        f"{position.log_name} is not the log that was read up to {position.log_pos}: the source has written it again",
        hint=f"To copy the tables again, run: {COPY_AGAIN}",
    )
