"""Writes the applied transactions to the binary log, before or after each commit of the applier (design D3, D9).

The commit mode determines the order of the steps:

    mode xa                      The target is prepared, and then the position. The events and the record are written
                                 durably, and then the target commits. After a crash, recovery commits if the log has
                                 the record; otherwise, it rolls back.
    mode transaction, marker     COMMIT, then events and record. After a crash between them, applier/log_bin appends the
                                 missing transactions from the relay logs.
    no change of data            The record, then COMMIT. After a crash between them, the next start commits. In the
                                 other order, the relay logs would not show that transactions were skipped.

Invariant: between two commits of the applier, the log's last record equals the target's committed position, or the log
lacks exactly the transactions in `pending`. The relay logs after the position in the record must not be purged, because
a start after a crash reads the missing transactions from them. A failed write never makes a finished commit fail. The
write is repeated before the next commit, and a second failure stops the applier.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rplctl.applied_log.end import repair_end
from rplctl.applied_log.files import BinaryLogFiles
from rplctl.applied_log.purge import expire
from rplctl.applied_log.record import PositionRecord
from rplctl.applied_log.writer import BinaryLogWriter, own_description
from rplctl.config import Config
from rplctl.errors import RplError
from rplctl.event.format_description import FormatDescription
from rplctl.event.jit import ByteArray
from rplctl.info import RelayLogInfo
from rplctl.position import RelayLogPosition

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoggedEvents:
    """The events that one commit of the applier adds to the log.

    `render`: receives the offset in the file at which the events will be written, and yields the events with their
    positions.
    """

    description: FormatDescription | None  # the source's; None: there are no events, so any log can contain them
    timestamp: int  # time of the last event, in seconds since 1970
    has_changes: bool
    render: Callable[[int], Iterator[ByteArray]]


def no_events(_: int) -> Iterator[ByteArray]:
    return iter(())


class BinaryLog:
    """The binary log of one channel, for its applier. Its files are read and written only after `open` or `stage`."""

    def __init__(self, files: BinaryLogFiles, config: Config, server_id: int) -> None:
        self.files = files
        self.record: PositionRecord | None = None  # the last position record in the log
        self.pending: tuple[LoggedEvents, RelayLogInfo, RelayLogInfo] | None = None
        self.server_id = server_id
        self._config = config
        self._writer: BinaryLogWriter | None = None
        self._staged: LoggedEvents | None = None

    def open(self) -> PositionRecord | None:
        """Truncate an unfinished transaction at the end of the log, and return the last position record.

        Raises RelayLogError or BinlogFormatError if the log's end cannot be read or repaired.
        """
        self._forget_writer()
        end = repair_end(self.files)
        self.record = end.record if end else None
        self._writer = BinaryLogWriter(self.files, self._config, self.server_id)
        if end is not None and not end.is_rotated:
            self._writer.description = end.description
            self._writer.resume(RelayLogPosition(end.name, end.size))
        return self.record

    def stage(self, events: LoggedEvents, at: RelayLogInfo) -> None:
        """Keep the events for the next commit, which begins at the position `at`. `before_commit` or `after_commit`
        writes them.

        Events that could not be written after the previous commit are written now. Raises RelayLogError if the log
        cannot be written. The caller must then commit nothing.
        """
        if self.pending is not None:
            held, before, after = self.pending
            self._begin_if_due(held, before)
            self._write(held, PositionRecord(before=before, after=after, xid="", changes=held.has_changes))
            self.pending = None
        self._begin_if_due(events, at)
        self._staged = events

    def before_commit(self, before: RelayLogInfo, after: RelayLogInfo) -> None:
        if self._staged is not None and not self._staged.has_changes:
            self._write(self._staged, PositionRecord(before=before, after=after, xid="", changes=False))
            self._staged = None

    def after_commit(self, before: RelayLogInfo, after: RelayLogInfo) -> None:
        """Write the events that `stage` has kept to the log, after a commit in the target.

        If the log cannot be written, there is no error, because the commit is done. The events are then kept in
        `pending`.
        """
        if self._staged is None:
            return
        staged, self._staged = self._staged, None
        try:
            self._write(staged, PositionRecord(before=before, after=after, xid="", changes=staged.has_changes))
        except (RplError, OSError) as error:
            log.error("the binary log lacks the transactions up to %s: %s", after.exec_position, error)
            self.pending = staged, before, after
            self._forget_writer()

    def decide(self, xid: str, before: RelayLogInfo, after: RelayLogInfo) -> None:
        """Make the events that `stage` has kept durable in the log, in a two-phase commit.

        After this call, the transaction counts as committed.
        """
        if self._staged is None:
            return
        staged, self._staged = self._staged, None
        try:
            self._write(staged, PositionRecord(before=before, after=after, xid=xid), durable=True)
        except BaseException:
            self._forget_writer()
            raise

    def has(self, xid: str) -> bool:
        """True if the last record of the log has this XID. The file is read again, because only the file counts after
        an error.
        """
        record = self.open()
        return record is not None and record.xid == xid

    def complete(self, before: RelayLogInfo, after: RelayLogInfo) -> None:
        """Write the events that `stage` has kept, after a start that found them committed in the target before a crash.

        Raises RelayLogError if the log cannot be written.
        """
        if self._staged is not None:
            self._write(
                self._staged, PositionRecord(before=before, after=after, xid="", changes=self._staged.has_changes)
            )
            self._staged = None

    def restart(self, at: RelayLogInfo, render: Callable[[int], Iterator[ByteArray]], timestamp: int) -> None:
        """Continue the log in a new file at the position `at`, because another program has moved the applier's
        position.

        Raises RelayLogError if the log cannot be written.
        """
        writer = self._opened()
        assert writer.description is not None and self.record is not None
        writer.begin(writer.description, self.record)
        record = PositionRecord(before=at, after=at)
        writer.write(render(writer.end.log_pos), record, timestamp, durable=True)
        self.record = record

    @property
    def description(self) -> FormatDescription | None:
        """The FORMAT_DESCRIPTION of the open file, or None if no file is open."""
        return self._opened().description

    def sync(self) -> bool:
        """Sync the log before relay logs are purged.

        Return False if the log lacks the transactions in `pending`. The relay logs must then be kept, because a start
        after a crash reads these transactions from the relay logs.
        """
        if self.pending is None and self._writer is not None:
            self._writer.sync()
        return self.pending is None

    def close(self) -> None:
        if self._writer is not None:
            self._writer.sync()
        self._forget_writer()

    def _opened(self) -> BinaryLogWriter:
        if self._writer is None:
            self.open()
        assert self._writer is not None
        return self._writer

    def _begin_if_due(self, events: LoggedEvents, at: RelayLogInfo) -> None:
        """Begin the next file if no file is open, if the source's format description has changed, or if the file is
        full.
        """
        writer = self._opened()
        is_open = bool(writer.end.log_name)
        wanted = events.description or writer.description
        if wanted is None or (is_open and not writer.is_full and _reads_alike(wanted, writer.description)):
            return
        record = self.record or PositionRecord(before=at, after=at)
        writer.begin(wanted, record)
        self.record = record
        for name in expire(self.files, self._config):
            log.info("binary log %s is older than binlog_expire_logs_seconds and removed", name)

    def _write(self, events: LoggedEvents, record: PositionRecord, *, durable: bool = False) -> None:
        writer = self._opened()
        if self.record is not None and self.record.is_step_of(record):
            return  # the applier repeats the transaction after an error of the target, and the log has it already
        if not writer.end.log_name:
            return  # the log has no file, because there were only control events so far
        pieces = events.render(writer.end.log_pos)
        writer.write(pieces, record, events.timestamp, durable=durable)
        self.record = record

    def _forget_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None


def _reads_alike(source: FormatDescription, own: FormatDescription | None) -> bool:
    """True if a file with the description `own` can contain events of a source with the description `source`."""
    return own is not None and own_description(source, 0, 0) == own_description(own, 0, 0)
