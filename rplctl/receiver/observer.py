"""Observe the source's clock, end and purging, and the receiver's own disk.

The observer does not use the receiver's stream. Every `source_poll` seconds, it opens a short session and queries the
source. If the channel's account may not see the logs, the next poll is an hour later. Invariant: an observation never
ends the receiver and never triggers an action. The values are only shown by `show-status`, `check` and `metrics`.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections import deque
from typing import Final

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import RplError
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.relay_log.purge import relay_log_space
from rplctl.secret import reveal
from rplctl.source.keeps import Kept, bytes_written, look, purge_at
from rplctl.source.survey import survey
from rplctl.status import ThreadStatus

TICK_S: Final = 5.0
REFUSED_S: Final = 3600.0
_LOOKS: Final = 60  # number of measurements of the disk, for five minutes
_IN_SIGHT_S: Final = 30 * 86400.0
_LEAST_S: Final = 20.0  # seconds between two measurements, for a meaningful rate
log = logging.getLogger("rplctl.receiver")


class Observer:
    """The observer for one run of a receiver. `info` is the MasterInfo of the last connection."""

    def __init__(self, config: Config, channel: Channel, ended: threading.Event) -> None:
        self._config, self._channel, self._ended = config, channel, ended
        self._space: deque[tuple[float, int]] = deque(maxlen=_LOOKS)  # (time.monotonic(), bytes of relay logs)
        self._kept: Kept | None = None
        self._next = 0.0  # time.monotonic()
        self.info = MasterInfo()

    def run(self, status_of: ThreadStatus) -> None:
        """Observe until the receiver ends, and write the values into the receiver's status `status_of`."""
        while not self._ended.wait(TICK_S):
            try:
                status_of.relay_disk_full_at = self._disk_full_at()
                if status_of.connected and self._config.source_poll and time.monotonic() >= self._next:
                    self._look(status_of)
            except (RplError, OSError, ValueError, ArithmeticError, LookupError, TypeError) as error:
                # a source may send any value
                self._next = time.monotonic() + REFUSED_S
                log.info("the source is not polled for an hour: %s", error)

    def _disk_full_at(self) -> float:
        """Return the time at which the disk will be full if the relay logs grow as in the last minutes.

        The time is in Unix seconds. 0 means that it is more than 30 days away, or that relay_log_space_limit stops the
        receiver before.
        """
        space, now = relay_log_space(self._channel), time.monotonic()
        self._space.append((now, space))
        then, before = self._space[0]
        if now - then < _LEAST_S or space <= before:
            return 0.0
        free = shutil.disk_usage(self._channel.datadir).free
        limit = self._config.relay_log_space_limit
        if limit and limit - space < free:
            return 0.0
        left_s = free * (now - then) / (space - before)
        return time.time() + left_s if left_s < _IN_SIGHT_S else 0.0

    def _look(self, status: ThreadStatus) -> None:
        info = self.info
        if not info.host or info.master_binlog_dir:
            return
        self._next = time.monotonic() + self._config.source_poll
        with survey(info, reveal(info.user_password, self._config.datadir), self._config) as ask:
            kept = look(ask)
        before, self._kept = self._kept, kept
        written = bytes_written(before, kept) if before else None
        rate = written / (kept.at - before.at) if before and written is not None and kept.at > before.at else 0.0
        read = BinlogPosition(status.read_log_name, status.read_log_pos)
        status.clock_difference, status.clock_error = kept.clock.difference, kept.clock.error
        status.source_log_name, status.source_log_pos = kept.end.log_name, kept.end.log_pos
        status.source_bytes_per_s = rate
        status.source_seen, status.source_keeps_s = kept.at, kept.keeps_s
        status.source_purge_at = purge_at(kept, read, status.read_timestamp, rate) or 0.0
