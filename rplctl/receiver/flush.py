"""When MasterInfo is written (WL#2775 REQ-3): on relay log rotation, on stop, and every `sync_master_info` events.

FILE takes every position at once into the operating system's cache and fsyncs by the period; TABLE is not touched
before the period is reached; with period 0 only rotation, CHANGE MASTER and stop write it. The repository keeps the
count (it knows its kind); this module says when and with what. Invariant: a forced flush follows the sync of the
relay log that it describes.
"""

from __future__ import annotations

from dataclasses import replace

from rplctl.failpoint import crash_point
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.relay_log.writer import RelayLogWriter
from rplctl.repository.base import InfoRepository


class MasterInfoFlusher:
    """The receiver's one way to its repository."""

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
