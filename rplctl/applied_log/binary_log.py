"""The binary log as the commit sees it: what goes into it, when, and what it decides (design D3, D9).

    mode xa                      target prepared → [position prepared] → events and record, durable → target committed;
                                 in the log → commit, not in it → roll back
    mode transaction, marker     COMMIT → events and record: the log follows, and what it lacks after a crash is
                                 appended from the relay logs (applier/log_bin)
    no change of data            record → COMMIT: which transactions were passed over is in no relay log

Invariant: the log's last record and the target's committed position are equal whenever the applier is between two
commits, or the log lacks what `pending` holds. Nobody may purge relay logs past the record. A failed write never fails
a commit that is done: it is tried again before the next one, and stops the applier there.
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
    """The events that one commit adds to the log. `render` gives the events in their form from an offset of the file
    on.
    """

    description: FormatDescription | None  # of the source; None: no events, any log will do
    timestamp: int  # of the last one
    has_changes: bool
    render: Callable[[int], Iterator[ByteArray]]


def no_events(_: int) -> Iterator[ByteArray]:
    return iter(())


class BinaryLog:
    """The binary log of one channel, for its applier. Files are touched only after `open` or `stage`."""

    def __init__(self, files: BinaryLogFiles, config: Config, server_id: int) -> None:
        self.files = files
        self.record: PositionRecord | None = None  # the last one in the log
        self.pending: tuple[LoggedEvents, RelayLogInfo, RelayLogInfo] | None = None
        self.server_id = server_id
        self._config = config
        self._writer: BinaryLogWriter | None = None
        self._staged: LoggedEvents | None = None

    def open(self) -> PositionRecord | None:
        """Cut what was not finished and go to the end; the last record. Raises RelayLogError, BinlogFormatError."""
        self._forget_writer()
        end = repair_end(self.files)
        self.record = end.record if end else None
        self._writer = BinaryLogWriter(self.files, self._config, self.server_id)
        if end is not None and not end.is_rotated:
            self._writer.description = end.description
            self._writer.resume(RelayLogPosition(end.name, end.size))
        return self.record

    def stage(self, events: LoggedEvents, at: RelayLogInfo) -> None:
        """Before a commit that begins at `at`. Raises RelayLogError: nothing may be committed then."""
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
        """Never raises for a log that cannot be written: the commit is done."""
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
        """Two-phase commit: when this returns, the transaction is committed, come what may."""
        if self._staged is None:
            return
        staged, self._staged = self._staged, None
        try:
            self._write(staged, PositionRecord(before=before, after=after, xid=xid), durable=True)
        except BaseException:
            self._forget_writer()
            raise

    def has(self, xid: str) -> bool:
        """True if the log has it. The file is asked, because after an error only the file counts."""
        record = self.open()
        return record is not None and record.xid == xid

    def complete(self, before: RelayLogInfo, after: RelayLogInfo) -> None:
        """Write what is staged: it was committed before a crash. Raises RelayLogError."""
        if self._staged is not None:
            self._write(
                self._staged, PositionRecord(before=before, after=after, xid="", changes=self._staged.has_changes)
            )
            self._staged = None

    def restart(self, at: RelayLogInfo, render: Callable[[int], Iterator[ByteArray]], timestamp: int) -> None:
        """Go on in a new file: the position was moved by somebody else. Raises RelayLogError."""
        writer = self._opened()
        assert writer.description is not None and self.record is not None
        writer.begin(writer.description, self.record)
        record = PositionRecord(before=at, after=at)
        writer.write(render(writer.end.log_pos), record, timestamp, durable=True)
        self.record = record

    @property
    def description(self) -> FormatDescription | None:
        """Return the description of the open file."""
        return self._opened().description

    def sync(self) -> bool:
        """Before relay logs are purged. False while they are still needed."""
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
        """A next file when there is none, the source's description changed, or it is full."""
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
            return  # tried again after an error of the target
        if not writer.end.log_name:
            return  # nothing but control events came yet
        pieces = events.render(writer.end.log_pos)
        writer.write(pieces, record, events.timestamp, durable=durable)
        self.record = record

    def _forget_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None


def _reads_alike(source: FormatDescription, own: FormatDescription | None) -> bool:
    """True if events of the description `source` can be in a file with the description `own`, which was made of such a
    description.
    """
    return own is not None and own_description(source, 0, 0) == own_description(own, 0, 0)
