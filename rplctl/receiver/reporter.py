"""The receiver's status file: what `show-status` prints of it. Written at most five times a second, and on every
change of state.
"""

from __future__ import annotations

import time
from typing import Final

from rplctl.channel import Channel
from rplctl.errors import RplError
from rplctl.position import BinlogPosition
from rplctl.source import SourceIdentity
from rplctl.status import read_status

INTERVAL_S: Final = 0.2
WAITING: Final = "Waiting for master to send event"


class Reporter:
    def __init__(self, channel: Channel) -> None:
        self._path = channel.status_path("receiver")
        self._written = 0.0
        self.status = read_status(self._path)

    def state(self, text: str) -> None:
        self.status.state = text
        self._write()

    def connected(self, identity: SourceIdentity) -> None:
        """A connection stands: MySQL forgets the last error here."""
        status = self.status
        status.connected = True
        status.last_errno, status.last_error, status.last_error_timestamp = 0, "", 0.0
        status.master_server_id, status.master_uuid = identity.server_id, identity.uuid
        status.master_version, status.clock_difference = identity.version, identity.clock_difference
        self.state(WAITING)

    def received(self, position: BinlogPosition, gtids: str) -> None:
        self.status.read_log_name, self.status.read_log_pos = position.log_name, position.log_pos
        self.status.retrieved_gtid_set = gtids
        self.status.state = WAITING
        self.tick()

    def heartbeat(self) -> None:
        self.status.received_heartbeats += 1

    def retrying(self, error: RplError, *, is_first: bool) -> None:
        self._error(error)
        self.status.connected = False
        self.state("Reconnecting after a failed master event read" if is_first else "Connecting to master")

    def failed(self, error: RplError) -> None:
        """Final: the way out is told with it, as the applier does."""
        self._error(error)
        self.status.last_error += f" (hint: {error.hint})" if error.hint else ""

    def stopped(self) -> None:
        self.status.connected = False
        self.state("")

    def tick(self) -> None:
        if time.monotonic() - self._written >= INTERVAL_S:
            self._write()

    def _error(self, error: RplError) -> None:
        self.status.last_errno = error.errno or 1593
        self.status.last_error = error.message
        self.status.last_error_timestamp = time.time()

    def _write(self) -> None:
        self._written = time.monotonic()
        self.status.write(self._path)
